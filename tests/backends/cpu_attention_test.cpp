// Compares the attention of the cpu backend with the reference (compare.h). The tests cover odd sizes, masks, drops,
// and every rule for empty rows.
#include <optional>

#include "backends/cpu/amx.h"
#include "core/backend.h"
#include "core/drop_key.h"
#include "tests/backends/compare.h"
#include "tests/support/emulated_amx.h"

using namespace plumb;
using namespace plumb::test;

namespace {

struct AttentionCase {
  std::int64_t batch, heads, queries, keys, head_dim;
  double keep, drop_key, dropout;  // keep: share of keys that the mask keeps; drop_key, dropout: probabilities
  EmptyRow empty = EmptyRow::keep_all;
  DropShape shape = DropShape::plain;
  DropSharing sharing = DropSharing::per_entry;
  KeyGrid grid{};
  bool causal = false;
};

std::string describe(const AttentionCase& c) {
  return fmt::format("attention {}x{}x{}x{}x{} keep {} drop_key {} dropout {} empty {} {} {}{}", c.batch, c.heads,
                     c.queries, c.keys, c.head_dim, c.keep, c.drop_key, c.dropout, enum_name(c.empty),
                     enum_name(c.shape), enum_name(c.sharing), c.causal ? " causal" : "");
}

AttentionCall call_of(const AttentionCase& c) {
  return {.batch = c.batch,
          .heads = c.heads,
          .queries = c.queries,
          .keys = c.keys,
          .head_dim = c.head_dim,
          .scale = 1 / std::sqrt(static_cast<double>(c.head_dim)),
          .keep = c.keep < 1 ? bytes({c.batch, c.heads, c.queries, c.keys}, c.keep) : Array(),
          .causal = c.causal,
          .drop_key = key_mask(c.drop_key, c.shape, 0, c.sharing, c.grid, c.keys, 0x123456789abcdefull),
          .dropout = {drop_threshold(c.dropout), 0xfedcba987654321ull},
          .empty = c.empty,
          .step = 3,
          .first_sample = 100};
}

template <class A>
HeadsOf<A> separate(const A& a) {
  return {a, 0, a.dim(1) * a.dim(2) * a.dim(3), a.dim(2) * a.dim(3), a.dim(3)};
}
// Returns part 0, 1 or 2 of packed heads [B, T, 3, H, hd].
template <class A>
HeadsOf<A> packed(const A& a, int part) {
  const std::int64_t hd = a.dim(4), row = 3 * a.dim(3) * hd;
  return {a, part * a.dim(3) * hd, a.dim(1) * row, hd, row};
}

const std::vector<AttentionCase> attention_cases{
    {1, 1, 1, 1, 1, 1, 0, 0},          {2, 3, 5, 7, 3, 1, 0, 0},      {3, 2, 17, 17, 32, 1, 0, 0},
    {2, 3, 65, 65, 64, 1, 0, 0},       {1, 2, 1, 65, 48, 1, 0, 0},    {1, 2, 33, 64, 16, 1, 0, 0},
    {1, 1, 130, 197, 24, 1, 0.2, 0.1}, {2, 2, 17, 17, 32, 1, 0.3, 0}, {2, 2, 17, 17, 32, 1, 0, 0.3},
    {2, 2, 65, 65, 37, 1, 0.1, 0.2},   {2, 2, 13, 65, 20, 0.5, 0, 0}, {2, 2, 13, 65, 20, 0.5, 0.3, 0.2},
    {1, 2, 9, 200, 64, 0.9, 0.5, 0},   {2, 2, 5, 3, 8, 1, 1, 0},      {2, 2, 5, 3, 8, 1, 0, 1}};

// Checks softmax and dropout of scores under the masks of the call.
void check_masked_rows(const AttentionCase& c, const AttentionCall& call) {
  const Shape all{c.batch, c.heads, c.queries, c.keys};
  const Array x = random(all, -3, 3), dy = random(all);
  const std::vector<Result> one{as_f32(all)};
  compare_results(describe(c) + " softmax", "attention", one,
                  [&](const Kernels& k, const Results& y) { k.attention_softmax_forward(call, x, y[0]); });
  compare_results(describe(c) + " softmax backward", "attention", {as_f32(all), as_f32(all)},
                  [&](const Kernels& k, const Results& y) {
                    k.attention_softmax_forward(call, x, y[0]);
                    k.attention_softmax_backward(call, dy, y[0], y[1]);
                  });
  compare_results(describe(c) + " dropout", "dropout", one,
                  [&](const Kernels& k, const Results& y) { k.attention_dropout(call, x, y[0]); });
}

// The name of the tolerance for arrays of a type.
const char* tolerance_of(DType type) { return type == DType::bf16 && cpu::amx_kernels() ? "attention16" : "attention"; }
const char* gradient_tolerance_of(DType type) {
  return type == DType::bf16 && cpu::amx_kernels() ? "attention_gradient16" : "attention_gradient";
}

// Compares attention on separate q, k and v.
void compare_separate(const AttentionCase& c, DType type) {
  const AttentionCall call = call_of(c);
  const Shape query{c.batch, c.heads, c.queries, c.head_dim}, key{c.batch, c.heads, c.keys, c.head_dim},
      row{c.batch, c.heads, c.queries, 2};
  const Array q = random(query, -2, 2, type), k = random(key, -2, 2, type), v = random(key, -1, 1, type),
              dout = random(query, -1, 1, type);
  compare_results(describe(c), tolerance_of(type), {{query, type}, as_f32(row)},
                  [&](const Kernels& kernels, const Results& y) {
                    kernels.attention_forward(call, separate(q), separate(k), separate(v), separate(y[0]), y[1]);
                  });
  compare_results(describe(c) + " backward", gradient_tolerance_of(type), {{query, type}, {key, type}, {key, type}},
                  [&](const Kernels& kernels, const Results& y) {
                    const Out out = fresh(query, type), sums = fresh(row);
                    kernels.attention_forward(call, separate(q), separate(k), separate(v), separate(out), sums);
                    kernels.attention_backward(call, separate(dout), separate(q), separate(k), separate(v), sums,
                                               separate(y[0]), separate(y[1]), separate(y[2]));
                  });
}

// Compares attention on packed heads, in place.
void compare_packed(const AttentionCase& c, DType type) {
  if (c.queries != c.keys) return;
  const AttentionCall call = call_of(c);
  const Shape token{c.batch, c.queries, c.heads, c.head_dim};
  const Array qkv = random({c.batch, c.queries, 3, c.heads, c.head_dim}, -1, 1, type),
              dout = random(token, -1, 1, type);
  const auto tokens = [&]<class A>(const A& a) {
    return HeadsOf<A>{a, 0, c.queries * c.heads * c.head_dim, c.head_dim, c.heads * c.head_dim};
  };
  compare_results(describe(c) + " packed", gradient_tolerance_of(type),
                  {{token, type}, as_f32({c.batch, c.heads, c.queries, 2}), {qkv.shape(), type}},
                  [&](const Kernels& k, const Results& y) {
                    k.attention_forward(call, packed(qkv, 0), packed(qkv, 1), packed(qkv, 2), tokens(y[0]), y[1]);
                    k.attention_backward(call, tokens(dout), packed(qkv, 0), packed(qkv, 1), packed(qkv, 2), y[1],
                                         packed(y[2], 0), packed(y[2], 1), packed(y[2], 2));
                  });
}

}  // namespace

