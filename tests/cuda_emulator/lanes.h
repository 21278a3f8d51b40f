// A grid of threads on the CPU: each thread of a block is a fibre.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

struct dim3;

namespace emulator {

// Runs the kernel for every thread of every block, one block after the other. Within a block a warp, drawn at random,
// runs as far as it can while the others starve, and so do its lanes: an order that a device may take, and the one in
// which a missing barrier shows. Ends the process with a line that names block and thread where threads that must meet
// cannot: a barrier that some have passed by, a shuffle in a branch. (Lanes that wait at two different shuffles are
// taken to have met.)
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel);

// For device code: of the thread that runs.
void block_barrier();
void warp_barrier(unsigned mask);
std::uint64_t exchange(unsigned mask, std::uint64_t mine,
                       int lane);  // what `lane` of this warp hands over in the same call
std::byte* shared_memory();        // of this block, NaN at first, with a page behind it that nobody may touch

}  // namespace emulator
