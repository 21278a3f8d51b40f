// The forward pass of attention. The code computes one (sample, head) pair at a time, in blocks of queries whose scores
// stay in cache. K is transposed once, so that both products read along rows. The products are in f32, or for bf16 by
// AMX, if the processor has AMX (attention_products-inl.h).
#include <cmath>
#include <limits>

#include "backends/cpu/attention.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention_forward_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/attention-inl.h"
#include "backends/cpu/attention_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// Turns the scores of a block's queries into weights that are not normalized yet, and applies attention dropout.
// `weights` may be the scores themselves. `sums` gets two values for each row: the largest q.k, and the sum of the
// exponentials relative to this q.k. `scales` gets the factors that turn weights into probabilities. `parts` is memory
// for one vector per row. The code makes three passes over the rows, because a single pass would wait at every row for
// the sums over lanes.
template <bool dropout, class Weight>
HWY_NOINLINE void softmax_rows(const AttentionCall& call, const KeyBits& bits, std::int64_t rows, std::int64_t keys,
                               const float* s, Weight* weights, std::int64_t weights_row, float* parts, float* sums,
                               float* scales) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const KeyBitsRow kept = bits.kept(r);
    V top = hn::Neg(hn::Inf(f32));
    for (std::int64_t j = 0; j < keys; j += W)
      top = hn::Max(top, hn::IfThenElse(kept[j], hn::Load(f32, s + r * keys + j), top));
    sums[2 * r] = bits.attends(r) ? max_lanes(top) : 0;
  }
  const V c = set(static_cast<float>(call.scale) * log2_e);
  for (std::int64_t r = 0; r < rows; ++r) {
    const KeyBitsRow kept = bits.kept(r), undropped = bits.undropped(r);
    const auto write = [=, to = weights + r * weights_row](std::int64_t j, V p)
                           HWY_ATTR { store(dropout ? hn::IfThenElseZero(undropped[j], p) : p, to + j, Whole{}); };
    if (!bits.attends(r)) {
      for (std::int64_t j = 0; j < keys; j += W) write(j, hn::IfThenElseZero(kept[j], set(1.0f)));
      continue;
    }
    const V top = set(sums[2 * r]);
    V sum = zero();
    for (std::int64_t j = 0; j < keys; j += W) {
      // The masked lanes become 0 after the exponential, because their exponentials might be denormal, which is slow.
      const V p = hn::IfThenElseZero(kept[j], exp2_or_zero(hn::Mul(hn::Sub(hn::Load(f32, s + r * keys + j), top), c)));
      sum = hn::Add(sum, p);
      write(j, p);
    }
    hn::Store(sum, f32, parts + r * W);
  }
  const float survivors = survivor_scale(call);
  for (std::int64_t r = 0; r < rows; ++r) {
    sums[2 * r + 1] = bits.attends(r) ? sum_lanes(hn::Load(f32, parts + r * W)) : 1;
    scales[r] = survivors * (bits.attends(r) ? 1 / sums[2 * r + 1] : bits.constant(r));
  }
}

template <class Products>
HWY_NOINLINE void attend(const AttentionCall& call, const Heads& q, const Heads& k, const Heads& v, const HeadsOut& out,
                         float* sums, std::int64_t begin, std::int64_t end) {
  using T = typename Products::Element;
  const Layout l(call, Products::tile_rows, Products::tile_columns);
  const std::int64_t hd = call.head_dim, N = call.queries, M = call.keys;
  const Scratch scratch(l.all_rows * (l.keys + l.dims) + l.rows * (W + 1) + l.mask_floats() + 128);
  Carver carver(scratch.data());
  float *const s = carver.take(l.all_rows * l.keys), *const o = carver.take(l.all_rows * l.dims),
               *const parts = carver.take(l.rows * W), *const scales = carver.take(l.rows);
  KeyBits bits(call, l, carver);
  typename Products::Tokens queries(l.rows, hd, TokenUse::left), keys(M, hd, TokenUse::left),
      values(M, hd, TokenUse::right);
  typename Products::RightTranspose keys_transposed(M, hd);
  typename Products::Right right_values(M, hd);
  typename Products::Weights weights(l.rows, M, s);
  const Products product;
  using Weight = typename Products::Weight;
  const auto softmax = call.dropout.threshold ? softmax_rows<true, Weight> : softmax_rows<false, Weight>;

  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t b = i / call.heads, h = i % call.heads;
    const std::int64_t next = std::min(i + 1, call.batch * call.heads - 1), next_b = next / call.heads,
                       next_h = next % call.heads;
    keys.read(row<T>(k, b, h, 0), M, k.token);
    values.read(row<T>(v, b, h, 0), M, v.token);
    const auto& kt = keys_transposed.of(keys);
    const auto& right_v = right_values.of(values);
    for (std::int64_t first = 0; first < N; first += l.rows) {
      const std::int64_t rows = std::min(l.rows, N - first);
      bits.draw(b, h, first, rows);
      queries.read(row<T>(q, b, h, first), rows, q.token);
      product(queries.left(), kt, s, l.keys,
              {ahead<T>(out, b, h, N, hd, first), ahead<T>(q, next_b, next_h, N, hd, first)});
      softmax(call, bits, rows, l.keys, s, weights.start_block(rows), weights.stride(), parts,
              sums + 2 * (i * N + first), scales);
      product(weights.left(), right_v, o, l.dims,
              {ahead<T>(k, next_b, next_h, M, hd, first), ahead<T>(v, next_b, next_h, M, hd, first)});
      T* const to = row<T>(out, b, h, first);
      for (std::int64_t r = 0; r < rows; ++r)
        for_lanes(hd, [=, x = o + r * l.dims, y = to + r * out.token, scale = set(scales[r])](std::int64_t j, auto part)
                          HWY_ATTR { store(hn::Mul(hn::Load(f32, x + j), scale), y + j, part); });
    }
  }
}

// Computes the (sample, head) pairs from `begin` to `end - 1` of batch * heads.
void AttentionForward(const AttentionCall& call, const Heads& q, const Heads& k, const Heads& v, const HeadsOut& out,
                      float* sums, std::int64_t begin, std::int64_t end) {
  with_products(out.array.dtype(), [&](auto products) HWY_ATTR {
    attend<typename decltype(products)::type>(call, q, k, v, out, sums, begin, end);
  });
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(AttentionForward);

void attention_forward(const AttentionCall& call, const Heads& q, const Heads& k, const Heads& v, const HeadsOut& out,
                       const Out& sums) {
  if (!of_one_dtype(q, k, v, out)) return reference_kernels().attention_forward(call, q, k, v, out, sums);
  parallel_for(call.batch * call.heads, attention_grain(call), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(AttentionForward)(call, q, k, v, out, sums.mutable_data<float>(), begin, end);
  });
}

}  // namespace plumb::cpu
#endif
