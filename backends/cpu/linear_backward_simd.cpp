// The backward pass of the linear layer. The code runs block of rows by block of rows, in the reverse order of the
// forward pass: gradient of u -> product -> gradient of the layer norm. If add_to_dx, the gradient is added to dx.
// Neither the normalized x nor the branch's output is stored. The normalized x is recomputed from x, and the gate's
// gradient follows from the gradient of the weights:
//   dgate_j = sum_k w_jk (dy^T x)_jk + b_j sum dy_j,  dw_jk = gate_j (dy^T x)_jk.
// For bf16, see linear_forward_simd.cpp.
#include "backends/cpu/linear.h"

#include <algorithm>
#include <optional>

#include "backends/cpu/column_sums.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/linear_backward_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/amx-inl.h"
#include "backends/cpu/layer_norm-inl.h"
#include "backends/cpu/panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// Returns whether dw [N, K] is summed block by block, while the operands of the block are in cache. The result
// is true if each row of dw consists of whole vectors and dw fits into the second-level cache.
bool SumsByBlocks(std::int64_t N, std::int64_t K) { return K % W == 0 && N * K <= 32 * 1024; }

// The operands of the products of a block of rows, from the first row on: du is the gradient of u, and `operand` is the
// operand of dw.
struct BlockOperands {
  Elements du, operand;
};

// Writes dy slope to `du` [rows, N], and the sums of its rows to db [N]. slope, du and db may be null. Four rows at a
// time are read from left to right: their part of a sum stays in a register, and memory is read in the order of
// addresses.
template <class Dy, class Slope, class Du>
HWY_INLINE void gradient_of_u(const Dy* dy, const Slope* slope, std::int64_t rows, std::int64_t N, Du* du, float* db) {
  const auto each_row = [=](std::int64_t first, auto count) HWY_ATTR {
    for_lanes(N, [=](std::int64_t i, auto part) HWY_ATTR {
      V sum = db ? load(db + i, part) : zero();
      for (std::int64_t r = first; r < first + count; ++r) {
        V d = load(dy + r * N + i, part);
        if (slope) d = hn::Mul(d, load(slope + r * N + i, part));
        if (du) store(d, du + r * N + i, part);
        sum = hn::Add(d, sum);
      }
      if (db) store(sum, db + i, part);
    });
  };
  if (db) std::fill_n(db, N, 0.0f);
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) each_row(r, std::integral_constant<std::int64_t, 4>());
  for (; r < rows; ++r) each_row(r, std::integral_constant<std::int64_t, 1>());
}

// Writes the gradient of u for the rows from `begin` to `end - 1` to `to`, unless `to` is dy itself. If db is not null,
// writes the sum of the gradient's rows to db.
HWY_INLINE void gradient_of_u(const LinearBackward& f, std::int64_t begin, std::int64_t end, const Elements& to,
                              float* db) {
  const Elements from = f.dy + begin * f.N;
  const bool made = to.data != from.data;
  if (!made && !db) return;
  typed(from, [&](const auto* dy) HWY_ATTR {
    typed(f.slope + begin * f.N, [&](const auto* slope) HWY_ATTR {
      typed(to, [&](auto* du) HWY_ATTR { gradient_of_u(dy, slope, end - begin, f.N, made ? du : nullptr, db); });
    });
  });
}

// Writes the operand of dw to `operand`. With a layer norm, the operand is the layer norm of x, recomputed from mean
// and rstd. Without a layer norm, the operand is x, converted to the type of `operand`.
HWY_INLINE void operand_again(const LinearBackward& f, std::int64_t begin, std::int64_t end, const Elements& operand) {
  const std::int64_t K = f.K;
  typed(operand, [&](auto* to) HWY_ATTR {
    if (!f.gamma) return typed(f.x + begin * K, [&](const auto* x) HWY_ATTR { convert(x, (end - begin) * K, to); });
    const auto* const x = static_cast<const float*>(f.x.data);
    for (std::int64_t r = begin; r < end; ++r)
      normalize_row(x + r * K, f.gamma, f.beta, f.mean[r], f.rstd[r], K, to + (r - begin) * K);
  });
}

