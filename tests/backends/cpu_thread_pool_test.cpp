// Tests of the threads that run loops. Each block runs once, no loop waits for a thread that does not come, and threads
// do not spin for long.
#include "backends/cpu/thread_pool.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "backends/cpu/parallel.h"
#include "core/backend.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace std::chrono_literals;

namespace {

template <class F>
bool run(std::int64_t blocks, int threads, F&& f) {
  return cpu::ThreadPool::instance().run(blocks, threads, &f, [](void* context, std::int64_t block) {
    (*static_cast<std::remove_reference_t<F>*>(context))(block);
  });
}

bool within(std::chrono::seconds time, auto&& condition) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (!condition())
    if (std::chrono::steady_clock::now() > end) return false;
  return true;
}

double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

TEST_CASE("thread pool: each block runs once in loops of any size on any number of threads", "[once]") {
  for (int loop = 0; loop < 3000; ++loop) {
    const std::int64_t blocks = loop % 37;
    const int threads = 1 + loop % 9;
    std::vector<std::atomic<int>> hits(static_cast<std::size_t>(blocks));
    REQUIRE(run(blocks, threads, [&](std::int64_t i) { ++hits[static_cast<std::size_t>(i)]; }));
    REQUIRE(std::ranges::all_of(hits, [](const auto& n) { return n == 1; }));
    if (loop % 100 == 0) std::this_thread::sleep_for(2 * cpu::ThreadPool::spin_time);  // by now all threads sleep
  }
}

TEST_CASE("thread pool: loop and caller see what the other has written", "[once]") {
  std::vector<std::int64_t> values(64, 0);
  for (std::int64_t loop = 1; loop <= 500; ++loop) {
    for (std::int64_t& v : values) v += loop;
    run(64, 4, [&](std::int64_t i) { values[static_cast<std::size_t>(i)] -= loop - 1; });
    REQUIRE(values == std::vector<std::int64_t>(64, loop));
  }
}

TEST_CASE("thread pool: other threads take the blocks of a stopped thread", "[once]") {
  std::atomic<int> done{0};
  bool alone = true;
  run(8, 2, [&](std::int64_t i) {
    // The first block of the first share waits until all other blocks are done, including those of its own share.
    if (i == 0)
      alone = !within(20s, [&] { return done == 7; });
    else
      ++done;
  });
  CHECK_FALSE(alone);
}

TEST_CASE("thread pool: a second loop is refused and parallel_for then runs it on the calling thread", "[once]") {
  set_num_threads(2);
  std::atomic<int> nested{0};
  REQUIRE(run(4, 2, [&](std::int64_t) {
    CHECK_FALSE(run(2, 2, [](std::int64_t) {}));
    const auto here = std::this_thread::get_id();
    cpu::parallel_for(8, 1, [&](std::int64_t, std::int64_t) { nested += std::this_thread::get_id() == here; });
  }));
  CHECK(nested == 32);

  std::atomic<bool> begun{false}, end{false};
  std::thread other([&] {
    run(2, 2, [&](std::int64_t) {
      begun = true;
      within(20s, [&] { return end.load(); });
    });
  });
  REQUIRE(within(20s, [&] { return begun.load(); }));
  std::atomic<int> beside{0};
  const auto here = std::this_thread::get_id();
  cpu::parallel_for(8, 1, [&](std::int64_t, std::int64_t) { beside += std::this_thread::get_id() == here; });
  CHECK(beside == 8);
  end = true;
  other.join();
  set_num_threads(0);
}

TEST_CASE("thread pool: the first exception is rethrown and the next loop runs completely", "[once]") {
  for (int loop = 0; loop < 200; ++loop) {
    CHECK_THROWS_WITH(run(40, 3,
                          [](std::int64_t i) {
                            if (i % 7 == 3) throw std::runtime_error("a block");
                          }),
                      "a block");
    std::atomic<int> count{0};
    CHECK(run(40, 3, [&](std::int64_t) { ++count; }));
    CHECK(count == 40);
  }
}

TEST_CASE("thread pool: waiting threads sleep", "[once]") {
  run(8, 4, [](std::int64_t) {});
  std::this_thread::sleep_for(20ms);
  const double before = processor_seconds();
  std::this_thread::sleep_for(300ms);
  CHECK(processor_seconds() - before < 0.03);
  // While the last block runs on another thread, the calling thread does not spin either.
  std::atomic<bool> begun{false};
  const double start = processor_seconds();
  run(2, 2, [&](std::int64_t i) {
    if (i == 1) {
      begun = true;
      std::this_thread::sleep_for(300ms);
    } else {
      within(20s, [&] { return begun.load(); });
    }
  });
  CHECK(processor_seconds() - start < 0.1);
}

TEST_CASE("thread pool: a child after fork() computes alone", "[once]") {
  REQUIRE(run(8, 4, [](std::int64_t) {}));
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::atomic<int> count{0};
    for (int loop = 0; loop < 10; ++loop) run(8, 4, [&](std::int64_t) { ++count; });
    _exit(count == 80 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
