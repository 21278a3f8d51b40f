// The threads that share loops with the one that starts them, made so that other processes do not slow them down more
// than their share of the processors does:
// - Nobody waits for a thread that has not come; for one that is stopped within a block the others wait asleep. Each
// thread begins with a share of
//   the blocks of its own, the same at every loop of that size, so that it finds in its caches what it left there;
//   whoever is done takes blocks of the others' shares. A thread that the system keeps from running costs its help, not
//   its share.
// - Nobody spins for long. Between two loops, and at the end of one, a thread looks for work for `spin_time`, then
// sleeps until it is woken.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>

namespace plumb::cpu {

using BlockBody = void (*)(void* context, std::int64_t block);

class ThreadPool {
 public:
  static constexpr int max_threads = 256;
  // The loops of a training step follow each other within microseconds, and waking a thread takes some tens of them.
  static constexpr std::chrono::microseconds spin_time{100};

  // One for the process, which all use who have no share of their own (core/thread_share.h). A pool is never destroyed,
  // and its threads end with the process, so that a thread that exits late finds it whole. A child after fork() (not
  // from within a loop) does without those that it has lost.
  static ThreadPool& instance();
  ThreadPool();

  // Calls body(context, i) once for each i in [0, blocks), on the calling thread and at most `threads` - 1 others.
  // False, and nothing is called, if a loop is running already: one that a body or another thread has started. The
  // first exception that a body throws leaves here, after all threads have stopped.
  bool run(std::int64_t blocks, int threads, void* context, BlockBody body);

 private:
  struct alignas(64) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };

  void grow(int workers);
  void work_forever(int self);
  void work(int self);
  bool enter();
  void leave();

  // Whether a loop runs; whoever sets it owns what follows.
  std::atomic<bool> busy_{false};
  int workers_ = 0;
  // The loop. Written while the door is shut and nobody is inside.
  void* context_ = nullptr;
  BlockBody body_ = nullptr;
  std::atomic<int> shares_in_use_{0};  // workers also look at it from outside: who has no share stays there
  std::unique_ptr<Share[]> shares_;    // max_threads of them
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;

  alignas(64) std::atomic<std::uint32_t> loops_{0};  // started so far: what workers wait for
  alignas(64) std::atomic<std::uint32_t> door_{0};   // bit 0: open; above it: how many workers are inside
};

}  // namespace plumb::cpu
