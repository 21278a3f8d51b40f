#include "backends/cpu/onednn.h"

#include <algorithm>
#include <array>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <unordered_map>

#include "backends/cpu/parallel.h"
#include "core/backend.h"
#include "core/error.h"

namespace plumb::cpu {
namespace {

// What a primitive is made for. oneDNN fixes the number of threads at creation, so it belongs to the key.
struct Key {
  Shape a, b, y;
  bool transpose_a, transpose_b;
  int threads;

  bool operator==(const Key&) const = default;
};

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t h =
        static_cast<std::uint64_t>(key.threads) << 2 | static_cast<std::uint64_t>(key.transpose_a) << 1 | static_cast<std::uint64_t>(key.transpose_b);
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

// Room that a primitive works in comes from our allocator: oneDNN's own is fresh memory at each call where it is large.
dnnl::primitive_attr own_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}
// The one of a primitive.
class Room {
 public:
  Room() = default;
  explicit Room(const dnnl::memory::desc& wanted)
      : memory_(wanted, engine(), nullptr), floats_(static_cast<std::int64_t>(wanted.get_size() / sizeof(float) + 1)) {}
  std::int64_t floats() const { return floats_; }
  void lies_at(float* p) {
    if (memory_) memory_.set_data_handle(p);
  }
  const dnnl::memory& memory() const { return memory_; }

 private:
  dnnl::memory memory_;
  std::int64_t floats_ = 0;
};

dnnl::matmul::primitive_desc matmul_descriptor(const dnnl::memory::desc& a, const dnnl::memory::desc& b, const dnnl::memory::desc* bias,
                                               const dnnl::memory::desc& c) {  // bias: null where there is none
#if DNNL_VERSION_MAJOR >= 3
  return bias ? dnnl::matmul::primitive_desc(engine(), a, b, *bias, c, own_scratchpad())
              : dnnl::matmul::primitive_desc(engine(), a, b, c, own_scratchpad());
#else
  return {bias ? dnnl::matmul::desc(a, b, *bias, c) : dnnl::matmul::desc(a, b, c), own_scratchpad(), engine()};
#endif
}

// oneDNN 3 merged the operation descriptor into the primitive's. `hint`, for a backward primitive: the descriptor of the forward one.
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc primitive_descriptor(const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), arguments...};
#else
  return {typename Primitive::desc(arguments...), engine()};
#endif
}
template <class Primitive, class Hint, class... Arguments>
typename Primitive::primitive_desc backward_descriptor(const Hint& hint, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), arguments..., hint};
#else
  return {typename Primitive::desc(arguments...), engine(), hint};
#endif
}

// A matmul with its arguments, whose data pointers are set at each call. Each thread has its own.
class Matmul {
 public:
  Matmul(const dnnl::memory::desc& a, const dnnl::memory::desc& b, const dnnl::memory::desc* bias, const dnnl::memory::desc& c)
      : a_(a, engine(), nullptr), b_(b, engine(), nullptr), c_(c, engine(), nullptr) {
    const dnnl::matmul::primitive_desc pd = matmul_descriptor(a, b, bias, c);
    primitive_ = dnnl::matmul(pd);
    room_ = Room(pd.scratchpad_desc());
    arguments_ = {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}, {DNNL_ARG_SCRATCHPAD, room_.memory()}};
    if (bias) bias_ = arguments_[DNNL_ARG_BIAS] = dnnl::memory(*bias, engine(), nullptr);
  }

  void run(dnnl::stream& stream, const void* a, const void* b, const float* bias, void* c) {
    a_.set_data_handle(const_cast<void*>(a));
    b_.set_data_handle(const_cast<void*>(b));
    if (bias) bias_.set_data_handle(const_cast<float*>(bias));
    c_.set_data_handle(c);
    const Scratch room(room_.floats());
    room_.lies_at(room.data());
    primitive_.execute(stream, arguments_);
  }

 private:
  dnnl::matmul primitive_;
  dnnl::memory a_, b_, c_, bias_;
  Room room_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

Matmul made(const Key& key) {
  const int rank = key.y.rank();
  return {descriptor(key.a, key.transpose_a, rank), descriptor(key.b, key.transpose_b, rank), nullptr, descriptor(key.y, false, rank)};
}

// A product of bf16 operands on one thread, c [M, N] = a [M, K] b [K, N] + bias. Element (i, j) of a is at i * a_row + j * a_column, and so on.
struct HalfKey {
  std::int64_t M, K, N, a_row, a_column, b_row, c_row;
  std::int64_t packed_rows;  // b is packed for blocks of so many rows; 0: b_row apart
  bool bias, half_result;

  bool operator==(const HalfKey&) const = default;
};

