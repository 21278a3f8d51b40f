// The linear layer with what stands before and after it, block of rows by block of rows, so that what a block makes is used while it is in
// the second-level cache: x -> layer norm -> product -> bias, GELU or the residual junction.
// Backward, the same in reverse: gradient of u -> product -> gradient of the layer norm, added to what x has got so far. Neither the
// normalised x nor the branch's output is kept: the one is made again from x, and the gate's gradient follows from that of the weights:
//   dgate_j = sum_k w_jk (dy^T x)_jk + b_j sum dy_j,  dw_jk = gate_j (dy^T x)_jk.
//
// In bf16 the operands of each product are rounded, in the same passes, and oneDNN multiplies them where the processor can; where it
// cannot, the f32 product of the rounded operands is the same up to the order of its sums.
#include "backends/cpu/linear.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "backends/cpu/column_sums.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/linear_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/gelu-inl.h"
#include "backends/cpu/layer_norm-inl.h"
#include "backends/cpu/panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

std::int64_t PanelCount(std::int64_t N) { return PanelLayout(N).parts; }

void PackPanels(const PackedMatrix& b, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) pack_panel(b, i);
}

// y = x, element by element, in y's type.
template <class X, class Y>
HWY_INLINE void convert(const X* x, std::int64_t n, Y* y) {
  for_lanes(n, [&](std::int64_t i, auto part) HWY_ATTR { store(load(x + i, part), y + i, part); });
}

// y = skip + s gate u
HWY_INLINE void join_rows(const LinearForward& f, const float* u, std::int64_t begin, std::int64_t end, float* y) {
  const std::int64_t N = f.b.N;
  for (std::int64_t r = begin; r < end; ++r, u += N, y += N) {
    const V s = set(f.row_scale ? f.row_scale[r / f.rows_per_sample] : 1.0f);
    for_lanes(N, [&](std::int64_t i, auto part) HWY_ATTR {
      const V g = f.gate ? hn::Mul(s, load(f.gate + i, part)) : s;
      store(hn::MulAdd(g, load(u + i, part), load(f.skip + r * N + i, part)), y + i, part);
    });
  }
}

// The rows that the product reads: x or its layer norm, in the product's type T; `room` is for rows that have to be made.
template <class T>
HWY_INLINE const T* operand_rows(const LinearForward& f, std::int64_t begin, std::int64_t rows, T* room) {
  const std::int64_t K = f.b.K;
  if (f.gamma) {
    layer_norm_rows(static_cast<const float*>(f.x.data) + begin * K, f.gamma, f.beta, f.eps, rows, K, room, f.mean + begin, f.rstd + begin);
    return room;
  }
  const T* result = room;
  typed(f.x + begin * K, [&]<class X>(X* x) HWY_ATTR {
    if constexpr (std::is_same_v<X, T>)
      result = x;
    else
      convert(x, rows * K, room);
  });
  return result;
}

// u in f32 -> y
HWY_INLINE void finish_rows(const LinearForward& f, const float* u, std::int64_t begin, std::int64_t rows) {
  const std::int64_t N = f.b.N;
  typed(f.y + begin * N, [&]<class Y>(Y* y) HWY_ATTR {
    if (f.after == LinearCall::After::gelu) {
      gelu_rows(f.gelu, u, nullptr, rows, N, y, static_cast<Y*>((f.slope + begin * N).data));
    } else if constexpr (std::is_same_v<Y, float>) {
      if (f.after == LinearCall::After::residual) join_rows(f, u, begin, begin + rows, y);
    } else {
      convert(u, rows * N, y);
    }
  });
}

