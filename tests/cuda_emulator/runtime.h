// Of the emulated device, for what runs on it and for tests.
#pragma once

#include <functional>

#include <cuda_runtime.h>

namespace emulator {

// When work that a stream got runs: at once, or only when somebody waits for it. On a device it is any time in between,
// so a program that is right under both waits where it must. Taken from the environment variable
// PLUMB_EMULATED_SCHEDULE (eager or lazy) at first: eager.
enum class Schedule { eager, lazy };
Schedule schedule();
void set_schedule(Schedule schedule);  // finishes what was begun under the other

// Work for a stream, which may touch device memory while it runs.
void submit(cudaStream_t stream, std::function<void()> work);

// Ends the process with a line that has `what`, unless these bytes lie in one allocation of device memory.
void check_device_memory(const void* address, std::size_t bytes, const char* what);

// Bytes that cudaMalloc gave and cudaFree has not taken.
std::size_t allocated();

}  // namespace emulator
