// For programs that compute in several threads at once.
#pragma once

namespace plumb {

namespace cpu {
class ThreadPool;
}

// While one lives, kernels called from the thread that made it run on `threads` threads of its own (itself and others
// that nobody else uses) instead of sharing num_threads() with all who call: where these are busy, the caller would be
// left alone with its loops. num_threads() in that thread is then `threads`, at least 1. Shares nest.
class ThreadShare {
 public:
  [[nodiscard(
      "the share is the thread's own while it lives; name it: ThreadShare share(threads);")]] explicit ThreadShare(int threads);
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
