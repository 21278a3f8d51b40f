// Compares the cpu kernels that read or write bf16 with the reference kernels of the same name (compare.h).
#include <bit>
#include <cstdlib>
#include <filesystem>

#include "backends/cpu/amx.h"
#include "backends/cpu/instruction_set.h"
#include "core/backend.h"
#include "tests/backends/compare.h"
#include "tests/support/emulated_amx.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const DType both[] = {DType::f32, DType::bf16};

// Returns integers from -4 to 4.
Array whole(const Shape& shape, DType dtype = DType::bf16) {
  const Out a = random(shape, -4, 4, dtype);
  const auto round = [&]<class T>(T* p) {
    std::transform(p, p + a.numel(), p, [](T x) { return T(std::round(static_cast<float>(x))); });
  };
  dtype == DType::bf16 ? round(a.mutable_data<bfloat16>()) : round(a.mutable_data<float>());
  return a;
}

// The sizes of a linear layer on R = B T rows: w is [N, K].
struct LayerSizes {
  std::int64_t B, T, N, K;
};

void compare_linear_in_bf16(const std::vector<LayerSizes>& sizes) {
  using After = LinearCall::After;
  for (const auto& [B, T, N, K] : sizes) {
    INFO(B << " x " << T << " rows, w " << N << " x " << K);
    const std::int64_t R = B * T;
    const Array w = random({N, K}, -0.3, 0.3), b = random({N}), gamma = random({K}, 0.5, 2), beta = random({K}),
                skip = random({R, N}), gate = random({N}), rows = random({B});
    const Array x32 = random({R, K}), dy32 = random({R, N});
    for (DType type : both) {
      const Array x = random({R, K}, -1, 1, type), dy = random({R, N}, -1, 1, type),
                  slope = random({R, N}, -1, 1, type);
      for (DType out : both) {
        compare_results("linear", "product16", {{{R, N}, out}, {{R, N}, out}}, [&](const Kernels& k, const Results& y) {
          k.linear_forward({.products = Precision::bf16}, x, w, b, {}, y[0]);
          k.linear_forward({.products = Precision::bf16}, x, w, Array(), {}, y[1]);
        });
        compare_results("linear_backward", "gradient16", {{{R, K}, out}, as_f32({N, K}), as_f32({N}), as_f32({N, K})},
                        [&](const Kernels& k, const Results& y) {
                          k.linear_backward({.products = Precision::bf16}, {}, dy, x, w, b,
                                            {.dx = y[0], .dw = y[1], .db = y[2]});
                          k.linear_backward({.products = Precision::bf16}, {}, dy, x, w, b, {.dw = y[3]});
                        });
      }
      compare_results(
          "gelu after", "product16", {{{R, N}, type}, {{R, N}, type}}, [&](const Kernels& k, const Results& y) {
            k.linear_forward({.after = After::gelu, .products = Precision::bf16}, x, w, b, {.slope = y[1]}, y[0]);
          });
      compare_results("gelu backward", "gradient16",
                      {{{R, K}, type}, as_f32({N, K}), as_f32({N}), {{R, K}, type}, as_f32({N})},
                      [&](const Kernels& k, const Results& y) {
                        const LinearCall call{.after = After::gelu, .products = Precision::bf16};
                        k.linear_backward(call, {.slope = slope}, dy, x, w, b, {.dx = y[0], .dw = y[1], .db = y[2]});
                        k.linear_backward(call, {.slope = slope}, dy, x, w, b, {.dx = y[3]});
                        k.linear_backward(call, {.slope = slope}, dy, x, w, b, {.db = y[4]});
                      });
      compare_results("norm before", "norm_product16", {{{R, N}, type}, as_f32({R}), as_f32({R})},
                      [&](const Kernels& k, const Results& y) {
                        k.linear_forward({.gamma = gamma, .beta = beta, .eps = 1e-6, .products = Precision::bf16}, x32,
                                         w, b, {.mean = y[1], .rstd = y[2]}, y[0]);
                      });
      if (K >= 19)  // in narrower rows, rstd is large and amplifies the rounding errors of h
        compare_results("norm backward", "gradient16",
                        {as_f32({R, K}), as_f32({N, K}), as_f32({N}), as_f32({K}), as_f32({K}), as_f32({K})},
                        [&](const Kernels& k, const Results& y) {
                          const LinearCall call{.gamma = gamma, .beta = beta, .eps = 1e-6, .products = Precision::bf16};
                          const Out mean = random({R}), rstd = random({R});
                          k.layer_norm_forward(x32, gamma, beta, call.eps, empty_like(x32), mean, rstd);
                          copy_into(x32, y[0]);
                          k.linear_backward(
                              call, {.mean = mean, .rstd = rstd}, dy, x32, w, b,
                              {.dx = y[0], .add_to_dx = true, .dw = y[1], .db = y[2], .dgamma = y[3], .dbeta = y[4]});
                          k.linear_backward(call, {.mean = mean, .rstd = rstd}, dy, x32, w, b, {.dgamma = y[5]});
                        });
      for (const Array& g : {Array(), gate})
        for (const Array& s : {Array(), rows}) {
          compare_results("junction after", "product16", {as_f32({R, N})}, [&](const Kernels& k, const Results& y) {
            k.linear_forward(
                {.after = After::residual, .skip = skip, .gate = g, .row_scale = s, .products = Precision::bf16}, x, w,
                b, {}, y[0]);
          });
          compare_results(
              "junction backward", "gradient16", {{{R, K}, type}, as_f32({N, K}), as_f32({N}), as_f32({N})},
              [&](const Kernels& k, const Results& y) {
                const LinearCall call{.after = After::residual, .gate = g, .row_scale = s, .products = Precision::bf16};
                if (!g.defined()) k.fill(0, y[3]);
                k.linear_backward(call, {}, dy32, x, w, b,
                                  {.dx = y[0], .dw = y[1], .db = y[2], .dgate = g.defined() ? y[3] : Out()});
              });
        }
    }
  }
}

}  // namespace

