#include "backends/cpu/onednn.h"

#include <algorithm>
#include <array>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "backends/cpu/parallel.h"
#include "core/error.h"

namespace plumb::cpu {
namespace {

// What a primitive is made for. oneDNN fixes the number of threads at creation, so it belongs to the key.
struct Key {
  Shape a, b, y;
  bool transpose_a, transpose_b, bias;
  int threads;

  bool operator==(const Key&) const = default;
};

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t h = static_cast<std::uint64_t>(key.threads) << 3 | static_cast<std::uint64_t>(key.transpose_a) << 2 |
                      static_cast<std::uint64_t>(key.transpose_b) << 1 | static_cast<std::uint64_t>(key.bias);
    const auto mix = [&h](std::int64_t v) { h = (h ^ static_cast<std::uint64_t>(v)) * 0x9e3779b97f4a7c15ull, h ^= h >> 29; };
    for (const Shape* s : {&key.a, &key.b, &key.y})
      for (std::int64_t d : *s) mix(d);
    return static_cast<std::size_t>(h);
  }
};

// Never destroyed: threads keep primitives until they end.
dnnl::engine& engine() {
  static auto& e = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return e;
}

using Dims = dnnl::memory::dims;

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

dnnl::matmul::primitive_desc primitive_descriptor(const dnnl::memory::desc& a, const dnnl::memory::desc& b, const dnnl::memory::desc* bias,
                                                  const dnnl::memory::desc& y) {
#if DNNL_VERSION_MAJOR >= 3
  return bias ? dnnl::matmul::primitive_desc(engine(), a, b, *bias, y) : dnnl::matmul::primitive_desc(engine(), a, b, y);
#else
  return {bias ? dnnl::matmul::desc(a, b, *bias, y) : dnnl::matmul::desc(a, b, y), engine()};
#endif
}

// A primitive with its arguments, whose data pointers are set at each call. Each thread has its own.
class Product {
 public:
  explicit Product(const Key& key) {
    const int rank = key.y.rank();
    const auto a = descriptor(key.a, key.transpose_a, rank), b = descriptor(key.b, key.transpose_b, rank), y = descriptor(key.y, false, rank);
    Dims bias_dims(static_cast<std::size_t>(rank), 1), bias_strides(static_cast<std::size_t>(rank), key.y[-1]);
    bias_dims.back() = key.y[-1];
    bias_strides.back() = 1;
    const dnnl::memory::desc bias(bias_dims, dnnl::memory::data_type::f32, bias_strides);
    primitive_ = dnnl::matmul(primitive_descriptor(a, b, key.bias ? &bias : nullptr, y));
    a_ = dnnl::memory(a, engine(), nullptr);
    b_ = dnnl::memory(b, engine(), nullptr);
    y_ = dnnl::memory(y, engine(), nullptr);
    arguments_ = {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, y_}};
    if (key.bias) {
      bias_ = dnnl::memory(bias, engine(), nullptr);
      arguments_[DNNL_ARG_BIAS] = bias_;
    }
  }

  void run(dnnl::stream& stream, const float* a, const float* b, const float* bias, float* y) {
    a_.set_data_handle(const_cast<float*>(a));
    b_.set_data_handle(const_cast<float*>(b));
    if (bias) bias_.set_data_handle(const_cast<float*>(bias));
    y_.set_data_handle(y);
    primitive_.execute(stream, arguments_);
  }

 private:
  dnnl::matmul primitive_;
  dnnl::memory a_, b_, bias_, y_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

struct Cache {
  dnnl::stream stream{engine()};
  std::unordered_map<Key, Product, KeyHash> products;
};

// More shapes than any model has; a program that makes new ones without end starts over now and then.
constexpr std::size_t cache_limit = 512;

void check_status(dnnl_status_t status) { internal_check(status == dnnl_success, "oneDNN's sgemm failed with status {}", static_cast<int>(status)); }

}  // namespace

void product(const Shape& a_shape, const float* a, bool transpose_a, const Shape& b_shape, const float* b, bool transpose_b, const float* bias,
             const Shape& y_shape, float* y) {
  if (y_shape.numel() == 0) return;
  if (a_shape.numel() == 0) {  // an inner extent of 0
    for (std::int64_t i = 0; i < y_shape.numel(); ++i) y[i] = bias ? bias[i % y_shape[-1]] : 0.0f;
    return;
  }
  const Key key{a_shape, b_shape, y_shape, transpose_a, transpose_b, bias != nullptr, share_num_threads()};
  try {
    thread_local Cache cache;
    auto found = cache.products.find(key);
    if (found == cache.products.end()) {
      if (cache.products.size() >= cache_limit) cache.products.clear();
      found = cache.products.emplace(key, Product(key)).first;
    }
    found->second.run(cache.stream, a, b, bias, y);
  } catch (const dnnl::error& e) {
    fail(fmt::format("[matmul] oneDNN refused {} x {}: {}", a_shape, b_shape, e.what()));
  }
}

void product_over_rows(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float* y) {
  if (m == 0 || n == 0) return;
  // Up to eight blocks across the longer side; the other operand is packed again for each, so none is narrower than 32. Below half
  // a million operations (5 us on one core) other threads are not worth waking.
  const std::int64_t longer = std::max(m, n);
  const std::int64_t grain = 2 * m * n * k < 500'000 ? longer : std::max<std::int64_t>(32, ((longer + 7) / 8 + 15) / 16 * 16);
  parallel_for(longer, grain, [&](std::int64_t begin, std::int64_t end) {
    const OneThread one;
    const bool by_rows = m >= n;
    const std::int64_t rows = by_rows ? end - begin : m, columns = by_rows ? n : end - begin;
    const float *a_block = by_rows ? a + begin : a, *b_block = by_rows ? b : b + begin;
    float* y_block = by_rows ? y + begin * n : y + begin;
    check_status(dnnl_sgemm('T', 'N', rows, columns, k, 1.0f, a_block, m, b_block, n, 0.0f, y_block, n));
  });
}

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch);
}

}  // namespace plumb::cpu
