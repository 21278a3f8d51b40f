// Matrix products of bf16 operands, with sums in f32.
#include <algorithm>

#include "backends/cpu/onednn.h"
#include "backends/cpu/onednn_primitives.h"
#include "core/error.h"

namespace plumb::cpu {
namespace {

using namespace onednn;

// The sizes and layouts of a product of bf16 operands on one thread: c [M, N] = a [M, K] b [K, N] + bias. Element (i,
// j) of a is at i * a_row + j * a_column. The same holds for b and c with their own strides.
struct HalfKey {
  std::int64_t M, K, N, a_row, a_column, b_row, c_row;
  std::int64_t packed_rows;  // number of rows per block that b is packed for; 0 if b is not packed
  bool bias, half_result;

  bool operator==(const HalfKey&) const = default;
  std::size_t hash() const { return hash_of({M, K, N, a_row, a_column, b_row, c_row, packed_rows, bias, half_result}); }
};

constexpr auto half = dnnl::memory::data_type::bf16, single = dnnl::memory::data_type::f32;

// Returns the layout that oneDNN prefers for B [K, N] in products of blocks of `rows` rows.
dnnl::memory::desc packed_descriptor(std::int64_t rows, std::int64_t K, std::int64_t N) {
  return matmul_descriptor({{rows, K}, half, Dims{K, 1}}, {{K, N}, half, dnnl::memory::format_tag::any}, {},
                           {{rows, N}, single, Dims{N, 1}})
      .weights_desc();
}

struct HalfProduct : Matmul {
  explicit HalfProduct(const HalfKey& key)
      : Matmul({{key.M, key.K}, half, Dims{key.a_row, key.a_column}},
               key.packed_rows ? packed_descriptor(key.packed_rows, key.K, key.N)
                               : dnnl::memory::desc({key.K, key.N}, half, Dims{key.b_row, 1}),
               key.bias ? std::optional(dnnl::memory::desc({1, key.N}, single, Dims{key.N, 1})) : std::nullopt,
               {{key.M, key.N}, key.half_result ? half : single, Dims{key.c_row, 1}}) {}
};

// Rounds f32 weights to bf16 and packs them.
struct PackKey {
  std::int64_t K, N, rows;
  bool transposed;

  bool operator==(const PackKey&) const = default;
  std::size_t hash() const { return hash_of({K, N, rows, transposed}); }
};
class Pack {
 public:
  explicit Pack(const PackKey& key)
      : from_(dnnl::memory::desc({key.K, key.N}, single, key.transposed ? Dims{1, key.K} : Dims{key.N, 1}), engine(),
              nullptr),
        to_(packed_descriptor(key.rows, key.K, key.N), engine(), nullptr),
        reorder_(from_, to_) {}

  std::size_t bytes() const { return to_.get_desc().get_size(); }
  void run(const OneDnnCall& call, const float* from, void* to) {
    from_.set_data_handle(const_cast<float*>(from));
    to_.set_data_handle(to);
    reorder_.execute(call.stream(), from_, to_);
  }

 private:
  dnnl::memory from_, to_;
  dnnl::reorder reorder_;
};

void run_half(const HalfKey& key, const bfloat16* a, const void* b, const float* bias, void* c) {
  const OneDnnCall call;
  try {
    made<HalfProduct>(key).run(call, a, b, bias, c);
  } catch (const dnnl::error& e) {
    fail(fmt::format("[linear] oneDNN refused [{}, {}] x [{}, {}] in bf16: {}", key.M, key.K, key.K, key.N, e.what()));
  }
}

Pack& pack_of(std::int64_t K, std::int64_t N, std::int64_t rows, bool transposed) {
  const OneDnnCall call;
  try {
    return made<Pack>(PackKey{K, N, rows, transposed});
  } catch (const dnnl::error& e) {
    fail(fmt::format("[linear] oneDNN refused to pack weights [{}, {}] in bf16: {}", K, N, e.what()));
  }
}

}  // namespace

PackedBf16::PackedBf16(std::int64_t K, std::int64_t N, const float* w, bool transposed, std::int64_t rows)
    : K_(K),
      N_(N),
      rows_(rows),
      panels_(static_cast<std::int64_t>(pack_of(K, N, rows, transposed).bytes() / sizeof(float) + 1)) {
  const OneDnnCall call;
  pack_of(K, N, rows, transposed).run(call, w, panels_.data());
}

void PackedBf16::multiply(const bfloat16* a, std::int64_t n, const float* bias, float* c) const {
  run_half({n, K_, N_, K_, 1, 0, N_, rows_, bias != nullptr, false}, a, panels_.data(), bias, c);
}
void PackedBf16::multiply(const bfloat16* a, std::int64_t n, const float* bias, bfloat16* c) const {
  run_half({n, K_, N_, K_, 1, 0, N_, rows_, bias != nullptr, true}, a, panels_.data(), bias, c);
}

void product_over_half_rows(std::int64_t m, std::int64_t n, std::int64_t k, const bfloat16* a, const bfloat16* b,
                            float* y) {
  // The number of parts depends only on the shape, because the number changes the bits of oneDNN's bf16 results.
  // Another thread is worth its cost if a part takes about 5 us or more.
  const std::int64_t parts = 2 * m * n * k < 2'000'000 ? 1 : fixed_parts;
  across_longer_side(
      m, n, k, parts, y,
      [&](std::int64_t rows, std::int64_t columns, std::int64_t first_row, std::int64_t first_column, float* block) {
        run_half({rows, k, columns, 1, m, n, n, 0, false, false}, a + first_row, b + first_column, nullptr, block);
      });
}

}  // namespace plumb::cpu
