// The products c = a b of attention: in f32 (F32Products), or in bf16 by AMX (AmxProducts). The kernels of attention
// are templates on one of these classes. An object of such a class computes products by its operator(). Each class has
// these types:
//
//   Element          the type of q, k, v, dout and the results
//   Tokens           the rows of a head (q, k, v or dout), [tokens, head_dim]; left() is an operand a
//   Right            tokens as an operand b
//   RightTranspose   the transpose of tokens as an operand b
//   Weight           the type of the elements of weights
//   Weights          a block of probabilities or of their derivatives, [queries, keys]; left() is an operand a
//   LeftTranspose    the transpose of weights as an operand a
//
// The kernels write weights row by row. c has memory for whole tiles, of `tile_rows` rows and `tile_columns` columns.
#if defined(PLUMB_CPU_ATTENTION_PRODUCTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_CPU_ATTENTION_PRODUCTS_INL
#undef PLUMB_CPU_ATTENTION_PRODUCTS_INL
#else
#define PLUMB_CPU_ATTENTION_PRODUCTS_INL
#endif

#include <algorithm>
#include <type_traits>

#include "backends/cpu/amx-inl.h"
#include "backends/cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// How a product uses tokens: only as they are or transposed, or also as the operand b (Right).
enum class TokenUse { left, right };

template <class T>
class F32Products {
 public:
  using Element = T;
  using Weight = float;
  static constexpr std::int64_t tile_rows = 1, tile_columns = W;

  // Element (r, k) of a [rows, depth] is at data[r * row + k * column].
  struct LeftOperand {
    const float* data;
    std::int64_t row, column, rows, depth;
  };
  struct RightOperand {
    const float* data;
    std::int64_t row, columns;
  };

  // The rows of an operand b must fill whole vectors. f32 rows are used where they are if they fill whole vectors, or
  // if they are no operand b. Other rows are copied and padded with zeros.
  class Tokens {
   public:
    Tokens(std::int64_t most, std::int64_t dim, TokenUse use)
        : dim_(dim),
          columns_(round_up(dim, W)),
          in_place_(std::is_same_v<T, float> && (dim_ == columns_ || use == TokenUse::left)),
          copy_(in_place_ ? 0 : most * columns_) {}
    void read(const T* x, std::int64_t rows, std::int64_t stride) {
      rows_ = rows;
      if constexpr (std::is_same_v<T, float>)
        if (in_place_) {
          data_ = x;
          stride_ = stride;
          return;
        }
      data_ = copy_.data();
      stride_ = columns_;
      for (std::int64_t r = 0; r < rows; ++r)
        for_lanes(dim_, [&](std::int64_t i, auto part) HWY_ATTR {
          hn::StoreU(load(x + r * stride + i, part), f32, copy_.data() + r * columns_ + i);
        });
    }
    LeftOperand left() const { return {data_, stride_, 1, rows_, dim_}; }
    RightOperand right() const { return {data_, stride_, columns_}; }

   private:
    std::int64_t dim_, columns_, rows_ = 0, stride_ = 0;
    bool in_place_;
    Scratch copy_;
    const float* data_ = nullptr;
  };

  class Right {
   public:
    Right(std::int64_t, std::int64_t) {}
    RightOperand of(const Tokens& x) const { return x.right(); }
  };

  class RightTranspose {
   public:
    RightTranspose(std::int64_t tokens, std::int64_t dim)
        : columns_(round_up(tokens, W)), stride_(odd_lines(round_up(tokens, 16))), memory_(dim * stride_) {
      std::fill_n(memory_.data(), dim * stride_, 0.0f);  // transpose() does not write the columns after the tokens
    }
    RightOperand of(const Tokens& x) const {
      const LeftOperand a = x.left();
      transpose(a.data, a.rows, a.depth, a.row, memory_.data(), stride_);
      return {memory_.data(), stride_, columns_};
    }

   private:
    // An odd number of cache lines, so that a column spreads over many cache sets.
    static std::int64_t odd_lines(std::int64_t floats) { return floats / 16 % 2 == 0 ? floats + 16 : floats; }

    std::int64_t columns_, stride_;
    Scratch memory_;
  };

  // The weights take the place of the scores.
  class Weights {
   public:
    Weights(std::int64_t, std::int64_t keys, float* scores) : data_(scores), keys_(keys), row_(round_up(keys, W)) {}
    // Returns memory for the weights of `rows` queries.
    float* start_block(std::int64_t rows) {
      rows_ = rows;
      return data_;
    }
    std::int64_t stride() const { return row_; }
    LeftOperand left() const { return {data_, row_, 1, rows_, keys_}; }

