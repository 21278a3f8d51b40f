// Functions that control the emulated device, for the emulator and for tests.
#pragma once

#include <functional>

#include <cuda_runtime.h>

namespace emulator {

// The time at which the work of a stream runs: at once (eager), or only when the host waits for the work (lazy). A
// device may run the work at any time in between. Therefore a program that is correct under both schedules waits
// wherever a wait is necessary. The initial schedule comes from the environment variable PLUMB_EMULATED_SCHEDULE (eager
// or lazy). The default is eager.
enum class Schedule { eager, lazy };
Schedule schedule();
void set_schedule(Schedule schedule);  // finishes the work submitted so far before the schedule changes

// Submits work to a stream. The work may access device memory while it runs.
void submit(cudaStream_t stream, std::function<void()> work);

// Unless these bytes lie in one allocation of device memory, ends the process with the message `what`.
void check_device_memory(const void* address, std::size_t bytes, const char* what);

// Returns the number of bytes that cudaMalloc has allocated and cudaFree has not freed.
std::size_t allocated();

}  // namespace emulator
