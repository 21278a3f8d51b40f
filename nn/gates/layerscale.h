// LayerScale (Touvron et al. 2021, CaiT): y = x + gamma * f(LN(x)), where gamma [dim] is learned and starts small.
#pragma once

#include "nn/gates/gate.h"

namespace plumb::nn {

// CaiT's initial value of gamma as a function of the depth in blocks: 0.1 up to 18, 1e-5 up to 24, 1e-6 above. The
// paper states the value at 18, 24 and 36 blocks; the values between them are ours. (The released model XXS36 uses
// 1e-5, against the rule.)
double layerscale_init(std::int64_t blocks);
// The source of layerscale_init() at this depth, for reports: the paper, or our rule between the published depths.
std::string layerscale_init_source(std::int64_t blocks);

// Multiplies its input by gamma [dim], every element of which starts at init_value (any finite number, also 0). gamma
// never decays. It can be used as a layer, or as the gate of a block. The constructor throws Error for a width below 1
// or a value that is not finite.
class LayerScale : public ScaleGate {
 public:
  explicit LayerScale(std::int64_t dim, double init_value = 1e-4);

  // Maps x [.., dim] to gamma * x, of the same shape and dtype. Throws Error for another width.
  Tensor operator()(const Tensor& x) const;
  const Tensor& gamma() const { return scale_; }
  // The number of multiplications for this many tokens.
  std::int64_t flop_count(std::int64_t tokens) const { return tokens * scale_.numel(); }
};

}  // namespace plumb::nn
