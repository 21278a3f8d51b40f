// The threads that run parallel loops together with the thread that starts a loop. The design limits the damage from
// other busy processes to the processor time that they take:
// - The loop does not wait for threads that have not started on it. While a thread is stopped within a block, the
//   others sleep until it is done.
// - Each thread starts with a share of the blocks, the same share in every loop of that size, so that it finds its
//   earlier data in its caches. A thread that has finished takes blocks of other shares. So if the system stops a
//   thread, its share is still computed.
// - Threads do not spin for long. Between loops, and at the end of a loop, a thread looks for work for `spin_time`,
//   then sleeps until it is woken.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>

namespace plumb::cpu {

using BlockBody = void (*)(void* context, std::int64_t block);

// A pool of threads for parallel loops.
class ThreadPool {
 public:
  static constexpr int max_threads = 256;
  // The loops of a training step follow each other within microseconds, but waking a thread takes some tens of
  // microseconds.
  static constexpr std::chrono::microseconds spin_time{100};

  // Returns the pool of the process, which all threads without a ThreadShare use (core/thread_share.h). Pools are never
  // destroyed, and their threads end with the process, so that a thread that exits late can still use the pool. A child
  // process after fork() (not from within a loop) works without the threads, which fork() does not copy.
  static ThreadPool& instance();
  ThreadPool();

  // Calls body(context, i) once for each i in [0, blocks), on the calling thread and at most `threads` - 1 others. If a
  // loop is already running, started by a body or another thread, it calls nothing and returns false. If a body throws,
  // rethrows the first exception after all threads have stopped.
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

  // Whether a loop runs. The thread that sets it owns the members below.
  std::atomic<bool> busy_{false};
  int workers_ = 0;
  // The current loop. Written only while no worker is inside it and none can enter.
  void* context_ = nullptr;
  BlockBody body_ = nullptr;
  std::atomic<int> shares_in_use_{0};  // workers read it before they enter the loop: those without a share do not enter
  std::unique_ptr<Share[]> shares_;    // max_threads of them
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;

  alignas(64) std::atomic<std::uint32_t> loops_{0};  // loops started so far; workers wait for a change
  alignas(64) std::atomic<std::uint32_t> door_{
      0};  // bit 0: workers may enter the loop; higher bits: how many are inside
};

}  // namespace plumb::cpu
