// The backward pass of attention. P = exp(scale (q k^T - top)) / total is recomputed in the same way as in the forward
// pass. Without dropout, P' = P and dP = dout v^T. Under dropout with mask m and rate p, P' = m P / (1 - p) and dP = m
// (dout v^T) / (1 - p). Then:
//   dS = scale P (dP - D), D = sum_j P_j dP_j;  dq = dS k, dk = dS^T q, dv = P'^T dout.
// D is summed from exactly these P and dP. The alternative D = dout . out is the same number with other rounding. In a
// saturated row (P = 1 at one key), dS must be 0. With the alternative, dS would be the rounding difference times P,
// and dq would be this difference times k. In rows without a kept key, P depends on the rule (EmptyRow): for `zero`, P
// = 0; for `paper`, P = 1 / M and dS = 0.
#include "backends/cpu/attention.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention_backward_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// Turns the scores `s` of a block of queries into P', and `d` from dout v^T into dS. `p` is memory for P. Without
// dropout, `p` is `s` itself. `parts` is memory for one vector per row. `sums` holds the largest score and the total of
// each row. Two passes over the rows are faster than one pass, because no row then waits for its own sum over lanes.
HWY_INLINE void differentiate_rows(const AttentionCall& call, const KeyBits& bits, std::int64_t rows, std::int64_t keys,
                                   const float* sums, float* p, float* parts, float* s, float* d) {
  const bool dropout = call.dropout.threshold != 0;
  const V survivors = set(survivor_scale(call)), scale = set(static_cast<float>(call.scale)),
          c = set(static_cast<float>(call.scale) * log2_e);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t row = r * keys;
    V total = zero();
    if (bits.state(r) != RowState::attends) {
      const V weight = set(bits.state(r) == RowState::uniform
                               ? (dropout ? survivor_scale(call) : 1.0f) / static_cast<float>(call.keys)
                               : 0.0f);
      for (std::int64_t j = 0; j < keys; j += W) {
        hn::Store(hn::IfThenElseZero(dropout ? bits.undropped(r, j) : bits.inside(j), weight), f32, s + row + j);
        hn::Store(zero(), f32, d + row + j);
        if (dropout) hn::Store(zero(), f32, p + row + j);
      }
      hn::Store(total, f32, parts + r * W);
      continue;
    }
    const V top = set(sums[2 * r]), share = set(1 / sums[2 * r + 1]);
    for (std::int64_t j = 0; j < keys; j += W) {
      const V pj = hn::IfThenElseZero(
          bits.kept(r, j), hn::Mul(exp2_or_zero(hn::Mul(hn::Sub(hn::Load(f32, s + row + j), top), c)), share));
      V dp = hn::Load(f32, d + row + j), weight = pj;
      if (dropout) {
        const Mask undropped = bits.undropped(r, j);
        weight = hn::IfThenElseZero(undropped, hn::Mul(pj, survivors));
        dp = hn::IfThenElseZero(undropped, hn::Mul(dp, survivors));
        hn::Store(dp, f32, d + row + j);
        hn::Store(pj, f32, p + row + j);
      }
      total = hn::MulAdd(pj, dp, total);
      hn::Store(weight, f32, s + row + j);
    }
    hn::Store(total, f32, parts + r * W);
  }
  const float* const probabilities = dropout ? p : s;
  for (std::int64_t r = 0; r < rows; ++r) {
    const V delta = set(sum_lanes(hn::Load(f32, parts + r * W)));
    for (std::int64_t j = r * keys; j < (r + 1) * keys; j += W)
      hn::Store(hn::Mul(hn::Mul(hn::Load(f32, probabilities + j), scale), hn::Sub(hn::Load(f32, d + j), delta)), f32,
                d + j);
  }
}