TEST_CASE("cpu attention with masks and drops and every rule for empty rows", "[once]") {
  std::vector<AttentionCase> cases = attention_cases;
  for (EmptyRow empty : {EmptyRow::keep_all, EmptyRow::zero, EmptyRow::paper})
    for (double dropout : {0.0, 0.2})
      cases.insert(cases.end(), {{4, 2, 9, 3, 16, 1, 0.7, dropout, empty},
                                 {4, 2, 9, 3, 16, 0.4, 0, dropout, empty},
                                 {4, 2, 9, 3, 16, 0.5, 0.5, dropout, empty},
                                 {1, 2, 7, 65, 5, 0.02, 0.1, dropout, empty}});
  for (DropShape shape : {DropShape::plain, DropShape::block, DropShape::cross})
    for (DropSharing sharing : {DropSharing::per_entry, DropSharing::heads, DropSharing::column})
      for (double keep : {1.0, 0.6})
        cases.insert(cases.end(), {{2, 3, 5, 10, 3, keep, 0.4, 0, EmptyRow::keep_all, shape, sharing, {3, 3}},
                                   {2, 2, 65, 65, 16, keep, 0.3, 0.2, EmptyRow::keep_all, shape, sharing, {8, 8}},
                                   {1, 2, 130, 197, 8, keep, 0.1, 0, EmptyRow::zero, shape, sharing, {14, 14}},
                                   {2, 3, 9, 12, 4, keep, 0.95, 0.2, EmptyRow::paper, shape, sharing, {3, 4}},
                                   {2, 3, 9, 75, 4, keep, 0.95, 0, EmptyRow::zero, shape, sharing, {5, 12}}});
  for (const EmptyRow empty :
       {EmptyRow::keep_all, EmptyRow::zero, EmptyRow::paper})  // queries before the first key have no keys
    for (const auto& [queries, keys] : {std::pair{65, 65}, {9, 130}, {70, 66}, {1, 5}, {5, 1}})
      for (const auto& [keep, drop] : {std::pair{1.0, 0.0}, {0.6, 0.0}, {1.0, 0.3}, {0.6, 0.3}})
        cases.push_back(
            {1, 2, queries, keys, 8, keep, drop, drop, empty, DropShape::plain, DropSharing::per_entry, {}, true});
  for (const AttentionCase& c : cases)
    for (DType type : {DType::f32, DType::bf16}) {
      compare_separate(c, type);
      if (type == DType::f32) check_masked_rows(c, call_of(c));
    }
}

