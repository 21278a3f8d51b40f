#include "experiments/lab/run/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>

namespace plumb::lab {
namespace {

std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may touch lock-free atomics only");

extern "C" void on_signal(int signal) {
  if (first_signal.exchange(signal) != 0) ::_exit(128 + signal);
}

}  // namespace

// A thread that receives only SIGINT and SIGTERM, and sleeps until the destructor ends it. While the thread exists, the
// thread that created it blocks both signals.
class InterruptHandler::Listener {
 public:
  Listener() {
    sigset_t both, all;
    ::sigemptyset(&both);
    for (const int signal : {SIGINT, SIGTERM}) ::sigaddset(&both, signal);
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &former_mask_);  // the new thread inherits this mask
    try {
      thread_ = std::thread([this, both] {
        ::pthread_sigmask(SIG_UNBLOCK, &both, nullptr);
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return ended_; });
      });
    } catch (const std::system_error&) {  // no thread can be started, so the calling thread receives the signals
    }
    ::pthread_sigmask(SIG_SETMASK, &former_mask_, nullptr);
    if (thread_.joinable()) ::pthread_sigmask(SIG_BLOCK, &both, nullptr);
  }
  ~Listener() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
    ::pthread_sigmask(SIG_SETMASK, &former_mask_, nullptr);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  // The thread sanitizer delivers signals to a thread that waits for a condition variable. It does not do so for the
  // semaphores of the standard library.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  sigset_t former_mask_;
  std::thread thread_;
};

InterruptHandler::InterruptHandler() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &former_interrupt_);
  ::sigaction(SIGTERM, &action, &former_terminate_);
  listener_ = std::make_unique<Listener>();
}

InterruptHandler::~InterruptHandler() {
  listener_.reset();
  ::sigaction(SIGINT, &former_interrupt_, nullptr);
  ::sigaction(SIGTERM, &former_terminate_, nullptr);
  first_signal = 0;
}

bool interrupted() { return first_signal.load(std::memory_order_relaxed) != 0; }

int interrupt_status() {
  const int signal = first_signal.load();
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace plumb::lab
