// Optimizers: step(gradients) changes parameters in place.
#pragma once

#include <deque>
#include <span>

#include "autograd/backward.h"
#include "core/readback.h"
#include "nn/module.h"
#include "nn/named_tensors.h"
#include "nn/optim/learning_rate.h"

namespace plumb::nn {

// Parameters that are treated alike: what the factors resolve to.
struct ParameterGroup {
  double lr_factor, weight_decay, eps_factor;  // weight_decay: the optimizer's times the parameter's decay_factor
  std::vector<std::string> names;
  std::int64_t elements;
  bool frozen;
};

// What a step was, which may still be under way to the host.
class StepReading {
 public:
  explicit StepReading(const Array& state) : state_(state) {}  // StepState
  bool arrived() const { return state_.arrived(); }            // whether the numbers can be had without waiting
  double loss() const { return state_.values()[2]; }
  double norm() const;  // of the gradients of what the optimizer moves

 private:
  Readback state_;
};

// Each step reads anew which parameters are frozen and their factors. What it remembers of a parameter begins when that
// is first needed, and its bias correction counts the updates of that parameter: one that was frozen goes on where it
// stopped. Its constructor throws for options outside the bounds that they state, and for parameters that are not of
// one dtype on one device, each there once.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // One update. Throws, and changes nothing, if a parameter that is not frozen has no gradient or one of another shape,
  // dtype or device; if a factor is negative or not finite, or the learning rate of this step is; and if there are
  // gradients of variables that are not among its parameters, which then would never train: a module or tensor that was
  // not registered. Throws, and changes nothing, if a gradient of what it moves has an inf or a NaN, or their norm
  // overflows f64; the next step may be a good one. In host memory that is known at once, for one pass over the
  // gradients, and the message names the parameters. On a device nothing waits for it: the kernels skip this update and
  // those after it, and the first step(), state() or check_finite() after the numbers have arrived throws, naming the
  // step. The optimizer then counts its steps from there, as the skipped ones were not made. After the last step of a
  // loop, call check_finite().
  void step(const Gradients& gradients);
  // One update where others hold the rest: the same, but for gradients of other variables, which it leaves alone.
  void step_own(const Gradients& gradients);
  // One update as step() makes it, unless the loss or the gradients' norm is not finite, or was not in an earlier call:
  // then nothing changes, now and in later calls (load_state begins anew); steps are counted nevertheless. Waits for
  // nothing, which step() does not either: on a device, what is returned arrives later.
  StepReading step_while_finite(const Gradients& gradients);

  // Waits for the steps that are under way on a device, and throws if one of them had a gradient that is not finite.
  // Nothing is under way on the host.
  void check_finite() const { take_arrived(true); }

  std::int64_t steps_taken() const { return steps_; }
  double learning_rate() const { return lr_.at(steps_); }  // of the next step
  std::vector<ParameterGroup> groups() const;              // for logs, by descending size, the frozen ones last
  std::string describe_groups() const;                     // one line a group

  // All that it remembers: "steps"; "<parameter>.moment1" and the like, with the shapes of the parameters; and
  // "<parameter>.steps", its updates, where that is another number, as it was frozen for some. A copy; waits for steps
  // that are under way, and throws as check_finite() does. Put back into an optimizer with the same options it
  // continues as if it had never stopped; load_state throws one Error that lists all that does not fit, or says what
  // count is negative; nothing has changed then.
  NamedTensors state() const;
  void load_state(const NamedTensors& state);

 protected:
  // weight_decay: of parameters by their decay_factor: 1 for weights, 0 for others, unless each_parameter() changed it.
  // clip_norm: gradients are scaled so that the norm of all that the optimizer moves is at most this; 0 leaves them.
  // Both finite and at least 0.
  Optimizer(std::vector<Parameter> parameters, LearningRate lr, double weight_decay, double clip_norm);

  struct Update {
    std::size_t index;  // of the parameter
    Array gradient;
    Out parameter;
    double lr, weight_decay, eps_factor;
    std::int64_t step;  // of this parameter's updates, counted from 1
  };
  // One step of all parameters that are not frozen. state (StepState, or undefined) lies with the parameters: the scale
  // of all gradients, and whether the step is made at all, which the kernels read there; an optimizer of your own must
  // leave everything as it is where it says no.
  virtual void update(std::span<const Update> updates, const Array& state) = 0;