TEST_CASE("cpu attention on packed heads in place", "[once]") {
  for (const AttentionCase& c : attention_cases)
    for (DType type : {DType::f32, DType::bf16}) {
      compare_packed(c, type);
    }
}

TEST_CASE("cpu attention in bf16 by AMX on emulated registers", "[once]") {
  const EmulatedAmx emulated;
  std::vector<AttentionCase> cases = attention_cases;
  cases.push_back({1, 2, 130, 65, 48, 1, 0.1, 0.1});  // a block of 96 queries and one of 34
  for (EmptyRow empty : {EmptyRow::keep_all, EmptyRow::zero, EmptyRow::paper})
    for (const auto& [queries, keys] : {std::pair{33, 31}, {16, 64}, {1, 5}, {5, 1}})
      cases.push_back(
          {2, 2, queries, keys, 24, 0.5, 0.5, 0.2, empty, DropShape::plain, DropSharing::per_entry, {}, true});
  for (const AttentionCase& c : cases) {
    const std::int64_t before = emulated.products();
    compare_separate(c, DType::bf16);
    CHECK(emulated.products() > before);
    compare_packed(c, DType::bf16);
  }
}

namespace {

// The results of attention on separate q, k and v by the cpu backend.
struct AttentionResults {
  Array out, dq, dk, dv;
};
AttentionResults attention(const AttentionCall& call, const Array& q, const Array& k, const Array& v,
                           const Array& dout) {
  const auto like = [](const Array& a) { return fresh(a.shape(), a.dtype()); };
  const Out out = like(q), dq = like(q), dk = like(k), dv = like(v), sums = fresh({q.dim(0), q.dim(1), q.dim(2), 2});
  cpu_kernels().attention_forward(call, separate(q), separate(k), separate(v), separate(out), sums);
  cpu_kernels().attention_backward(call, separate(dout), separate(q), separate(k), separate(v), sums, separate(dq),
                                   separate(dk), separate(dv));
  for (const Out& y : {out, dq, dk, dv, sums}) CHECK(end_untouched(y));
  return {out, dq, dk, dv};
}

}  // namespace

TEST_CASE("each product of cpu attention in bf16 runs by AMX on emulated registers", "[once]") {
  const EmulatedAmx emulated;
  const Shape shape{1, 1, 16, 32};
  const auto any = [&] { return random(shape, -1, 1, DType::bf16); };
  attention(call_of({1, 1, 16, 16, 32, 1, 0, 0}), any(), any(), any(), any());
  // Forward: one product of two tiles for the scores, two for out. Backward: one each for the scores and for dout v^T,
  // and two each for dq, dk and dv.
  CHECK(emulated.products() == 3 + 8);
}

// If q = 0, each of 64 keys has probability 1/64, and sums of small integers are exact.
TEST_CASE("cpu attention of equal scores is exact by AMX on emulated registers", "[once]") {
  const EmulatedAmx emulated;
  const AttentionCase c{2, 1, 130, 64, 40, 1, 0, 0};
  const Shape query{2, 1, 130, 40}, key{2, 1, 64, 40};
  const auto whole = [](const Shape& shape, double most) {
    const Out a = random(shape, -most, most, DType::bf16);
    bfloat16* const p = a.mutable_data<bfloat16>();
    std::transform(p, p + a.numel(), p, [](bfloat16 x) { return bfloat16(std::round(static_cast<float>(x))); });
    return a;
  };
  const Array q = whole(query, 0), k = whole(key, 3), v = whole(key, 3), dout = whole(query, 3);
  compare_results(describe(c), "exact", {as_bf16(query), as_bf16(key)}, [&](const Kernels& kernels, const Results& y) {
    const Out sums = fresh({2, 1, 130, 2}), dq = fresh(query, DType::bf16), dk = fresh(key, DType::bf16);
    kernels.attention_forward(call_of(c), separate(q), separate(k), separate(v), separate(y[0]), sums);
    kernels.attention_backward(call_of(c), separate(dout), separate(q), separate(k), separate(v), sums, separate(dq),
                               separate(dk), separate(y[1]));
  });
}