template <class T>
HWY_NOINLINE void differentiate(const AttentionCall& call, const Heads& dout, const Heads& q, const Heads& k,
                                const Heads& v, const float* sums, const HeadsOut& dq, const HeadsOut& dk,
                                const HeadsOut& dv, std::int64_t begin, std::int64_t end) {
  const Layout l(call);
  const std::int64_t hd = call.head_dim, N = call.queries, M = call.keys;
  const Scratch scratch(2 * hd * l.columns + 3 * M * l.dims + 2 * l.rows * l.keys + 3 * l.rows * l.dims +
                        (call.dropout.threshold ? l.rows * l.keys : 0) + l.rows * W + l.mask_floats() + 256);
  Carver carver(scratch.data());
  float *const kt = carver.take(hd * l.columns), *const vt = carver.take(hd * l.columns);
  float *const k_copy = carver.take(M * l.dims), *const dk_sum = carver.take(M * l.dims),
               *const dv_sum = carver.take(M * l.dims);
  float *const s = carver.take(l.rows * l.keys), *const d = carver.take(l.rows * l.keys);
  float *const q_copy = carver.take(l.rows * l.dims), *const dout_copy = carver.take(l.rows * l.dims),
               *const dq_rows = carver.take(l.rows * l.dims);
  float *const p = carver.take(call.dropout.threshold ? l.rows * l.keys : 0), *const parts = carver.take(l.rows * W);
  KeyBits bits(call, l, carver);
  const Products<T> products;
  std::fill_n(kt, hd * l.columns, 0.0f);  // transpose() does not write the columns after the keys
  std::fill_n(vt, hd * l.columns, 0.0f);

  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t b = i / call.heads, h = i % call.heads;
    const std::int64_t next = std::min(i + 1, call.batch * call.heads - 1), next_b = next / call.heads,
                       next_h = next % call.heads;
    const Rows keys = padded(row<T>(k, b, h, 0), M, hd, k.token, k_copy, l.dims);
    transpose(keys.data, M, hd, keys.stride, kt, l.columns);
    const Rows values =
        as_f32(row<T>(v, b, h, 0), M, hd, v.token, dv_sum, l.dims);  // dv_sum is free until the first block is done
    transpose(values.data, M, hd, values.stride, vt, l.columns);
    for (std::int64_t first = 0; first < N; first += l.rows) {
      const std::int64_t rows = std::min(l.rows, N - first);
      const bool accumulate = first > 0;
      bits.draw(b, h, first, rows);
      const Rows queries = padded(row<T>(q, b, h, first), rows, hd, q.token, q_copy, l.dims);
      const Rows gradients = padded(row<T>(dout, b, h, first), rows, hd, dout.token, dout_copy, l.dims);
      products({.a = queries.data,
                .a_row = queries.stride,
                .a_column = 1,
                .b = kt,
                .b_row = l.columns,
                .c = s,
                .c_row = l.keys,
                .rows = rows,
                .K = hd,
                .vectors = l.key_vectors(),
                .ahead = {ahead<T>(dq, b, h, N, hd, first), ahead<T>(k, next_b, next_h, M, hd, first)}});
      products({.a = gradients.data,
                .a_row = gradients.stride,
                .a_column = 1,
                .b = vt,
                .b_row = l.columns,
                .c = d,
                .c_row = l.keys,
                .rows = rows,
                .K = hd,
                .vectors = l.key_vectors(),
                .ahead = {ahead<T>(v, next_b, next_h, M, hd, first), ahead<T>(q, next_b, next_h, N, hd, first)}});
      differentiate_rows(call, bits, rows, l.keys, sums + 2 * (i * N + first), p, parts, s, d);
      products({.a = d,
                .a_row = l.keys,
                .a_column = 1,
                .b = keys.data,
                .b_row = keys.stride,
                .c = dq_rows,
                .c_row = l.dims,
                .rows = rows,
                .K = M,
                .vectors = l.dim_vectors(),
                .ahead = {ahead<T>(dout, next_b, next_h, N, hd, first), {}}});
      unpad(dq_rows, l.dims, rows, hd, row<T>(dq, b, h, first), dq.token);
      products({.a = d,
                .a_row = 1,
                .a_column = l.keys,
                .b = queries.data,
                .b_row = queries.stride,
                .c = dk_sum,
                .c_row = l.dims,
                .rows = M,
                .K = rows,
                .vectors = l.dim_vectors(),
                .accumulate = accumulate,
                .ahead = {ahead<T>(dk, b, h, M, hd, 0), ahead<T>(dv, b, h, M, hd, 0)}});
      products({.a = s,
                .a_row = 1,
                .a_column = l.keys,
                .b = gradients.data,
                .b_row = gradients.stride,
                .c = dv_sum,
                .c_row = l.dims,
                .rows = M,
                .K = rows,
                .vectors = l.dim_vectors(),
                .accumulate = accumulate});
    }
    if (N == 0) {  // without queries, no block has written the sums
      std::fill_n(dk_sum, M * l.dims, 0.0f);
      std::fill_n(dv_sum, M * l.dims, 0.0f);
    }
    unpad(dk_sum, l.dims, M, hd, row<T>(dk, b, h, 0), dk.token);
    unpad(dv_sum, l.dims, M, hd, row<T>(dv, b, h, 0), dv.token);
  }
}

// Computes the (sample, head) pairs from `begin` to `end - 1` of batch * heads.
void AttentionBackward(const AttentionCall& call, const Heads& dout, const Heads& q, const Heads& k, const Heads& v,
                       const float* sums, const HeadsOut& dq, const HeadsOut& dk, const HeadsOut& dv,
                       std::int64_t begin, std::int64_t end) {
  (dout.array.dtype() == DType::bf16 ? differentiate<bfloat16> : differentiate<float>)(call, dout, q, k, v, sums, dq,
                                                                                       dk, dv, begin, end);
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(AttentionBackward);

void attention_backward(const AttentionCall& call, const Heads& dout, const Heads& q, const Heads& k, const Heads& v,
                        const Array& sums, const HeadsOut& dq, const HeadsOut& dk, const HeadsOut& dv) {
  if (!of_one_dtype(dout, q, k, v, dq, dk, dv))
    return reference_kernels().attention_backward(call, dout, q, k, v, sums, dq, dk, dv);
  parallel_for(call.batch * call.heads, attention_grain(call), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(AttentionBackward)(call, dout, q, k, v, sums.data<float>(), dq, dk, dv, begin, end);
  });
}

}  // namespace plumb::cpu
#endif