  // One array for each parameter, of its shape and at first filled with `initial`, which state() holds under
  // "<parameter>.<name>". Undefined for those that were always frozen; update() finds those that it needs. The span is
  // good for as long as the optimizer lives.
  std::span<const Out> remembered(const std::string& name, double initial = 0);

 private:
  struct Memory {
    std::vector<Out> arrays;  // as many as parameters
    double initial;
  };
  // A step on a device whose numbers may not have arrived, and the counts before it.
  struct Pending {
    Array state;  // StepState
    Readback reading;
    std::int64_t steps;
    std::vector<std::int64_t> updates;
  };
  enum class Others { refused, allowed };  // gradients of variables that are not its own
  // Guarded by a loss, where one is given. Returns the step's state; undefined if none was needed.
  Array step(const Gradients& gradients, Others others, const Array& loss);
  // Forgets the pending steps whose numbers have arrived, or, waiting, all. Throws for one that was not finite, from
  // which on nothing has changed: counts are again what they were before it.
  void take_arrived(bool wait) const;
  Array fresh(const Memory& memory, std::size_t i) const {
    return full_like(parameters_[i].value.array(), parameters_[i].value.shape(), memory.initial);
  }

  std::vector<Parameter> parameters_;
  LearningRate lr_;
  double weight_decay_, clip_norm_;
  Array state_;  // of the last guarded step
  // Mutable: which of the pending steps were made is found out when state() or check_finite() asks.
  mutable std::vector<std::int64_t> updates_;  // of each parameter
  mutable std::int64_t steps_ = 0;
  mutable std::deque<Pending> pending_;
  std::map<std::string, Memory> memory_;
};

struct AdamWOptions {
  LearningRate lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;  // betas in [0, 1), eps above 0
  double weight_decay = 0.05;
  double clip_norm = 0;
};

// AdamW (Loshchilov, Hutter 2019): p -= lr wd p; p -= lr m^ / (sqrt(v^) + eps).
class AdamW : public Optimizer {
 public:
  AdamW(std::vector<Parameter> parameters, const AdamWOptions& options);

 protected:
  void update(std::span<const Update> updates, const Array& state) override;

 private:
  AdamWOptions options_;
  std::span<const Out> moment1_, moment2_;
};

struct LambOptions {
  LearningRate lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-6;  // betas in [0, 1), eps above 0
  double weight_decay = 0.01;
  double clip_norm = 0;  // timm clips at 1 unless told
};

// LAMB (You et al. 2020) as timm has it: u = m^ / (sqrt(v^) + eps) + wd p; p -= lr r u, with the trust ratio r = |p| /
// |u| of each tensor, 1 where either norm is 0, without bounds. Parameters that do not decay have r = 1 (timm without
// always_adapt; the paper adapts all).
class Lamb : public Optimizer {
 public:
  Lamb(std::vector<Parameter> parameters, const LambOptions& options);

 protected:
  void update(std::span<const Update> updates, const Array& state) override;

 private:
  LambOptions options_;
  std::span<const Out> moment1_, moment2_;
};

struct SgdOptions {
  LearningRate lr = 0.1;
  double momentum = 0;    // in [0, 1)
  bool nesterov = false;  // wants momentum above 0
  double weight_decay = 0;
  double clip_norm = 0;
};

// SGD: g += wd p; v = momentum v + g; p -= lr v, or lr (g + momentum v) with Nesterov's.
class Sgd : public Optimizer {
 public:
  Sgd(std::vector<Parameter> parameters, const SgdOptions& options);

 protected:
  void update(std::span<const Update> updates, const Array& state) override;

 private:
  SgdOptions options_;
  std::span<const Out> velocity_;
};

struct AdagradOptions {
  LearningRate lr = 0.01;
  double lr_decay = 0;                          // step s, counted from 0, has lr / (1 + s lr_decay); at least 0
  double eps = 1e-10, initial_accumulator = 0;  // above 0, at least 0
  double weight_decay = 0;
  double clip_norm = 0;
};

// Adagrad (Duchi, Hazan, Singer 2011) as PyTorch has it: g += wd p; sum += g^2; p -= lr g / (sqrt(sum) + eps).
class Adagrad : public Optimizer {
 public:
  Adagrad(std::vector<Parameter> parameters, const AdagradOptions& options);

 protected:
  void update(std::span<const Update> updates, const Array& state) override;

 private:
  AdagradOptions options_;
  std::span<const Out> sum_;
};

}  // namespace plumb::nn
