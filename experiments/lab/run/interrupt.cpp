#include "experiments/lab/run/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string_view>
#include <system_error>
#include <thread>

namespace plumb::lab {
namespace {

std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may touch lock-free atomics only");

extern "C" void on_signal(int signal) {
  if (first_signal.exchange(signal) != 0) ::_exit(128 + signal);
  constexpr std::string_view note = "\nstopping after this step; a second signal ends at once, without a checkpoint\n";
  [[maybe_unused]] const auto written =
      ::write(STDERR_FILENO, note.data(), note.size());  // a signal handler may call it
}

}  // namespace

// A thread that waits for SIGINT and SIGTERM until the destructor ends it. While the thread exists, the thread that
// created it blocks both signals. The wait needs no signal handler, which the thread sanitizer could delay. The handler
// is for threads that existed before, and for the case that no thread can be started.
class InterruptHandler::Listener {
 public:
  Listener() {
    sigset_t all;
    ::sigemptyset(&both_);
    for (const int signal : {SIGINT, SIGTERM}) ::sigaddset(&both_, signal);
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &former_mask_);  // the new thread inherits this mask
    try {
      thread_ = std::thread([this] {
        for (int signal; ::sigwait(&both_, &signal) == 0 && !ended_;) on_signal(signal);
      });
    } catch (const std::system_error&) {  // no thread can be started, so the calling thread receives the signals
    }
    ::pthread_sigmask(SIG_SETMASK, &former_mask_, nullptr);
    if (thread_.joinable()) ::pthread_sigmask(SIG_BLOCK, &both_, nullptr);
  }
  ~Listener() {
    if (thread_.joinable()) {
      ended_ = true;
      ::pthread_kill(thread_.native_handle(), SIGTERM);  // ends the wait
      thread_.join();
    }
    ::pthread_sigmask(SIG_SETMASK, &former_mask_, nullptr);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  std::atomic<bool> ended_ = false;
  sigset_t both_, former_mask_;
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