// All heads of a thread use the same memory, and the last block of queries is smaller than the others.
TEST_CASE("NaN in a sample or in a query of cpu attention reaches no other sample or query") {
  constexpr std::int64_t N = 130, M = 65, dim = 48;
  const Threads one_thread(1);
  const auto nan_from = [](const Array& a, std::int64_t begin, std::int64_t end) {
    const Out y = fresh(a.shape(), a.dtype());
    std::memcpy(y.mutable_bytes(), a.bytes(), bytes_of(a));
    std::memset(
        static_cast<char*>(y.mutable_bytes()) + begin * a.dim(3) * static_cast<std::int64_t>(size_of(a.dtype())), 0xff,
        static_cast<std::size_t>((end - begin) * a.dim(3)) * size_of(a.dtype()));
    return Array(y);
  };
  const auto same_rows = [](const Array& a, const Array& b, std::int64_t begin, std::int64_t end) {
    const std::size_t row = static_cast<std::size_t>(a.dim(3)) * size_of(a.dtype());
    const auto at = [&](const Array& x) {
      return static_cast<const char*>(x.bytes()) + static_cast<std::size_t>(begin) * row;
    };
    return std::memcmp(at(a), at(b), static_cast<std::size_t>(end - begin) * row) == 0;
  };
  const AttentionCall call = call_of({2, 1, N, M, dim, 1, 0, 0});
  for (const auto& [type, by_amx] : {std::pair{DType::f32, false}, {DType::bf16, false}, {DType::bf16, true}}) {
    INFO(enum_name(type) << (by_amx ? " by AMX" : ""));
    std::optional<EmulatedAmx> emulated;
    if (by_amx) emulated.emplace();
    const Array q = random({2, 1, N, dim}, -1, 1, type), k = random({2, 1, M, dim}, -1, 1, type),
                v = random({2, 1, M, dim}, -1, 1, type), dout = random({2, 1, N, dim}, -1, 1, type);
    const AttentionResults clean = attention(call, q, k, v, dout);
    const AttentionResults sample =
        attention(call, nan_from(q, 0, N), nan_from(k, 0, M), nan_from(v, 0, M), nan_from(dout, 0, N));
    CHECK(same_rows(sample.out, clean.out, N, 2 * N));
    CHECK(same_rows(sample.dq, clean.dq, N, 2 * N));
    CHECK(same_rows(sample.dk, clean.dk, M, 2 * M));
    CHECK(same_rows(sample.dv, clean.dv, M, 2 * M));
    CHECK_FALSE(same_rows(sample.out, clean.out, 0, N));
    const AttentionResults last_query = attention(call, nan_from(q, N - 1, N), k, v, nan_from(dout, N - 1, N));
    CHECK(same_rows(last_query.out, clean.out, 0, N - 1));
    CHECK(same_rows(last_query.dq, clean.dq, 0, N - 1));
    CHECK_FALSE(same_rows(last_query.dk, clean.dk, 0, M));
  }
}

TEST_CASE("cpu attention uses the reference for heads of several dtypes", "[once]") {
  const AttentionCase c{2, 2, 5, 7, 3, 1, 0, 0};
  const Shape query{2, 2, 5, 3}, key{2, 2, 7, 3}, row{2, 2, 5, 2};
  const Array q = random(query), k = random(key), v = random(key, -1, 1, DType::bf16), dout = random(query),
              sums = random(row);
  compare_results("mixed", "exact", {as_bf16(query), as_f32(row), as_f32(query), as_bf16(key), as_bf16(key)},
                  [&](const Kernels& kernels, const Results& y) {
                    const AttentionCall call = call_of(c);
                    kernels.attention_forward(call, separate(q), separate(k), separate(v), separate(y[0]), y[1]);
                    kernels.attention_backward(call, separate(dout), separate(q), separate(k), separate(v), sums,
                                               separate(y[2]), separate(y[3]), separate(y[4]));
                  });
}

