// Optimizers: step(gradients) changes the parameters in place.
#pragma once

#include <deque>
#include <span>

#include "autograd/backward.h"
#include "core/readback.h"
#include "nn/module.h"
#include "nn/named_tensors.h"
#include "nn/optim/learning_rate.h"

namespace plumb::nn {

// Parameters with the same factors.
struct ParameterGroup {
  double lr_factor, weight_decay, eps_factor;  // weight_decay: that of the optimizer times the parameter's decay_factor
  std::vector<std::string> names;
  std::int64_t elements;
  bool frozen;
};

// Loss and gradient norm of one step. They may still be on their way from the device.
class StepReading {
 public:
  explicit StepReading(const Array& state) : state_(state) {}  // state: a StepState
  // Whether loss() and norm() can return without waiting.
  bool arrived() const { return state_.arrived(); }
  // The loss of the step; waits until it has arrived.
  double loss() const { return state_.values()[2]; }
  // The norm of the gradients of all parameters that the optimizer moves; waits likewise.
  double norm() const;

 private:
  Readback state_;
};

// Base class of optimizers. Each step reads the factors and `frozen` of the parameters again. The optimizer's memory of
// a parameter (such as moments) starts when it is first needed, and its bias correction counts the updates of that
// parameter: a parameter that was frozen continues where it stopped. The constructors throw Error for options outside
// their stated bounds, for parameters of different dtypes or devices, and for a parameter that is given twice.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Makes one update. Throws Error, and changes nothing, in these cases:
  //   - A parameter that is not frozen has no gradient, or one of another shape, dtype or device.
  //   - A factor, or the learning rate of this step, is negative or not finite.
  //   - There is a gradient of a variable that the optimizer does not hold. That variable would never train; usually a
  //   module or tensor was not registered.
  //   - The gradient of a parameter that the optimizer moves has an inf or a NaN, or the norm of these gradients
  //   overflows f64. The next step may then be a good one.
  // The last case is detected at once in host memory, by one pass over the gradients, and the message names the
  // parameters. On a device, the optimizer does not wait: the kernels skip this update and those after it, and the
  // first step(), state() or check_finite() after the numbers have arrived throws an Error that names the step. The
  // optimizer then counts its steps from there, because the skipped steps were not made. After the last step of a loop,
  // call check_finite().
  void step(const Gradients& gradients);
  // Makes one update like step(), but ignores gradients of other variables, which other optimizers hold.
  void step_own(const Gradients& gradients);
  // Makes one update like step(), unless the loss or the norm of the gradients is not finite, now or in an earlier
  // call. In that case nothing changes, now and in later calls, until load_state(); steps are counted all the same. It
  // waits for nothing: on a device, the returned numbers arrive later.
  StepReading step_while_finite(const Gradients& gradients);

  // Waits for the steps that a device has not finished, and throws Error if one of them had a gradient that is not
  // finite. In host memory no step is unfinished.
  void check_finite() const { take_arrived(true); }

  // The number of steps taken.
  std::int64_t steps_taken() const { return steps_; }
  // The learning rate of the next step.
  double learning_rate() const { return lr_.at(steps_); }
  // The parameters by their factors, for logs: groups in order of descending size, frozen ones last.
  std::vector<ParameterGroup> groups() const;
  // The groups as text, one line each.
  std::string describe_groups() const;

  // state() returns a copy of the optimizer's memory:
  //   - "steps";
  //   - "<parameter>.moment1" and the like, with the shapes of the parameters;
  //   - "<parameter>.steps", the number of updates of the parameter, if it differs from "steps" because the parameter
  //   was frozen for some of them.
  // state() waits for unfinished steps, and throws Error as check_finite() does. After load_state() into an optimizer
  // with the same options, training continues as if it had never stopped. load_state() throws one Error, and changes
  // nothing, if names, shapes or dtypes do not fit (the message lists them), or if a count is negative.
  NamedTensors state() const;
  void load_state(const NamedTensors& state);

 protected:
  // weight_decay is multiplied by a parameter's decay_factor, which is 1 for weights and 0 for other roles, unless it
  // was changed. If clip_norm is above 0, the gradients are scaled so that the norm of all gradients that the optimizer
  // moves is at most clip_norm. Both must be finite and at least 0.
  Optimizer(std::vector<Parameter> parameters, LearningRate lr, double weight_decay, double clip_norm);

