// Tests of the signals that reach each thread. No signal reaches a thread inside oneDNN. Only the signal of a profiler
// reaches the workers of the pool.
#include "backends/cpu/signals.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "backends/cpu/parallel.h"
#include "backends/cpu/thread_pool.h"
#include "core/error.h"
#include "tests/support/catch.h"

using namespace plumb;

namespace {

std::set<int> blocked() {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  std::set<int> all;
  for (int s = 1; s < NSIG; ++s)
    if (::sigismember(&mask, s) == 1) all.insert(s);
  return all;
}

}  // namespace

TEST_CASE("SignalsWait delays asynchronous signals and restores the thread's signal mask") {
  sigset_t own, former;
  ::sigemptyset(&own);
  ::sigaddset(&own, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &own, &former);
  const std::set<int> before = blocked();
  static std::atomic<int> taken{0};
  const auto handler = ::signal(SIGUSR1, [](int) { ++taken; });
  try {
    const cpu::SignalsWait wait;
    const std::set<int> now = blocked();
    for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGPROF, SIGALRM, SIGUSR1, SIGUSR2, SIGCHLD, SIGRTMIN, SIGRTMAX})
      CHECK(now.contains(s));
    for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) CHECK_FALSE(now.contains(s));
    ::raise(SIGUSR1);
    CHECK(taken == 0);
    throw Error("out of the scope");
  } catch (const Error&) {
  }
  CHECK(taken == 1);
  CHECK(blocked() == before);
  ::signal(SIGUSR1, handler);
  ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

TEST_CASE("workers of a thread pool receive only a profiler's signals", "[once]") {
  const std::set<int> before = blocked();
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> worked{false}, right{true};
  const auto body = [&](std::int64_t) {
    if (std::this_thread::get_id() == caller) {  // leaves the other blocks to the workers
      for (int i = 0; i < 10'000 && !worked; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    const std::set<int> now = blocked();
    for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGUSR1, SIGUSR2, SIGCHLD})
      if (!now.contains(s)) right = false;
    for (const int s : {SIGPROF, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
      if (now.contains(s)) right = false;
    worked = true;
  };
  cpu::ThreadPool& pool = *new cpu::ThreadPool;  // pools are never destroyed
  REQUIRE(pool.run(4, 3, const_cast<void*>(static_cast<const void*>(&body)),
                   [](void* context, std::int64_t block) { (*static_cast<const decltype(body)*>(context))(block); }));
  CHECK(worked);
  CHECK(right);
  CHECK(blocked() == before);
}