struct HalfKeyHash {
  std::size_t operator()(const HalfKey& key) const {
    std::uint64_t h = static_cast<std::uint64_t>(key.bias) << 1 | static_cast<std::uint64_t>(key.half_result);
    for (std::int64_t d : {key.M, key.K, key.N, key.a_row, key.a_column, key.b_row, key.c_row, key.packed_rows})
      h = (h ^ static_cast<std::uint64_t>(d)) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
    return static_cast<std::size_t>(h);
  }
};

constexpr auto half = dnnl::memory::data_type::bf16, single = dnnl::memory::data_type::f32;

// How oneDNN wants B [K, N] for blocks of `rows` rows.
dnnl::memory::desc packed_descriptor(std::int64_t rows, std::int64_t K, std::int64_t N) {
  const OneThread one;
  return matmul_descriptor({{rows, K}, half, Dims{K, 1}}, {{K, N}, half, dnnl::memory::format_tag::any}, nullptr, {{rows, N}, single, Dims{N, 1}})
      .weights_desc();
}

Matmul made(const HalfKey& key) {
  const OneThread one;
  const dnnl::memory::desc bias({1, key.N}, single, Dims{key.N, 1});
  return {{{key.M, key.K}, half, Dims{key.a_row, key.a_column}},
          key.packed_rows ? packed_descriptor(key.packed_rows, key.K, key.N) : dnnl::memory::desc({key.K, key.N}, half, Dims{key.b_row, 1}),
          key.bias ? &bias : nullptr,
          {{key.M, key.N}, key.half_result ? half : single, Dims{key.c_row, 1}}};
}

// Rounds f32 weights and packs them; on all threads.
struct PackKey {
  std::int64_t K, N, rows;
  bool transposed;
  int threads;

  bool operator==(const PackKey&) const = default;
};
struct PackKeyHash {
  std::size_t operator()(const PackKey& key) const {
    std::uint64_t h = static_cast<std::uint64_t>(key.threads) << 1 | static_cast<std::uint64_t>(key.transposed);
    for (std::int64_t d : {key.K, key.N, key.rows}) h = (h ^ static_cast<std::uint64_t>(d)) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
    return static_cast<std::size_t>(h);
  }
};
class Pack {
 public:
  explicit Pack(const PackKey& key)
      : from_(dnnl::memory::desc({key.K, key.N}, single, key.transposed ? Dims{1, key.K} : Dims{key.N, 1}), engine(), nullptr),
        to_(packed_descriptor(key.rows, key.K, key.N), engine(), nullptr),
        reorder_(from_, to_) {}

  std::size_t bytes() const { return to_.get_desc().get_size(); }
  void run(dnnl::stream& stream, const float* from, void* to) {
    from_.set_data_handle(const_cast<float*>(from));
    to_.set_data_handle(to);
    reorder_.execute(stream, from_, to_);
  }

 private:
  dnnl::memory from_, to_;
  dnnl::reorder reorder_;
};

enum class Pass { forward, data, weights };  // computes y, dx or dw

struct ConvolutionKey {
  Pass pass;
  Convolution extents;
  bool bias;

  bool operator==(const ConvolutionKey&) const = default;
};

struct ConvolutionKeyHash {
  std::size_t operator()(const ConvolutionKey& key) const {
    const Convolution& c = key.extents;
    std::uint64_t h = static_cast<std::uint64_t>(key.pass) << 1 | static_cast<std::uint64_t>(key.bias);
    for (std::int64_t d : {c.samples, c.channels, c.height, c.width, c.filters, c.kernel_height, c.kernel_width, c.stride, c.padding})
      h = (h ^ static_cast<std::uint64_t>(d)) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
    return static_cast<std::size_t>(h);
  }
};