TEST_CASE("cpu cast between f32 and bf16 rounds like bfloat16", "[once]") {
  // The bits of x in bf16. The instruction for rounding replaces denormal numbers by 0.
  const auto bits_of = [](float x) {
    return bfloat16(cpu::rounds_by_instruction && std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x).bits;
  };
  std::mt19937 generator(5);
  for (std::int64_t n : {1, 5, 17, 65, 191, 4099, 70000}) {
    const Out x = random({n}), bits = fresh({n}, DType::bf16);
    for (std::int64_t i = 0; i < n; ++i) {
      // A third of the values are ties in rounding.
      x.mutable_data<float>()[i] =
          std::bit_cast<float>(static_cast<std::uint32_t>(generator()) & ~(i % 3 ? 0u : 0x7fffu));
      bits.mutable_data<bfloat16>()[i] = bfloat16::from_bits(static_cast<std::uint16_t>(i));
    }
    const Out narrow = fresh({n}, DType::bf16), wide = fresh({n}), same = fresh({n}, DType::bf16);
    cpu_kernels().cast(x, narrow);
    cpu_kernels().cast(bits, wide);
    cpu_kernels().cast(bits, same);
    for (const Array& y : {narrow, wide, same}) REQUIRE(end_untouched(y));
    for (std::int64_t i = 0; i < n; ++i) {
      REQUIRE(narrow.data<bfloat16>()[i].bits == bits_of(x.data<float>()[i]));
      REQUIRE(std::bit_cast<std::uint32_t>(wide.data<float>()[i]) == static_cast<std::uint32_t>(i & 0xffff) << 16);
      REQUIRE(same.data<bfloat16>()[i].bits ==
              bits_of(static_cast<float>(bfloat16::from_bits(static_cast<std::uint16_t>(i)))));
    }
  }
}

