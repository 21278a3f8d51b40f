// Simulates Ctrl-C from within the process.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "experiments/lab/run/interrupt.h"

namespace plumb::test {

// Sends the signal to the process and waits at most 10 s until interrupted() is true. Returns interrupted().
inline bool interrupted_by(int signal) {
  ::kill(::getpid(), signal);
  for (int i = 0; i < 10'000 && !lab::interrupted(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return lab::interrupted();
}

}  // namespace plumb::test
