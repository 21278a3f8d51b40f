// Matrix products in f32, and code that all files that use oneDNN share.
#include <algorithm>
#include <span>

#include "backends/cpu/onednn.h"
#include "backends/cpu/onednn_primitives.h"
#include "backends/walk.h"
#include "core/backend.h"
#include "core/error.h"

namespace plumb::cpu {
namespace onednn {

dnnl::engine& engine() {
  static auto& e = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return e;
}

dnnl::stream& OneDnnCall::stream() const {
  thread_local dnnl::stream s(engine());
  return s;
}

}  // namespace onednn

namespace {

using namespace onednn;

// The sizes and layouts of `count` products on one thread: y [M, N] = a [M, K] b [K, N]. Element (i, j) of matrix c is
// at c * matrix + i * row + j * column. If all products use the same operand, `matrix` is 0.
struct Layout {
  std::int64_t matrix, row, column;
  bool operator==(const Layout&) const = default;
};
struct Key {
  std::int64_t count, M, K, N;
  Layout a, b, y;

  bool operator==(const Key&) const = default;
  std::size_t hash() const {
    return hash_of({count, M, K, N, a.matrix, a.row, a.column, b.matrix, b.row, b.column, y.matrix, y.row, y.column});
  }
};

dnnl::memory::desc descriptor(std::int64_t count, std::int64_t rows, std::int64_t columns, const Layout& l) {
  constexpr auto f32 = dnnl::memory::data_type::f32;
  if (count == 1) return {{rows, columns}, f32, Dims{l.row, l.column}};
  return {{l.matrix == 0 ? 1 : count, rows, columns},
          f32,
          Dims{l.matrix == 0 ? rows * columns : l.matrix, l.row, l.column}};
}

struct Product : Matmul {
  explicit Product(const Key& k)
      : Matmul(descriptor(k.count, k.M, k.K, k.a), descriptor(k.count, k.K, k.N, k.b), {},
               descriptor(k.count, k.M, k.N, k.y)) {}
};

// Returns the layout of dense matrices [.., rows, columns], transposed if `transposed`.
Layout dense(const Shape& shape, bool transposed) {
  const std::int64_t rows = shape[-2], columns = shape[-1];
  return {rows * columns, transposed ? 1 : columns, transposed ? columns : 1};
}
Shape leading(const Shape& shape) { return Shape(std::span(shape.begin(), shape.end() - 2)); }

void check_status(dnnl_status_t status) {
  internal_check(status == dnnl_success, "oneDNN's sgemm failed with status {}", static_cast<int>(status));
}

}  // namespace

void product(const Shape& a_shape, const float* a, bool transpose_a, const Shape& b_shape, const float* b,
             bool transpose_b, const Shape& y_shape, float* y) {
  if (y_shape.numel() == 0) return;
  if (a_shape.numel() == 0) {  // y has elements, so the inner extent is 0
    std::fill_n(y, y_shape.numel(), 0.0f);
    return;
  }
  const std::int64_t M = y_shape[-2], N = y_shape[-1], K = a_shape[transpose_a ? -2 : -1];
  const Layout in_a = dense(a_shape, transpose_a), in_b = dense(b_shape, transpose_b), in_y = dense(y_shape, false);
  const Shape matrices = leading(y_shape);
  const Walk<2> walk(matrices,
                     {broadcast_strides(leading(a_shape), matrices), broadcast_strides(leading(b_shape), matrices)});
  // Computes the given rows and columns of the matrices from `begin` to `end - 1` of y.
  const auto block = [&](std::int64_t begin, std::int64_t end, std::int64_t first_row, std::int64_t rows,
                         std::int64_t first_column, std::int64_t columns) {
    const OneDnnCall call;
    walk.run(begin, end, [&](std::int64_t count, std::int64_t matrix, const Walk<2>::Offsets& at) {
      Key key{count, rows, K, columns, in_a, in_b, in_y};
      key.a.matrix *= walk.inner_stride[0];
      key.b.matrix *= walk.inner_stride[1];
      try {
        made<Product>(key).run(call, a + at[0] * in_a.matrix + first_row * in_a.row,
                               b + at[1] * in_b.matrix + first_column * in_b.column, nullptr,
                               y + matrix * in_y.matrix + first_row * N + first_column);
      } catch (const dnnl::error& e) {
        fail(fmt::format("[matmul] oneDNN refused {} x {}: {}", a_shape, b_shape, e.what()));
      }
    });
  };
  const std::int64_t count = matrices.numel();
  if (2 * y_shape.numel() * K < small_product) return block(0, count, 0, M, 0, N);
  if (count >= fixed_parts)
    return parallel_for(count, (count + 4 * fixed_parts - 1) / (4 * fixed_parts),
                        [&](std::int64_t begin, std::int64_t end) { block(begin, end, 0, M, 0, N); });
  // There are few matrices. Each matrix is split across its longer side into parts of at least 32 rows or columns.
  // Smaller parts would cost too much, because each part packs the other operand again.
  const std::int64_t longer = std::max(M, N),
                     parts = std::clamp<std::int64_t>(longer / 32, 1, (fixed_parts + count - 1) / count);
  parallel_for(count * parts, 1, [&](std::int64_t i, std::int64_t) {
    const std::int64_t matrix = i / parts, begin = longer * (i % parts) / parts,
                       size = longer * (i % parts + 1) / parts - begin;
    M >= N ? block(matrix, matrix + 1, begin, size, 0, N) : block(matrix, matrix + 1, 0, M, begin, size);
  });
}

void product_over_rows(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float* y) {
  // There is one part per thread. Under strict_determinism(), the number of parts is fixed, because the number changes
  // the bits of the result.
  const std::int64_t parts = 2 * m * n * k < small_product ? 1 : strict_determinism() ? fixed_parts : num_threads();
  across_longer_side(
      m, n, k, parts, y,
      [&](std::int64_t rows, std::int64_t columns, std::int64_t first_row, std::int64_t first_column, float* block) {
        const OneDnnCall call;
        check_status(
            dnnl_sgemm('T', 'N', rows, columns, k, 1.0f, a + first_row, m, b + first_column, n, 0.0f, block, n));
      });
}

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch);
}

}  // namespace plumb::cpu