// Computes c = du w for the block, in f32.
HWY_INLINE void gradient_product(const LinearBackward& f, const Elements& du, std::int64_t rows, float* c) {
  if (const auto* const b = std::get_if<AmxMatrix>(&f.b->packed)) {
    const WholeTiles a(static_cast<const bfloat16*>(du.data), rows, f.N, 0);
    if (rows % tile_side == 0 && f.K % tile_side == 0)
      return multiply_amx(AmxScope(), a.left(), *b, b->all_steps(), c, f.K, false);
    return multiply_amx(a.left(), *b, nullptr, [&](const ProductBlock& block) HWY_ATTR {
      convert_rows(block.u, block.stride, block.rows, block.columns, c + block.row * f.K + block.column, f.K);
    });
  }
  if (const auto* const b = std::get_if<PackedBf16>(&f.b->packed))
    return b->multiply(static_cast<const bfloat16*>(du.data), rows, nullptr, c);
  multiply_panels(std::get<Panels>(f.b->packed).matrix(), static_cast<const float*>(du.data), rows, nullptr, c);
}

// Computes dx of the block. If the layer has a layer norm, also computes the block's dgamma and dbeta. If `o.operand`
// is given as well, writes the normalized rows of x there.
HWY_INLINE void gradient_of_x(const LinearBackward& f, std::int64_t block, std::int64_t begin, std::int64_t rows,
                              const BlockOperands& o) {
  const std::int64_t K = f.K;
  if (!f.gamma && f.dx.dtype == DType::f32 && !f.add_to_dx)
    return gradient_product(f, o.du, rows, static_cast<float*>(f.dx.data) + begin * K);
  const Scratch dh(rows * K);
  gradient_product(f, o.du, rows, dh.data());
  if (f.gamma) {
    typed(o.operand, [&](auto* operand) HWY_ATTR {
      layer_norm_backward_rows(dh.data(), static_cast<const float*>(f.x.data) + begin * K, f.gamma, f.mean + begin,
                               f.rstd + begin, rows, K, static_cast<float*>((f.dx + begin * K).data), f.add_to_dx,
                               f.dgamma + block * K, f.dbeta + block * K, f.beta, operand);
    });
    return;
  }
  typed(f.dx + begin * K, [&](auto* dx) HWY_ATTR {
    for_lanes(rows * K, [dx, d = dh.data(), add = f.add_to_dx](std::int64_t i, auto part) HWY_ATTR {
      const V gradient = load(d + i, part);
      store(add ? hn::Add(gradient, load(dx + i, part)) : gradient, dx + i, part);
    });
  });
}

// Packs the operand of dw for AMX. The number of rows of all blocks but the last is a multiple of tile_depth.
HWY_INLINE void pack_operand(const LinearBackward& f, std::int64_t begin, std::int64_t rows, const Elements& operand) {
  const std::int64_t K = f.K;
  typed(operand, [&](const auto* x) HWY_ATTR { pack_rows(*f.packed_operand, begin / tile_depth, rows, x, K); });
}

// Computes the blocks from `first` to `last - 1`.
void LinearBackwardBlocks(const LinearBackward& f, std::int64_t first, std::int64_t last) {
  const std::int64_t K = f.K, N = f.N, first_row = first * f.block_rows,
                     all = std::min(f.rows, last * f.block_rows) - first_row;
  const Scratch du_room(f.du.by_blocks() ? f.type.floats(all * N) : 0),
      operand_room(f.operand.by_blocks() ? f.type.floats(all * K) : 0);
  const BlockOperands group{f.du.by_blocks() ? f.type.elements(du_room) : f.du.all() + first_row * N,
                            f.operand.by_blocks() ? f.type.elements(operand_room) : f.operand.all() + first_row * K};
  for (std::int64_t block = first; block < last; ++block) {
    const std::int64_t begin = block * f.block_rows, end = std::min(f.rows, begin + f.block_rows);
    const BlockOperands o{group.du + (begin - first_row) * N, group.operand + (begin - first_row) * K};
    gradient_of_u(f, begin, end, o.du, f.db ? f.db + block * N : nullptr);
    const bool in_backward = f.gamma && f.b;
    if (o.operand.data && o.operand.data != (f.x + begin * K).data && !in_backward)
      operand_again(f, begin, end, o.operand);
    if (f.b) gradient_of_x(f, block, begin, end - begin, o);
    if (f.packed_operand) pack_operand(f, begin, end - begin, o.operand);
  }
  if (f.dw)
    multiply({.a = static_cast<const float*>(group.du.data),
              .a_row = 1,
              .a_column = N,
              .b = static_cast<const float*>(group.operand.data),
              .b_row = K,
              .c = f.dw + first / f.blocks_a_sum * N * K,
              .c_row = K,
              .rows = N,
              .K = all,
              .vectors = K / W,
              .accumulate = first % f.blocks_a_sum != 0});
}

// Computes the gate's gradient for one output: dgate = <w, dw> + b db. Then multiplies dw and db by the gate g. Returns
// dgate.
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

