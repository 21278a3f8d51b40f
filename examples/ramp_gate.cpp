// A residual gate that follows the training step: the branches of deep blocks join the network later.
#include <plumb/vision.h>

#include <algorithm>
using namespace plumb;

// x + r f(LN(x)), r = min(step / (T l), 1) in block l, counted from 1. No parameters.
struct Ramp : nn::Gate {
  explicit Ramp(const nn::GateContext& c)
      : step(c.training_step()), steps(c.constant("T") * static_cast<double>(c.block + 1)) {}

  // In training, step() is the current step. In evaluation, it is the last step that the model was trained with, so
  // that evaluation measures the network that was trained.
  Tensor r() const { return full({1}, std::min(static_cast<double>(step()) / steps, 1.0)); }

  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return gated_residual(skip, branch, r()); }
  std::optional<Tensor> plain_scale() const override { return r(); }  // the last product of the branch adds the sum
  Tensors scales() const override { return {}; }                   // no trained factor to set when weights are loaded
  Tensor values(const nn::Stream&) const override { return r(); }  // what layers.csv shows as the gate

  nn::TrainingStep step;
  double steps;
};

int main(int argc, char** argv) {
  nn::register_method<Ramp>(
      "ramp", {.formula = "x + r f(LN(x)), r = min(step / (T l), 1)",
               .source = "this example",
               .constants = {{.name = "T", .standard = 10, .least = 1, .meaning = "steps of the ramp of block 1"}}});
  return lab::depth_stability(argc, argv);  // try --gates ramp,ramp:T=1,pre --depths 12,48 --seeds 0..4
}
