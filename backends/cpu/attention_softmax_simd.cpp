// Softmax and dropout of attention scores under the masks of a call, row by row. The masks of a (sample, head) pair are
// drawn as bits for one block of queries at a time.
#include <cmath>

#include "backends/cpu/attention.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention_softmax_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// Calls f(bits, row within bits, index of the row's first element in [B, H, N, M]) for each row of the (sample, head)
// pairs from `begin` to `end - 1`.
template <class F>
HWY_INLINE void each_row(const AttentionCall& call, std::int64_t begin, std::int64_t end, F&& f) {
  const Layout l(call);
  const Scratch scratch(l.mask_floats() + 128);
  Carver carver(scratch.data());
  KeyBits bits(call, l, carver);
  for (std::int64_t i = begin; i < end; ++i)
    for (std::int64_t first = 0; first < call.queries; first += l.rows) {
      const std::int64_t rows = std::min(l.rows, call.queries - first);
      bits.draw(i / call.heads, i % call.heads, first, rows);
      for (std::int64_t r = 0; r < rows; ++r) f(bits, r, (i * call.queries + first + r) * call.keys);
    }
}

void AttentionSoftmaxRows(const AttentionCall& call, const float* scores, float* p, std::int64_t begin,
                          std::int64_t end) {
  each_row(call, begin, end, [&](const KeyBits& bits, std::int64_t r, std::int64_t first) HWY_ATTR {
    const float* const x = scores + first;
    float* const y = p + first;
    const KeyBitsRow kept = bits.kept(r);
    if (!bits.attends(r)) {
      for_lanes(call.keys, [&, constant = set(bits.constant(r))](std::int64_t j, auto part)
                               HWY_ATTR { store(hn::IfThenElseZero(kept[j], constant), y + j, part); });
      return;
    }
    V most = hn::Neg(hn::Inf(f32)), sum = zero();
    for_lanes(call.keys, [&](std::int64_t j, auto part)
                             HWY_ATTR { most = hn::Max(most, hn::IfThenElse(kept[j], load(x + j, part), most)); });
    const V top = set(max_lanes(most));
    for_lanes(call.keys, [&](std::int64_t j, auto part) HWY_ATTR {
      const V e = hn::IfThenElseZero(kept[j], exp2_or_zero(hn::Mul(hn::Sub(load(x + j, part), top), set(log2_e))));
      sum = hn::Add(sum, e);
      store(e, y + j, part);
    });
    const V scale = set(1 / sum_lanes(sum));
    for_lanes(call.keys,
              [&](std::int64_t j, auto part) HWY_ATTR { store(hn::Mul(load(y + j, part), scale), y + j, part); });
  });
}

void AttentionConstantRows(const AttentionCall& call, float* dx, std::int64_t begin, std::int64_t end) {
  each_row(call, begin, end, [&](const KeyBits& bits, std::int64_t r, std::int64_t first) HWY_ATTR {
    if (!bits.attends(r)) std::fill_n(dx + first, call.keys, 0.0f);
  });
}

void AttentionDropoutRows(const AttentionCall& call, const float* x, float* y, std::int64_t begin, std::int64_t end) {
  const V scale = set(survivor_scale(call));
  each_row(call, begin, end, [&](const KeyBits& bits, std::int64_t r, std::int64_t first) HWY_ATTR {
    const KeyBitsRow undropped = bits.undropped(r);
    for_lanes(call.keys, [&](std::int64_t j, auto part) HWY_ATTR {
      store(hn::IfThenElseZero(undropped[j], hn::Mul(load(x + first + j, part), scale)), y + first + j, part);
    });
  });
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(AttentionSoftmaxRows);
HWY_EXPORT(AttentionConstantRows);
HWY_EXPORT(AttentionDropoutRows);

namespace {

// Calls f(begin, end) for blocks of (sample, head) pairs. attention_grain() counts multiplications per score. One score
// costs about as much as 20 multiplications of a product, hence head_dim = 20.
template <class F>
void each_block(const AttentionCall& call, F&& f) {
  AttentionCall cost = call;
  cost.head_dim = 20;
  parallel_for(call.batch * call.heads, attention_grain(cost), f);
}

}  // namespace

void attention_softmax_forward(const AttentionCall& call, const Array& x, const Out& y) {
  each_block(call, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(AttentionSoftmaxRows)(call, x.data<float>(), y.mutable_data<float>(), begin, end);
  });
}

// Masked keys have probability 0 in y, so the masks need not be drawn again. The exception is EmptyRow::paper, which
// gives empty rows a constant probability other than 0.
void attention_softmax_backward(const AttentionCall& call, const Array& dy, const Array& y, const Out& dx) {
  softmax_backward(dy, y, dx);
  if (call.empty != EmptyRow::paper) return;
  each_block(call, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(AttentionConstantRows)(call, dx.mutable_data<float>(), begin, end);
  });
}

void attention_dropout(const AttentionCall& call, const Array& x, const Out& y) {
  if (!call.dropout.threshold) return cast(x, y);
  each_block(call, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(AttentionDropoutRows)(call, x.data<float>(), y.mutable_data<float>(), begin, end);
  });
}

}  // namespace plumb::cpu
#endif
