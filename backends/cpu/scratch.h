// Memory for the time of a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/storage.h"

namespace plumb::cpu {

// Uninitialised memory, 64-byte aligned, made and destroyed by the same thread. Each thread has a stack of it, so that
// a block of work finds its scratch in the caches of its core: 2 MiB that memory_stats() does not count and that live
// as long as the thread. What does not fit there comes from the allocator.
class Scratch {
 public:
  explicit Scratch(std::int64_t floats);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  float* data() const { return data_; }

 private:
  std::size_t bytes_;  // of the stack
  float* data_;
  std::optional<Storage> storage_;
};

}  // namespace plumb::cpu
