// Softmax of attention scores under the masks of a call, and dropout of probabilities. Kernels draw the
// masks and do not store them.
#include "autograd/node.h"
#include "autograd/ops/attention_masks.h"
#include "autograd/ops/second.h"
#include "core/backend.h"

namespace plumb {
namespace {

// The call without dropout, which acts after the softmax.
AttentionCall before_softmax(AttentionCall call) {
  call.dropout = {};
  return call;
}
// The call without the masks that act before the softmax.
AttentionCall after_softmax(AttentionCall call) {
  call.keep = {}, call.causal = false, call.drop_key = {};
  return call;
}

}  // namespace

Tensor detail::masked_softmax(const AttentionCall& given, const Tensor& keep, const Tensor& scores) {
  if (!given.keep.defined() && !given.causal && !given.drop_key.threshold) return softmax(scores);
  const AttentionCall call = before_softmax(given);
  const Out p = empty_like(scores.array());
  kernels(p).attention_softmax_forward(call, scores.array(), p);
  return record_fused(
      "attention_softmax", p, {scores},
      [call, keep = Saved(keep)](const Tensor& dp, const Tensor& result) {
        keep.get();  // throws if the mask was changed; the call may share the mask's buffer
        const Out dx = empty_like(result.array());
        kernels(dx).attention_softmax_backward(call, dp.array(), result.array(), dx);
        return Tensors{Tensor(dx)};
      },
      [call, keep = Saved(keep)](const Tensor& dp, const Tensor& result) {
        keep.get();
        return Tensors{masked_softmax_backward(call, dp, result)};
      });
}

// p is 0 for a dropped key, so the formula of the plain softmax holds, except in rows that a policy made constant.
Tensor detail::masked_softmax_backward(const AttentionCall& call, const Tensor& dp, const Tensor& p) {
  const Tensor ds = softmax_backward(dp, p);
  return call.empty == EmptyRow::paper ? masked_fill(ds, draw_masks(before_softmax(call), p).uniform_rows, 0) : ds;
}

// The op is linear in p, and its mask can be drawn again, so its gradient is the op itself.
Tensor detail::dropped(const AttentionCall& given, const Tensor& p) {
  if (!given.dropout.threshold) return p;
  const AttentionCall call = after_softmax(given);
  const Out y = empty_like(p.array());
  kernels(y).attention_dropout(call, p.array(), y);
  return record("attention_dropout", y, {p}, [call](const Tensor& dy) { return Tensors{dropped(call, dy)}; });
}

}  // namespace plumb
