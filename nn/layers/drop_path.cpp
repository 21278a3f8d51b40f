#include "nn/layers/drop_path.h"

#include "autograd/ops.h"
#include "core/random.h"

namespace plumb::nn {

DropPath::DropPath(double rate, std::uint32_t branch) : Layer("DropPath"), rate_(rate), branch_(branch) {
  check(0 <= rate && rate < 1, "[drop_path] expected a rate in [0, 1), got {}", rate);
}

Tensor DropPath::row_scale(const Tensor& like) const {
  if (!training() || drop_threshold(rate_) == 0) return {};
  const RandomState& random = random_state();
  const std::uint64_t key = random_key(random.seed, *path());
  std::vector<double> scale(static_cast<std::size_t>(like.dim(0)));
  for (std::size_t b = 0; b < scale.size(); ++b) {
    const Draw d =
        philox({random.step, static_cast<std::uint32_t>(Purpose::drop_path), random.first_sample + static_cast<std::uint32_t>(b), branch_}, key);
    scale[b] = draw16(d, 0) < drop_threshold(rate_) ? 0 : 1 / (1 - drop_threshold(rate_) / 65536.0);
  }
  return tensor(scale, {like.dim(0)}, {like.dtype(), like.device()});
}

Tensor DropPath::forward(const Tensor& x) const {
  const Tensor scale = row_scale(x);
  return scale.defined() ? gated_residual(zeros_like(x), x, {}, scale) : x;
}

Dropout::Dropout(double p) : Layer("Dropout"), p_(p) { check(0 <= p && p < 1, "[dropout] expected a probability in [0, 1), got {}", p); }

Tensor Dropout::forward(const Tensor& x) const { return training() ? dropout(x, p_) : x; }

}  // namespace plumb::nn
