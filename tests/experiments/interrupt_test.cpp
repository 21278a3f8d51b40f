#include "experiments/common/interrupt.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/catch.h"

using namespace plumb::lab;

namespace {

// The exit status of a process that runs `body`.
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

TEST_CASE("the first signal sets a flag and the status says which", "[experiments]") {
  {
    const InterruptHandler handler;
    CHECK_FALSE(interrupted());
    CHECK(interrupt_status() == 0);
    ::raise(SIGINT);
    CHECK(interrupted());
    CHECK(interrupt_status() == 130);
  }
  CHECK_FALSE(interrupted());
  const InterruptHandler handler;
  ::raise(SIGTERM);
  CHECK(interrupt_status() == 143);
}

TEST_CASE("the second signal ends the process at once", "[experiments]") {
  const auto twice = [](int first, int second) {
    return status_of_child([=] {
      const InterruptHandler handler;
      ::raise(first);
      ::raise(second);
    });
  };
  CHECK(twice(SIGINT, SIGINT) == 130);
  CHECK(twice(SIGTERM, SIGTERM) == 143);
  CHECK(twice(SIGTERM, SIGINT) == 130);
}

TEST_CASE("after the handler is gone a signal does what it did before", "[experiments]") {
  CHECK(status_of_child([] {
          ::signal(SIGTERM, SIG_DFL);
          { const InterruptHandler handler; }
          ::raise(SIGTERM);
        }) == -SIGTERM);
}