TEST_CASE("cpu attention drops exactly the keys that the reference drops", "[once]") {
  std::vector<AttentionCase> cases;
  for (std::int64_t n : {3, 17, 65, 130}) {
    for (double after : {0.0, 0.25}) cases.push_back({2, 2, 5, n, n, 1, 0.25 - after, after});
    if (n == 3) continue;
    for (DropShape shape : {DropShape::plain, DropShape::block, DropShape::cross})
      for (DropSharing sharing : {DropSharing::per_entry, DropSharing::heads, DropSharing::column})
        cases.push_back({2, 2, 5, n, n, 1, 0.25, 0, EmptyRow::keep_all, shape, sharing, {n / 4, 4}});
  }
  for (const AttentionCase& c : cases) {
    // If v is the identity, the output is the row of probabilities.
    const std::int64_t n = c.keys;
    const AttentionCall call = call_of(c);
    const Array q = random({2, 2, 5, n}), k = random({2, 2, n, n}), v = full_like(q, {2, 2, n, n}, 0);
    for (std::int64_t m = 0; m < 4; ++m)
      for (std::int64_t i = 0; i < n; ++i) Out(v).mutable_data<float>()[m * n * n + i * n + i] = 1;
    compare(describe(c), "exact", {{2, 2, 5, n}}, [&](const Kernels& kernels, const Results& y) {
      const Out sums = fresh({2, 2, 5, 2});
      kernels.attention_forward(call, separate(q), separate(k), separate(v), separate(y[0]), sums);
      float* p = y[0].mutable_data<float>();
      std::transform(p, p + y[0].numel(), p, [](float x) { return x == 0 ? 0.0f : 1.0f; });
    });
  }
}

// If scores are a million apart, the softmax has one key with probability 1, and the gradient of the scores must be
// exactly 0. A rounding error of this gradient, times keys of that size, once exceeded all other gradients.
TEST_CASE("cpu attention: saturated rows give zero gradients for their scores", "[once]") {
  const std::int64_t n = 9, width = 16;
  const Shape shape{1, 2, n, width};
  for (const auto& [type, drop] :
       {std::pair{DType::f32, 0.0}, {DType::f32, 0.3}, {DType::bf16, 0.0}, {DType::bf16, 0.3}}) {
    const Array q = random(shape, -3000, 3000, type), k = random(shape, -3000, 3000, type),
                v = random(shape, -1, 1, type), dout = random(shape, -1, 1, type);
    AttentionCall call{};
    call.batch = 1;
    call.heads = 2;
    call.queries = call.keys = n;
    call.head_dim = width;
    call.scale = 1;
    call.dropout = {drop_threshold(drop), 7};
    const auto [out, dq, dk, dv] = attention(call, q, k, v, dout);
    for (double x : to_vector(dq)) CHECK(x == 0);
    for (double x : to_vector(dk)) CHECK(x == 0);
    double most = 0;
    for (double x : to_vector(dv)) most = std::max(most, std::abs(x));
    CHECK(most > 0.1);
  }
}

TEST_CASE("cpu attention without queries gives zero gradients for keys and values", "[once]") {
  for (const auto& [type, keys] :
       {std::pair{DType::f32, 3}, {DType::f32, 2000}, {DType::bf16, 3}, {DType::bf16, 2000}}) {
    AttentionCall call{};
    call.batch = call.heads = 1;
    call.queries = 0;
    call.keys = keys;
    call.head_dim = 5;
    call.scale = 1;
    const Shape query{1, 1, 0, 5}, key{1, 1, keys, 5};
    const Array q = fresh(query, type), k = random(key, -1, 1, type), v = random(key, -1, 1, type);
    const auto [out, dq, dk, dv] = attention(call, q, k, v, q);
    for (const Array& d : {dk, dv})
      for (double x : to_vector(d)) CHECK(x == 0);
  }
}

TEST_CASE("a causal call gives the same bits as a call with a triangular mask") {
  constexpr std::int64_t N = 33, M = 40;
  const Array q = random({2, 3, N, 16}), k = random({2, 3, M, 16}), v = random({2, 3, M, 16});
  AttentionCall causal = call_of({2, 3, N, M, 16, 1, 0.2, 0.1}), masked = causal;
  causal.causal = true;
  Out keep(Array({2, 3, N, M}, DType::u8, Device::cpu));
  for (std::int64_t i = 0; i < keep.numel(); ++i) keep.mutable_data<std::uint8_t>()[i] = i % M <= i / M % N + M - N;
  masked.keep = keep;
  std::vector<const Kernels*> all{&reference_kernels(), &cpu_kernels()};
  if (why_no_cuda().empty()) all.push_back(&cuda_kernels_of_host_arrays());
  for (const Kernels* kernels : all) {
    const Out one = empty_like(q), other = empty_like(q), sums(Array({2, 3, N, 2}, DType::f32, Device::cpu));
    kernels->attention_forward(causal, separate(q), separate(k), separate(v), separate(one), sums);
    kernels->attention_forward(masked, separate(q), separate(k), separate(v), separate(other), sums);
    CHECK(same_bytes(one, other));
  }
}
