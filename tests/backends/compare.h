// Runs a kernel of the cpu backend and the reference kernel of the same name, and compares the values. Also checks that
// results have the same bits on one, two and three threads, and that nothing is written after the end of a result. If
// there is a device, compares the cuda backend with the reference as well, and checks that a repeated call gives the
// same bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "backends/elsewhere.h"
#include "core/backend.h"
#include "tests/support/catch.h"

namespace plumb::test {

// The allowed difference: |cpu - reference| <= absolute + relative |reference|. The reference sums in f64. The rounding
// error of f32 is 6e-8.
struct Tolerance {
  double absolute, relative;
};
inline const std::map<std::string, Tolerance> tolerances{
    {"exact", {0, 0}},         // kernels that move or draw elements and compute nothing
    {"unary", {3e-7, 1e-6}},   // erf is within 3e-7 absolute; the other functions are within 4 ulp
    {"binary", {0, 1e-7}},     // one operation
    {"dropout", {0, 2e-7}},    // 1 / (1 - p) rounded to f32, then one product
    {"reduce", {5e-5, 1e-5}},  // sums of up to 60000 values of size 1 in f32, over 4 lanes at worst
    // Sums of up to 2000 products of size 1 in f32. A backend may sum them in one chain of multiply-adds. The error of
    // such a chain is a random walk: 3.2e-5 was the largest of 11,840 simulated sums of 1650 products. About twice
    // that.
    {"product", {6e-5, 1e-5}},
    {"product16", {4e-3, 8e-3}},  // operands of size 1 and results, rounded to bf16 (2^-9); sums of up to 191 products
    // The operand is a norm times gamma up to 2, below 8. The backends may round one of its elements to different
    // sides. The results differ by 2^-5 times a weight of up to 0.3.
    {"norm_product16", {1e-2, 8e-3}},
    // Measured: 4.4e-2. A gate or norm was rounded the other way, which gives 2^-9 of each of up to 576 terms.
    {"gradient16", {6e-2, 1e-2}},
    // For |x| up to 4: the error 3e-7 of erf times |x| is 1.2e-6. In the slope of the form with tanh, an error of 2 ulp
    // (1.2e-7) of tanh near 1 doubles in 1 - tanh^2, and has the factor x/2 * 0.8 * (1 + 0.134 x^2) = 5: 1.2e-6.
    // Roundings of the argument are smaller by the slope of tanh. 2.5 times that.
    {"gelu", {3e-6, 1e-6}},
    {"softmax", {1e-6, 1e-6}},        // exp within 1e-7; a sum of up to 4099 terms
    {"log_softmax", {2e-6, 1e-6}},    // log of a sum of up to 4099 exponentials
    {"norm", {1e-5, 1e-5}},           // mean and variance in f32, times rstd up to 3
    {"norm_gradient", {1e-4, 1e-5}},  // sums over up to 260 rows
    {"dyt", {2e-6, 1e-6}},            // tanh within 4 ulp; one multiply-add
    {"dyt_gradient", {1e-4, 1e-5}},   // 1 - tanh^2 within 4e-7; sums over up to 260 x 192 elements
    {"attention", {3e-6, 1e-5}},      // products of length up to 80, exp and a division
    {"attention_gradient", {2e-5, 2e-5}},
    // By AMX, the probabilities and the gradients of the scores are rounded to bf16 (2^-9) as operands of products with
    // values of size 1 and 2.
    {"attention16", {3e-3, 8e-3}},
    {"attention_gradient16", {1e-2, 1e-2}},
    {"conv2d_gradient", {1e-4, 2e-5}},
    {"cross_entropy", {2e-6, 2e-6}},   // log-sum-exp of up to 1000 classes
    {"gated_residual", {1e-6, 1e-6}},  // one rounding (a multiply-add) against two roundings
    {"gate_gradient", {1e-4, 1e-5}},   // sums over up to 12297 elements
    {"optimizer", {1e-7, 2e-6}},       // the cpu computes in f32, the reference in f64
};

inline constexpr float canary = -7.25e33f;

inline std::size_t bytes_of(const Array& a) { return static_cast<std::size_t>(a.numel()) * size_of(a.dtype()); }

// Returns a result array. Canaries fill the array up to the end of its last cache line.
inline Out fresh(const Shape& shape, DType dtype = DType::f32) {
  Out a(Array(shape, dtype, Device::cpu));
  std::fill_n(static_cast<float*>(a.mutable_bytes()), (bytes_of(a) + 63) / 64 * 16, canary);
  return a;
}
inline bool end_untouched(const Array& a) {
  for (std::size_t i = bytes_of(a); i < (bytes_of(a) + 63) / 64 * 64; ++i)
    if (static_cast<const char*>(a.bytes())[i] != reinterpret_cast<const char*>(&canary)[i % sizeof canary])
      return false;
  return true;
}

// Returns uniform values, f32 or bf16. NaN follows the values up to the end of the last cache line, so that a kernel
// that reads after the end gives NaN.
inline Out random(const Shape& shape, double low = -1, double high = 1, DType dtype = DType::f32) {
  static std::mt19937 generator(7);
  const Out a = fresh(shape, dtype);
  std::uniform_real_distribution<float> value(static_cast<float>(low), static_cast<float>(high));
  const auto fill = [&]<class T>(T* p) {
    std::fill_n(p, (bytes_of(a) + 63) / 64 * 64 / sizeof(T), T(std::numeric_limits<float>::quiet_NaN()));
    std::generate_n(p, a.numel(), [&] { return T(value(generator)); });
  };
  dtype == DType::bf16 ? fill(a.mutable_data<bfloat16>()) : fill(a.mutable_data<float>());
  return a;
}

inline Array random16(const Shape& shape, double low = -1, double high = 1) {
  return random(shape, low, high, DType::bf16);
}

inline Out integers(const Shape& shape, std::int64_t below) {
  static std::mt19937 generator(8);
  Out a(Array(shape, DType::i64, Device::cpu));
  std::generate_n(a.mutable_data<std::int64_t>(), a.numel(),
                  [&] { return static_cast<std::int64_t>(generator() % static_cast<unsigned>(below)); });
  return a;
}

inline Out bytes(const Shape& shape, double ones) {
  static std::mt19937 generator(9);
  Out a(Array(shape, DType::u8, Device::cpu));
  std::generate_n(a.mutable_data<std::uint8_t>(), a.numel(),
                  [&] { return static_cast<std::uint8_t>(generator() < ones * 4294967296.0); });
  return a;
}

struct Threads {
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(0); }
};

