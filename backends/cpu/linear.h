// Types and functions of the linear layer that do not depend on the instruction set.
#pragma once

#include <algorithm>
#include <utility>
#include <variant>

#include "backends/cpu/amx.h"
#include "backends/cpu/elements.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"
#include "core/backend.h"

namespace plumb::cpu {

// A matrix B [K, N] for products x B. panels-inl.h packs B into panels.
struct PackedMatrix {
  std::int64_t K, N;
  const float* w;  // [N, K] if `transposed` (then B = w^T), else [K, N]
  bool transposed;
  const float* scale;  // [K], a factor for each row of B, or null; must be null if `transposed`
  float* panels;       // packed_floats() floats; null if w already has the packed layout
  bool rounded;        // if true, the elements of B are rounded to bf16
};
// Returns the number of floats that a packed [K, N] matrix takes.
inline std::int64_t packed_floats(std::int64_t K, std::int64_t N) { return K * ((N + 15) / 16 * 16); }

// A PackedMatrix with its panels. If w does not have the packed layout, the panels are a copy that lives as long as
// this object.
class Panels {
 public:
  explicit Panels(PackedMatrix b);  // defined in linear_packing_simd.cpp
  const PackedMatrix& matrix() const { return b_; }

 private:
  PackedMatrix b_;
  Scratch panels_;
};

// The instructions that multiply the operands of a call's products, and thereby the type of the operands.
struct OperandType {
  enum Kind {
    f32,      // f32 by Plumb's kernels
    rounded,  // the same, but the operands are rounded to bf16 (Rounded)
    onednn,   // bf16 by oneDNN
    amx       // bf16 by Plumb's kernels for AMX
  } kind;

  // The products have R rows, K inputs and N outputs. bf16 instructions need at least one of each.
  OperandType(const LinearCall& call, std::int64_t R, std::int64_t K, std::int64_t N)
      : kind(call.products == Precision::f32   ? f32
             : R * K * N == 0                  ? rounded
             : amx_kernels()                   ? amx
             : bf16_products().faster_than_f32 ? onednn
                                               : rounded) {}

  bool by_bf16_instructions() const { return kind == onednn || kind == amx; }
  // The number of floats that n elements take.
  std::int64_t floats(std::int64_t n) const { return by_bf16_instructions() ? n / 2 + 1 : n; }
  // The operands in this memory.
  Elements elements(const Scratch& s) const {
    return by_bf16_instructions() ? Elements(reinterpret_cast<const bfloat16*>(s.data()))
           : kind == rounded      ? Elements(reinterpret_cast<const Rounded*>(s.data()))
                                  : Elements(s.data());
  }
  // Returns whether the elements of an array are operands as they are.
  bool matches(const Array& a) const {
    return kind != rounded && a.dtype() == (by_bf16_instructions() ? DType::bf16 : DType::f32);
  }
};

// A matrix B [K, N] that is ready for products x B: w^T for w [N, K] if `transposed`, else w [K, N].
struct LinearMatrix {
  std::variant<Panels, AmxMatrix, PackedBf16> packed;

  // `scale` is a factor for each row of B, or null; it must be null if `transposed`, or if bf16 instructions compute
  // the products. `rows` is the number of rows of x per block.
  LinearMatrix(OperandType type, std::int64_t K, std::int64_t N, const float* w, bool transposed, const float* scale,
               std::int64_t rows)
      : packed(pack(type, K, N, w, transposed, scale, rows)) {}