void LinearForwardRows(const LinearForward& f, std::int64_t begin, std::int64_t end) {
  const std::int64_t K = f.b.K, N = f.b.N, rows = end - begin;
  const bool f32_result = f.y.dtype == DType::f32;
  const Scratch u_room(f32_result ? 0 : rows * N);
  float* const u = f32_result ? static_cast<float*>(f.y.data) + begin * N : u_room.data();
  if (f.half) {
    const Scratch room(rows * K / 2 + 1);
    const bfloat16* const a = operand_rows(f, begin, rows, reinterpret_cast<bfloat16*>(room.data()));
    if (!f32_result && f.after == LinearCall::After::nothing) return f.half->multiply(a, rows, f.bias, static_cast<bfloat16*>(f.y.data) + begin * N);
    f.half->multiply(a, rows, f.bias, u);
  } else if (f.b.rounded) {
    const Scratch half_room(rows * K / 2 + 1), room(rows * K);
    convert(operand_rows(f, begin, rows, reinterpret_cast<bfloat16*>(half_room.data())), rows * K, room.data());
    multiply_panels(f.b, room.data(), rows, f.bias, u);
  } else {
    const Scratch room(f.gamma ? rows * K : 0);
    multiply_panels(f.b, operand_rows(f, begin, rows, room.data()), rows, f.bias, u);
  }
  if (!f32_result || f.after != LinearCall::After::nothing) finish_rows(f, u, begin, rows);
}

// The gradient of u, and its sum over the block's rows.
HWY_INLINE void gradient_of_u(const LinearBackward& f, std::int64_t begin, std::int64_t end, float* db) {
  const std::int64_t N = f.b.K;
  if (db) std::fill_n(db, N, 0.0f);
  const bool made = f.du.data != f.dy.data;
  typed(f.dy, [&](const auto* dy) HWY_ATTR {
    typed(f.slope, [&](const auto* slope) HWY_ATTR {
      typed(f.du, [&](auto* du) HWY_ATTR {
        for (std::int64_t r = begin; r < end; ++r)
          for_lanes(N, [&](std::int64_t i, auto part) HWY_ATTR {
            V d = load(dy + r * N + i, part);
            if (slope) d = hn::Mul(d, load(slope + r * N + i, part));
            if (made) store(d, du + r * N + i, part);
            if (db) store(hn::Add(d, load(db + i, part)), db + i, part);
          });
      });
    });
  });
}

// The layer norm of x from its mean and rstd, or x, as the operand of dw.
HWY_INLINE void operand_again(const LinearBackward& f, std::int64_t begin, std::int64_t end) {
  const std::int64_t K = f.b.N;
  typed(f.operand, [&](auto* to) HWY_ATTR {
    if (!f.gamma) return typed(f.x + begin * K, [&](const auto* x) HWY_ATTR { convert(x, (end - begin) * K, to + begin * K); });
    const auto* const x = static_cast<const float*>(f.x.data);
    for (std::int64_t r = begin; r < end; ++r) normalize_row(x + r * K, f.gamma, f.beta, f.mean[r], f.rstd[r], K, to + r * K);
  });
}

// c = du w of the block, c in f32.
HWY_INLINE void gradient_product(const LinearBackward& f, std::int64_t begin, std::int64_t rows, float* c) {
  const std::int64_t N = f.b.K;
  const Elements du = f.du + begin * N;
  if (f.half) return f.half->multiply(static_cast<const bfloat16*>(du.data), rows, nullptr, c);
  if (du.dtype == DType::f32) return multiply_panels(f.b, static_cast<const float*>(du.data), rows, nullptr, c);
  const Scratch room(rows * N);
  convert(static_cast<const bfloat16*>(du.data), rows * N, room.data());
  multiply_panels(f.b, room.data(), rows, nullptr, c);
}

