// The backward pass of attention. P = exp(scale (q k^T - top)) / total is recomputed in the same way as in the forward
// pass. Without dropout, P' = P and dP = dout v^T. Under dropout with mask m and rate p, P' = m P / (1 - p) and dP = m
// (dout v^T) / (1 - p). Then:
//   dS = scale P (dP - D), D = sum_j P_j dP_j;  dq = dS k, dk = dS^T q, dv = P'^T dout.
// D is summed from exactly these P and dP. The alternative D = dout . out is the same number with other rounding. In a
// saturated row (P = 1 at one key), dS must be 0. With the alternative, dS would be the rounding difference times P,
// and dq would be this difference times k. In rows without a kept key, P depends on the rule (EmptyRow): for `zero`, P
// = 0; for `paper`, P = 1 / (number of allowed keys) for the allowed keys, and dS = 0.
#include "backends/cpu/attention.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention_backward_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/attention-inl.h"
#include "backends/cpu/attention_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// Turns the scores `s` of a block of queries into P' (`weights`), and `d` from dout v^T into dS (`ds`). `p` is memory
// for P; it is `weights` for f32 without dropout. `weights` may be `s`, and `ds` may be `d`. `p` may be `s` if
// `weights` is not, or if there is no dropout. `parts` is memory for one vector per row. `sums` holds the largest score
// and the total of each row. Two passes over the rows are faster than one pass, because no row then waits for its own
// sum over lanes.
template <bool dropout, class Weight>
HWY_NOINLINE void differentiate_rows(const AttentionCall& call, const KeyBits& bits, std::int64_t rows,
                                     std::int64_t keys, const float* sums, const float* s, float* d, float* p,
                                     float* parts, Weight* weights, Weight* ds, std::int64_t weights_row) {
  constexpr bool separate = dropout || !std::is_same_v<Weight, float>;
  const V survivors = set(survivor_scale(call)), scale = set(static_cast<float>(call.scale)),
          c = set(static_cast<float>(call.scale) * log2_e);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t row = r * keys;
    Weight* const weights_of_row = weights + r * weights_row;
    const KeyBitsRow kept = bits.kept(r), undropped = bits.undropped(r);
    V total = zero();
    if (!bits.attends(r)) {
      const V constant = set((dropout ? survivor_scale(call) : 1.0f) * bits.constant(r));
      for (std::int64_t j = 0; j < keys; j += W) {
        const V weight = hn::IfThenElseZero(kept[j], constant);
        if (separate) hn::Store(zero(), f32, p + row + j);
        store(dropout ? hn::IfThenElseZero(undropped[j], weight) : weight, weights_of_row + j, Whole{});
        hn::Store(zero(), f32, d + row + j);
      }
      hn::Store(total, f32, parts + r * W);
      continue;
    }
    const V top = set(sums[2 * r]), share = set(1 / sums[2 * r + 1]);
    for (std::int64_t j = 0; j < keys; j += W) {
      const V pj = hn::IfThenElseZero(
          kept[j], hn::Mul(exp2_or_zero(hn::Mul(hn::Sub(hn::Load(f32, s + row + j), top), c)), share));
      V dp = hn::Load(f32, d + row + j), weight = pj;
      if (dropout) {
        weight = hn::IfThenElseZero(undropped[j], hn::Mul(pj, survivors));
        dp = hn::IfThenElseZero(undropped[j], hn::Mul(dp, survivors));
        hn::Store(dp, f32, d + row + j);
      }
      total = hn::MulAdd(pj, dp, total);
      if (separate) hn::Store(pj, f32, p + row + j);
      store(weight, weights_of_row + j, Whole{});
    }
    hn::Store(total, f32, parts + r * W);
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    const V delta = set(sum_lanes(hn::Load(f32, parts + r * W)));
    for (std::int64_t j = 0; j < keys; j += W)
      store(hn::Mul(hn::Mul(hn::Load(f32, p + r * keys + j), scale), hn::Sub(hn::Load(f32, d + r * keys + j), delta)),
            ds + r * weights_row + j, Whole{});
  }
}