// One pass of a convolution on one thread. oneDNN chooses the layouts that it is fastest in (`any`); operands that lie otherwise are
// moved before it, and the result after it.
class ConvolutionPass {
 public:
  explicit ConvolutionPass(const ConvolutionKey& key) {
    using dnnl::convolution_backward_data, dnnl::convolution_backward_weights, dnnl::convolution_forward;
    const Convolution& c = key.extents;
    const Dims x{c.samples, c.channels, c.height, c.width}, w{c.filters, c.channels, c.kernel_height, c.kernel_width},
        y{c.samples, c.filters, c.out_height(), c.out_width()}, strides{c.stride, c.stride}, padding{c.padding, c.padding};
    const auto any = [](const Dims& dims) { return dnnl::memory::desc(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any); };
    const auto kind = key.pass == Pass::forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
    const auto direct = dnnl::algorithm::convolution_direct;
    const dnnl::memory::desc bias({c.filters}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::x);
    const auto forward = key.bias ? primitive_descriptor<convolution_forward>(kind, direct, any(x), any(w), bias, any(y), strides, padding, padding)
                                  : primitive_descriptor<convolution_forward>(kind, direct, any(x), any(w), any(y), strides, padding, padding);
    switch (key.pass) {
      case Pass::forward:
        primitive_ = convolution_forward(forward);
        if (key.bias) bias_ = arguments_[DNNL_ARG_BIAS] = dnnl::memory(bias, engine(), nullptr);
        operands_ = {Operand(DNNL_ARG_SRC, x, forward.src_desc()), Operand(DNNL_ARG_WEIGHTS, w, forward.weights_desc()),
                     Operand(DNNL_ARG_DST, y, forward.dst_desc())};
        break;
      case Pass::data: {
        const auto pd = backward_descriptor<convolution_backward_data>(forward, direct, any(x), any(w), any(y), strides, padding, padding);
        primitive_ = convolution_backward_data(pd);
        operands_ = {Operand(DNNL_ARG_DIFF_DST, y, pd.diff_dst_desc()), Operand(DNNL_ARG_WEIGHTS, w, pd.weights_desc()),
                     Operand(DNNL_ARG_DIFF_SRC, x, pd.diff_src_desc())};
        break;
      }
      case Pass::weights: {
        const auto pd = backward_descriptor<convolution_backward_weights>(forward, direct, any(x), any(w), any(y), strides, padding, padding);
        primitive_ = convolution_backward_weights(pd);
        operands_ = {Operand(DNNL_ARG_SRC, x, pd.src_desc()), Operand(DNNL_ARG_DIFF_DST, y, pd.diff_dst_desc()),
                     Operand(DNNL_ARG_DIFF_WEIGHTS, w, pd.diff_weights_desc())};
        break;
      }
    }
    for (Operand& o : operands_) arguments_[o.argument] = o.inner;
  }

  // Two operands and the result, in the order of operands_.
  void run(dnnl::stream& stream, const float* first, const float* second, const float* bias, float* result) {
    auto& [a, b, y] = operands_;
    a.plain.set_data_handle(const_cast<float*>(first));
    b.plain.set_data_handle(const_cast<float*>(second));
    y.plain.set_data_handle(result);
    if (bias) bias_.set_data_handle(const_cast<float*>(bias));
    const Scratch rooms[] = {Scratch(a.room()), Scratch(b.room()), Scratch(y.room())};
    for (std::size_t i = 0; i < operands_.size(); ++i)
      operands_[i].inner.set_data_handle(operands_[i].moved ? rooms[i].data() : operands_[i].plain.get_data_handle());
    for (Operand* o : {&a, &b})
      if (o->moved) o->to_inner.execute(stream, o->plain, o->inner);
    primitive_.execute(stream, arguments_);
    if (y.moved) y.to_plain.execute(stream, y.inner, y.plain);
  }

 private:
  struct Operand {
    int argument = 0;
    bool moved = false;         // the primitive's layout is not the caller's
    dnnl::memory plain, inner;  // row-major at the caller; as the primitive wants it
    dnnl::reorder to_inner, to_plain;

    Operand() = default;
    Operand(int argument_index, const Dims& dims, const dnnl::memory::desc& wanted) : argument(argument_index) {
      const dnnl::memory::desc row_major(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::abcd);
      moved = wanted != row_major;
      plain = dnnl::memory(row_major, engine(), nullptr);
      inner = dnnl::memory(wanted, engine(), nullptr);
      if (moved) to_inner = dnnl::reorder(plain, inner), to_plain = dnnl::reorder(inner, plain);
    }
    std::int64_t room() const { return moved ? static_cast<std::int64_t>(inner.get_desc().get_size() / sizeof(float)) : 0; }
  };

  dnnl::primitive primitive_;
  dnnl::memory bias_;
  std::array<Operand, 3> operands_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

struct Cache {
  dnnl::stream stream{engine()};
  std::unordered_map<Key, Matmul, KeyHash> products;
  std::unordered_map<HalfKey, Matmul, HalfKeyHash> half_products;
  std::unordered_map<PackKey, Pack, PackKeyHash> packs;
  std::unordered_map<ConvolutionKey, ConvolutionPass, ConvolutionKeyHash> convolutions;

