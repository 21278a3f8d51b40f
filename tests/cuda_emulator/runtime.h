// Control of the emulated device, for the emulator and for tests.
#pragma once

#include <functional>

#include <cuda_runtime.h>

namespace emulator {

// When the work of a stream runs: at once (eager), or only when the host waits for it (lazy). A device may run it at
// any time in between, so a program that is correct under both schedules waits wherever it must. The initial schedule
// comes from the environment variable PLUMB_EMULATED_SCHEDULE (eager or lazy); the default is eager.
enum class Schedule { eager, lazy };
Schedule schedule();
void set_schedule(Schedule schedule);  // first finishes the work submitted so far

// Submits work to a stream. The work may access device memory while it runs.
void submit(cudaStream_t stream, std::function<void()> work);

// Ends the process with the message `what`, unless these bytes lie in one allocation of device memory.
void check_device_memory(const void* address, std::size_t bytes, const char* what);

// Returns the bytes that were allocated by cudaMalloc and not freed by cudaFree.
std::size_t allocated();

}  // namespace emulator
