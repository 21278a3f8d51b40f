// Extents that an op computes from other numbers: sums and products that overflow, and sizes that no memory holds.
#include <limits>

#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

constexpr std::int64_t big = std::numeric_limits<std::int64_t>::max(), low = std::numeric_limits<std::int64_t>::min(),
                       huge = std::int64_t{1} << 58;

// Checks that a call throws Error with a message of the op.
template <class F>
void refuses(const std::string& op, F&& f) {
  CAPTURE(op);
  CHECK_THROWS_AS(f(), Error);
  CHECK_THAT(error_of(f), contains("[" + op + "] expected "));
}

}  // namespace

TEST_CASE("widths of pad and diagonals that overflow are refused") {
  refuses("pad", [] { pad(zeros({5}), {{big, big}}); });
  refuses("pad", [] { pad(zeros({5}), {{big, 1}}); });
  refuses("pad", [] { pad(ones({100000}), {{big - 7, 3}}); });
  refuses("pad", [] { pad(ones({2, 3}), {{1LL << 62, 1LL << 62}, {0, 0}}); });
  refuses("pad", [] { pad(ones({2, 3}), {{1LL << 40, 0}, {0, 1LL << 40}}); });
  CHECK_THAT(error_of([] { pad(zeros({5}), {{big, 1}}); }), contains("got 9223372036854775807 + 5 + 1"));
  for (const std::int64_t diagonal : {big, low, low + 1}) {
    refuses("diag", [&] { diag(ones({2}), diagonal); });
    refuses("diag", [&] { diag(ones({2, 2}), diagonal); });
  }
  refuses("diag", [] { diag(ones({2}), 1LL << 40); });
  CHECK(diag(ones({2, 2}), 1LL << 40).shape() == Shape{0});
  CHECK(tril(ones({2, 2}), low).values() == std::vector<double>(4, 0));
  CHECK(triu(ones({2, 2}), low).values() == std::vector<double>(4, 1));
}

TEST_CASE("counts and extents whose product or sum overflows are refused") {
  const Tensor x = ones({2, 3}), none = zeros({0, huge});
  refuses("repeat", [&] { repeat(x, {1, big}); });
  refuses("repeat", [&] { repeat(x, {1LL << 40, 1LL << 40}); });
  refuses("repeat_interleave", [&] { repeat_interleave(x, big, 0); });
  refuses("concat", [&] { concat(Tensors(40, none), 1); });
  refuses("split", [&] { split(x, {big, big, 4}, 1); });
  refuses("chunk", [] { chunk(zeros({0}), 1LL << 40, 0); });
  refuses("unbind", [&] { unbind(none, 1); });
  refuses("split", [&] { split(none, 1, 1); });
  CHECK(split(x, big, 1).size() == 1);
  CHECK(roll(x, low, 1).values() == roll(x, low % 3, 1).values());
  refuses("matmul", [&] { matmul(zeros({huge, 0}), zeros({0, huge})); });
  refuses("einsum", [&] { einsum("ij,kl->ijkl", zeros({huge, 0}), zeros({0, huge})); });
  refuses("linear", [&] { linear(zeros({huge, 0}), zeros({16, 0})); });
  refuses("conv2d", [&] { conv2d(zeros({0, 1, 1LL << 50, 1}), ones({1, 1, 1, 1}), {}, {.padding = 1LL << 20}); });
  refuses("avg_pool2d", [&] { avg_pool2d(ones({1, 1, 1, 1}), {.kernel = 2147483647, .padding = 1073741823}); });
  refuses("attention_qkv", [] { attention_qkv(zeros({1, 2, 6}), (big / 3) * 2); });
  refuses("attention_qkv", [] { attention_qkv(zeros({1, 2, 0}), big); });
  refuses("reshape", [] { reshape(zeros({0}), {big, big, -1}); });
  refuses("one_hot", [] { one_hot(integers({0}), big); });
  refuses("eye", [] { eye(big); });
  refuses("eye", [] { eye(1LL << 40); });
  refuses("linspace", [] { linspace(0, 1, big); });
  refuses("arange", [] { arange(0.0, 1e300); });
  refuses("arange", [] { arange(-1e308, 1e308, 1.0); });
  refuses("arange", [] { arange(low, big); });
  refuses("random_permutation", [] { random_permutation(big, 1, ""); });
  CHECK(arange(big - 1, big).values().size() == 1);
  CHECK(arange(low, big, big).values() ==
        std::vector<double>{static_cast<double>(low), -1, static_cast<double>(big - 1)});
  CHECK(arange(big, low, low).values() == std::vector<double>{static_cast<double>(big), -1});
}

TEST_CASE("tensors larger than memory are errors that name the bytes") {
  constexpr std::int64_t n = 1LL << 50;
  const std::string asked = "out of memory on the host: asked for ";
  for (const Device device : {Device::reference, Device::cpu})
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Defaults where{dtype, device};
      const std::string bytes = fmt::format("{}{} bytes (", asked, n * (dtype == DType::f32 ? 4 : 8));
      CHECK_THROWS_AS(zeros({n}, where), OutOfMemory);
      CHECK_THAT(error_of([&] { zeros({n}, where); }), contains(bytes));
      CHECK_THAT(error_of([&] { full({n}, 3, where); }), contains(bytes));
      CHECK_THAT(error_of([&] { broadcast_to(ones({1}, where), {n}); }), contains(bytes));
      // These functions compute the numbers as f64 on the host.
      const std::string wide = fmt::format("{}{} bytes (", asked, n * 8);
      CHECK_THAT(error_of([&] { arange(0.0, static_cast<double>(n), 1.0, where); }), contains(wide));
      CHECK_THAT(error_of([&] { linspace(0, 1, n, where); }), contains(wide));
      CHECK_THAT(error_of([&] { eye(1, n, where); }), contains(wide));
      CHECK_THAT(error_of([&] { random_normal({n}, 1, "", where); }), contains(wide));
      CHECK_THAT(error_of([&] { random_uniform({n}, 0, 1, 1, "", where); }), contains(wide));
      CHECK_THAT(error_of([&] { one_hot(integers({0}, {1}, device), n, dtype); }), contains(wide));
      CHECK_THAT(error_of([&] { arange(n, device); }), contains(wide));
      CHECK_THAT(error_of([&] { random_permutation(n, 1, "", device); }), contains(wide));
    }
  // A tensor without elements may have large extents.
  const Tensor none = zeros({0, 1LL << 30, 1LL << 28});
  for (const Tensor& y : {tril(none), triu(none), flip(none), roll(none, 1, 1), sort(none, 1).values, none * 2})
    CHECK(y.shape() == none.shape());
}
