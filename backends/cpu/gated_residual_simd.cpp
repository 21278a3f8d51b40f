// The residual junction y = skip + s g branch. The gate g has one element, or one element per channel. s is a factor
// per sample (drop-path). The backward pass computes dbranch = s g dy and dg = sum s dy branch. If the channels are the
// last axis, a row is a token, and each block of rows keeps partial sums of dg. If they are an earlier axis (images), a
// row is a channel of a sample, with one element of the gate.
#include "backends/cpu/column_sums.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gated_residual_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// gate is [D], or null for a gate of 1. s is the factor of all rows.
void GatedRows(const float* skip, const float* branch, const float* gate, float s, std::int64_t rows, std::int64_t D,
               float* y) {
  const V vs = set(s);
  for (std::int64_t r = 0; r < rows; ++r, skip += D, branch += D, y += D)
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V g = gate ? hn::Mul(vs, load(gate + i, part)) : vs;
      store(hn::MulAdd(g, load(branch + i, part), load(skip + i, part)), y + i, part);
    });
}

void GatedBackwardRows(const float* dy, const float* gate, float s, std::int64_t rows, std::int64_t D, float* dbranch) {
  const V vs = set(s);
  for (std::int64_t r = 0; r < rows; ++r, dy += D, dbranch += D)
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V g = gate ? hn::Mul(vs, load(gate + i, part)) : vs;
      store(hn::Mul(g, load(dy + i, part)), dbranch + i, part);
    });
}

// Adds s times the sum of dy branch over the rows to dgate [D].
void GateGradientRows(const float* dy, const float* branch, float s, std::int64_t rows, std::int64_t D, float* dgate) {
  const V vs = set(s);
  for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
    V sum = zero();
    for (std::int64_t r = 0; r < rows; ++r)
      sum = hn::MulAdd(load(dy + r * D + i, part), load(branch + r * D + i, part), sum);
    store(hn::MulAdd(vs, sum, load(dgate + i, part)), dgate + i, part);
  });
}

// The sum of a b over D elements.
float DotRow(const float* a, const float* b, std::int64_t D) {
  V sum = zero();
  for_lanes(D,
            [&](std::int64_t i, auto part) HWY_ATTR { sum = hn::MulAdd(load(a + i, part), load(b + i, part), sum); });
  return sum_lanes(sum);
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(GatedRows);
HWY_EXPORT(GatedBackwardRows);
HWY_EXPORT(GateGradientRows);
HWY_EXPORT(DotRow);

namespace {

struct Junction {
  std::int64_t D, R, rows_per_sample;
  const float* gate;  // [D] if the gate has several elements, else null
  float factor;       // the gate if the gate has one element, else 1
  const float* row_scale;

  Junction(const Array& x, const Array& gate_array, const Array& scale_array)
      : D(x.shape().rank() ? x.dim(-1) : 1),
        R(D ? x.numel() / D : 0),
        rows_per_sample(scale_array.defined() && scale_array.numel() ? R / scale_array.numel() : R),
        gate(gate_array.defined() && gate_array.numel() > 1 ? gate_array.data<float>() : nullptr),
        factor(gate_array.defined() && !gate ? *gate_array.data<float>() : 1.0f),
        row_scale(scale_array.defined() ? scale_array.data<float>() : nullptr) {}

  // Splits the rows [begin, end) into parts of one sample each. Calls f(first row, number of rows, scale of the sample)
  // for each part.
  template <class F>
  void each_sample(std::int64_t begin, std::int64_t end, F&& f) const {
    while (begin < end) {
      const std::int64_t sample = begin / rows_per_sample, stop = std::min(end, (sample + 1) * rows_per_sample);
      f(begin, stop - begin, row_scale ? row_scale[sample] : 1.0f);
      begin = stop;
    }
  }
};

// The rows of images [B, C, ..] with a gate [C, 1, ..]: row b C + c is channel c of sample b.
struct ChannelRows {
  std::int64_t D, R, C, rows_per_sample;
  const float *gate, *row_scale;

  ChannelRows(const Array& x, const Array& gates, const Array& scale_array)
      : D(elements_per_gate(gates, x.shape())),
        R(D ? x.numel() / D : 0),
        C(gates.numel()),
        rows_per_sample(scale_array.defined() && scale_array.numel() ? R / scale_array.numel() : R),
        gate(gates.data<float>()),
        row_scale(scale_array.defined() ? scale_array.data<float>() : nullptr) {}
  float scale(std::int64_t row) const { return row_scale ? row_scale[row / rows_per_sample] : 1.0f; }
  float factor(std::int64_t row) const { return scale(row) * gate[row % C]; }
};

bool gate_of_rows(const Array& gate) { return gate.defined() && gate.shape().rank() > 1; }

void channels_forward(const Array& skip, const Array& branch, const Array& gate, const Array& row_scale, const Out& y) {
  const ChannelRows rows(y, gate, row_scale);
  parallel_rows(rows.R, rows.D, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = row * rows.D;
      HWY_DYNAMIC_DISPATCH(GatedRows)
      (skip.data<float>() + at, branch.data<float>() + at, nullptr, rows.factor(row), 1, rows.D,
       y.mutable_data<float>() + at);
    }
  });
}

