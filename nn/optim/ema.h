// Exponential moving average of a model's weights, for evaluation.
#pragma once

#include "core/device_lost.h"
#include "nn/io/named_tensors.h"
#include "nn/module.h"

namespace plumb::nn {

// Options of an Ema.
struct EmaOptions {
  double decay = 0.9999;  // the decay of the averages, in [0, 1]
  // If `warm_up` is true, update t, counted from 0, uses the decay min(decay, (1 + t) / (10 + t)), as in TensorFlow's
  // ExponentialMovingAverage with num_updates. With this warm-up, the first weights soon have little influence on the
  // average. (timm's ModelEmaV3 uses another formula.) Without warm-up, the share of the initial weights in the average
  // is decay^t after t updates: 97 % after 300 updates with the decay 0.9999. The average then stays near the initial
  // network for about 1 / (1 - decay) updates. For a short training, use warm_up or a smaller decay.
  bool warm_up = false;
};

// Keeps averages of all parameters of a model: average = decay average + (1 - decay) weight. Parameters of
// Role::counter are copied instead. The initial averages are the weights at construction, which the average forgets
// slowly (EmaOptions::warm_up). Statistics and frozen parameters have averages too, so freezing and unfreezing do not
// affect the Ema. The model must have all its parameters when the Ema is constructed. If parameters were replaced,
// added or removed after the construction, update(), swap(), state() and load_state() throw one Error that names these
// parameters, and change nothing. The exception is the swap() that puts the weights back, which does not throw.
class Ema {
 public:
  // The model must live as long as the Ema. Throws Error for a decay outside [0, 1], and if the model has one parameter
  // under two names.
  Ema(const Module& model, const EmaOptions& options);
  Ema(const Module&& model, const EmaOptions& options) = delete;

  // Updates the averages. Call update() after each step of the optimizer. Throws Error while the buffers of the
  // parameters hold the averages.
  void update();
  // Exchanges the averages and the weights: the buffers of the parameters then hold the averages. A second call puts
  // the weights back.
  void swap();

  std::int64_t updates() const { return updates_; }
  // Returns whether the buffers of the parameters hold the averages.
  bool swapped() const { return swapped_; }
  // Returns a copy of the state: "updates", and "<parameter>.average" with the shape of the parameter. Throws Error
  // while the buffers of the parameters hold the averages.
  NamedTensors state() const;
  // Restores a state. Throws Error, and changes nothing, if names, shapes or dtypes do not match, if "updates" is
  // negative, or while the buffers of the parameters hold the averages.
  void load_state(const NamedTensors& state);

 private:
  void check_model() const;
  NamedTensors averages() const;

  const Module& model_;
  std::vector<Parameter> parameters_;
  EmaOptions options_;
  std::vector<Out> averages_;
  Array held_;  // space for the largest weight on a device, so that swap() cannot run out of memory
  std::int64_t updates_ = 0;
  bool swapped_ = false;
};

// Puts the averages into the parameters as long as the scope lives. Throws Error inside another EmaScope of the same
// Ema, because a second swap would put the weights back.
class EmaScope {
 public:
  [[nodiscard(
      "the model has the averages while the scope lives; give the scope a name: EmaScope "
      "scope(ema);")]] explicit EmaScope(Ema& ema);
  ~EmaScope() {
    try {
      ema_.swap();
    } catch (const DeviceLost&) {  // the weights are lost as well
    }
  }
  EmaScope(const EmaScope&) = delete;
  EmaScope& operator=(const EmaScope&) = delete;

 private:
  Ema& ema_;
};

}  // namespace plumb::nn
