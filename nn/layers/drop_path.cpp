#include "nn/layers/drop_path.h"

#include "autograd/ops.h"
#include "core/backend.h"
#include "core/random.h"

namespace plumb::nn {

DropPath::DropPath(double rate, std::uint32_t branch, DropPathForm form)
    : Layer("DropPath"), rate_(rate), branch_(branch), form_(form) {
  survivable_threshold("drop_path", "rate", rate);
}

Tensor DropPath::row_scale(const Tensor& like) const {
  const std::uint32_t threshold = drop_threshold(rate_);
  const double survival = 1 - threshold / 65536.0;
  if (threshold == 0 || (!training() && form_ == DropPathForm::rescaled)) return {};
  if (!training()) return full({like.dim(0)}, survival, {like.dtype(), like.device()});
  const RandomState& random = random_state_for("drop_path");
  const std::uint64_t key = random_key(random.seed, *path());
  const double kept = form_ == DropPathForm::rescaled ? 1 / survival : 1;
  Array scale({like.dim(0)}, like.dtype(), like.device());
  kernels(scale).drop_path_scale(key, random.step, random.first_sample, branch_, threshold, kept, scale);
  return Tensor(scale);
}

Tensor DropPath::forward(const Tensor& x) const {
  const Tensor scale = row_scale(x);
  return scale.defined() ? gated_residual(zeros_like(x), x, {}, scale) : x;
}

}  // namespace plumb::nn
