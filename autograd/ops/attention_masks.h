// Shared parts of the attention ops: the kernel call, its masks as arrays, and softmax under a mask.
#pragma once

#include "autograd/ops.h"
#include "core/backend.h"

namespace plumb::detail {

// Checks the options and fills in an AttentionCall. Masks must be on the device of `like`. The random key is that of
// the current module path. Error messages begin with `op`.
AttentionCall make_call(const char* op, std::int64_t batch, std::int64_t heads, std::int64_t queries, std::int64_t keys,
                        std::int64_t head_dim, const Tensor& like, const AttentionMasking& options);
// Makes the call for q [B, H, N, E] and k, v [B, H, M, E] with M > 0. Throws Error if their shapes do not fit.
AttentionCall make_call(const char* op, const Tensor& q, const Tensor& k, const Tensor& v,
                        const AttentionMasking& options);

// The masks that kernels draw, as arrays: the kept keys (after the policy for empty rows), the multipliers of
// probabilities (undefined without dropout), and the rows that the policy `paper` makes uniform over the allowed keys.
struct Masks {
  Tensor keep, multiplier, uniform_rows;  // keep u8 [B,H,N,M], multiplier [B,H,N,M], uniform_rows u8 [B,H,N,1]
};
Masks draw_masks(const AttentionCall& call, const Tensor& like);

// Softmax of scores [B, H, N, M] over the keys that the call keeps, with its policy for empty rows; `keep` is the mask
// that the call was made from. masked_softmax_backward() is the backward pass of masked_softmax() as an op; p is the
// result of masked_softmax(). dropped() applies dropout to probabilities. Kernels draw the masks and do not store them.
Tensor masked_softmax(const AttentionCall& call, const Tensor& keep, const Tensor& scores);
Tensor masked_softmax_backward(const AttentionCall& call, const Tensor& dp, const Tensor& p);
Tensor dropped(const AttentionCall& call, const Tensor& p);

// Softmax of scores [.., M] over the keys whose `keep` (u8, same shape) is not 0. A row that keeps no key is 0.
Tensor kept_softmax(const Tensor& scores, const Tensor& keep);

}  // namespace plumb::detail
