// The listeners of all test programs. LeakCheck fails a test case that leaks nodes of a graph: no node may be alive
// after a test case. AmxChoice uses emulated AMX for bf16 products if the environment sets PLUMB_EMULATED_AMX (the test
// preset `amx`).
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include "tests/support/catch.h"

#include <cstdio>
#include <cstdlib>

#include "autograd/node.h"
#include "tests/support/emulated_amx.h"

namespace {

#if __has_include(<catch2/catch_all.hpp>)
using Listener = Catch::EventListenerBase;
#else
using Listener = Catch::TestEventListenerBase;
#endif

struct LeakCheck : Listener {
  using Listener::Listener;
  void testCaseEnded(const Catch::TestCaseStats&) override {
    if (plumb::live_nodes() == 0) return;
    std::cout.flush();
    std::fprintf(stderr, "FAILED: %lld graph nodes are alive after the test case\n",
                 static_cast<long long>(plumb::live_nodes()));
    std::_Exit(1);
  }
};

struct AmxChoice : Listener {
  using Listener::Listener;
  void testRunStarting(const Catch::TestRunInfo&) override {
    if (std::getenv("PLUMB_EMULATED_AMX")) plumb::cpu::set_amx_kernels(&plumb::test::emulated_amx);
  }
};

}  // namespace

CATCH_REGISTER_LISTENER(LeakCheck)
CATCH_REGISTER_LISTENER(AmxChoice)
