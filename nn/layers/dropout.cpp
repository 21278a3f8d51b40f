#include "nn/layers/dropout.h"

#include "autograd/ops.h"
#include "core/random.h"

namespace plumb::nn {

Dropout::Dropout(double p) : Layer("Dropout"), p_(p) { survivable_threshold("dropout", "probability", p); }

Tensor Dropout::forward(const Tensor& x) const { return training() ? dropout(x, p_) : x; }

}  // namespace plumb::nn
