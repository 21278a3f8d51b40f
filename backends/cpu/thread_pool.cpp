#include "backends/cpu/thread_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <thread>
#include <utility>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace plumb::cpu {
namespace {

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#endif
}

// Waits until `value` differs from `old`. Returns the new value.
std::uint32_t wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < 32; ++i) {
      const std::uint32_t now = value.load(std::memory_order_acquire);
      if (now != old) return now;
      pause();
    }
  } while (std::chrono::steady_clock::now() - start < ThreadPool::spin_time);
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

constexpr std::uint32_t open = 1, one_inside = 2;

// While an object of this class lives, new threads start with signals blocked, because the program's own threads and
// their handlers should receive the signals for the process. Faults are not blocked. SIGPROF is not blocked either,
// because profilers use SIGPROF to sample the working thread.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t blocked;
    ::sigfillset(&blocked);
    for (const int open_signal : {SIGPROF, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
      ::sigdelset(&blocked, open_signal);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &former_);
  }
  ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &former_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t former_;
};

}  // namespace

ThreadPool& ThreadPool::instance() {
  static ThreadPool& pool = *new ThreadPool;
  return pool;
}

ThreadPool::ThreadPool() : shares_(std::make_unique<Share[]>(max_threads)) {}

void ThreadPool::grow(int workers) {
  if (workers_ >= workers) return;
  const WithoutSignals without_signals;
  try {
    for (; workers_ < workers; ++workers_) {
      std::thread worker(&ThreadPool::work_forever, this, workers_ + 1);
      pthread_setname_np(worker.native_handle(), "plumb worker");
      worker.detach();
    }
  } catch (const std::exception&) {
    // The system allows no more threads. The existing threads compute the blocks of the missing threads.
  }
}

bool ThreadPool::run(std::int64_t blocks, int threads, void* context, BlockBody body) {
  if (busy_.exchange(true, std::memory_order_acquire)) return false;
  const int shares = std::min(threads, max_threads);
  grow(shares - 1);
  shares_in_use_.store(shares, std::memory_order_relaxed);
  context_ = context;
  body_ = body;
  for (int i = 0; i < shares; ++i) {
    shares_[i].next.store(blocks * i / shares, std::memory_order_relaxed);
    shares_[i].end = blocks * (i + 1) / shares;
  }
  door_.store(open, std::memory_order_release);
  loops_.fetch_add(1, std::memory_order_release);
  loops_.notify_all();

  work(0);

  // All blocks are taken. From now on, no worker can enter the loop. The workers inside the loop compute their last
  // block.
  std::uint32_t inside = door_.fetch_sub(open, std::memory_order_acquire) - open;
  while (inside != 0) inside = wait_for_change(door_, inside);
  const std::exception_ptr error = std::exchange(error_, nullptr);
  failed_.store(false, std::memory_order_relaxed);
  busy_.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
  return true;
}

void ThreadPool::work(int self) {
  try {
    const int shares = shares_in_use_.load(std::memory_order_relaxed);
    for (int i = 0; i < shares; ++i) {
      Share& share = shares_[(self + i) % shares];
      while (share.next.load(std::memory_order_relaxed) < share.end && !failed_.load(std::memory_order_relaxed)) {
        const std::int64_t block = share.next.fetch_add(1, std::memory_order_relaxed);
        if (block < share.end) body_(context_, block);
      }
    }
  } catch (...) {
    if (!failed_.exchange(true)) error_ = std::current_exception();
  }
}

bool ThreadPool::enter() {
  std::uint32_t now = door_.load(std::memory_order_relaxed);
  while (now & open)
    if (door_.compare_exchange_weak(now, now + one_inside, std::memory_order_acquire, std::memory_order_relaxed))
      return true;
  return false;
}

void ThreadPool::leave() {
  if (door_.fetch_sub(one_inside, std::memory_order_release) == one_inside)
    door_.notify_all();  // this was the last worker, and no other worker can enter
}

void ThreadPool::work_forever(int self) {
  for (std::uint32_t seen = 0;;) {
    seen = wait_for_change(loops_, seen);
    if (self >= shares_in_use_.load(std::memory_order_relaxed) || !enter()) continue;
    work(self);  // if a later, smaller loop runs by now, this thread only takes blocks of other shares
    leave();
  }
}

}  // namespace plumb::cpu
