#include "experiments/lab/run/interrupt.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/interrupt.h"

using namespace plumb::lab;
using plumb::test::interrupted_by;

namespace {

// Runs `body` in a child process and returns the exit status of the child process.
template <class F>
int status_of_child(F body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

TEST_CASE("the first signal sets a flag and decides the exit status", "[experiments]") {
  {
    const InterruptHandler handler;
    CHECK_FALSE(interrupted());
    CHECK(interrupt_status() == 0);
    CHECK(interrupted_by(SIGINT));
    CHECK(interrupt_status() == 130);
  }
  CHECK_FALSE(interrupted());
  const InterruptHandler handler;
  CHECK(interrupted_by(SIGTERM));
  CHECK(interrupt_status() == 143);
}

TEST_CASE("the second signal ends the process at once", "[experiments]") {
  const auto twice = [](int first, int second) {
    return status_of_child([=] {
      const InterruptHandler handler;
      interrupted_by(first);
      ::kill(::getpid(), second);
      std::this_thread::sleep_for(std::chrono::seconds(2));
    });
  };
  CHECK(twice(SIGINT, SIGINT) == 130);
  CHECK(twice(SIGTERM, SIGTERM) == 143);
  CHECK(twice(SIGTERM, SIGINT) == 130);
}

TEST_CASE("Ctrl-C goes to a separate thread and not to computing threads", "[experiments]") {
  const auto takes = [](int signal) {
    sigset_t blocked;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    return ::sigismember(&blocked, signal) == 0;
  };
  {
    const InterruptHandler handler;
    CHECK_FALSE(takes(SIGINT));
    CHECK_FALSE(takes(SIGTERM));
    std::thread([&] { CHECK_FALSE(takes(SIGINT)); }).join();
    CHECK(takes(SIGHUP));
  }
  CHECK(takes(SIGINT));
  CHECK(takes(SIGTERM));
}

TEST_CASE("the end of the handler restores the former effect of a signal", "[experiments]") {
  CHECK(status_of_child([] {
          ::signal(SIGTERM, SIG_DFL);
          { const InterruptHandler handler; }
          ::raise(SIGTERM);
        }) == -SIGTERM);
}
