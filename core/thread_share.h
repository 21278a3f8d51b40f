// ThreadShare: private threads of the cpu backend, for programs that compute in several threads at once.
#pragma once

namespace plumb {

namespace cpu {
class ThreadPool;
}

// While a ThreadShare lives, kernels called from the thread that made it run on `threads` threads that are not shared
// with other callers; the calling thread is one of these threads. num_threads() in that thread then returns `threads`,
// at least 1. Without a share, all callers share num_threads() threads; a caller that finds them busy computes its
// loops without help. Shares nest.
class ThreadShare {
 public:
  [[nodiscard(
      "a ThreadShare has an effect only while it lives; name it: ThreadShare share(threads);")]] explicit ThreadShare(int threads);
  ~ThreadShare();
  ThreadShare(const ThreadShare&) = delete;
  ThreadShare& operator=(const ThreadShare&) = delete;

 private:
  friend int num_threads();
  friend cpu::ThreadPool& pool_of_this_thread();
  static thread_local ThreadShare* current;

  int threads_;
  cpu::ThreadPool* pool_;
  ThreadShare* outer_;
};

}  // namespace plumb
