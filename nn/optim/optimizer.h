// Optimizers. step(gradients) changes the parameters in place.
#pragma once

#include <deque>
#include <span>

#include "autograd/backward.h"
#include "core/readback.h"
#include "nn/io/named_tensors.h"
#include "nn/module.h"
#include "nn/optim/learning_rate.h"

namespace plumb::nn {

// Loss and gradient norm of one step. On a device, these numbers may arrive after the step.
class StepReading {
 public:
  explicit StepReading(const Array& state) : state_(state) {}  // `state` is a StepState
  // Returns whether loss() and norm() can return without waiting.
  bool arrived() const { return state_.arrived(); }
  // Returns the loss of the step. Waits until the loss has arrived.
  double loss() const { return state_.values()[2]; }
  // Returns the norm of the gradients of all parameters that the optimizer updates. Waits until the norm has arrived.
  double norm() const;

 private:
  Readback state_;
};

// Base class of optimizers. Each step reads the factors and `frozen` of the parameters again. The optimizer allocates
// the memory for a parameter (such as moments) at the first update of this parameter. The bias correction counts the
// updates of each parameter separately: when a parameter is unfrozen, its memory and its count continue from the values
// at the freezing. The constructors throw Error for options outside their stated bounds, for parameters of different
// dtypes or devices, and for a parameter that is given twice.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Makes one update. Throws Error, and changes nothing, in these cases:
  //   - A parameter that is not frozen has no gradient, or a gradient of another shape, dtype or device.
  //   - A factor, or the learning rate of this step, is negative or not finite.
  //   - `gradients` has a gradient of a variable that the optimizer does not hold. This variable would never train;
  //   usually a module or tensor was not registered.
  //   - The gradient of a parameter that is not frozen has an inf or a NaN, or the norm of all such gradients overflows
  //   f64. A later step can still be valid.
  // In host memory, the last case is detected immediately, by one pass over the gradients, and the message names the
  // parameters. On a device, the optimizer does not wait for the result: the kernels skip this update and all later
  // updates. The first call of step(), state() or check_finite() after the numbers have arrived throws an Error that
  // names the step. The optimizer then resets its step count to the number before the skipped steps. After the last
  // step of a loop, call check_finite().
  void step(const Gradients& gradients);
  // Makes one update like step(), but ignores gradients of variables that this optimizer does not hold.
  void step_own(const Gradients& gradients);
  // Makes one update like step() if the loss and the norm of the gradients are finite. After the first call in which
  // the loss or the norm is not finite, this call and all later calls change no parameter, until load_state(). These
  // calls still count as steps. The function does not wait for the device: the returned numbers may arrive later.
  StepReading step_while_finite(const Gradients& gradients);

  // Waits for the unfinished steps on a device. If a gradient in one of these steps was not finite, resets the step
  // count to the number before this step, and throws Error. In host memory, every step is finished when step() returns.
  void check_finite() { take_arrived(true); }

  std::int64_t steps_taken() const { return steps_; }
  // Returns the learning rate of the next step.
  double learning_rate() const { return lr_.at(steps_); }
  // Returns the parameters grouped by their factors as text, with one line for each group: the factor of the learning
  // rate, the weight decay, and the numbers of tensors and elements. The groups are in order of descending size, with
  // groups of frozen parameters last.
  std::string describe_groups() const;

  // state() returns a copy of the optimizer's memory:
  //   - "steps";
  //   - "<parameter>.moment1" and the like, with the shapes of the parameters;
  //   - "<parameter>.steps", the number of updates of the parameter, if this number differs from "steps" because the
  //   parameter was frozen in some steps.
  // state() calls check_finite() first, and throws its errors. After load_state() into an optimizer with the same
  // options, training continues exactly as without the interruption. load_state() throws one Error, and changes
  // nothing, if names, shapes or dtypes do not match, or if a count is negative. The message lists all mismatches.
  NamedTensors state();
  void load_state(const NamedTensors& state);

