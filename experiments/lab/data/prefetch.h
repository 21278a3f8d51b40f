// A background thread that computes results before they are needed.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace plumb::lab {

// Calls `produce` repeatedly on one background thread, and keeps up to `capacity` results ready. `produce` runs only on
// this thread, so `produce` may keep state. Results come in order. If `produce` throws, next() returns the earlier
// results before it throws the exception.
template <class T>
class Prefetch {
 public:
  Prefetch(std::function<T()> produce, std::size_t capacity)
      : produce_(std::move(produce)), capacity_(capacity), thread_([this] { run(); }) {}

  // If a call of `produce` is running, the destructor waits until this call returns.
  ~Prefetch() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // Waits for the next result and returns it. If `produce` has thrown an exception, this call and every later call
  // throw this exception.
  T next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty() || error_; });
    if (ready_.empty()) std::rethrow_exception(error_);
    T result = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return result;
  }

 private:
  void run() {
    try {
      while (true) {
        {
          std::unique_lock lock(mutex_);
          changed_.wait(lock, [this] { return stopping_ || ready_.size() < capacity_; });
          if (stopping_) return;
        }
        T result = produce_();
        {
          const std::lock_guard lock(mutex_);
          ready_.push_back(std::move(result));
        }
        changed_.notify_all();
      }
    } catch (...) {
      {
        const std::lock_guard lock(mutex_);
        error_ = std::current_exception();
      }
      changed_.notify_all();
    }
  }

  const std::function<T()> produce_;
  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> ready_;
  std::exception_ptr error_;
  bool stopping_ = false;
  std::thread thread_;  // last member, so that the thread starts after all other members are initialised
};

}  // namespace plumb::lab
