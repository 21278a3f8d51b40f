// Temporary memory for kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/storage.h"

namespace plumb::cpu {

// Returns the smallest multiple of `to` that is at least n.
constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

// Uninitialized memory, aligned to 64 bytes. The thread that constructs a Scratch must also destroy the Scratch. Each
// thread has a stack of 2 MiB for this memory, so that a block of work finds its scratch in the caches of its core.
// memory_stats() does not count the stack, which lives as long as the thread. If the stack is full, the memory comes
// from the allocator.
class Scratch {
 public:
  explicit Scratch(std::int64_t floats);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  float* data() const { return data_; }

 private:
  std::size_t bytes_;  // number of bytes taken from the stack or the allocator
  float* data_;
  std::optional<Storage> storage_;
};

}  // namespace plumb::cpu
