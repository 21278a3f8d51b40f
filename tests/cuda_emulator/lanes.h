// Runs a grid of threads on the CPU: each thread of a block is a fibre.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

struct dim3;

namespace emulator {

// Runs the kernel for every thread of every block, one block after another. Within a block, a randomly chosen warp runs
// as far as it can while the others wait, and likewise for the lanes of a warp. A device may choose this order, and
// missing barriers show in it. If threads that must meet cannot (some have passed a barrier, or a shuffle is in a
// branch), ends the process with a line that names the block and the thread. Lanes that wait at two different shuffles
// count as having met; this error is not detected.
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel);

// The operations that kernels call for the current thread. exchange() returns the value that lane `lane` of the same
// warp passes in the same call. shared_memory() is that of the current block: filled with NaN at the start, and
// followed by an inaccessible page.
void block_barrier();
void warp_barrier(unsigned mask);
std::uint64_t exchange(unsigned mask, std::uint64_t mine, int lane);
std::byte* shared_memory();

}  // namespace emulator