void channels_backward(const Array& dy, const Array& branch, const Array& gate, const Array& row_scale,
                       const Out& dbranch, const Out& dgate) {
  const ChannelRows rows(dy, gate, row_scale);
  const float* gradient = dy.data<float>();
  const Scratch of_row(dgate.defined() ? rows.R : 0);  // a row's share of dgate
  parallel_rows(rows.R, rows.D, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = row * rows.D;
      if (dbranch.defined()) HWY_DYNAMIC_DISPATCH(GatedBackwardRows)
      (gradient + at, nullptr, rows.factor(row), 1, rows.D, dbranch.mutable_data<float>() + at);
      if (dgate.defined())
        of_row.data()[row] =
            rows.scale(row) * HWY_DYNAMIC_DISPATCH(DotRow)(gradient + at, branch.data<float>() + at, rows.D);
    }
  });
  if (dgate.defined() && rows.C > 0) add_partials(of_row.data(), rows.R / rows.C, rows.C, dgate.mutable_data<float>());
}

}  // namespace

void gated_residual_forward(const Array& skip, const Array& branch, const Array& gate, const Array& row_scale,
                            const Out& y) {
  if (gate_of_rows(gate)) return channels_forward(skip, branch, gate, row_scale, y);
  const Junction j(y, gate, row_scale);
  parallel_rows(j.R, j.D, [&](std::int64_t begin, std::int64_t end) {
    j.each_sample(begin, end, [&](std::int64_t row, std::int64_t rows, float s) {
      const std::int64_t at = row * j.D;
      HWY_DYNAMIC_DISPATCH(GatedRows)
      (skip.data<float>() + at, branch.data<float>() + at, j.gate, s * j.factor, rows, j.D,
       y.mutable_data<float>() + at);
    });
  });
}

void gated_residual_backward(const Array& dy, const Array& branch, const Array& gate, const Array& row_scale,
                             const Out& dbranch, const Out& dgate) {
  if (dy.numel() == 0)  // a row of no sample may have any width
    return reference_kernels().gated_residual_backward(dy, branch, gate, row_scale, dbranch, dgate);
  if (gate_of_rows(gate)) return channels_backward(dy, branch, gate, row_scale, dbranch, dgate);
  const Junction j(dy, gate, row_scale);
  const float* gradient = dy.data<float>();
  const std::int64_t grain = partial_rows(j.R), blocks = (j.R + grain - 1) / grain;
  const Scratch partial(dgate.defined() ? (blocks + 1) * j.D : 0);
  parallel_for(j.R, grain, [&](std::int64_t begin, std::int64_t end) {
    float* const sums = dgate.defined() ? partial.data() + begin / grain * j.D : nullptr;
    if (sums) std::fill_n(sums, j.D, 0.0f);
    j.each_sample(begin, end, [&](std::int64_t row, std::int64_t rows, float s) {
      const std::int64_t at = row * j.D;
      if (dbranch.defined()) HWY_DYNAMIC_DISPATCH(GatedBackwardRows)
      (gradient + at, j.gate, s * j.factor, rows, j.D, dbranch.mutable_data<float>() + at);
      if (sums) HWY_DYNAMIC_DISPATCH(GateGradientRows)(gradient + at, branch.data<float>() + at, s, rows, j.D, sums);
    });
  });
  if (!dgate.defined()) return;
  float* const columns = dgate.numel() == j.D ? dgate.mutable_data<float>() : partial.data() + blocks * j.D;
  add_partials(partial.data(), blocks, j.D, columns);
  if (dgate.numel() != j.D) add_partials(columns, j.D, 1, dgate.mutable_data<float>());
}

}  // namespace plumb::cpu
#endif
