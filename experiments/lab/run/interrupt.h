// Ctrl-C and SIGTERM as a flag: the loop sees it, finishes its bookkeeping and ends with the status a shell expects.
#pragma once

#include <signal.h>

#include <memory>

namespace plumb::lab {

// While one lives, the first SIGINT or SIGTERM only sets the flag; a second one ends the process at once with 130 or
// 143. Both go to a thread of their own: the thread that makes the handler, and all that it starts afterwards, block
// them. Threads that were there before still may take them; a process that is started meanwhile inherits the blocked
// mask. At most one lives at a time.
class InterruptHandler {
 public:
  InterruptHandler();
  ~InterruptHandler();  // puts the former handlers back and clears the flag
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
  struct sigaction former_interrupt_, former_terminate_;
};

bool interrupted();

// The exit status that tells the caller of the signal: 130 for SIGINT, 143 for SIGTERM, 0 when not interrupted.
int interrupt_status();

}  // namespace plumb::lab
