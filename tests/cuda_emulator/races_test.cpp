// What the race checker (preset emulated-races) must see, and what it must not.
#include <fcntl.h>

#include <cstdlib>
#include <functional>

#include <cuda_runtime.h>

#include "tests/support/catch.h"

#if !defined(__SANITIZE_THREAD__)

TEST_CASE("the race checker sees what no barrier orders") { PLUMB_SKIP("no race checker in this build: it is that of the preset emulated-races"); }

#else

extern "C" void __sanitizer_set_report_fd(void* fd);

namespace {
bool expected = false;
int seen = 0;
}  // namespace

// ThreadSanitizer asks these.
extern "C" const char* __tsan_default_options() { return "halt_on_error=0:die_after_fork=0:suppress_equal_addresses=0:exitcode=0"; }
extern "C" void __tsan_on_report(void*) { expected ? static_cast<void>(++seen) : std::abort(); }

namespace {

// Whether it finds a race in two blocks of 64 threads that do this to memory[128], the device's, and to 128 floats of shared memory.
bool races(void (*kernel)(float* memory, float* shared)) {
  static float memory[128];
  const std::function<void()> work = [=] { kernel(memory, reinterpret_cast<float*>(emulator::shared_memory())); };
  static const auto nowhere = static_cast<std::intptr_t>(open("/dev/null", O_WRONLY));
  __sanitizer_set_report_fd(reinterpret_cast<void*>(nowhere));
  expected = true, seen = 0;
  // More than one grid: blocks take their threads by chance.
  for (int i = 0; i < 8; ++i) emulator::run_grid(dim3{2, 1, 1}, dim3{64, 1, 1}, 128 * sizeof(float), work);
  expected = false;
  __sanitizer_set_report_fd(reinterpret_cast<void*>(std::intptr_t{2}));
  return seen > 0;
}

unsigned number() { return blockIdx.x * 64 + threadIdx.x; }

}  // namespace

TEST_CASE("the race checker sees what no barrier orders") {
  CHECK_FALSE(races([](float* memory, float* shared) {
    shared[threadIdx.x] = 1;
    __syncthreads();
    memory[number()] = shared[63 - threadIdx.x];
  }));
  CHECK(races([](float* memory, float* shared) {
    shared[threadIdx.x] = 1;
    memory[number()] = shared[63 - threadIdx.x];
  }));
  // A barrier that stands before what it should stand behind.
  CHECK(races([](float* memory, float* shared) {
    __syncthreads();
    shared[threadIdx.x] = 1;
    memory[number()] = shared[63 - threadIdx.x];
  }));
  // Written again before all have read.
  CHECK(races([](float* memory, float* shared) {
    for (int i = 0; i < 2; ++i) {
      shared[threadIdx.x] = static_cast<float>(i);
      __syncthreads();
      memory[number()] = shared[63 - threadIdx.x];
    }
  }));
}

TEST_CASE("the race checker sees races within a warp, where a shuffle is no barrier") {
  CHECK_FALSE(races([](float* memory, float* shared) {
    shared[threadIdx.x] = 1;
    __syncwarp();
    memory[number()] = shared[threadIdx.x ^ 31u];
  }));
  CHECK(races([](float* memory, float* shared) {
    shared[threadIdx.x] = __shfl_xor_sync(~0u, 1.0f, 1);
    memory[number()] = shared[threadIdx.x ^ 31u];
  }));
  // A warp's barrier orders nothing among warps.
  CHECK(races([](float* memory, float* shared) {
    shared[threadIdx.x] = 1;
    __syncwarp();
    memory[number()] = shared[63 - threadIdx.x];
  }));
}

TEST_CASE("the race checker sees blocks that write to one place, and takes their shared memories apart") {
  CHECK(races([](float* memory, float*) { memory[threadIdx.x] = 1; }));
  CHECK_FALSE(races([](float* memory, float* shared) {
    shared[threadIdx.x] = 1;
    memory[number()] = shared[threadIdx.x];
  }));
}

#endif
