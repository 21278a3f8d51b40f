// Exponential moving average of a model's weights, to evaluate with.
#pragma once

#include "nn/module.h"
#include "nn/named_tensors.h"

namespace plumb::nn {

struct EmaOptions {
  double decay = 0.9999;  // in [0, 1]
  // Update t, counted from 0, has decay min(decay, (1 + t) / (10 + t)), as TensorFlow's ExponentialMovingAverage has it
  // with num_updates: the first weights are soon forgotten. (timm's ModelEmaV3 warms up by another formula.)
  bool warm_up = false;
};

// average = decay average + (1 - decay) weight, begun with the weights as they are when it is made. It covers every
// parameter of the model, statistics and frozen ones too, so freezing and unfreezing change nothing. The model must be
// complete when the average is made. If parameters were replaced, added or removed since, update(), swap(), state() and
// load_state() throw one error that names them, and nothing changes; the swap() that puts the weights back does not
// throw.
class Ema {
 public:
  // The model must live as long as the average. Throws for a decay outside its bounds, and for a parameter under two
  // names.
  Ema(const Module& model, const EmaOptions& options);
  Ema(const Module&& model, const EmaOptions& options) = delete;

  // To be called after each step of the optimizer. Throws while the averages are swapped in.
  void update();
  // Exchanges averages and weights, in the parameters' own buffers; a second call puts the weights back.
  void swap();

  std::int64_t updates() const { return updates_; }
  bool swapped() const { return swapped_; }  // whether the averages are in the parameters' buffers
  // "updates", and "<parameter>.average" in the parameters' shapes: a copy. To be saved and loaded while the weights
  // are in place.
  NamedTensors state() const;
  // Throws, and changes nothing, for what does not fit or a negative "updates".
  void load_state(const NamedTensors& state);

 private:
  void check_model() const;
  NamedTensors averages() const;

  const Module& model_;
  std::vector<Parameter> parameters_;
  EmaOptions options_;
  std::vector<Out> averages_;
  Array held_;  // room for the largest weight off the host, where swap() must not fail for want of memory
  std::int64_t updates_ = 0;
  bool swapped_ = false;
};

// While one lives, the model has the averaged weights. Throws inside another of the same average, which would put the
// weights back.
class EmaScope {
 public:
  [[nodiscard("the model has the averages while the scope lives; name it: EmaScope scope(ema);")]] explicit EmaScope(
      Ema& ema);
  ~EmaScope() { ema_.swap(); }
  EmaScope(const EmaScope&) = delete;
  EmaScope& operator=(const EmaScope&) = delete;

 private:
  Ema& ema_;
};

}  // namespace plumb::nn
