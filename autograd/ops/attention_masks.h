// What the forms of attention share: a call's numbers, its masks as arrays, and probabilities under a mask.
#pragma once

#include "autograd/ops.h"

namespace plumb::detail {

// Checks the options and fills in all but strides; `like` says on which device the masks belong. The random key is that
// of the open module path. Messages begin with `op`.
AttentionCall make_call(const char* op, std::int64_t batch, std::int64_t heads, std::int64_t queries, std::int64_t keys,
                        std::int64_t head_dim, const Tensor& like, const AttentionOptions& options);
// The call on q [B, H, N, E], k, v [B, H, M, E] with M > 0, which it checks.
AttentionCall make_call(const char* op, const Tensor& q, const Tensor& k, const Tensor& v,
                        const AttentionOptions& options);

// The masks that the kernels draw on the fly, as arrays: kept keys (after the policy for empty rows), multipliers of P
// (undefined without dropout), and the rows that the policy `paper` makes uniform.
struct Masks {
  Tensor keep, multiplier, uniform_rows;  // u8 [B,H,N,M]; [B,H,N,M]; u8 [B,H,N,1]
};
Masks draw_masks(const AttentionCall& call, const Tensor& like);

// Softmax of scores [B, H, N, M] over the keys that the call keeps, by its rule for empty rows; `keep` is the mask that
// the call was made from. Its backward pass as an op, p its result; and dropout of the probabilities. The masks are
// drawn in kernels and kept nowhere.
Tensor masked_softmax(const AttentionCall& call, const Tensor& keep, const Tensor& scores);
Tensor masked_softmax_backward(const AttentionCall& call, const Tensor& dp, const Tensor& p);
Tensor dropped(const AttentionCall& call, const Tensor& p);

// Softmax of scores [.., M] over the keys that `keep` (u8, the same shape) keeps; a row that keeps none is 0.
Tensor kept_softmax(const Tensor& scores, const Tensor& keep);

}  // namespace plumb::detail