template <class Products>
HWY_NOINLINE void differentiate(const AttentionCall& call, const Heads& dout, const Heads& q, const Heads& k,
                                const Heads& v, const float* sums, const HeadsOut& dq, const HeadsOut& dk,
                                const HeadsOut& dv, std::int64_t begin, std::int64_t end) {
  using T = typename Products::Element;
  const Layout l(call, Products::tile_rows, Products::tile_columns);
  const std::int64_t hd = call.head_dim, N = call.queries, M = call.keys, block = l.all_rows * l.keys;
  // P needs memory of its own if the weights P' take the place of the scores.
  const bool p_apart = std::is_same_v<typename Products::Weight, float> && call.dropout.threshold;
  const Scratch scratch(2 * l.all_keys * l.dims + (p_apart ? 3 : 2) * block + l.all_rows * l.dims + l.rows * W +
                        l.mask_floats() + 256);
  Carver carver(scratch.data());
  float *const dk_sum = carver.take(l.all_keys * l.dims), *const dv_sum = carver.take(l.all_keys * l.dims);
  float *const s = carver.take(block), *const d = carver.take(block), *const p = p_apart ? carver.take(block) : s;
  float *const dq_rows = carver.take(l.all_rows * l.dims), *const parts = carver.take(l.rows * W);
  KeyBits bits(call, l, carver);
  typename Products::Tokens queries(l.rows, hd, TokenUse::right), gradients(l.rows, hd, TokenUse::right),
      keys(M, hd, TokenUse::right), values(M, hd, TokenUse::left);
  typename Products::Right right_queries(l.rows, hd), right_gradients(l.rows, hd), right_keys(M, hd);
  typename Products::RightTranspose keys_transposed(M, hd), values_transposed(M, hd);
  typename Products::Weights weights(l.rows, M, s), ds(l.rows, M, d);
  const typename Products::LeftTranspose weights_transposed(l.rows, M), ds_transposed(l.rows, M);
  const Products product;
  using Weight = typename Products::Weight;
  const auto softmax_backward =
      call.dropout.threshold ? differentiate_rows<true, Weight> : differentiate_rows<false, Weight>;

  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t b = i / call.heads, h = i % call.heads;
    const std::int64_t next = std::min(i + 1, call.batch * call.heads - 1), next_b = next / call.heads,
                       next_h = next % call.heads;
    keys.read(row<T>(k, b, h, 0), M, k.token);
    values.read(row<T>(v, b, h, 0), M, v.token);
    const auto &kt = keys_transposed.of(keys), &vt = values_transposed.of(values);
    const auto& right_k = right_keys.of(keys);
    for (std::int64_t first = 0; first < N; first += l.rows) {
      const std::int64_t rows = std::min(l.rows, N - first);
      const bool accumulate = first > 0;
      bits.draw(b, h, first, rows);
      queries.read(row<T>(q, b, h, first), rows, q.token);
      gradients.read(row<T>(dout, b, h, first), rows, dout.token);
      product(queries.left(), kt, s, l.keys,
              {ahead<T>(dq, b, h, N, hd, first), ahead<T>(k, next_b, next_h, M, hd, first)});
      product(gradients.left(), vt, d, l.keys,
              {ahead<T>(v, next_b, next_h, M, hd, first), ahead<T>(q, next_b, next_h, N, hd, first)});
      softmax_backward(call, bits, rows, l.keys, sums + 2 * (i * N + first), s, d, p, parts, weights.start_block(rows),
                       ds.start_block(rows), ds.stride());
      product(ds.left(), right_k, dq_rows, l.dims, {ahead<T>(dout, next_b, next_h, N, hd, first), {}});
      convert_rows(dq_rows, l.dims, rows, hd, row<T>(dq, b, h, first), dq.token);
      product(ds_transposed.of(ds), right_queries.of(queries), dk_sum, l.dims,
              {ahead<T>(dk, b, h, M, hd, 0), ahead<T>(dv, b, h, M, hd, 0)}, accumulate);
      product(weights_transposed.of(weights), right_gradients.of(gradients), dv_sum, l.dims, {}, accumulate);
    }
    if (N == 0) {  // without queries, no block has written the sums
      std::fill_n(dk_sum, M * l.dims, 0.0f);
      std::fill_n(dv_sum, M * l.dims, 0.0f);
    }
    convert_rows(dk_sum, l.dims, M, hd, row<T>(dk, b, h, 0), dk.token);
    convert_rows(dv_sum, l.dims, M, hd, row<T>(dv, b, h, 0), dv.token);
  }
}

// Computes the (sample, head) pairs from `begin` to `end - 1` of batch * heads.
void AttentionBackward(const AttentionCall& call, const Heads& dout, const Heads& q, const Heads& k, const Heads& v,
                       const float* sums, const HeadsOut& dq, const HeadsOut& dk, const HeadsOut& dv,
                       std::int64_t begin, std::int64_t end) {
  with_products(dout.array.dtype(), [&](auto products) HWY_ATTR {
    differentiate<typename decltype(products)::type>(call, dout, q, k, v, sums, dq, dk, dv, begin, end);
  });
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
