// The linear layer with what stands before and after it, block of rows by block of rows, so that what a block makes is used while it is in
// the second-level cache: x -> layer norm -> product -> bias, GELU or the residual junction.
// Backward, the same in reverse: gradient of u -> product -> gradient of the layer norm, added to what x has got so far. Neither the
// normalised x nor the branch's output is kept: the one is made again from x, and the gate's gradient follows from that of the weights:
//   dgate_j = sum_k w_jk (dy^T x)_jk + b_j sum dy_j,  dw_jk = gate_j (dy^T x)_jk.
#include "backends/cpu/linear.h"

#include <algorithm>

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

// y = skip + s gate y
HWY_INLINE void join_rows(const LinearForward& f, std::int64_t begin, std::int64_t end) {
  const std::int64_t N = f.b.N;
  for (std::int64_t r = begin; r < end; ++r) {
    const V s = set(f.factor * (f.row_scale ? f.row_scale[r / f.rows_per_sample] : 1.0f));
    float* const y = f.y + r * N;
    for_lanes(N, [&](std::int64_t i, auto part) HWY_ATTR {
      const V g = f.gate ? hn::Mul(s, load(f.gate + i, part)) : s;
      store(hn::MulAdd(g, load(y + i, part), load(f.skip + r * N + i, part)), y + i, part);
    });
  }
}

void LinearForwardRows(const LinearForward& f, std::int64_t begin, std::int64_t end) {
  const std::int64_t K = f.b.K, N = f.b.N, rows = end - begin;
  const Scratch normed(f.gamma ? rows * K : 0);
  const float* a = f.x + begin * K;
  if (f.gamma) {
    layer_norm_rows(a, f.gamma, f.beta, f.eps, rows, K, normed.data(), f.mean + begin, f.rstd + begin);
    a = normed.data();
  }
  float* const y = f.y + begin * N;
  multiply_panels(f.b, a, rows, f.bias, false, y);
  if (f.after == LinearCall::After::gelu) gelu_rows(f.gelu, y, nullptr, rows, N, y, f.slope ? f.slope + begin * N : nullptr);
  if (f.after == LinearCall::After::residual) join_rows(f, begin, end);
}

// The gradient of u, and its sum over the block's rows.
HWY_INLINE void gradient_of_u(const LinearBackward& f, std::int64_t begin, std::int64_t end, float* db) {
  const std::int64_t N = f.b.K;
  if (db) std::fill_n(db, N, 0.0f);
  for (std::int64_t r = begin; r < end; ++r)
    for_lanes(N, [&](std::int64_t i, auto part) HWY_ATTR {
      V d = load(f.dy + r * N + i, part);
      if (f.slope) {
        d = hn::Mul(d, load(f.slope + r * N + i, part));
        store(d, f.du + r * N + i, part);
      }
      if (db) store(hn::Add(d, load(db + i, part)), db + i, part);
    });
}

// Rows begin ... end - 1 of the layer norm of x, from its mean and rstd.
HWY_INLINE void norm_again(const LinearBackward& f, std::int64_t begin, std::int64_t end) {
  const std::int64_t K = f.b.N;
  for (std::int64_t r = begin; r < end; ++r) {
    const V m = set(f.mean[r]), s = set(f.rstd[r]);
    for_lanes(K, [&](std::int64_t i, auto part) HWY_ATTR {
      const V h = hn::Mul(hn::Sub(load(f.x + r * K + i, part), m), s);
      store(hn::MulAdd(h, load(f.gamma + i, part), load(f.beta + i, part)), f.normed + r * K + i, part);
    });
  }
}