void LinearBackwardRows(const LinearBackward& f, std::int64_t block, std::int64_t begin, std::int64_t end) {
  const std::int64_t K = f.b.N, N = f.b.K, rows = end - begin;
  if (f.du.data != f.dy.data || f.db) gradient_of_u(f, begin, end, f.db ? f.db + block * N : nullptr);
  const bool in_backward = f.gamma && f.want_dx;
  if (f.operand.data && f.operand.data != f.x.data && !in_backward) operand_again(f, begin, end);
  if (!f.want_dx) return;
  if (!f.gamma && f.dx.dtype == DType::f32 && !f.add_to_dx) return gradient_product(f, begin, rows, static_cast<float*>(f.dx.data) + begin * K);
  const Scratch dh(rows * K);
  gradient_product(f, begin, rows, dh.data());
  if (f.gamma) {
    typed(f.operand.data ? f.operand + begin * K : f.operand, [&](auto* operand) HWY_ATTR {
      layer_norm_backward_rows(dh.data(), static_cast<const float*>(f.x.data) + begin * K, f.gamma, f.mean + begin, f.rstd + begin, rows, K,
                               static_cast<float*>((f.dx + begin * K).data), f.add_to_dx, f.dgamma + block * K, f.dbeta + block * K, f.beta, operand);
    });
    return;
  }
  typed(f.dx + begin * K, [&](auto* dx) HWY_ATTR {
    for_lanes(rows * K, [&](std::int64_t i, auto part) HWY_ATTR {
      const V d = load(dh.data() + i, part);
      store(f.add_to_dx ? hn::Add(d, load(dx + i, part)) : d, dx + i, part);
    });
  });
}

// Of one output: dgate = <w, dw> + b db; then dw and db are multiplied by the gate g. Returns dgate.
float GateGradient(const float* w, float b, float g, std::int64_t K, float* dw, float* db) {
  V sum = zero();
  const V vg = set(g);
  for_lanes(K, [&](std::int64_t i, auto part) HWY_ATTR {
    const V d = load(dw + i, part);
    sum = hn::MulAdd(load(w + i, part), d, sum);
    store(hn::Mul(d, vg), dw + i, part);
  });
  const float result = sum_lanes(sum) + b * *db;
  *db *= g;
  return result;
}

void Widen(const bfloat16* x, std::int64_t n, float* y) { convert(x, n, y); }

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(PanelCount);
HWY_EXPORT(PackPanels);
HWY_EXPORT(LinearForwardRows);
HWY_EXPORT(LinearBackwardRows);
HWY_EXPORT(GateGradient);
HWY_EXPORT(Widen);

namespace {

const float* in(const Array& a) { return a.defined() ? a.data<float>() : nullptr; }
float* out(const Array& a) { return a.defined() ? a.mutable_data<float>() : nullptr; }

// The gate as one factor for each of N outputs; undefined where there is none.
Array per_output(const Array& gate, std::int64_t N) {
  if (!gate.defined() || gate.numel() == N) return gate;
  const Array all = empty_like(gate, {N});
  std::fill_n(all.mutable_data<float>(), N, *gate.data<float>());
  return all;
}

// x [B, ..] with each sample multiplied by its scale [B].
Array scaled(const Array& x, const Array& scale) {
  const Array y = empty_like(x);
  gated_residual_backward(x, Array(), Array(), scale, y, Array());
  return y;
}

void pack(const PackedMatrix& b) {
  const std::int64_t parts = HWY_DYNAMIC_DISPATCH(PanelCount)(b.N);
  // Panels are worth another thread from 4 K elements on.
  parallel_for(parts, std::max<std::int64_t>(1, 4096 * parts / std::max<std::int64_t>(1, b.K * b.N)), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(PackPanels)(b, begin, end);
  });
}

// Rows of a block. oneDNN wants more of them in bf16: a call costs it as much as some ten rows.
std::int64_t block_rows(std::int64_t R, bool half) { return half ? 2 * partial_rows(R) : partial_rows(R); }