// Computes y = the sum of `count` rows of x. The rows begin `stride` elements apart.
void AddSums(const float* x, std::int64_t count, std::int64_t stride, std::int64_t n, float* y) {
  for_lanes(n, [&](std::int64_t i, auto part) HWY_ATTR {
    V sum = zero();
    for (std::int64_t j = 0; j < count; ++j) sum = hn::Add(sum, load(x + j * stride + i, part));
    store(sum, y + i, part);
  });
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(SumsByBlocks);
HWY_EXPORT(LinearBackwardBlocks);
HWY_EXPORT(GateGradient);
HWY_EXPORT(AddSums);

namespace {

// Returns x [B, ..] with each sample multiplied by its scale [B].
Array scaled(const Array& x, const Array& scale) {
  Array y = empty_like(x);
  gated_residual_backward(x, Array(), Array(), scale, y, Out());
  return y;
}

// The way in which dw is summed over rows. If `by_blocks` (SumsByBlocks), the operands exist only for a few blocks of
// rows, and the products of the operands are added to one of `sums` sums while the operands are in cache. `sums`
// depends only on the shape, so at most `fixed_parts` threads have work. Otherwise whole_weight_gradient() multiplies
// the whole operands.
struct WeightSums {
  bool by_blocks;
  std::int64_t sums = 1, blocks_a_sum = 1;

  WeightSums(bool wanted, OperandType type, std::int64_t N, std::int64_t K, std::int64_t blocks)
      : by_blocks(wanted && !type.by_bf16_instructions() && HWY_DYNAMIC_DISPATCH(SumsByBlocks)(N, K)) {
    if (!by_blocks || blocks == 0) return;
    blocks_a_sum = (blocks + fixed_parts - 1) / fixed_parts;
    sums = (blocks + blocks_a_sum - 1) / blocks_a_sum;
  }
};

// The number of blocks of rows whose products are added at once. With fewer rows, moving the sum to and from memory
// would take longer than adding the products.
constexpr std::int64_t blocks_at_once = 2;

// Computes dw [N, K] = du^T operand from all rows.
void whole_weight_gradient(const LinearBackward& f, float* dw) {
  const void *const du = f.du.all().data, *const operand = f.operand.all().data;
  switch (f.type.kind) {
    case OperandType::amx:
      return amx_product_over_rows(f.N, static_cast<const bfloat16*>(du), *f.packed_operand, dw);
    case OperandType::onednn:
      return product_over_half_rows(f.N, f.K, f.rows, static_cast<const bfloat16*>(du),
                                    static_cast<const bfloat16*>(operand), dw);
    default:
      return product_over_rows(f.N, f.K, f.rows, static_cast<const float*>(du), static_cast<const float*>(operand), dw);
  }
}

// On entry, dw and db are the gradients for a gate [N] of 1. A null dw or db is not wanted. Multiplies dw and db by the
// gate. Also computes dgate, [N] or [1], unless dgate is undefined.
void through_gate(const Array& w, const Array& b, const float* gate, float* dw, float* db, const Out& dgate) {
  const std::int64_t N = w.dim(0), K = w.dim(1);
  const Scratch each(N);
  parallel_for(
      N, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, K)), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t j = begin; j < end; ++j) {
          float none = 0;
          each.data()[j] =
              HWY_DYNAMIC_DISPATCH(GateGradient)(w.data<float>() + j * K, b.defined() ? b.data<float>()[j] : 0.0f,
                                                 gate[j], dw ? K : 0, dw ? dw + j * K : nullptr, db ? db + j : &none);
        }
      });
  if (!dgate.defined()) return;
  if (dgate.numel() == N)
    std::copy_n(each.data(), N, out(dgate));
  else
    add_partials(each.data(), N, 1, out(dgate));
}

// Adds the sums of the blocks, which the kernel has computed, to the gradients. A null dw or db is not wanted.
void add_blocks(const LinearBackward& f, const WeightSums& sums, std::int64_t blocks, const LinearGradients& g,
                float* dw, float* db) {
  if (g.dgamma.defined()) add_partials(f.dgamma, blocks, f.K, out(g.dgamma));
  if (g.dbeta.defined()) add_partials(f.dbeta, blocks, f.K, out(g.dbeta));
  if (db) add_partials(f.db, blocks, f.N, db);
  if (dw && !sums.by_blocks) whole_weight_gradient(f, dw);
  if (sums.by_blocks)
    parallel_elements(f.N * f.K, [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(AddSums)(f.dw + begin, blocks ? sums.sums : 0, f.N * f.K, end - begin, dw + begin);
    });
}

}  // namespace