TEST_CASE("cpu adds in bf16 also in place and uses the reference for other operations", "[once]") {
  for (std::int64_t d : {1, 5, 17, 65, 191})
    for (std::int64_t r : {1, 9, 301}) {
      const Shape shape{r, d};
      const Array a = random16(shape, -2, 2), b = random16(shape, -2, 2);
      compare_results("sum", "binary", {as_bf16(shape), as_bf16(shape)}, [&](const Kernels& k, const Results& y) {
        k.binary(Binary::add, a, b, y[0]);
        copy_into(a, y[1]);
        k.binary(Binary::add, y[1], b, y[1]);
      });
    }
  const Array a = random16({70, 17}), row = random16({17}), wide = random({70, 17});
  for (Binary op : {Binary::add, Binary::subtract, Binary::multiply})
    for (const Array& b : {row, wide})
      compare_results("by the reference", "exact", {as_bf16({70, 17}), as_f32({70, 17})},
                      [&](const Kernels& k, const Results& y) {
                        k.binary(op, a, b, y[0]);
                        k.binary(op, a, b, y[1]);
                      });
}

namespace {

const std::vector<LayerSizes> layer_sizes{
    {1, 1, 1, 1}, {13, 5, 37, 19}, {8, 17, 64, 48}, {10, 7, 17, 191}, {64, 9, 48, 32}};

}  // namespace

TEST_CASE("cpu linear in bf16", "[once]") { compare_linear_in_bf16(layer_sizes); }

TEST_CASE("cpu linear in bf16 by AMX on emulated registers", "[once]") {
  const EmulatedAmx emulated;
  const Array x = random({16, 32}), w = random({16, 32}), dy = random({16, 16});
  cpu_kernels().linear_forward({.products = Precision::bf16}, x, w, Array(), {}, fresh({16, 16}));
  CHECK(emulated.products() == 1);
  cpu_kernels().linear_backward({.products = Precision::bf16}, {}, dy, x, w, Array(), {.dx = fresh({16, 32})});
  CHECK(emulated.products() == 3);
  cpu_kernels().linear_backward({.products = Precision::bf16}, {}, dy, x, w, Array(), {.dw = fresh({16, 32})});
  CHECK(emulated.products() == 5);
  compare_linear_in_bf16(layer_sizes);
  // Whole tiles and pairs of tiles, one row or column more and less, and more than one block of rows.
  compare_linear_in_bf16({{2, 16, 32, 32}, {1, 31, 96, 64}, {3, 11, 33, 65}, {1, 17, 16, 96}, {2, 8, 15, 31}});
}

