// Products in f32, and what all users of oneDNN share.
#include <algorithm>
#include <optional>

#include "backends/cpu/onednn.h"
#include "backends/cpu/onednn_primitives.h"
#include "core/backend.h"
#include "core/error.h"

namespace plumb::cpu {
namespace onednn {

dnnl::engine& engine() {
  static auto& e = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return e;
}

dnnl::stream& stream() {
  thread_local dnnl::stream s(engine());
  return s;
}

}  // namespace onednn

namespace {

using namespace onednn;

// oneDNN fixes the number of threads when a primitive is made, so it belongs to the key.
struct Key {
  Shape a, b, y;
  bool transpose_a, transpose_b;
  int threads;

  bool operator==(const Key&) const = default;
  std::size_t hash() const {
    std::size_t h = hash_of({threads, transpose_a, transpose_b});
    for (const Shape* s : {&a, &b, &y})
      for (std::int64_t d : *s) h = hash_of({static_cast<std::int64_t>(h), d});
    return h;
  }
};

// `shape` is that of the data; the descriptor is of its (possibly transposed) last two axes.
dnnl::memory::desc descriptor(const Shape& shape, bool transpose, int rank) {
  Dims dims(static_cast<std::size_t>(rank - shape.rank()), 1);
  dims.insert(dims.end(), shape.begin(), shape.end());
  Dims strides(dims.size());
  std::int64_t stride = 1;
  for (std::size_t i = dims.size(); i-- > 0;) strides[i] = stride, stride *= dims[i];
  if (transpose) {
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    std::swap(strides[dims.size() - 1], strides[dims.size() - 2]);
  }
  return {dims, dnnl::memory::data_type::f32, strides};
}

struct Product : Matmul {
  explicit Product(const Key& key)
      : Matmul(descriptor(key.a, key.transpose_a, key.y.rank()), descriptor(key.b, key.transpose_b, key.y.rank()), {},
               descriptor(key.y, false, key.y.rank())) {}
};

void check_status(dnnl_status_t status) { internal_check(status == dnnl_success, "oneDNN's sgemm failed with status {}", static_cast<int>(status)); }

}  // namespace

void product(const Shape& a_shape, const float* a, bool transpose_a, const Shape& b_shape, const float* b, bool transpose_b, const Shape& y_shape,
             float* y) {
  if (y_shape.numel() == 0) return;
  if (a_shape.numel() == 0) {  // an inner extent of 0
    std::fill_n(y, y_shape.numel(), 0.0f);
    return;
  }
  std::optional<OneThread> one;
  if (strict_determinism()) one.emplace();
  const Key key{a_shape, b_shape, y_shape, transpose_a, transpose_b, one ? 1 : share_num_threads()};
  try {
    made<Product>(key).run(a, b, nullptr, y);
  } catch (const dnnl::error& e) {
    fail(fmt::format("[matmul] oneDNN refused {} x {}: {}", a_shape, b_shape, e.what()));
  }
}

void product_over_rows(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float* y) {
  // A part for each thread, or by the shape alone: other threads' parts have other bits.
  const std::int64_t parts = 2 * m * n * k < small_product ? 1 : strict_determinism() ? fixed_parts : num_threads();
  across_longer_side(m, n, k, parts, y,
                     [&](std::int64_t rows, std::int64_t columns, std::int64_t first_row, std::int64_t first_column, float* block) {
                       const OneThread one;
                       check_status(dnnl_sgemm('T', 'N', rows, columns, k, 1.0f, a + first_row, m, b + first_column, n, 0.0f, block, n));
                     });
}

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch);
}

}  // namespace plumb::cpu