void linear_backward(const LinearCall& call, const LinearKept& kept, const Array& dy, const Array& x, const Array& w,
                     const Array& b, const LinearGradients& g) {
  const std::int64_t N = w.dim(0), K = w.dim(1), R = x.shape().with(-1, 1).numel();
  const OperandType type(call, R, K, N);
  const std::int64_t rows = type.kind == OperandType::amx      ? amx_rows(R)
                            : type.kind == OperandType::onednn ? more_rows(R)
                                                               : partial_rows(R),
                     blocks = (R + rows - 1) / rows;
  const bool normed = call.gamma.defined(), residual = call.after == LinearCall::After::residual,
             gated = residual && call.gate.defined();
  const bool want_dx = g.dx.defined() || g.dgamma.defined() || g.dbeta.defined();
  const bool want_dw = g.dw.defined() || g.dgate.defined(), want_db = g.db.defined() || g.dgate.defined();
  const Scratch own_dw(want_dw && !g.dw.defined() ? N * K : 0), own_db(want_db && !g.db.defined() ? N : 0);
  float *const dw = !want_dw         ? nullptr
                    : g.dw.defined() ? out(g.dw)
                                     : own_dw.data(),
               *const db = !want_db         ? nullptr
                           : g.db.defined() ? out(g.db)
                                            : own_db.data();

  const Array gate = gated ? per_output(call.gate, N) : Array();
  const Array gradient = residual && call.row_scale.defined() ? scaled(dy, call.row_scale) : dy;

  // The operands of the products are the given arrays if possible.
  const bool du_is_given = call.after != LinearCall::After::gelu && type.matches(gradient);
  const bool packs_operand = want_dw && type.kind == OperandType::amx;
  const bool operand_is_given = !normed && (packs_operand || type.matches(x));
  const WeightSums sums(want_dw, type, N, K, blocks);
  const OperandRows du(du_is_given                  ? OperandRows::given
                       : want_dw && !sums.by_blocks ? OperandRows::own
                                                    : OperandRows::blocks,
                       gradient, type, R * N);
  const OperandRows operand(!want_dw                            ? OperandRows::nowhere
                            : operand_is_given                  ? OperandRows::given
                            : !sums.by_blocks && !packs_operand ? OperandRows::own
                                                                : OperandRows::blocks,
                            x, type, R * K);
  const Scratch db_blocks(want_db ? blocks * N : 0), norm_blocks(normed ? 2 * blocks * K : 0),
      dw_sums(sums.by_blocks ? sums.sums * N * K : 0);
  std::optional<AmxMatrix> packed_operand;
  if (packs_operand) packed_operand.emplace(R, K);
  std::optional<LinearMatrix> matrix;
  if (want_dx) {
    const bool scale_first = gated && type.by_bf16_instructions();
    matrix.emplace(type, N, K, (scale_first ? scaled(w, gate) : w).data<float>(), false,
                   scale_first ? nullptr : in(gate), rows);
  }
  const LinearBackward f{.K = K,
                         .N = N,
                         .type = type,
                         .b = matrix ? &*matrix : nullptr,
                         .rows = R,
                         .block_rows = rows,
                         .dy = Elements(gradient),
                         .slope = Elements(call.after == LinearCall::After::gelu ? kept.slope : Array()),
                         .du = du,
                         .db = want_db ? db_blocks.data() : nullptr,
                         .x = Elements(x),
                         .gamma = in(call.gamma),
                         .beta = in(call.beta),
                         .mean = in(kept.mean),
                         .rstd = in(kept.rstd),
                         .operand = operand,
                         .packed_operand = packed_operand ? &*packed_operand : nullptr,
                         .dw = sums.by_blocks ? dw_sums.data() : nullptr,
                         .blocks_a_sum = sums.blocks_a_sum,
                         .dx = Elements(g.dx),
                         .add_to_dx = g.add_to_dx,
                         .dgamma = norm_blocks.data(),
                         .dbeta = norm_blocks.data() + blocks * K};
  each_part(blocks, sums.blocks_a_sum, 2 * R * N * K * (want_dx && sums.by_blocks ? 2 : 1),
            [&](std::int64_t first, std::int64_t last) {
              for (std::int64_t i = first; i < last; i += blocks_at_once)
                HWY_DYNAMIC_DISPATCH(LinearBackwardBlocks)(f, i, std::min(last, i + blocks_at_once));
            });
  add_blocks(f, sums, blocks, g, dw, db);
  if (gated && (dw || db)) through_gate(w, b, gate.data<float>(), dw, db, g.dgate);
}

}  // namespace plumb::cpu
#endif
