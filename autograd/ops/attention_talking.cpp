// Talking heads (Shazeer et al. 2020), as in CaiT: S = scale q k^T, S'_i = sum_j P_ij S_j + p_i, A = softmax(S'), A'_i
// = sum_j R_ij A_j + r_i, then dropout, then A' v. Each entry needs all heads, so a kernel that loops over keys cannot
// fuse the op. The op consists of matrix products, and of a softmax and a dropout whose masks are not stored.
#include "autograd/ops/attention_masks.h"
#include "core/backend.h"

namespace plumb {
Tensor mix_heads(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  detail::check_operands("mix_heads", x, weight);
  detail::check_operands("mix_heads", x, bias);
  check(x.shape().rank() == 4, "[mix_heads] expected x [B, H, N, M], got {}", x.shape());
  const std::int64_t H = x.dim(1);
  check(weight.shape() == Shape{H, H} && bias.shape() == Shape{H},
        "[mix_heads] expected weight [{0}, {0}] and bias [{0}] for x {1}, got {2} and {3}", H, x.shape(),
        weight.shape(), bias.shape());
  return reshape(matmul(weight, reshape(x, {x.dim(0), H, x.dim(2) * x.dim(3)})) + reshape(bias, {H, 1}), x.shape());
}

Tensor attention_talking(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& pre_weight,
                         const Tensor& pre_bias, const Tensor& post_weight, const Tensor& post_bias,
                         const AttentionMasking& options) {
  const AttentionCall call = detail::make_call("attention_talking", q, k, v, options);
  const Tensor scores = mix_heads(matmul(q, k, false, true) * call.scale, pre_weight, pre_bias);
  const Tensor p = mix_heads(detail::masked_softmax(call, options.keep, scores), post_weight, post_bias);
  return matmul(detail::dropped(call, p), v);
}

}  // namespace plumb