using Results = std::vector<Out>;

struct Result {
  Shape shape;
  DType dtype;
};
inline Result as_f32(const Shape& shape) { return {shape, DType::f32}; }
inline Result as_bf16(const Shape& shape) { return {shape, DType::bf16}; }

// Returns the kernels of the cuda backend for host arrays. The arrays are copied to the device and back, including the
// bytes up to the end of their last cache lines.
inline const Kernels& cuda_kernels_of_host_arrays() {
  static constexpr Kernels table{
#define PLUMB_KERNEL(dtypes, name, parameters) .name = elsewhere<&Kernels::name, Device::cuda, 64>,
#include "core/kernels.def"
  };
  return table;
}

inline void check_results(const std::string& name, const char* tolerance, const Results& got, const Results& expected) {
  const auto [absolute, relative] = tolerances.at(tolerance);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool bf16 = got[i].dtype() == DType::bf16;
    const std::vector<double> all = to_vector(got[i]), reference = to_vector(expected[i]);
    std::size_t different = 0;
    for (std::size_t j = 0; j < all.size(); ++j) {
      const double g = all[j], e = reference[j];
      if (g == e || (std::isnan(g) && std::isnan(e))) continue;
      ++different;
      const double step = bf16 && e != 0 ? std::ldexp(1.0, std::ilogb(e) - 7) : 0;
      if (std::isfinite(e) && std::abs(g - e) <= absolute + relative * std::abs(e) + step) continue;
      FAIL(name << ", result " << i << " at " << j << ": expected " << e << ", got " << g << ", difference " << g - e
                << " (" << tolerance << ")");
    }
    INFO(name << ", result " << i << ": " << different << " of " << all.size() << " are rounded the other way");
    // Tolerances ending in "16" belong to kernels that round operands between steps. More results of these kernels
    // differ.
    if (bf16 && !std::string(tolerance).ends_with("16")) REQUIRE(different <= 2 + all.size() / 50);
  }
}

// Calls f with the reference kernels and with the cpu kernels, and compares the results that f writes. A bf16 result
// near the middle of two numbers may be rounded to either number. At most one result in fifty may differ for this
// reason.
inline void compare_results(const std::string& name, const char* tolerance, const std::vector<Result>& wanted,
                            const std::function<void(const Kernels&, const Results&)>& f) {
  const auto run = [&](const Kernels& kernels) {
    Results results;
    for (const auto& [shape, dtype] : wanted) results.push_back(fresh(shape, dtype));
    f(kernels, results);
    return results;
  };
  const Results expected = run(reference_kernels());
  Results got;
  for (int threads : {1, 2, 3}) {
    const Threads scope(threads);
    Results now = run(cpu_kernels());
    for (std::size_t i = 0; i < now.size(); ++i) {
      INFO(name << ", result " << i << " on " << threads << " threads");
      REQUIRE(end_untouched(now[i]));
      if (threads > 1) REQUIRE(same_bytes(now[i], got[i]));
    }
    if (threads == 1) got = now;
  }
  check_results(name, tolerance, got, expected);
  if (!why_no_cuda().empty()) {
    REQUIRE_FALSE(std::getenv("REQUIRE_GPU") != nullptr);
    return;
  }
  got = run(cuda_kernels_of_host_arrays());
  const Results again = run(cuda_kernels_of_host_arrays());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO(name << " on cuda, result " << i);
    REQUIRE(end_untouched(got[i]));
    REQUIRE(same_bytes(again[i], got[i]));
  }
  check_results(name + " on cuda", tolerance, got, expected);
}

// Like compare_results(), for f32 results.
inline void compare(const std::string& name, const char* tolerance, const std::vector<Shape>& shapes,
                    const std::function<void(const Kernels&, const Results&)>& f) {
  std::vector<Result> wanted;
  for (const Shape& s : shapes) wanted.push_back(as_f32(s));
  compare_results(name, tolerance, wanted, f);
}

}  // namespace plumb::test
