// ActNorm (Kingma, Dhariwal 2018) as a gate: x + s * f(LN(x)) + t. calibrate() sets the scale s [D] and the shift t [D]
// from the first batch, so that every channel of the added term has mean 0 and variance 1 over samples and tokens.
// Training then learns s and t. Before calibrate(), s = 1 and t = 0, so the method equals pre-norm. LayerScale is the
// counterpart that does not depend on data: the initial value of LayerScale's scale is small.
#include <cmath>

#include "nn/gates/gate_forms.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

class ActNormGate : public AfterGate {
 public:
  explicit ActNormGate(const GateContext& c)
      : layout_(c.layout),
        scale_(parameter("scale", {c.dim}, Init::constant(1), Role::gate)),
        shift_(parameter("shift", {c.dim}, Init::constant(0), Role::gate)) {}
  Tensor after(const Tensor& branch) const override {
    return branch * per_channel(scale_, layout_) + per_channel(shift_, layout_);
  }
  Tensor values(const Stream&) const override { return scale_; }  // not shift_, because the shift multiplies nothing
  void calibrate(const Tensor&, const Tensor& branch, std::optional<double>&) const override {
    const Tensor last = layout_ == Layout::images ? permute(branch, {0, 2, 3, 1}) : branch;  // the channels
    const Tensor rows = plumb::detail::as_matrix(last);
    const Tensor centre = mean(rows, {0});
    const std::vector<double> centres = centre.values();
    std::vector<double> scales = mean((rows - centre) * (rows - centre), {0}).values();
    // A channel that is constant up to rounding keeps scale 1.
    for (std::size_t i = 0; i < scales.size(); ++i)
      scales[i] = scales[i] > 1e-12 * centres[i] * centres[i] ? 1 / std::sqrt(scales[i]) : 1;
    const Tensor scale = tensor(scales, scale_.shape(), {scale_.dtype(), scale_.device()});
    set(scale_, scale);
    set(shift_, -centre * scale);
  }

 private:
  Layout layout_;
  Tensor scale_, shift_;
};

}  // namespace

Method methods::act_norm() {
  return {.name = "act_norm",
          .norm = Norm::pre,
          .formula = "x + s * f(LN(x)) + t, s, t [D] from the first batch",
          .source = "Kingma, Dhariwal 2018, Glow: generative flow with invertible 1x1 convolutions",
          .use = "A counterpart of LayerScale whose scale and shift are set from data, for 4D parameters per block.",
          .pitfalls =
              "Before calibrate(), `act_norm` equals pre-norm. The result depends on the first batch. Every branch "
              "adds a variance of 1 from the first step on.",
          .build = gates_from<ActNormGate>};
}

}  // namespace plumb::nn
