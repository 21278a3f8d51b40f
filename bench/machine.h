// Measures the best speeds that the machine can reach at the moment. These speeds are the limits with which benchmarks
// compare kernels.
#pragma once

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/backend.h"

namespace plumb::bench {

// Returns the seconds that a call of f takes.
inline double elapsed(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Returns an f32 array of uniform values in [-1, 1). The generator is simple and fast, because only times depend on the
// values.
inline Out random_array(const Shape& shape) {
  static std::uint32_t state = 1;
  Out a(Array(shape, DType::f32, Device::cpu));
  std::generate_n(a.mutable_data<float>(), a.numel(), [] {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
  });
  return a;
}

// Returns the bytes of the largest cache of core 0. The value of the C library is not used, because on some machines
// this value includes caches of other cores.
inline std::size_t last_level_cache() {
  std::size_t largest = 0;
  for (int i = 0; i < 8; ++i) {
    // The file holds a text such as "32768K".
    std::ifstream in("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/size");
    std::size_t kib = 0;
    if (in >> kib) largest = std::max(largest, kib * 1024);
  }
  return largest > 0 ? largest : std::size_t{32} << 20;
}

// Returns the bytes per second that all threads together read and write while each thread copies its share of `bytes`
// by memcpy. The result is the best of several rounds.
inline double copy_speed(std::size_t bytes) {
  const auto threads = static_cast<std::size_t>(num_threads());
  const std::size_t share = bytes / threads, repeats = std::max<std::size_t>(1, (std::size_t{64} << 20) / bytes);
  const Storage from(bytes), to(bytes);
  std::memset(from.data, 1, bytes);
  std::memset(to.data, 1, bytes);
  constexpr int rounds = 30;
  std::vector<std::chrono::steady_clock::time_point> marks;
  std::barrier together(static_cast<std::ptrdiff_t>(threads),
                        [&]() noexcept { marks.push_back(std::chrono::steady_clock::now()); });
  marks.reserve(rounds + 1);
  const auto copy_share = [&](std::size_t thread) {
    auto* target = static_cast<char*>(to.data) + thread * share;
    const auto* source = static_cast<const char*>(from.data) + thread * share;
    together.arrive_and_wait();
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < repeats; ++i) {
        std::memcpy(target, source, share);
        asm volatile("" : : "r"(target) : "memory");  // keeps the compiler from removing a copy
      }
      together.arrive_and_wait();
    }
  };
  {
    std::vector<std::jthread> workers;
    for (std::size_t i = 1; i < threads; ++i) workers.emplace_back(copy_share, i);
    copy_share(0);
  }
  double best = 0;
  for (std::size_t i = 1; i < marks.size(); ++i) {
    const double seconds = std::chrono::duration<double>(marks[i] - marks[i - 1]).count();
    best = std::max(best, 2.0 * static_cast<double>(share * threads * repeats) / seconds);
  }
  return best;
}

// Returns the operations per second of a matrix product. The result is the best of several large shapes, transposed and
// not.
inline double gemm_speed() {
  double best = 0;
  for (const auto& [rows, inner, columns] :
       {std::array<std::int64_t, 3>{1024, 1024, 1024}, {2048, 768, 2048}, {4096, 768, 768}, {4096, 768, 192}}) {
    const Out a = random_array({rows, inner}), y = random_array({rows, columns});
    for (const bool transposed : {false, true}) {
      const Array b = random_array(transposed ? Shape{columns, inner} : Shape{inner, columns});
      for (int round = 0; round < 4; ++round) {
        const double seconds = elapsed([&] { cpu_kernels().matmul(a, false, b, transposed, y); });
        best = std::max(best, 2.0 * static_cast<double>(rows * inner * columns) / seconds);
      }
    }
  }
  return best;
}

}  // namespace plumb::bench
