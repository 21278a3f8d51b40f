#include "backends/cpu/scratch.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace plumb::cpu {
namespace {

class ScratchStack {
 public:
  ScratchStack() = default;
  ~ScratchStack() { std::free(memory_); }
  ScratchStack(const ScratchStack&) = delete;
  ScratchStack& operator=(const ScratchStack&) = delete;

  // Returns nullptr if the stack has too little free memory.
  std::byte* push(std::size_t bytes) {
    if (!buffers_are_reused || bytes > size - top_) return nullptr;
    if (!memory_) {
      memory_ = static_cast<std::byte*>(std::aligned_alloc(size, size));
      if (!memory_) return nullptr;
      madvise(memory_, size, MADV_HUGEPAGE);
    }
    ++pieces_;
    return memory_ + std::exchange(top_, top_ + bytes);
  }
  // Frees a piece. Pieces may be freed in any order. The memory of a piece that is not the last one is reused only
  // after all pieces are freed.
  void pop(const void* piece, std::size_t bytes) {
    const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(piece) - memory_);
    if (at + bytes == top_) top_ = at;
    if (--pieces_ == 0) top_ = 0;
  }

 private:
  static constexpr std::size_t size = std::size_t{2} << 20;  // the size of a huge page
  std::byte* memory_ = nullptr;
  std::size_t top_ = 0, pieces_ = 0;
};

thread_local ScratchStack scratch_stack;

}  // namespace

Scratch::Scratch(std::int64_t floats) : bytes_((static_cast<std::size_t>(floats) * sizeof(float) + 63) / 64 * 64) {
  data_ = reinterpret_cast<float*>(scratch_stack.push(bytes_));
  if (data_) return;
  data_ = static_cast<float*>(storage_.emplace(bytes_).data);
  if constexpr (!buffers_are_reused)
    std::memset(data_, 0xFF, bytes_);  // the bytes form NaN, so that a kernel that reads unwritten memory fails
}
Scratch::~Scratch() {
  if (!storage_) scratch_stack.pop(data_, bytes_);
}

}  // namespace plumb::cpu
