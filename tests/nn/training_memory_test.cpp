#include <sys/resource.h>

#include "core/backend.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"

using namespace plumb;

TEST_CASE(
    "from the third training step on no memory comes from the system and the number of allocations stays constant") {
  nn::ViT model({.image = 16, .patch = 4, .classes = 10, .dim = 64, .depth = 4, .heads = 2, .drop_key = {.rate = 0.1}});
  nn::AdamW optimizer(model.parameters(), {.lr = 1e-3});
  const Tensor images = random_normal({16, 3, 16, 16}, 0, "images");
  const Tensor targets = integers({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5}, {16});
  const auto step = [&](std::uint32_t i) {
    const RandomScope random({.seed = 0, .step = i});
    const Gradients g = backward(cross_entropy(model(images), targets));
    optimizer.step(g);
  };
  const auto page_faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  for (std::uint32_t i = 0; i < 2; ++i) step(i);
  const long faults = page_faults();
  MemoryStats before = memory_stats();
  std::uint64_t a_step = 0;
  for (std::uint32_t i = 2; i < 6; ++i) {
    step(i);
    const MemoryStats after = memory_stats();
#ifndef PLUMB_ADDRESS_SANITIZER  // with this sanitizer, each buffer is allocated by the system
    CHECK(after.system_allocations == before.system_allocations);
    CHECK(after.reserved == before.reserved);
#endif
    CHECK(after.in_use == before.in_use);
    if (i > 2) CHECK(after.allocations - before.allocations == a_step);
    a_step = after.allocations - before.allocations;
    before = after;
  }
  CHECK(a_step > 100);
#if !defined(PLUMB_ADDRESS_SANITIZER) && !defined(__SANITIZE_THREAD__)
  CHECK(page_faults() - faults <
        100);  // the limit allows for other allocations than arrays: nodes, functions, and system libraries
#endif
}