 private:
  static decltype(packed) pack(OperandType type, std::int64_t K, std::int64_t N, const float* w, bool transposed,
                               const float* scale, std::int64_t rows) {
    using Any = decltype(packed);
    switch (type.kind) {
      case OperandType::amx:
        return Any(std::in_place_type<AmxMatrix>, K, N, w, transposed);
      case OperandType::onednn:
        return Any(std::in_place_type<PackedBf16>, K, N, w, transposed, rows);
      default:
        return Any(std::in_place_type<Panels>,
                   PackedMatrix{K, N, w, transposed, scale, nullptr, type.kind == OperandType::rounded});
    }
  }
};

// The arguments of the forward kernel for a block of rows. Pointers refer to whole arrays. A null pointer means that
// the array is absent or not wanted.
struct LinearForward {
  std::int64_t K, N;          // numbers of inputs and outputs
  const LinearMatrix& b;      // w^T
  Elements x;                 // [R, K]
  const float *gamma, *beta;  // parameters of the layer norm before the product
  float eps;
  float *mean, *rstd;
  const float* bias;  // [N rounded up to a multiple of 16]
  LinearCall::After after;
  Gelu gelu;
  Elements slope;
  const float *skip, *gate;  // skip: [R, N]; gate: [N] or null
  const float* row_scale;
  std::int64_t rows_per_sample;
  Elements y;  // [R, N]
};

// Where the rows of an operand of dw = du^T operand live.
class OperandRows {
 public:
  enum Place {
    nowhere,  // not wanted
    given,    // in an array
    own,      // computed into memory of this object
    blocks    // in memory of a few blocks of rows, while these are computed
  };
  OperandRows(Place place, const Array& array, OperandType type, std::int64_t elements)
      : by_blocks_(place == blocks),
        memory_(place == own ? type.floats(elements) : 0),
        all_(place == given ? Elements(array)
             : place == own ? type.elements(memory_)
                            : Elements()) {}

  bool by_blocks() const { return by_blocks_; }
  // All rows. Null if the rows are not wanted or live in memory of blocks.
  const Elements& all() const { return all_; }

 private:
  bool by_blocks_;
  Scratch memory_;
  Elements all_;
};

// The arguments of the backward kernel for a block of rows. Pointers refer to whole arrays. A null pointer means that
// the array is absent or not wanted.
struct LinearBackward {
  std::int64_t K, N;  // numbers of inputs and outputs
  OperandType type;
  const LinearMatrix* b;  // w, with each row multiplied by the gate. Null if neither dx nor dgamma nor dbeta is wanted
  std::int64_t rows, block_rows;
  Elements dy;            // [R, N]
  Elements slope;         // [R, N]
  const OperandRows& du;  // [R, N]: dy times slope, or dy itself
  float* db;              // [blocks, N]: one sum for each block of rows
  Elements x;             // [R, K]
  const float *gamma, *beta, *mean, *rstd;
  const OperandRows& operand;  // [R, K]: the operand of dw, which is the recomputed layer norm, or x
  AmxMatrix* packed_operand;   // if AMX computes dw, each block rounds its rows of `operand` and packs them here
  // [.., N, K]: each sum covers `blocks_a_sum` blocks. Null if whole_weight_gradient() computes dw, or if dw is not
  // wanted.
  float* dw;
  std::int64_t blocks_a_sum;
  Elements dx;  // [R, K]
  bool add_to_dx;
  float *dgamma, *dbeta;  // [blocks, K]
};

// Return the f32 elements of an array, or null if the array is undefined.
inline const float* in(const Array& a) { return a.defined() ? a.data<float>() : nullptr; }
inline float* out(const Out& a) { return a.defined() ? a.mutable_data<float>() : nullptr; }

// Returns the gate with one factor for each of N outputs, or an undefined array if there is no gate.
inline Array per_output(const Array& gate, std::int64_t N) {
  if (!gate.defined() || gate.numel() == N) return gate;
  Array all = empty_like(gate, {N});
  std::fill_n(Out(all).mutable_data<float>(), N, *gate.data<float>());
  return all;
}

// Returns the number of rows per block for passes without partial sums, and for products by oneDNN. This number is
// twice partial_rows() if at least eight blocks remain, else partial_rows(). Larger blocks are faster, because each
// block reads the panels again, and because one call of oneDNN costs as much as about ten rows.
inline std::int64_t more_rows(std::int64_t R) {
  const std::int64_t rows = partial_rows(R);
  return R > 15 * rows ? 2 * rows : rows;
}

// Runs the parts of a product with parallel_for(). Products with fewer than small_product operations stay on the
// calling thread.
template <class F>
void each_part(std::int64_t n, std::int64_t grain, std::int64_t operations, F&& f) {
  parallel_for(n, grain, std::forward<F>(f), operations < small_product ? n + 1 : 2);
}

}  // namespace plumb::cpu
