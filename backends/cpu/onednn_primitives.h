// Wrappers of oneDNN's objects for onednn_products.cpp, onednn_bf16.cpp and onednn_convolution.cpp.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <unordered_map>

#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"
#include "backends/cpu/signals.h"

namespace plumb::cpu::onednn {

using Dims = dnnl::memory::dims;

// Every call of oneDNN needs an OneDnnCall. While an OneDnnCall lives, oneDNN computes only on the calling thread.
// Signals for this thread are delayed, because oneDNN's kernels may have moved the stack pointer (signals.h). Only
// stream() gives access to the stream that primitives run on.
class OneDnnCall {
 public:
  dnnl::stream& stream() const;  // returns the stream of the calling thread

 private:
  OneThread one_thread_;
  SignalsWait signals_wait_;
};

// Returns the oneDNN engine. The engine is never destroyed, because threads keep primitives until the threads end.
dnnl::engine& engine();

// The scratch memory of a primitive. The memory comes from Plumb's allocator, because oneDNN allocates large scratch
// memory anew for each call.
class Room {
 public:
  Room() = default;
  explicit Room(const dnnl::memory::desc& wanted)
      : memory_(wanted, engine(), nullptr), floats_(static_cast<std::int64_t>(wanted.get_size() / sizeof(float) + 1)) {}
  std::int64_t floats() const { return floats_; }  // size of the memory that lies_at() takes, in floats
  void lies_at(float* p) {
    if (memory_) memory_.set_data_handle(p);
  }
  const dnnl::memory& memory() const { return memory_; }

 private:
  dnnl::memory memory_;
  std::int64_t floats_ = 0;
};

// Returns the descriptor of a product c = a b + bias, for oneDNN 2 and 3. The user of the descriptor provides the
// scratch memory.
inline dnnl::matmul::primitive_desc matmul_descriptor(const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                                                      const std::optional<dnnl::memory::desc>& bias,
                                                      const dnnl::memory::desc& c) {
  dnnl::primitive_attr room;
  room.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR >= 3
  return bias ? dnnl::matmul::primitive_desc(engine(), a, b, *bias, c, room)
              : dnnl::matmul::primitive_desc(engine(), a, b, c, room);
#else
  return {bias ? dnnl::matmul::desc(a, b, *bias, c) : dnnl::matmul::desc(a, b, c), room, engine()};
#endif
}

// A matmul with its arguments. Each call of run() sets the data pointers of the arguments. Each thread has its own
// Matmul objects.
class Matmul {
 public:
  Matmul(const dnnl::memory::desc& a, const dnnl::memory::desc& b, const std::optional<dnnl::memory::desc>& bias,
         const dnnl::memory::desc& c)
      : a_(a, engine(), nullptr), b_(b, engine(), nullptr), c_(c, engine(), nullptr) {
    const dnnl::matmul::primitive_desc pd = matmul_descriptor(a, b, bias, c);
    primitive_ = dnnl::matmul(pd);
    room_ = Room(pd.scratchpad_desc());
    arguments_ = {
        {DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}, {DNNL_ARG_SCRATCHPAD, room_.memory()}};
    if (bias) bias_ = arguments_[DNNL_ARG_BIAS] = dnnl::memory(*bias, engine(), nullptr);
  }

  // Computes c = a b + bias on the calling thread. bias must be null if the matmul has none.
  void run(const OneDnnCall& call, const void* a, const void* b, const float* bias, void* c) {
    a_.set_data_handle(const_cast<void*>(a));
    b_.set_data_handle(const_cast<void*>(b));
    if (bias) bias_.set_data_handle(const_cast<float*>(bias));
    c_.set_data_handle(c);
    const Scratch room(room_.floats());
    room_.lies_at(room.data());
    primitive_.execute(call.stream(), arguments_);
  }

 private:
  dnnl::matmul primitive_;
  dnnl::memory a_, b_, c_, bias_;
  Room room_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// Returns a hash of the numbers that define a primitive.
inline std::size_t hash_of(std::initializer_list<std::int64_t> numbers) {
  std::uint64_t h = 0;
  for (std::int64_t n : numbers) h = (h ^ static_cast<std::uint64_t>(n)) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
  return static_cast<std::size_t>(h);
}

// Returns the calling thread's object Made(key). The object is constructed at the first call with this key. Key must
// have hash() and ==.
template <class Made, class Key>
Made& made(const Key& key) {
  struct Hash {
    std::size_t operator()(const Key& k) const { return k.hash(); }
  };
  // No model has this many shapes. In a program that always creates new shapes, the limit clears the map now and then.
  constexpr std::size_t limit = 512;
  thread_local std::unordered_map<Key, Made, Hash> all;
  auto found = all.find(key);
  if (found == all.end()) {
    if (all.size() >= limit) all.clear();
    found = all.emplace(key, Made(key)).first;
  }
  return found->second;
}

// Splits y [m, n] into about `blocks` blocks across the longer side of y. For each block, calls f(rows, columns, first
// row, first column, address of the block's first element), in parallel. Unless there is one block, the extent of a
// block along the longer side is a multiple of 48, because oneDNN computes 24 (AVX2) or 48 (AVX-512) columns at once
// and sums the remaining columns in another order. Each block packs the other operand again. If the inner extent k is
// 0, y is set to 0.
template <class F>
void across_longer_side(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t blocks, float* y, F&& f) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    std::fill_n(y, m * n, 0.0f);
    return;
  }
  const bool by_rows = m >= n;
  const std::int64_t longer = std::max(m, n);
  const std::int64_t grain = blocks == 1 ? longer : ((longer + blocks - 1) / blocks + 47) / 48 * 48;
  parallel_for(longer, grain, [&](std::int64_t begin, std::int64_t end) {
    by_rows ? f(end - begin, n, begin, std::int64_t{0}, y + begin * n)
            : f(m, end - begin, std::int64_t{0}, begin, y + begin);
  });
}

}  // namespace plumb::cpu::onednn
