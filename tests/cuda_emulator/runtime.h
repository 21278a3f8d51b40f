// Functions that control the emulated device, for the emulator and for tests.
#pragma once

#include <cuda_runtime.h>

namespace emulator {

// The time at which the work of a stream runs: at once (eager), or only when the host waits for the work (lazy). A
// device may run the work at any time in between. Therefore a program that is correct under both schedules waits
// wherever a wait is necessary. The initial schedule comes from the environment variable PLUMB_EMULATED_SCHEDULE (eager
// or lazy). The default is eager.
enum class Schedule { eager, lazy };
Schedule schedule();
void set_schedule(Schedule schedule);  // finishes the work submitted so far before the schedule changes

// Unless these bytes lie in one allocation of device memory, ends the process with the message `what`.
void check_device_memory(const void* address, std::size_t bytes, const char* what);

// The machine that the emulator imitates. The initial values come from environment variables, so that a test can run a
// program on another machine; a test in this process sets the fields.
struct Machine {
  int devices = 1;             // PLUMB_EMULATED_DEVICES; "driver": no driver
  bool driver = true;          // whether there is a driver
  int driver_version = 13000;  // PLUMB_EMULATED_DRIVER: the newest CUDA that the driver supports, as 13000 for 13.0
  int major = 9, minor = 0;    // PLUMB_EMULATED_CAPABILITY, as 7.5
  std::size_t memory = 80ull << 30;  // PLUMB_EMULATED_MEMORY: bytes that cudaMalloc can give in total
  // PLUMB_EMULATED_FAULT: from this call of the runtime on, counted from 1, each call fails with
  // cudaErrorIllegalAddress, as after a fault in a kernel. 0: no fault.
  long fault = 0;
  // PLUMB_EMULATED_CUBLASLT=strict: cuBLASLt refuses products with one row or column, with K = 1, and with operands
  // that are not aligned to 16 bytes.
  bool strict_cublaslt = false;
  bool late_cublaslt = false;  // cuBLASLt chooses an algorithm for each product, but refuses to compute it
  int cublaslt_failure = 0;    // the status of each choice of an algorithm, unless 0
  int cublaslt_state = 0;      // the state of each chosen algorithm, unless 0
  // PLUMB_EMULATED_KERNELS=none: kernels, products and copies do nothing, so that only the time of the host remains.
  // The host reads positive numbers.
  bool runs_kernels = true;
};
Machine& machine();

// The dynamic shared memory of a block: with and without cudaFuncSetAttribute.
constexpr std::size_t most_shared = 232448, most_shared_without_attribute = std::size_t{48} << 10;

// The number of calls of the runtime so far.
long calls();

// Counts a call of the runtime, and returns the status with which the call must fail, or cudaSuccess.
cudaError_t enter();

// Returns the number of bytes that cudaMalloc has allocated and cudaFree has not freed.
std::size_t allocated();

}  // namespace emulator
