// The threads that run parallel loops together with the thread that starts a loop. The design limits the damage from
// other busy processes to the processor time that these processes take:
// - The loop does not wait for threads that have not started on the loop. If a thread is stopped within a block, the
//   other threads sleep until this block is done.
// - Each thread starts with a share of the blocks, the same share in every loop of that size, so that the thread
//   finds its earlier data in its caches. A thread that has finished its share takes blocks of other shares. Therefore
//   the share of a thread that the system has stopped is still computed.
// - Threads do not spin for long. Between loops, and at the end of a loop, a thread looks for work for `spin_time`,
//   then sleeps until another thread wakes it.
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
  // Spinning avoids the time to wake a thread: the loops of a training step follow each other within microseconds, but
  // waking a thread takes some tens of microseconds.
  static constexpr std::chrono::microseconds spin_time{100};

  // Returns the pool of the process. All threads without a ThreadShare use this pool (core/thread_share.h). Pools are
  // never destroyed, and the threads of a pool end with the process. Therefore a thread that exits late can still use
  // the pool. A child process after fork() works without the pool's threads, because fork() does not copy threads.
  // fork() must not be called from within a loop.
  static ThreadPool& instance();
  ThreadPool();

  // Calls body(context, i) once for each i in [0, blocks), on the calling thread and at most `threads` - 1 other
  // threads. If a loop of a body or of another thread is already running, run() calls nothing and returns false. If a
  // body throws, the first exception is rethrown after all threads have stopped.
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

  // Whether a loop runs. The thread that has set `busy_` to true owns the members below.
  std::atomic<bool> busy_{false};
  int workers_ = 0;
  // The current loop. These members are written only while no worker is inside the loop and no worker can enter.
  void* context_ = nullptr;
  BlockBody body_ = nullptr;
  // Workers read this number before they enter the loop. A worker without a share does not enter.
  std::atomic<int> shares_in_use_{0};
  std::unique_ptr<Share[]> shares_;  // max_threads shares
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;

  alignas(64) std::atomic<std::uint32_t> loops_{0};  // number of loops started so far; workers wait for a change
  // Bit 0: workers may enter the loop. Higher bits: the number of workers inside the loop.
  alignas(64) std::atomic<std::uint32_t> door_{0};
};

}  // namespace plumb::cpu