  static Cache& of_thread() {
    thread_local Cache cache;
    return cache;
  }
};

// More shapes than any model has; a program that makes new ones without end starts over now and then.
constexpr std::size_t cache_limit = 512;

ConvolutionPass made(const ConvolutionKey& key) { return ConvolutionPass(key); }
Pack made(const PackKey& key) { return Pack(key); }

template <class Map>
typename Map::mapped_type& found_or_made(Map& map, const typename Map::key_type& key) {
  auto found = map.find(key);
  if (found == map.end()) {
    if (map.size() >= cache_limit) map.clear();
    found = map.emplace(key, made(key)).first;
  }
  return found->second;
}

void run_convolution(Pass pass, const Convolution& c, const float* first, const float* second, const float* bias, float* result) {
  const OneThread one;
  try {
    Cache& cache = Cache::of_thread();
    found_or_made(cache.convolutions, {pass, c, bias != nullptr}).run(cache.stream, first, second, bias, result);
  } catch (const dnnl::error& e) {
    fail(fmt::format("[conv2d] oneDNN refused {} images [{}, {}, {}] with filters [{}, {}, {}, {}], stride {}, padding {}: {}", c.samples, c.channels,
                     c.height, c.width, c.filters, c.channels, c.kernel_height, c.kernel_width, c.stride, c.padding, e.what()));
  }
}

void run_half(const HalfKey& key, const bfloat16* a, const void* b, const float* bias, void* c) {
  const OneThread one;
  try {
    Cache& cache = Cache::of_thread();
    found_or_made(cache.half_products, key).run(cache.stream, a, b, bias, c);
  } catch (const dnnl::error& e) {
    fail(fmt::format("[linear] oneDNN refused [{}, {}] x [{}, {}] in bf16: {}", key.M, key.K, key.K, key.N, e.what()));
  }
}

Pack& pack_of(std::int64_t K, std::int64_t N, std::int64_t rows, bool transposed) {
  try {
    return found_or_made(Cache::of_thread().packs, PackKey{K, N, rows, transposed, share_num_threads()});
  } catch (const dnnl::error& e) {
    fail(fmt::format("[linear] oneDNN refused to pack weights [{}, {}] in bf16: {}", K, N, e.what()));
  }
}

// Calls f(rows, columns, first row, first column, the block's first element) for blocks of y [m, n] across its longer side, in parallel: about
// `blocks` of them, none narrower than 32, as the other operand of the product is packed again for each. An inner extent k of 0 makes zeros.
template <class F>
void across_longer_side(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t blocks, float* y, F&& f) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    std::fill_n(y, m * n, 0.0f);
    return;
  }
  const bool by_rows = m >= n;
  const std::int64_t longer = std::max(m, n);
  const std::int64_t grain = blocks == 1 ? longer : std::max<std::int64_t>(32, ((longer + blocks - 1) / blocks + 15) / 16 * 16);
  parallel_for(longer, grain, [&](std::int64_t begin, std::int64_t end) {
    by_rows ? f(end - begin, n, begin, std::int64_t{0}, y + begin * n) : f(m, end - begin, std::int64_t{0}, begin, y + begin);
  });
}

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
    Cache& cache = Cache::of_thread();
    found_or_made(cache.products, key).run(cache.stream, a, b, nullptr, y);
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

PackedBf16::PackedBf16(std::int64_t K, std::int64_t N, const float* w, bool transposed, std::int64_t rows)
    : K_(K), N_(N), rows_(rows), panels_(static_cast<std::int64_t>(pack_of(K, N, rows, transposed).bytes() / sizeof(float) + 1)) {
  pack_of(K, N, rows, transposed).run(Cache::of_thread().stream, w, panels_.data());
}

void PackedBf16::multiply(const bfloat16* a, std::int64_t n, const float* bias, float* c) const {
  run_half({n, K_, N_, K_, 1, 0, N_, rows_, bias != nullptr, false}, a, panels_.data(), bias, c);
}
void PackedBf16::multiply(const bfloat16* a, std::int64_t n, const float* bias, bfloat16* c) const {
  run_half({n, K_, N_, K_, 1, 0, N_, rows_, bias != nullptr, true}, a, panels_.data(), bias, c);
}

void product_over_rows(std::int64_t m, std::int64_t n, std::int64_t k, const bfloat16* a, const bfloat16* b, float* y) {
  // Blocks by the shape alone, always: in bf16 oneDNN's bits depend on them.
  const std::int64_t blocks = 2 * m * n * k < 2'000'000 ? 1 : fixed_parts;
  across_longer_side(m, n, k, blocks, y,
                     [&](std::int64_t rows, std::int64_t columns, std::int64_t first_row, std::int64_t first_column, float* block) {
                       run_half({rows, k, columns, 1, m, n, n, 0, false, false}, a + first_row, b + first_column, nullptr, block);
                     });
}

void convolve(const Convolution& c, const float* x, const float* w, const float* bias, float* y) { run_convolution(Pass::forward, c, x, w, bias, y); }
void convolve_to_data(const Convolution& c, const float* dy, const float* w, float* dx) { run_convolution(Pass::data, c, dy, w, nullptr, dx); }
void convolve_to_weights(const Convolution& c, const float* x, const float* dy, float* dw) { run_convolution(Pass::weights, c, x, dy, nullptr, dw); }

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch);
}

}  // namespace plumb::cpu
