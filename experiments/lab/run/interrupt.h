// Turns Ctrl-C (SIGINT) and SIGTERM into a flag. A loop that checks the flag can save its work and end with the exit
// status that a shell expects.
#pragma once

#include <signal.h>

#include <memory>

namespace plumb::lab {

// While a handler exists, the first SIGINT or SIGTERM only sets a flag. A second signal ends the process at once, with
// status 130 or 143. A helper thread receives both signals. The thread that creates the handler blocks the signals.
// Threads and child processes that this thread starts later block the signals as well. Threads that existed before may
// still receive the signals. At most one handler may exist at a time.
class InterruptHandler {
 public:
  InterruptHandler();
  ~InterruptHandler();  // restores the former handlers and clears the flag
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
  struct sigaction former_interrupt_, former_terminate_;
};

// Whether SIGINT or SIGTERM has arrived since the handler was created.
bool interrupted();

// The exit status after an interrupt: 130 for SIGINT, 143 for SIGTERM, 0 without an interrupt.
int interrupt_status();

}  // namespace plumb::lab
