#include "experiments/common/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <semaphore>
#include <thread>

namespace plumb::lab {
namespace {

std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may touch lock-free atomics only");

struct sigaction former_interrupt, former_terminate;

void change_mask(int how, sigset_t* former) {
  sigset_t both;
  ::sigemptyset(&both);
  ::sigaddset(&both, SIGINT);
  ::sigaddset(&both, SIGTERM);
  ::pthread_sigmask(how, &both, former);
}

extern "C" void on_signal(int signal) {
  if (first_signal.exchange(signal) != 0) ::_exit(128 + signal);
}

}  // namespace

// The thread that the two signals go to: it sleeps until it is told to end.
struct InterruptHandler::Listener {
  std::binary_semaphore end{0};
  sigset_t former_mask;
  std::thread thread{[this] {
    change_mask(SIG_UNBLOCK, nullptr);
    end.acquire();
  }};

  Listener() { change_mask(SIG_BLOCK, &former_mask); }
  ~Listener() {
    end.release();
    thread.join();
    ::pthread_sigmask(SIG_SETMASK, &former_mask, nullptr);
  }
};

InterruptHandler::InterruptHandler() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &former_interrupt);
  ::sigaction(SIGTERM, &action, &former_terminate);
  listener_ = std::make_unique<Listener>();
}

InterruptHandler::~InterruptHandler() {
  listener_.reset();
  ::sigaction(SIGINT, &former_interrupt, nullptr);
  ::sigaction(SIGTERM, &former_terminate, nullptr);
  first_signal = 0;
}

bool interrupted() { return first_signal.load(std::memory_order_relaxed) != 0; }

int interrupt_status() {
  const int signal = first_signal.load();
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace plumb::lab
