// Optimizers: step(gradients) changes parameters in place.
#pragma once

#include "autograd/backward.h"
#include "nn/module.h"
#include "nn/optim/learning_rate.h"

namespace plumb::nn {

// Parameters that are treated alike: what a role and a rate factor resolve to.
struct ParameterGroup {
  double lr_factor;
  double weight_decay;
  std::vector<std::string> names;
  std::int64_t elements;
};

// Takes the parameters as they are when it is made: freeze() before that.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // One update. Throws if a parameter that is not frozen has no gradient.
  void step(const Gradients& gradients);

  std::int64_t steps_taken() const { return steps_; }
  double learning_rate() const { return lr_.at(steps_); }  // of the next step
  std::vector<ParameterGroup> groups() const;              // for logs, by descending size
  std::string describe_groups() const;                     // one line a group

 protected:
  // clip_norm: gradients are scaled so that the norm of all that the optimizer moves is at most this; 0 leaves them.
  Optimizer(std::vector<Parameter> parameters, LearningRate lr, double weight_decay, double clip_norm);

  struct Update {
    std::size_t index;  // of the parameter
    Array gradient, parameter;
    double lr, weight_decay, gradient_scale;
    std::int64_t step;  // counted from 1
  };
  virtual void update(const Update& u) = 0;
  const std::vector<Parameter>& parameters() const { return parameters_; }

 private:
  std::vector<Parameter> parameters_;
  LearningRate lr_;
  double weight_decay_, clip_norm_;
  std::int64_t steps_ = 0;
};

struct AdamWOptions {
  LearningRate lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0.05;  // of parameters whose role decays: weights
  double clip_norm = 0;
};

// AdamW (Loshchilov, Hutter 2019): p -= lr wd p; p -= lr m^ / (sqrt(v^) + eps).
class AdamW : public Optimizer {
 public:
  AdamW(std::vector<Parameter> parameters, const AdamWOptions& options);

 protected:
  void update(const Update& u) override;

 private:
  AdamWOptions options_;
  std::vector<Array> moment1_, moment2_;
};

struct SgdOptions {
  LearningRate lr = 0.1;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double clip_norm = 0;
};

// SGD: g += wd p; v = momentum v + g; p -= lr v, or lr (g + momentum v) with Nesterov's.
class Sgd : public Optimizer {
 public:
  Sgd(std::vector<Parameter> parameters, const SgdOptions& options);

 protected:
  void update(const Update& u) override;

 private:
  SgdOptions options_;
  std::vector<Array> velocity_;
};

}  // namespace plumb::nn