// Blocks of rows of a product [R, K] x [K, N]; small products stay on the calling thread.
template <class F>
void each_block(std::int64_t R, std::int64_t K, std::int64_t N, std::int64_t rows, F&& f) {
  parallel_for(
      R, rows, [&](std::int64_t begin, std::int64_t end) { f(begin / rows, begin, end); }, 2 * R * K * N < 500'000 ? R + 1 : 2);
}

// The cpu kernels compute in bf16 by oneDNN where the processor can.
bool by_onednn(const LinearCall& call) { return call.products == Precision::bf16 && bf16_products(); }

}  // namespace

void linear_forward(const LinearCall& call, const Array& x, const Array& w, const Array& b, const Array& y) {
  const std::int64_t N = w.dim(0), K = w.dim(1), R = x.shape().with(-1, 1).numel();
  if (y.numel() == 0) return;
  const bool half = K > 0 && by_onednn(call);
  const Array gate = per_output(call.gate, N);
  const std::int64_t rows = block_rows(R, half);
  std::optional<PackedBf16> half_matrix;
  if (half) half_matrix.emplace(K, N, w.data<float>(), true, rows);
  const Scratch panels(half ? 0 : packed_floats(K, N)), bias(b.defined() ? (N + 15) / 16 * 16 : 0);
  if (b.defined()) {
    std::copy_n(b.data<float>(), N, bias.data());
    std::fill(bias.data() + N, bias.data() + (N + 15) / 16 * 16, 0.0f);
  }
  const LinearForward f{.b = {K, N, w.data<float>(), true, nullptr, panels.data(), call.products == Precision::bf16},
                        .half = half ? &*half_matrix : nullptr,
                        .x = Elements(x),
                        .gamma = in(call.gamma),
                        .beta = in(call.beta),
                        .eps = static_cast<float>(call.eps),
                        .mean = out(call.mean),
                        .rstd = out(call.rstd),
                        .bias = b.defined() ? bias.data() : nullptr,
                        .after = call.after,
                        .gelu = call.gelu,
                        .slope = Elements(call.slope),
                        .skip = in(call.skip),
                        .gate = in(gate),
                        .row_scale = in(call.row_scale),
                        .rows_per_sample = call.row_scale.defined() ? R / call.row_scale.numel() : R,
                        .y = Elements(y)};
  if (!half) pack(f.b);
  each_block(R, K, N, rows, [&](std::int64_t, std::int64_t begin, std::int64_t end) { HWY_DYNAMIC_DISPATCH(LinearForwardRows)(f, begin, end); });
}