   private:
    float* data_;
    std::int64_t keys_, row_, rows_ = 0;
  };

  class LeftTranspose {
   public:
    LeftTranspose(std::int64_t, std::int64_t) {}
    LeftOperand of(const Weights& x) const {
      const LeftOperand a = x.left();
      return {a.data, a.column, a.row, a.depth, a.rows};
    }
  };

  // Computes c = a b. If `accumulate`, adds the product to c. The rows of c begin `c_row` floats apart.
  HWY_INLINE void operator()(const LeftOperand& a, const RightOperand& b, float* c, std::int64_t c_row,
                             const Ahead (&ahead)[2], bool accumulate = false) const {
    multiply({.a = a.data,
              .a_row = a.row,
              .a_column = a.column,
              .b = b.data,
              .b_row = b.row,
              .c = c,
              .c_row = c_row,
              .rows = a.rows,
              .K = a.depth,
              .vectors = b.columns / W,
              .accumulate = accumulate,
              .ahead = {ahead[0], ahead[1]}});
  }
};

class AmxProducts {
 public:
  using Element = bfloat16;
  using Weight = bfloat16;
  // A block of queries is also the inner extent of products. Therefore its size is a multiple of tile_depth.
  static constexpr std::int64_t tile_rows = tile_depth, tile_columns = tile_side;

  class Tokens : public PaddedRows {
   public:
    Tokens(std::int64_t most, std::int64_t dim, TokenUse) : PaddedRows(most, dim) {}
  };

  class Right {
   public:
    Right(std::int64_t most, std::int64_t dim) : packed_(most, dim) {}
    const AmxMatrix& of(const Tokens& x) {
      pack_rows(packed_, 0, x.all_rows(), x.data(), x.stride());
      return packed_;
    }

   private:
    AmxMatrix packed_;
  };

  class RightTranspose {
   public:
    RightTranspose(std::int64_t most, std::int64_t dim) : packed_(dim, most) {}
    const AmxMatrix& of(const Tokens& x) {
      for (std::int64_t panel = 0; panel < packed_.panels(); ++panel)
        for (std::int64_t step = 0; step < packed_.steps(); ++step)
          for (int t = 0; t < packed_.tiles(panel); ++t)
            transpose_tile(pairs_of(x.data() + (2 * panel + t) * tile_side * x.stride() + step * tile_depth),
                           x.stride() / 2, packed_.tile(panel, step, t), tile_side);
      return packed_;
    }

   private:
    AmxMatrix packed_;
  };

  class Weights : public PaddedRows {
   public:
    // The kernels write columns up to a multiple of tile_side. The constructor sets the other columns to 0.
    Weights(std::int64_t most, std::int64_t keys, float*) : PaddedRows(most, keys) {
      const std::int64_t written = round_up(keys, tile_side);
      for (std::int64_t r = 0; r < all_rows(); ++r)
        std::fill_n(data() + r * stride() + written, stride() - written, bfloat16(0.0f));
    }
  };

  class LeftTranspose {
   public:
    LeftTranspose(std::int64_t most, std::int64_t keys)
        : keys_(keys), stride_(round_up(most, tile_depth)), memory_(round_up(keys, tile_side) * stride_ / 2) {}
    AmxRows of(const Weights& x) const {
      auto* const to = reinterpret_cast<bfloat16*>(memory_.data());
      for (std::int64_t key = 0; key < keys_; key += tile_side)
        for (std::int64_t r = 0; r < stride_; r += tile_depth)
          pack_rows_of_transpose(x.data(), x.stride(), r, key, x.all_rows(), x.stride(), to + key * stride_ + r,
                                 stride_);
      return {to, stride_, keys_};
    }

   private:
    std::int64_t keys_, stride_;
    Scratch memory_;
  };

  // Computes c = a b. If `accumulate`, adds the product to c. The rows of c begin `c_row` floats apart.
  HWY_INLINE void operator()(const AmxRows& a, const AmxMatrix& b, float* c, std::int64_t c_row,
                             const Ahead (&ahead)[2], bool accumulate = false) const {
    multiply_amx(amx_, a, b, b.all_steps(), c, c_row, accumulate, ahead);
  }

 private:
  AmxScope amx_;
};

// Calls f with the class of the products for heads of this dtype, as a std::type_identity.
template <class F>
HWY_INLINE void with_products(DType dtype, F&& f) {
  if (dtype == DType::f32)
    f(std::type_identity<F32Products<float>>());
  else if (amx_kernels())
    f(std::type_identity<AmxProducts>());
  else
    f(std::type_identity<F32Products<bfloat16>>());
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
