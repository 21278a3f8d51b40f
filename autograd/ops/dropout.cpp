// Dropout: y = m x / (1 - p), with m drawn for each element. The op is linear in x, and its mask can be drawn again, so
// its gradient is the op itself and no mask is kept.
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"
#include "core/scope.h"

namespace plumb {
namespace {

Tensor masked(const Tensor& x, std::uint64_t key, std::uint32_t step, std::uint32_t threshold,
              std::uint64_t first_element) {
  Array y = empty_like(x.array());
  kernels(y).dropout(x.array(), key, step, threshold, first_element, y);
  return record("dropout", y, {x},
                [=](const Tensor& dy) { return Tensors{masked(dy, key, step, threshold, first_element)}; });
}

}  // namespace

Tensor dropout(const Tensor& x, double p) {
  if (x.defined() && x.dtype() == DType::bf16) return dropout(cast(x, DType::f32), p);
  detail::check_float("dropout", x);
  const std::uint32_t threshold = survivable_threshold("dropout", "probability", p);
  if (threshold == 0 || x.numel() == 0) return x;
  const RandomState& random = random_state_for("dropout", "or use nn::Dropout, which eval() on the model turns off");
  const std::int64_t per_sample = x.shape().rank() > 0 ? x.numel() / x.dim(0) : 1;
  return masked(x, random_key(random.seed, current_path() ? *current_path() : ""), random.step, threshold,
                static_cast<std::uint64_t>(random.first_sample) * static_cast<std::uint64_t>(per_sample));
}

}  // namespace plumb
