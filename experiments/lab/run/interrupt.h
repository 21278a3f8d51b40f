// Turns Ctrl-C (SIGINT) and SIGTERM into a flag. A loop that checks the flag can save its work and end with the exit
// status that a shell expects.
#pragma once

#include <signal.h>

#include <memory>

namespace plumb::lab {

// While a handler exists, the first SIGINT or SIGTERM only sets the flag; a second one ends the process at once with
// status 130 or 143. A helper thread receives both signals: the thread that creates the handler, and the threads that
// it starts later, block them. Threads that existed before may still receive them. A child process that is started in
// the meantime inherits the blocked signals. At most one handler may exist at a time.
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

// The exit status after an interrupt: 130 for SIGINT, 143 for SIGTERM, 0 if there was none.
int interrupt_status();

}  // namespace plumb::lab