TEST_CASE("products by AMX are exact for small integers on emulated registers", "[once]") {
  const EmulatedAmx emulated;
  for (const std::int64_t R : {1, 15, 33, 545, 1105})  // blocks of 32 and, from 1024 rows on, of 64 rows
    for (const auto& [N, K] : {std::pair<std::int64_t, std::int64_t>{64, 32}, {37, 40}, {16, 96}}) {
      INFO(R << " rows, w " << N << " x " << K);
      const Array x = whole({R, K}), w = whole({N, K}, DType::f32), b = whole({N}, DType::f32);
      compare_results("linear", "exact", {as_f32({R, N}), as_f32({R, N})}, [&](const Kernels& k, const Results& y) {
        k.linear_forward({.products = Precision::bf16}, x, w, b, {}, y[0]);
        k.linear_forward({.products = Precision::bf16}, x, w, Array(), {}, y[1]);
      });
      const Array dy = whole({R, N});
      compare_results("linear_backward", "exact", {as_f32({R, K}), as_f32({N, K}), as_f32({N})},
                      [&](const Kernels& k, const Results& y) {
                        k.linear_backward({.products = Precision::bf16}, {}, dy, x, w, b,
                                          {.dx = y[0], .dw = y[1], .db = y[2]});
                      });
    }
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {16, 16, 32}, {32, 32, 64}, {33, 17, 31}, {48, 80, 544}, {300, 40, 1100}}) {
    INFO(m << " x " << k << " x " << n);
    const Array a = whole({k, m}), b = whole({k, n}, DType::f32);
    const Out y = fresh({m, n});
    cpu::amx_product_over_rows(m, a.data<bfloat16>(), cpu::AmxMatrix(k, n, b.data<float>(), false),
                               y.mutable_data<float>());
    REQUIRE(end_untouched(y));
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += static_cast<float>(a.data<bfloat16>()[l * m + i]) * b.data<float>()[l * n + j];
        wrong += y.data<float>()[i * n + j] != sum;
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("products by AMX give the same bits on any number of threads on emulated registers", "[once]") {
  const EmulatedAmx emulated;
  const std::int64_t R = 1100, N = 96, K = 64;
  const Array x = random({R, K}), w = random({N, K}, -0.3, 0.3), b = random({N}), dy = random({R, N});
  const auto bits = [&](int n) {
    const Threads threads(n);
    const Out y = fresh({R, N}), dx = fresh({R, K}), dw = fresh({N, K}), db = fresh({N});
    cpu_kernels().linear_forward({.products = Precision::bf16}, x, w, b, {}, y);
    cpu_kernels().linear_backward({.products = Precision::bf16}, {}, dy, x, w, b, {.dx = dx, .dw = dw, .db = db});
    std::vector<double> all;
    for (const Array& a : {y, dx, dw, db})
      for (const double v : to_vector(a)) all.push_back(v);
    return all;
  };
  const std::vector<double> one = bits(1);
  for (const int n : {2, 3, 5}) CHECK(bits(n) == one);
}

TEST_CASE("the emulated registers of AMX agree with those of the processor", "[once]") {
  if (!cpu::amx_kernels() || cpu::amx_kernels() == &emulated_amx)
    PLUMB_SKIP("this processor has no AMX, its use is forbidden, or the registers are emulated in all tests");
  const cpu::AmxKernels &own = *cpu::amx_kernels(), &emulated = emulated_amx;
  for (int rows : {1, 2})
    for (int columns : {1, 2})
      for (bool start : {false, true}) {
        const Array a = random16({16 * rows, 96}), b = random16({3 * columns, 512});
        const Out first = random({32}), c = fresh({16 * rows, 32}), d = fresh({16 * rows, 32});
        for (const auto& [kernels, y] : {std::pair(&own, c), std::pair(&emulated, d)}) {
          std::fill_n(y.mutable_data<float>(), y.numel(), 0.0f);
          kernels->begin();
          kernels->multiply({a.data<bfloat16>(), 96, b.data<bfloat16>(), 3, start ? first.data<float>() : nullptr, 0,
                             y.mutable_data<float>(), 32, rows, columns});
          kernels->end();
        }
        // The manual does not say how the processor rounds within a product of two tiles.
        const std::vector<double> got = to_vector(c), expected = to_vector(d);
        for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(got[i] == Approx(expected[i]).margin(1e-4));
      }
}

TEST_CASE("the instructions for bf16 products follow from the features of the processor") {
  const auto by = [](const cpu::Features& f) { return std::string(cpu::bf16_products_of(f).instructions); };
  CHECK(by({.amx = true}) == "AMX");
  CHECK(by({.amd = true, .avx512_bf16 = true}) == "AVX-512 bf16");
  CHECK(by({.avx512_bf16 = true, .amx_refused = true}) == "f32 instructions (the system refuses AMX)");
  CHECK(by({.amx_forbidden = true}) == "f32 instructions (ONEDNN_MAX_CPU_ISA forbids AMX)");
  CHECK(by({}) == "f32 instructions");
}

TEST_CASE("cpu linear in bf16 when ONEDNN_MAX_CPU_ISA forbids the instructions", "[once]") {
  if (std::getenv("ONEDNN_MAX_CPU_ISA") || std::getenv("DNNL_MAX_CPU_ISA"))
    // The test returns in the process that it starts below, and if the user has set the limit.
    return;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  CHECK(std::system(("ONEDNN_MAX_CPU_ISA=AVX512_CORE '" + self + "' 'cpu linear in bf16' > /dev/null").c_str()) == 0);
}
