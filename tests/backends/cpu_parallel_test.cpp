// Loops over blocks on several threads.
#include "backends/cpu/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "core/backend.h"
#include "tests/support/catch.h"

using namespace plumb;

namespace {

struct Range {
  std::int64_t begin, end;
  bool operator==(const Range&) const = default;
};

// The blocks that a loop was cut into, in order.
std::vector<Range> blocks(int threads, std::int64_t n, std::int64_t grain) {
  set_num_threads(threads);
  std::mutex mutex;
  std::vector<Range> seen;
  cpu::parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    seen.push_back({begin, end});
  });
  set_num_threads(0);
  std::sort(seen.begin(), seen.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  return seen;
}

}  // namespace

TEST_CASE("parallel_for cuts work into the same blocks on any number of threads") {
  const std::vector<Range> expected{{0, 4}, {4, 8}, {8, 10}};
  for (int threads : {1, 2, 3, 7}) CHECK(blocks(threads, 10, 4) == expected);
  CHECK(blocks(2, 0, 4).empty());
  CHECK(blocks(2, 1, 4) == std::vector<Range>{{0, 1}});
}

TEST_CASE("parallel_for runs blocks on several threads at once") {
  set_num_threads(2);
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  cpu::parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
    ++inside;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (inside.load() < 2 && std::chrono::steady_clock::now() < deadline) {
    }  // each waits for the other
    if (inside.load() == 2) met = true;
  });
  set_num_threads(0);
  CHECK(met.load());
}

TEST_CASE("an exception in a block leaves parallel_for") {
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    CHECK_THROWS_AS(cpu::parallel_for(100, 1,
                                      [](std::int64_t begin, std::int64_t) {
                                        if (begin == 63) throw std::runtime_error("block 63");
                                      }),
                    std::runtime_error);
  }
  set_num_threads(0);
}

TEST_CASE("a loop inside a block runs on its thread") {
  set_num_threads(2);
  std::vector<int> hits(64);
  cpu::parallel_for(8, 1, [&](std::int64_t outer, std::int64_t) {
    cpu::parallel_for(8, 1, [&](std::int64_t inner, std::int64_t) { ++hits[static_cast<std::size_t>(8 * outer + inner)]; });
  });
  set_num_threads(0);
  CHECK(hits == std::vector<int>(64, 1));
}

TEST_CASE("set_num_threads(0) means all processors") {
  set_num_threads(3);
  CHECK(num_threads() == 3);
  set_num_threads(0);
  CHECK(num_threads() >= 1);
}

TEST_CASE("scratch memory: aligned, apart, of any size, freed in any order") {
  const auto fill = [](const cpu::Scratch& s, std::int64_t n, float value) {
    REQUIRE(reinterpret_cast<std::uintptr_t>(s.data()) % 64 == 0);
    std::fill_n(s.data(), n, value);
  };
  const auto holds = [](const cpu::Scratch& s, std::int64_t n, float value) {
    return std::all_of(s.data(), s.data() + n, [&](float x) { return x == value; });
  };
  constexpr std::int64_t large = 1 << 20;  // 4 MiB: more than a thread's stack of scratch has
  auto first = std::make_unique<cpu::Scratch>(5);
  auto second = std::make_unique<cpu::Scratch>(100'000);
  auto third = std::make_unique<cpu::Scratch>(100'000);
  const cpu::Scratch beyond(large), none(0);
  fill(*first, 5, 1), fill(*second, 100'000, 2), fill(*third, 100'000, 3), fill(beyond, large, 4);
  REQUIRE((holds(*first, 5, 1) && holds(*second, 100'000, 2) && holds(*third, 100'000, 3) && holds(beyond, large, 4)));
  first.reset();  // not the last
  second.reset();
  const cpu::Scratch fourth(150'000);
  fill(fourth, 150'000, 5);
  REQUIRE((holds(*third, 100'000, 3) && holds(fourth, 150'000, 5)));
}

#ifndef PLUMB_ADDRESS_SANITIZER  // there each piece comes from the system
TEST_CASE("scratch memory is the same, call after call") {
  const auto address = [] { return cpu::Scratch(1000).data(); };
  const float* const first = address();
  const MemoryStats before = memory_stats();
  for (int i = 0; i < 10; ++i) REQUIRE(address() == first);
  REQUIRE(memory_stats().allocations == before.allocations);
}
#endif