  // The update of one parameter in one step.
  struct Update {
    std::size_t index;  // index of the parameter
    Array gradient;
    Out parameter;
    double lr, weight_decay, eps_factor;
    std::int64_t step;  // number of this update among those of the parameter, counted from 1
  };
  // Makes one step of all parameters that are not frozen. `state` (a StepState, or undefined) is on the device of the
  // parameters. It holds the factor of all gradients and whether the step is made at all; the kernels read it there. A
  // custom optimizer must change nothing if the state says that the step is not made.
  virtual void update(std::span<const Update> updates, const Array& state) = 0;

  // Returns one array per parameter, with the shape of the parameter and filled with `initial`; state() saves it as
  // "<parameter>.<name>". The array of a parameter that was always frozen is undefined; those that update() needs are
  // defined. The span is valid as long as the optimizer lives.
  std::span<const Out> remembered(const std::string& name, double initial = 0);

 private:
  struct Memory {
    std::vector<Out> arrays;  // one for each parameter
    double initial;
  };
  // A step on a device whose numbers may not have arrived, and the counts before the step.
  struct Pending {
    Array state;  // StepState
    Readback reading;
    std::int64_t steps;
    std::vector<std::int64_t> updates;
  };
  enum class Others { refused, allowed };  // whether gradients of variables of other optimizers are refused
  // If `loss` is defined, the step is made only while the loss is finite. Returns the state of the step; undefined if
  // none was needed.
  Array step(const Gradients& gradients, Others others, const Array& loss);
  // Removes the pending steps whose numbers have arrived, or all of them after waiting. Throws Error for a step that
  // was not finite. No step from that one on has changed anything, so the counts are reset to their values before it.
  void take_arrived(bool wait) const;
  Array fresh(const Memory& memory, std::size_t i) const {
    return full_like(parameters_[i].value.array(), parameters_[i].value.shape(), memory.initial);
  }

  std::vector<Parameter> parameters_;
  LearningRate lr_;
  double weight_decay_, clip_norm_;
  Array state_;  // of the last call of step_while_finite()
  // Mutable, because state() and check_finite(), which are const, find out which of the pending steps were made.
  mutable std::vector<std::int64_t> updates_;  // updates of each parameter
  mutable std::int64_t steps_ = 0;
  mutable std::deque<Pending> pending_;
  std::map<std::string, Memory> memory_;
};

// Options of AdamW. clip_norm: see Optimizer; 0 means no clipping.
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

// Options of Lamb.
struct LambOptions {
  LearningRate lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-6;  // betas in [0, 1), eps above 0
  double weight_decay = 0.01;
  double clip_norm = 0;  // timm clips at norm 1 by default
};

// LAMB (You et al. 2020), as in timm: u = m^ / (sqrt(v^) + eps) + wd p; p -= lr r u. The trust ratio r = |p| / |u| of
// each tensor has no bounds, and is 1 if one of the norms is 0. Parameters that do not decay have r = 1, as in timm
// without always_adapt; the paper adapts all parameters.
class Lamb : public Optimizer {
 public:
  Lamb(std::vector<Parameter> parameters, const LambOptions& options);

 protected:
  void update(std::span<const Update> updates, const Array& state) override;

 private:
  LambOptions options_;
  std::span<const Out> moment1_, moment2_;
};

// Options of Sgd.
struct SgdOptions {
  LearningRate lr = 0.1;
  double momentum = 0;    // in [0, 1)
  bool nesterov = false;  // needs momentum above 0
  double weight_decay = 0;
  double clip_norm = 0;
};

// SGD: g += wd p; v = momentum v + g; p -= lr v, or p -= lr (g + momentum v) with nesterov.
class Sgd : public Optimizer {
 public:
  Sgd(std::vector<Parameter> parameters, const SgdOptions& options);

 protected:
  void update(std::span<const Update> updates, const Array& state) override;

 private:
  SgdOptions options_;
  std::span<const Out> velocity_;
};

// Options of Adagrad.
struct AdagradOptions {
  LearningRate lr = 0.01;
  double lr_decay = 0;  // step s, counted from 0, has the learning rate lr / (1 + s lr_decay); at least 0
  double eps = 1e-10, initial_accumulator = 0;  // eps above 0, initial_accumulator at least 0
  double weight_decay = 0;
  double clip_norm = 0;
};

// Adagrad (Duchi, Hazan, Singer 2011), as in PyTorch: g += wd p; sum += g^2; p -= lr g / (sqrt(sum) + eps).
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
