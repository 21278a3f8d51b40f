// Runs a grid of threads on the CPU. Each thread of a block is a fibre.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

struct dim3;

namespace emulator {

// Runs the kernel for every thread of every block, one block after another. Within a block, a randomly chosen warp runs
// as far as possible while the other warps wait. Within a warp, a randomly chosen lane runs in the same way. A device
// may choose this order, and this order makes missing barriers visible. If threads that must meet cannot meet (some
// have passed a barrier, or a shuffle is in a branch), ends the process with a line that names the block and the
// thread. Lanes that wait at two different shuffles count as having met, so this error is not detected.
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel);

// The operations that kernels call for the current thread. exchange() returns the value that lane `lane` of the same
// warp passes in the same call. shared_memory() returns the shared memory of the current block. At the start, this
// memory is filled with NaN. An inaccessible page follows this memory.
void block_barrier();
void warp_barrier(unsigned mask);
std::uint64_t exchange(unsigned mask, std::uint64_t mine, int lane);
std::byte* shared_memory();

}  // namespace emulator
