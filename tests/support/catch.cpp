// Fails a test case that leaks nodes of a graph: no node may be alive after a test case.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include "tests/support/catch.h"

#include <cstdio>
#include <cstdlib>

#include "autograd/node.h"

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

}  // namespace

CATCH_REGISTER_LISTENER(LeakCheck)
