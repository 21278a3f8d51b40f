// Ctrl-C and SIGTERM as a flag: the loop sees it, finishes its bookkeeping and ends with the status a shell expects.
#pragma once

namespace plumb::lab {

// While one lives, the first SIGINT or SIGTERM only sets the flag; a second one ends the process at once with 130 or 143.
class InterruptHandler {
 public:
  InterruptHandler();
  ~InterruptHandler();  // puts the former handlers back and clears the flag
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;
};

bool interrupted();

// The exit status that tells the caller of the signal: 130 for SIGINT, 143 for SIGTERM, 0 when not interrupted.
int interrupt_status();

}  // namespace plumb::lab
