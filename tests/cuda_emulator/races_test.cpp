// Tests of the race checker (preset emulated-races). Some kernels have races that the checker must report. The other
// kernels are correct, and the checker must not report them.
#include <fcntl.h>

#include <cstdlib>
#include <functional>

#include <cuda_runtime.h>

#include "tests/support/catch.h"

#if !defined(__SANITIZE_THREAD__)

TEST_CASE("the race checker reports accesses that no barrier orders") {
  PLUMB_SKIP("this build has no race checker; use the preset emulated-races");
}

#else

extern "C" void __sanitizer_set_report_fd(void* fd);

namespace {
bool expected = false;
int seen = 0;
}  // namespace

// Overrides of functions that ThreadSanitizer calls.
extern "C" const char* __tsan_default_options() {
  return "halt_on_error=0:die_after_fork=0:suppress_equal_addresses=0:exitcode=0";
}
extern "C" __attribute__((no_sanitize("thread"))) void __tsan_on_report(void*) {
  expected ? static_cast<void>(++seen) : std::abort();
}

namespace {

// Runs `kernel` in two blocks of threads. Returns whether the race checker reports a race. `memory` is 2 * threads
// floats that all blocks share. `shared` is 2 * threads floats of each block.
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

TEST_CASE("the race checker reports accesses that no barrier orders") {
  CHECK_FALSE(races([](float* memory, float* shared) {
    shared[threadIdx.x] = 1;
    __syncthreads();
    memory[number()] = shared[63 - threadIdx.x];
  }));
  CHECK(races([](float* memory, float* shared) {
    shared[threadIdx.x] = 1;
    memory[number()] = shared[63 - threadIdx.x];
  }));
  // The barrier is before the write instead of after the write.
  CHECK(races([](float* memory, float* shared) {
    __syncthreads();
    shared[threadIdx.x] = 1;
    memory[number()] = shared[63 - threadIdx.x];
  }));
  // Threads write the memory again before all threads have read the memory.
  CHECK(races([](float* memory, float* shared) {
    for (int i = 0; i < 2; ++i) {
      shared[threadIdx.x] = static_cast<float>(i);
      __syncthreads();
      memory[number()] = shared[63 - threadIdx.x];
    }
  }));
}

TEST_CASE("the race checker reports races within a warp and does not count a shuffle as a barrier") {
  CHECK_FALSE(races([](float* memory, float* shared) {
    shared[threadIdx.x] = 1;
    __syncwarp();
    memory[number()] = shared[threadIdx.x ^ 31u];
  }));
  CHECK(races([](float* memory, float* shared) {
    shared[threadIdx.x] = __shfl_xor_sync(~0u, 1.0f, 1);
    memory[number()] = shared[threadIdx.x ^ 31u];
  }));
  // A barrier of a warp orders nothing between warps.
  CHECK(races([](float* memory, float* shared) {
    shared[threadIdx.x] = 1;
    __syncwarp();
    memory[number()] = shared[63 - threadIdx.x];
  }));
}

TEST_CASE("the race checker reports blocks that write to the same address and separates their shared memories") {
  CHECK(races([](float* memory, float*) { memory[threadIdx.x] = 1; }));
  // Barriers within a block do not order the accesses of two blocks.
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

// This function is a template, so that each size has code of its own. ThreadSanitizer reports only the first of several
// races at the same place in the code.
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

TEST_CASE("the race checker distinguishes the threads of large blocks") {
  check_large_block<256>();
  check_large_block<1024>();
}

#endif
