// Tests of parallel loops over blocks.
#include "backends/cpu/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
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

// Returns the blocks that a loop was split into, in order.
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

TEST_CASE("parallel_for splits work into the same blocks on any number of threads") {
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
    }  // each block waits for the other block
    if (inside.load() == 2) met = true;
  });
  set_num_threads(0);
  CHECK(met.load());
}

TEST_CASE("parallel_for rethrows an exception of a block") {
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

TEST_CASE("a loop inside a block runs on the thread of that block") {
  set_num_threads(2);
  std::vector<int> hits(64);
  cpu::parallel_for(8, 1, [&](std::int64_t outer, std::int64_t) {
    cpu::parallel_for(8, 1,
                      [&](std::int64_t inner, std::int64_t) { ++hits[static_cast<std::size_t>(8 * outer + inner)]; });
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

TEST_CASE("partial_rows makes a suitable number of blocks with a nearly full last block") {
  for (std::int64_t rows = 0; rows < 40'000; ++rows) {
    const std::int64_t block = cpu::partial_rows(rows), count = (rows + block - 1) / block;
    INFO(rows << " rows in " << count << " blocks of " << block);
    REQUIRE(block >= 1);
    REQUIRE(count <= 256);
    if (rows >= 64) REQUIRE(block >= 32);
    if (rows >= 256 && rows < 512) REQUIRE(count == 8);
    if (rows < 512) continue;
    REQUIRE(block >= 64);
    REQUIRE(count % 8 == 0);
    REQUIRE(count * block - rows <= count);  // on average, a block lacks at most one row
  }
}
