// What the race checker (preset emulated-races) must see, and what it must not.
#include <fcntl.h>

#include <cstdlib>
#include <functional>

#include <cuda_runtime.h>

#include "tests/support/catch.h"

#if !defined(__SANITIZE_THREAD__)

TEST_CASE("the race checker sees what no barrier orders") {
  PLUMB_SKIP("no race checker in this build: it is that of the preset emulated-races");
}

#else

extern "C" void __sanitizer_set_report_fd(void* fd);

namespace {
bool expected = false;
int seen = 0;
}  // namespace

// ThreadSanitizer asks these.
extern "C" const char* __tsan_default_options() {
  return "halt_on_error=0:die_after_fork=0:suppress_equal_addresses=0:exitcode=0";
}
extern "C" __attribute__((no_sanitize("thread"))) void __tsan_on_report(void*) {
  expected ? static_cast<void>(++seen) : std::abort();
}

namespace {

// Whether it finds a race in two blocks of threads that do this to memory[2 threads], the device's, and to that many
// floats of shared memory.
bool races(void (*kernel)(float* memory, float* shared), unsigned threads = 64) {
  static float memory[2048];
  const std::function<void()> work = [=] { kernel(memory, reinterpret_cast<float*>(emulator::shared_memory())); };
  static const auto nowhere = static_cast<std::intptr_t>(open("/dev/null", O_WRONLY));
  __sanitizer_set_report_fd(reinterpret_cast<void*>(nowhere));
  expected = true, seen = 0;
  emulator::run_grid(dim3{2, 1, 1}, dim3{threads, 1, 1}, 2 * threads * sizeof(float), work);
  expected = false;
  __sanitizer_set_report_fd(reinterpret_cast<void*>(std::intptr_t{2}));
  return seen > 0;
}

unsigned number() { return blockIdx.x * blockDim.x + threadIdx.x; }

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
  // What barriers of one block order is nothing to another.
  CHECK(races([](float* memory, float*) {
    if (blockIdx.x == 0) memory[threadIdx.x] = 1;
    __syncthreads();
    if (blockIdx.x == 1) memory[threadIdx.x] = 2;
  }));
  CHECK(races([](float* memory, float*) {
    if (blockIdx.x == 0) memory[threadIdx.x] = 1;
    __syncwarp();
    if (blockIdx.x == 1) memory[63 - threadIdx.x] = 2;
  }));
  CHECK_FALSE(races([](float* memory, float* shared) {
    shared[threadIdx.x] = 1;
    memory[number()] = shared[threadIdx.x];
  }));
}

namespace {

// Of its own for each size: of races at one place in the code the first is told.
template <unsigned threads>
void check_large_block() {
  CHECK(races(
      [](float* memory, float* shared) {
        shared[threadIdx.x] = 1;
        memory[number()] = shared[threads - 1 - threadIdx.x];
      },
      threads));
  CHECK_FALSE(races(
      [](float* memory, float* shared) {
        shared[threadIdx.x] = 1;
        __syncthreads();
        memory[number()] = shared[threads - 1 - threadIdx.x];
      },
      threads));
}

}  // namespace

TEST_CASE("the race checker knows the threads of large blocks apart") {
  check_large_block<256>();
  check_large_block<1024>();
}

#endif
