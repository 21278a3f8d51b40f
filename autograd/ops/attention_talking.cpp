// Talking heads (Shazeer et al. 2020), as in CaiT: S = scale q k^T, S'_i = sum_j P_ij S_j + p_i, A = softmax(S'), A'_i = sum_j R_ij A_j + r_i,
// then dropout, then A' v. Every entry needs all heads, so no kernel that walks keys can fuse it: products, and a softmax and a dropout that draw
// the masks and keep none.
#include "autograd/node.h"
#include "autograd/ops/attention_masks.h"

namespace plumb {
namespace {

// Of scores [B, H, N, M], over the keys that the call keeps; `keep` is the mask that the call was made from.
Tensor masked_softmax(const AttentionCall& call, const Tensor& keep, const Tensor& scores) {
  const Out p = empty_like(scores.array());
  kernels(p).attention_softmax_forward(call, scores.array(), p);
  return record_fused(
      "attention_softmax", p, {scores},
      [call, keep = Saved(keep)](const Tensor& dp, const Tensor& result) {
        keep.get();  // unchanged since: the call may share its buffer
        const Out dx = empty_like(result.array());
        kernels(dx).attention_softmax_backward(call, dp.array(), result.array(), dx);
        return Tensors{Tensor(dx)};
      },
      through(
          [call, keep = Saved(keep)](const Tensors& in) {
            keep.get();
            const detail::Masks masks = detail::draw_masks(call, in[0]);
            const Tensor kept = detail::kept_softmax(in[0], masks.keep);
            if (call.empty != EmptyRow::paper) return kept;
            return where(masks.uniform_rows, full({1}, 1.0 / static_cast<double>(call.keys), {in[0].dtype(), in[0].device()}), kept);
          },
          {scores}));
}

// Linear in p, with a mask that can be drawn again: its gradient is itself.
Tensor dropout_of(const AttentionCall& call, const Tensor& p) {
  const Out y = empty_like(p.array());
  kernels(y).attention_dropout(call, p.array(), y);
  return record("attention_dropout", y, {p}, [call](const Tensor& dy) { return Tensors{dropout_of(call, dy)}; });
}

}  // namespace

Tensor mix_heads(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  detail::check_operands("mix_heads", x, weight);
  detail::check_operands("mix_heads", x, bias);
  check(x.shape().rank() == 4, "[mix_heads] expected x [B, H, N, M], got {}", x.shape());
  const std::int64_t H = x.dim(1);
  check(weight.shape() == Shape{H, H} && bias.shape() == Shape{H}, "[mix_heads] expected weight [{0}, {0}] and bias [{0}] for x {1}, got {2} and {3}",
        H, x.shape(), weight.shape(), bias.shape());
  return reshape(matmul(weight, reshape(x, {x.dim(0), H, x.dim(2) * x.dim(3)})) + reshape(bias, {H, 1}), x.shape());
}

Tensor attention_talking(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& pre_weight, const Tensor& pre_bias,
                         const Tensor& post_weight, const Tensor& post_bias, const AttentionOptions& options) {
  const AttentionCall call = detail::make_call("attention_talking", q, k, v, options);
  const Tensor scores = mix_heads(matmul(q, k, false, true) * call.scale, pre_weight, pre_bias);
  AttentionCall before = call, after = call;  // what is drawn before the softmax, and after it
  before.dropout = {};
  after.keep = {}, after.causal = false, after.drop_key = {};
  const bool masked = call.keep.defined() || call.causal || call.drop_key.threshold;
  const Tensor p = mix_heads(masked ? masked_softmax(before, options.keep, scores) : softmax(scores), post_weight, post_bias);
  return matmul(call.dropout.threshold ? dropout_of(after, p) : p, v);
}

}  // namespace plumb
