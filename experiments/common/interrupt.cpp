#include "experiments/common/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace plumb::lab {
namespace {

std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may touch lock-free atomics only");

struct sigaction former_interrupt, former_terminate;

extern "C" void on_signal(int signal) {
  if (first_signal.exchange(signal) != 0) ::_exit(128 + signal);
}

}  // namespace

InterruptHandler::InterruptHandler() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &former_interrupt);
  ::sigaction(SIGTERM, &action, &former_terminate);
}

InterruptHandler::~InterruptHandler() {
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
