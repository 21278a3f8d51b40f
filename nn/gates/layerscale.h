// LayerScale (Touvron et al. 2021, CaiT): y = x + gamma * f(LN(x)), gamma [dim] learned, started small.
#pragma once

#include "nn/gates/gate.h"

namespace plumb::nn {

// CaiT's initial value by total depth in blocks: 0.1 up to 18, 1e-5 up to 24, 1e-6 deeper. The paper states 18, 24 and
// 36; the gaps are ours. (The released XXS36 uses 1e-5, against the rule.)
double layerscale_init(std::int64_t blocks);
// Where that value comes from at this depth: the paper, or us in the gaps.
std::string layerscale_init_source(std::int64_t blocks);

// gamma (dim), every entry init_value (0 is a value like any other), never decayed. Usable on its own, or as a block's
// gate.
class LayerScale : public ScaleGate {
 public:
  explicit LayerScale(std::int64_t dim, double init_value = 1e-4);

  Tensor operator()(const Tensor& x) const;  // x [.., dim] -> gamma * x, same shape and dtype
  const Tensor& gamma() const { return scale_; }
  std::int64_t flop_count(std::int64_t tokens) const { return tokens * scale_.numel(); }  // multiplications
};

}  // namespace plumb::nn