 protected:
  // The weight decay of a parameter is weight_decay times its decay_factor; the default decay_factor is 1 for
  // Role::weight and 0 for other roles. If clip_norm is above 0, the gradients are scaled so that the norm of the
  // gradients of all parameters that are not frozen is at most clip_norm. weight_decay and clip_norm must be finite and
  // at least 0.
  Optimizer(std::vector<Parameter> parameters, LearningRate lr, double weight_decay, double clip_norm);

  // The update of one parameter in one step.
  struct Update {
    std::size_t index;  // index of the parameter
    Array gradient;
    Out parameter;
    double lr, weight_decay, eps_factor;
    std::int64_t step;  // number of updates of this parameter up to and including this update
  };
  // Makes one step of all parameters that are not frozen. `state` (a StepState, or undefined) is on the device of the
  // parameters, and the kernels read `state` there. `state` holds the factor of all gradients, and whether the step is
  // made. If `state` says that the step is not made, a custom optimizer must change nothing.
  virtual void update(std::span<const Update> updates, const Array& state) = 0;

  // Returns one array per parameter, with the shape of the parameter and filled with `initial`; state() saves it as
  // "<parameter>.<name>". The array of a parameter that was always frozen is undefined. The arrays of all parameters in
  // the argument of update() are defined. The span is valid as long as the optimizer lives.
  std::span<const Out> remembered(const std::string& name, double initial = 0);

 private:
  struct Memory {
    std::vector<Out> arrays;  // one array for each parameter
    double initial;
  };
  // A step on a device, whose numbers may not have arrived yet. `steps` and `updates` are the counts before the step.
  struct Pending {
    Array state;  // the StepState of the step
    Readback reading;
    std::int64_t steps;
    std::vector<std::int64_t> updates;
  };
  enum class Others { refused, allowed };  // whether step() refuses gradients of variables of other optimizers
  // If `loss` is defined, the step is made only while the loss is finite. Returns the state of the step; undefined if
  // the step needs no state.
  Array step(const Gradients& gradients, Others others, const Array& loss);
  // Removes the pending steps whose numbers have arrived. If `wait` is true, first waits for the numbers of all pending
  // steps. Throws Error for a step with numbers that are not finite. Neither this step nor a later step has changed a
  // parameter, so the counts are reset to the values before this step.
  void take_arrived(bool wait);
  Array fresh(const Memory& memory, std::size_t i) const {
    return full_like(parameters_[i].value.array(), parameters_[i].value.shape(), memory.initial);
  }

  std::vector<Parameter> parameters_;
  LearningRate lr_;
  double weight_decay_, clip_norm_;
  Array state_;                        // the StepState of the last call of step_while_finite()
  std::vector<std::int64_t> updates_;  // the number of updates of each parameter
  std::int64_t steps_ = 0;
  std::deque<Pending> pending_;
  std::map<std::string, Memory> memory_;
};

// Options of AdamW. The norm of the gradients is clipped at clip_norm; 0 means no clipping.
struct AdamWOptions {
  LearningRate lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;  // beta1 and beta2 in [0, 1), eps above 0
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
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-6;  // beta1 and beta2 in [0, 1), eps above 0
  double weight_decay = 0.01;
  double clip_norm = 0;  // timm clips at norm 1 by default
};

// LAMB (You et al. 2020), as in timm: u = m^ / (sqrt(v^) + eps) + wd p; p -= lr r u. The trust ratio r = |p| / |u| of
// each tensor has no bounds, and is 1 if one of the norms is 0. Parameters without weight decay have r = 1, as in timm
// without always_adapt; in the paper, r = |p| / |u| for all parameters.
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
  double momentum = 0;    // the momentum, in [0, 1)
  bool nesterov = false;  // Nesterov momentum; needs momentum above 0
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
  double lr_decay = 0;  // step s, from 0, has the learning rate lr / (1 + s lr_decay); lr_decay is at least 0
  double eps = 1e-10, initial_accumulator = 0;  // `eps` is above 0, `initial_accumulator` at least 0
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