void linear_backward(const LinearCall& call, const Array& dy, const Array& x, const Array& w, const Array& b, const LinearGradients& g) {
  const std::int64_t N = w.dim(0), K = w.dim(1), R = x.shape().with(-1, 1).numel();
  const bool bf16 = call.products == Precision::bf16, half = R * N * K > 0 && by_onednn(call);
  const std::int64_t rows = block_rows(R, half), blocks = (R + rows - 1) / rows;
  const bool normed = call.gamma.defined(), residual = call.after == LinearCall::After::residual, gated = residual && call.gate.defined();
  const bool want_dx = g.dx.defined() || g.dgamma.defined() || g.dbeta.defined();
  const bool want_dw = g.dw.defined() || g.dgate.defined(), want_db = g.db.defined() || g.dgate.defined();

  const Array gate = gated ? per_output(call.gate, N) : Array();
  const Array gradient = residual && call.row_scale.defined() ? scaled(dy, call.row_scale) : dy;

  // What the products read: the arrays as they are, or ones made on the way. `floats` of n elements.
  const auto floats = [bf16](std::int64_t n) { return bf16 ? n / 2 + 1 : n; };
  const auto room = [bf16](const Scratch& s) { return bf16 ? Elements(reinterpret_cast<const bfloat16*>(s.data())) : Elements(s.data()); };
  const DType type = bf16 ? DType::bf16 : DType::f32;
  const bool make_du = call.after == LinearCall::After::gelu || gradient.dtype() != type;
  const bool make_operand = want_dw && (normed || x.dtype() != type);
  const Scratch du(make_du ? floats(R * N) : 0), operand(make_operand ? floats(R * K) : 0), db_blocks(want_db ? blocks * N : 0),
      norm_blocks(normed ? 2 * blocks * K : 0), panels(want_dx && !half ? packed_floats(N, K) : 0);
  std::optional<PackedBf16> half_matrix;
  if (want_dx && half) half_matrix.emplace(N, K, (gated ? scaled(w, gate) : w).data<float>(), false, rows);
  const LinearBackward f{.b = {N, K, w.data<float>(), false, in(gate), panels.data(), bf16},
                         .half = half_matrix ? &*half_matrix : nullptr,
                         .want_dx = want_dx,
                         .dy = Elements(gradient),
                         .slope = Elements(call.after == LinearCall::After::gelu ? call.slope : Array()),
                         .du = make_du ? room(du) : Elements(gradient),
                         .db = want_db ? db_blocks.data() : nullptr,
                         .x = Elements(x),
                         .gamma = in(call.gamma),
                         .beta = in(call.beta),
                         .mean = in(call.mean),
                         .rstd = in(call.rstd),
                         .operand = !want_dw       ? Elements(Array())
                                    : make_operand ? room(operand)
                                                   : Elements(x),
                         .dx = Elements(g.dx),
                         .add_to_dx = g.add_to_dx,
                         .dgamma = norm_blocks.data(),
                         .dbeta = norm_blocks.data() + blocks * K};
  if (want_dx && !half) pack(f.b);
  each_block(R, N, K, rows, [&](std::int64_t block, std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(LinearBackwardRows)(f, block, begin, end);
  });
  if (g.dgamma.defined()) add_partials(f.dgamma, blocks, K, out(g.dgamma));
  if (g.dbeta.defined()) add_partials(f.dbeta, blocks, K, out(g.dbeta));

  const Scratch own_dw(want_dw && !g.dw.defined() ? N * K : 0), own_db(want_db && !g.db.defined() ? N : 0);
  float *const dw = g.dw.defined() ? out(g.dw) : own_dw.data(), *const db = g.db.defined() ? out(g.db) : own_db.data();
  if (want_dw) {
    if (half) {
      product_over_rows(N, K, R, static_cast<const bfloat16*>(f.du.data), static_cast<const bfloat16*>(f.operand.data), dw);
    } else {
      const Scratch wide_du(bf16 ? R * N : 0), wide_operand(bf16 ? R * K : 0);
      if (bf16) HWY_DYNAMIC_DISPATCH(Widen)(static_cast<const bfloat16*>(f.du.data), R * N, wide_du.data());
      if (bf16) HWY_DYNAMIC_DISPATCH(Widen)(static_cast<const bfloat16*>(f.operand.data), R * K, wide_operand.data());
      product_over_rows(N, K, R, bf16 ? wide_du.data() : static_cast<const float*>(f.du.data),
                        bf16 ? wide_operand.data() : static_cast<const float*>(f.operand.data), dw);
    }
  }
  if (want_db) add_partials(db_blocks.data(), blocks, N, db);
  if (!gated || !(want_dw || want_db)) return;

  // dw and db are those of a gate of 1 so far.
  const Scratch dgate(N);
  const float zero_bias = 0;
  parallel_for(N, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, K)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; ++j) {
      float unused = 0;
      dgate.data()[j] =
          HWY_DYNAMIC_DISPATCH(GateGradient)(w.data<float>() + j * K, b.defined() ? b.data<float>()[j] : zero_bias, gate.data<float>()[j],
                                             want_dw ? K : 0, want_dw ? dw + j * K : nullptr, want_db ? db + j : &unused);
    }
  });
  if (!g.dgate.defined()) return;
  if (g.dgate.numel() == N)
    std::copy_n(dgate.data(), N, out(g.dgate));
  else
    add_partials(dgate.data(), N, 1, out(g.dgate));
}

}  // namespace plumb::cpu
#endif
