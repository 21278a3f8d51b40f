// The linear layer with the operations before and after its product: x -> layer norm -> product -> bias, GELU or
// residual junction. The code runs block of rows by block of rows, so that the results of a block are used while they
// are in the second-level cache.
//
// In bf16, the same passes round the operands of each product. If bf16 instructions are faster (bf16_products), they
// multiply the bf16 operands: AMX by Plumb's kernels (amx.h), others by oneDNN. Otherwise the operands are f32 that
// hold rounded values (Rounded). The f32 product of such operands equals the bf16 product up to the order of the sums.
#include "backends/cpu/linear.h"

#include <algorithm>
#include <type_traits>

#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/linear_forward_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/amx-inl.h"
#include "backends/cpu/gelu-inl.h"
#include "backends/cpu/layer_norm-inl.h"
#include "backends/cpu/panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// Computes y = skip + s gate u for a block of u whose row 0 is row `first_row` of u. y, skip and gate begin at the
// first element of the block.
HWY_INLINE void join_rows(const LinearForward& f, const ProductBlock& b, std::int64_t first_row, const float* skip,
                          const float* gate, float* y) {
  const auto join = [&](auto scale_of) HWY_ATTR {
    for_block(b.rows, b.columns,
              [=, u = b.u, u_row = b.stride, N = f.N](std::int64_t r, std::int64_t i, auto part) HWY_ATTR {
                const V s = scale_of(r), g = gate ? hn::Mul(s, load(gate + i, part)) : s;
                store(hn::MulAdd(g, load(u + r * u_row + i, part), load(skip + r * N + i, part)), y + r * N + i, part);
              });
  };
  if (f.row_scale)
    join([=, scales = f.row_scale, rows = f.rows_per_sample](std::int64_t r)
             HWY_ATTR { return set(scales[(first_row + r) / rows]); });
  else
    join([](std::int64_t) HWY_ATTR { return set(1.0f); });
}

// Returns the rows that the product reads: x or the layer norm of x, in the product's type T. `room` is memory for rows
// that must be computed or converted.
template <class T>
HWY_INLINE const T* operand_rows(const LinearForward& f, std::int64_t begin, std::int64_t rows, T* room) {
  const std::int64_t K = f.K;
  if (f.gamma) {
    layer_norm_rows(static_cast<const float*>(f.x.data) + begin * K, f.gamma, f.beta, f.eps, rows, K, room,
                    f.mean + begin, f.rstd + begin);
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

// Computes y from a block of u (f32) by the operation after the product. b.row counts from row `begin` of u on.
HWY_NOINLINE void finish(const LinearForward& f, const ProductBlock& b, std::int64_t begin) {
  const std::int64_t first = (begin + b.row) * f.N + b.column;
  typed(f.y + first, [&]<class Y>(Y* y) HWY_ATTR {
    if (f.after == LinearCall::After::gelu)
      return gelu_rows(f.gelu, b.u, b.stride, nullptr, b.rows, b.columns, y, static_cast<Y*>((f.slope + first).data),
                       f.N);
    if constexpr (std::is_same_v<Y, float>) {
      if (f.after == LinearCall::After::residual)
        return join_rows(f, b, begin + b.row, f.skip + first, f.gate ? f.gate + b.column : nullptr, y);
      if (b.u == y) return;
    }
    convert_rows(b.u, b.stride, b.rows, b.columns, y, f.N);
  });
}

void LinearForwardRows(const LinearForward& f, std::int64_t begin, std::int64_t end) {
  const std::int64_t K = f.K, N = f.N, rows = end - begin;
  if (const auto* const b = std::get_if<AmxMatrix>(&f.b.packed)) {
    const Scratch room(round_up(rows, tile_side) * K / 2);  // whole tiles of rows
    auto* const own = reinterpret_cast<bfloat16*>(room.data());
    const bfloat16* const a = operand_rows(f, begin, rows, own);
    return multiply_amx(WholeTiles(a, rows, K, a == own ? tile_side : 0).left(), *b, f.bias,
                        [&](const ProductBlock& block) HWY_ATTR { finish(f, block, begin); });
  }
  const bool f32_result = f.y.dtype == DType::f32, nothing_after = f.after == LinearCall::After::nothing;
  const Scratch u_room(f32_result ? 0 : rows * N);
  float* const u = f32_result ? static_cast<float*>(f.y.data) + begin * N : u_room.data();
  if (const auto* const b = std::get_if<PackedBf16>(&f.b.packed)) {
    const Scratch room(rows * K / 2 + 1);
    const bfloat16* const a = operand_rows(f, begin, rows, reinterpret_cast<bfloat16*>(room.data()));
    if (!f32_result && nothing_after) return b->multiply(a, rows, f.bias, static_cast<bfloat16*>(f.y.data) + begin * N);
    b->multiply(a, rows, f.bias, u);
  } else if (const PackedMatrix& panels = std::get<Panels>(f.b.packed).matrix(); panels.rounded) {
    const Scratch room(rows * K);
    multiply_panels(panels, &operand_rows(f, begin, rows, reinterpret_cast<Rounded*>(room.data()))->value, rows, f.bias,
                    u);
  } else {
    const Scratch room(f.gamma ? rows * K : 0);
    multiply_panels(panels, operand_rows(f, begin, rows, room.data()), rows, f.bias, u);
  }
  if (!f32_result || !nothing_after) finish(f, {u, N, 0, rows, 0, N}, begin);
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(LinearForwardRows);

void linear_forward(const LinearCall& call, const Array& x, const Array& w, const Array& b, const LinearKeptOut& kept,
                    const Out& y) {
  const std::int64_t N = w.dim(0), K = w.dim(1), R = x.shape().with(-1, 1).numel();
  if (R == 0 || (N == 0 && !call.gamma.defined())) return;  // without outputs, the backward pass still reads the norm
  internal_check(!kept.slope.defined() || kept.slope.dtype() == y.dtype(),
                 "expected a slope of the dtype of y");
  const OperandType type(call, R, K, N);
  const std::int64_t rows = type.kind == OperandType::amx ? amx_rows(R) : more_rows(R);
  const LinearMatrix matrix(type, K, N, w.data<float>(), true, nullptr, rows);
  const Array gate = per_output(call.gate, N);
  const Scratch bias(b.defined() ? (N + 15) / 16 * 16 : 0);
  if (b.defined()) {
    std::copy_n(b.data<float>(), N, bias.data());
    std::fill(bias.data() + N, bias.data() + (N + 15) / 16 * 16, 0.0f);
  }
  const LinearForward f{.K = K,
                        .N = N,
                        .b = matrix,
                        .x = Elements(x),
                        .gamma = in(call.gamma),
                        .beta = in(call.beta),
                        .eps = static_cast<float>(call.eps),
                        .mean = out(kept.mean),
                        .rstd = out(kept.rstd),
                        .bias = b.defined() ? bias.data() : nullptr,
                        .after = call.after,
                        .gelu = call.gelu,
                        .slope = Elements(kept.slope),
                        .skip = in(call.skip),
                        .gate = in(gate),
                        .row_scale = in(call.row_scale),
                        .rows_per_sample = call.row_scale.defined() ? R / call.row_scale.numel() : R,
                        .y = Elements(y)};
  each_part(R, rows, 2 * R * K * N, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(LinearForwardRows)(f, begin, end);
  });
}

}  // namespace plumb::cpu
#endif
