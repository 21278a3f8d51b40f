// LayerScale (Touvron et al. 2021, CaiT): y = x + gamma * f(LN(x)), with a learned gamma [dim] whose initial value is
// small.
#pragma once

#include "nn/gates/gate.h"

namespace plumb::nn {

// CaiT's initial value of gamma as a function of the depth in blocks: 0.1 up to 18, 1e-5 up to 24, 1e-6 above. The
// paper states the values for 18, 24 and 36 blocks; the values between these depths are Plumb's choice. (The released
// model XXS36 uses 1e-5, against this rule.)
double layerscale_init(std::int64_t blocks);
// Returns the source of layerscale_init() at this depth, for reports: the paper, and between the published depths a
// note that the value is Plumb's choice.
std::string layerscale_init_source(std::int64_t blocks);

// Multiplies the input by the learned vector gamma [dim]. Every element of gamma has the initial value init_value, any
// finite number including 0. Weight decay does not apply to gamma. A LayerScale can be used as a layer, or as the gate
// of a block. The constructor throws Error for a width below 1 or a value that is not finite.
class LayerScale : public ScaleGate {
 public:
  explicit LayerScale(std::int64_t dim, double init_value = 1e-4, Layout layout = Layout::tokens);

  // Maps x [.., dim] (tokens) or [B, dim, H, W] (images) to gamma * x, of the same shape and dtype. Throws Error if the
  // axis of the channels is not dim.
  Tensor operator()(const Tensor& x) const;
  const Tensor& gamma() const { return scale_; }
  // Returns the number of multiplications for this number of tokens, or of pixels.
  std::int64_t flop_count(std::int64_t tokens) const { return tokens * scale_.numel(); }
};

}  // namespace plumb::nn