void LinearBackwardRows(const LinearBackward& f, std::int64_t block, std::int64_t begin, std::int64_t end) {
  const std::int64_t N = f.b.K, K = f.b.N, rows = end - begin;
  if (f.slope || f.db) gradient_of_u(f, begin, end, f.db ? f.db + block * N : nullptr);
  if (!f.want_dx) {
    if (f.normed) norm_again(f, begin, end);
    return;
  }
  const float* const du = (f.slope ? f.du : f.dy) + begin * N;
  if (!f.gamma) return multiply_panels(f.b, du, rows, nullptr, f.add_to_dx, f.dx + begin * K);
  const Scratch dh(rows * K);
  multiply_panels(f.b, du, rows, nullptr, false, dh.data());
  layer_norm_backward_rows(dh.data(), f.x + begin * K, f.gamma, f.mean + begin, f.rstd + begin, rows, K, f.dx ? f.dx + begin * K : nullptr,
                           f.add_to_dx, f.dgamma + block * K, f.dbeta + block * K, f.beta, f.normed ? f.normed + begin * K : nullptr);
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

void ScaleRows(const float* x, const float* row_scale, std::int64_t rows_per_sample, std::int64_t D, std::int64_t begin, std::int64_t end, float* y) {
  for (std::int64_t r = begin; r < end; ++r) {
    const V s = set(row_scale[r / rows_per_sample]);
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR { store(hn::Mul(load(x + r * D + i, part), s), y + r * D + i, part); });
  }
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(PanelCount);
HWY_EXPORT(PackPanels);
HWY_EXPORT(LinearForwardRows);
HWY_EXPORT(LinearBackwardRows);
HWY_EXPORT(GateGradient);
HWY_EXPORT(ScaleRows);

namespace {

const float* in(const Array& a) { return a.defined() ? a.data<float>() : nullptr; }
float* out(const Array& a) { return a.defined() ? a.mutable_data<float>() : nullptr; }

void pack(const PackedMatrix& b) {
  const std::int64_t parts = HWY_DYNAMIC_DISPATCH(PanelCount)(b.N);
  // Panels are worth another thread from 4 K elements on.
  parallel_for(parts, std::max<std::int64_t>(1, 4096 * parts / std::max<std::int64_t>(1, b.K * b.N)), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(PackPanels)(b, begin, end);
  });
}

// Blocks of rows of a product [R, K] x [K, N]; small products stay on the calling thread.
template <class F>
void each_block(std::int64_t R, std::int64_t K, std::int64_t N, F&& f) {
  const std::int64_t grain = partial_rows(R);
  parallel_for(
      R, grain, [&](std::int64_t begin, std::int64_t end) { f(begin / grain, begin, end); }, 2 * R * K * N < 500'000 ? R + 1 : 2);
}

}  // namespace

void linear_forward(const LinearCall& call, const Array& x, const Array& w, const Array& b, const Array& y) {
  const std::int64_t N = w.dim(0), K = w.dim(1), R = N ? y.numel() / N : 0;
  if (R == 0) return;
  const Scratch panels(packed_floats(K, N)), bias(b.defined() ? (N + 15) / 16 * 16 : 0);
  if (b.defined()) {
    std::copy_n(b.data<float>(), N, bias.data());
    std::fill(bias.data() + N, bias.data() + (N + 15) / 16 * 16, 0.0f);
  }
  const bool per_channel = call.gate.defined() && call.gate.numel() > 1;
  const LinearForward f{.b = {K, N, w.data<float>(), true, nullptr, panels.data()},
                        .x = x.data<float>(),
                        .gamma = in(call.gamma),
                        .beta = in(call.beta),
                        .eps = static_cast<float>(call.eps),
                        .mean = out(call.mean),
                        .rstd = out(call.rstd),
                        .bias = b.defined() ? bias.data() : nullptr,
                        .after = call.after,
                        .gelu = call.gelu,
                        .slope = out(call.slope),
                        .skip = in(call.skip),
                        .gate = per_channel ? in(call.gate) : nullptr,
                        .factor = call.gate.defined() && !per_channel ? *call.gate.data<float>() : 1.0f,
                        .row_scale = in(call.row_scale),
                        .rows_per_sample = call.row_scale.defined() ? R / call.row_scale.numel() : R,
                        .y = y.mutable_data<float>()};
  pack(f.b);
  each_block(R, K, N, [&](std::int64_t, std::int64_t begin, std::int64_t end) { HWY_DYNAMIC_DISPATCH(LinearForwardRows)(f, begin, end); });
}

void linear_backward(const LinearCall& call, const Array& dy, const Array& x, const Array& w, const Array& b, const LinearGradients& g) {
  const std::int64_t N = w.dim(0), K = w.dim(1), R = N ? dy.numel() / N : 0;
  const std::int64_t blocks = R ? (R + partial_rows(R) - 1) / partial_rows(R) : 0;
  const bool normed = call.gamma.defined(), residual = call.after == LinearCall::After::residual, gated = residual && call.gate.defined();
  const bool want_dx = g.dx.defined() || g.dgamma.defined() || g.dbeta.defined();
  const bool want_dw = g.dw.defined() || g.dgate.defined(), want_db = g.db.defined() || g.dgate.defined();

  // The gate as one factor for each output.
  const Scratch gate(gated ? N : 0), scaled(residual && call.row_scale.defined() ? R * N : 0);
  if (gated)
    for (std::int64_t j = 0; j < N; ++j) gate.data()[j] = call.gate.data<float>()[call.gate.numel() > 1 ? j : 0];
  const float* gradient = dy.data<float>();
  if (residual && call.row_scale.defined()) {
    parallel_rows(R, N, [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(ScaleRows)(gradient, call.row_scale.data<float>(), R / call.row_scale.numel(), N, begin, end, scaled.data());
    });
    gradient = scaled.data();
  }

  const bool gelu = call.after == LinearCall::After::gelu;
  const Scratch panels(want_dx ? packed_floats(N, K) : 0), du(gelu ? R * N : 0), db_blocks(want_db ? blocks * N : 0),
      normed_x(normed && want_dw ? R * K : 0), norm_blocks(normed ? 2 * blocks * K : 0);
  const LinearBackward f{.b = {N, K, w.data<float>(), false, gated ? gate.data() : nullptr, panels.data()},
                         .want_dx = want_dx,
                         .dy = gradient,
                         .slope = gelu ? call.slope.data<float>() : nullptr,
                         .du = du.data(),
                         .db = want_db ? db_blocks.data() : nullptr,
                         .x = x.data<float>(),
                         .gamma = in(call.gamma),
                         .beta = in(call.beta),
                         .mean = in(call.mean),
                         .rstd = in(call.rstd),
                         .normed = normed && want_dw ? normed_x.data() : nullptr,
                         .dx = out(g.dx),
                         .add_to_dx = g.add_to_dx,
                         .dgamma = norm_blocks.data(),
                         .dbeta = norm_blocks.data() + blocks * K};
  if (want_dx) pack(f.b);
  each_block(R, N, K, [&](std::int64_t block, std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(LinearBackwardRows)(f, block, begin, end);
  });
  if (g.dgamma.defined()) add_partials(f.dgamma, blocks, K, out(g.dgamma));
  if (g.dbeta.defined()) add_partials(f.dbeta, blocks, K, out(g.dbeta));

  const Scratch own_dw(want_dw && !g.dw.defined() ? N * K : 0), own_db(want_db && !g.db.defined() ? N : 0);
  float *const dw = g.dw.defined() ? out(g.dw) : own_dw.data(), *const db = g.db.defined() ? out(g.db) : own_db.data();
  if (want_dw) product_over_rows(N, K, R, gelu ? du.data() : gradient, normed ? normed_x.data() : x.data<float>(), dw);
  if (want_db) add_partials(db_blocks.data(), blocks, N, db);
  if (!gated || !(want_dw || want_db)) return;

  // dw and db are those of a gate of 1 so far.
  const Scratch dgate(N);
  const float zero_bias = 0;
  parallel_for(N, std::max<std::int64_t>(1, 16384 / K), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; ++j) {
      float unused = 0;
      dgate.data()[j] = HWY_DYNAMIC_DISPATCH(GateGradient)(w.data<float>() + j * K, b.defined() ? b.data<float>()[j] : zero_bias, gate.data()[j],
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
