// Tests of errors that may go unnoticed on a real device. On the emulated device, each of these errors fails every
// time.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <vector>

#include "tests/cuda_emulator/runtime.h"
#include "tests/support/catch.h"

namespace {

// Calls f in a new process. Returns the signal that ends the process, or 0 if the process ends normally.
template <class F>
int signal_of(F&& f) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    for (const int s : {SIGSEGV, SIGBUS, SIGABRT}) std::signal(s, SIG_DFL);  // removes the handlers of other code
    std::freopen("/dev/null", "w", stderr);
    f();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

struct EmulatedDevice {
  cudaStream_t stream = nullptr, other = nullptr;
  cudaEvent_t event = nullptr;
  float *a = nullptr, *pinned = nullptr;
  const emulator::Schedule before = emulator::schedule();

  explicit EmulatedDevice(emulator::Schedule schedule) {
    emulator::set_schedule(schedule);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    void* p = nullptr;
    cudaMalloc(&p, 4 * sizeof(float));
    a = static_cast<float*>(p);
    cudaHostAlloc(&p, 4 * sizeof(float), cudaHostAllocDefault);
    pinned = static_cast<float*>(p);
    for (int i = 0; i < 4; ++i) pinned[i] = 1;
  }
  ~EmulatedDevice() {
    cudaFree(a);
    cudaFreeHost(pinned);
    cudaEventDestroy(event);
    cudaStreamDestroy(other);
    cudaStreamDestroy(stream);
    emulator::set_schedule(before);
  }
  float first() {
    float value = 0;
    cudaMemcpyAsync(&value, a, sizeof value, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    return value;
  }
};

using emulator::Schedule;

}  // namespace

TEST_CASE("the eager schedule runs work at submission and the lazy one when the host waits") {
  for (const Schedule schedule : {Schedule::eager, Schedule::lazy}) {
    EmulatedDevice d(schedule);
    int ran = 0;
    emulator::submit(d.stream, [&] { ++ran; });
    CHECK(ran == (schedule == Schedule::eager));
    emulator::submit(d.other, [&] { ran += 10; });
    cudaStreamSynchronize(d.stream);
    CHECK(ran == (schedule == Schedule::eager ? 11 : 1));
    cudaDeviceSynchronize();
    CHECK(ran == 11);
  }
}

TEST_CASE("refilling pinned memory before its copy is done corrupts the copy") {
  for (const Schedule schedule : {Schedule::eager, Schedule::lazy}) {
    EmulatedDevice d(schedule);
    cudaMemcpyAsync(d.a, d.pinned, 4 * sizeof(float), cudaMemcpyHostToDevice, d.stream);
    d.pinned[0] = 2;
    CHECK(d.first() == (schedule == Schedule::eager ? 1 : 2));
  }
}

TEST_CASE("a stream that waits for an event runs after it and a stream that does not wait runs too early") {
  EmulatedDevice d(Schedule::lazy);
  int ran = 0, seen = -1;
  emulator::submit(d.stream, [&] { ran = 1; });
  cudaEventRecord(d.event, d.stream);
  emulator::submit(d.stream, [&] { ran = 2; });
  SECTION("with a wait for the event") {
    cudaStreamWaitEvent(d.other, d.event);
    emulator::submit(d.other, [&] { seen = ran; });
    cudaStreamSynchronize(d.other);
    CHECK(seen == 1);
  }
  SECTION("without a wait for the event") {
    emulator::submit(d.other, [&] { seen = ran; });
    cudaStreamSynchronize(d.other);
    CHECK(seen == 0);
  }
  SECTION("the host waits only for the event") {
    cudaEventSynchronize(d.event);
    CHECK(ran == 1);
  }
  cudaDeviceSynchronize();
}

TEST_CASE("reading device memory from the host or accessing bytes after its end stops the process") {
  EmulatedDevice d(Schedule::eager);
  cudaMemcpyAsync(d.a, d.pinned, 4 * sizeof(float), cudaMemcpyHostToDevice, d.stream);
  CHECK(signal_of([&] { std::printf("%f", static_cast<double>(*static_cast<volatile float*>(d.a))); }) != 0);
  CHECK(signal_of([&] { cudaMemcpyAsync(d.pinned, d.a, 5 * sizeof(float), cudaMemcpyDeviceToHost, d.stream); }) ==
        SIGABRT);
  CHECK(signal_of([&] { cudaMemcpyAsync(d.pinned, d.a, 4 * sizeof(float), cudaMemcpyHostToDevice, d.stream); }) ==
        SIGABRT);
  CHECK(signal_of([&] { emulator::submit(d.stream, [&] { static_cast<volatile float*>(d.a)[64] = 1; }); }) !=
        0);  // the allocation is rounded up to 256 bytes
  CHECK(signal_of([&] { emulator::submit(d.stream, [&] { static_cast<volatile float*>(d.a)[3] = 1; }); }) == 0);
  CHECK(d.first() == 1);
}

TEST_CASE("a barrier or shuffle that some threads do not reach stops the process") {
  const auto run = [](unsigned threads, std::size_t shared, const std::function<void()>& kernel) {
    emulator::run_grid(dim3{2, 1, 1}, dim3{threads, 1, 1}, shared, kernel);
  };
  // Sums the numbers of the threads of each block, with or without the barrier.
  const auto sum = [&](bool barrier) {
    int total = 0;
    run(64, 64 * sizeof(int), [&] {
      int* const values = reinterpret_cast<int*>(emulator::shared_memory());
      values[threadIdx.x] = static_cast<int>(threadIdx.x);
      if (barrier) __syncthreads();
      if (threadIdx.x == 0)
        for (int i = 0; i < 64; ++i) total += values[i];
    });
    return total;
  };
  CHECK(sum(true) == 2 * 63 * 32);
  CHECK(sum(false) != 2 * 63 * 32);
  int sums[2] = {};
  run(32, 0, [&] {
    int x = static_cast<int>(threadIdx.x);
    for (int m = 16; m > 0; m /= 2) x += __shfl_xor_sync(~0u, x, m);
    sums[blockIdx.x] += x;
  });
  CHECK(sums[0] == 32 * 496);
  CHECK(sums[1] == 32 * 496);
  CHECK(signal_of([&] {
          run(64, 0, [] {
            if (threadIdx.x < 63) __syncthreads();
          });
        }) == SIGABRT);
  CHECK(signal_of([&] {
          run(32, 0, [] {
            if (threadIdx.x != 5) __shfl_xor_sync(~0u, 1, 1);
          });
        }) == SIGABRT);
  CHECK(signal_of([&] {
          run(32, 64, [] { reinterpret_cast<volatile int*>(emulator::shared_memory())[threadIdx.x] = 1; });
        }) != 0);
  CHECK(signal_of([&] { run(48, 0, [] {}); }) == SIGABRT);  // 48 threads are one and a half warps
}

TEST_CASE("freed memory is released and freeing its address again is an error") {
  EmulatedDevice d(Schedule::eager);
  void* p = nullptr;
  const std::size_t before = emulator::allocated();
  CHECK(cudaMalloc(&p, 100) == cudaSuccess);
  CHECK(emulator::allocated() == before + 100);
  CHECK(cudaFree(p) == cudaSuccess);
  CHECK(emulator::allocated() == before);
  CHECK(cudaFree(p) == cudaErrorInvalidValue);
}
