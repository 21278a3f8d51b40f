// Fibres, warps and barriers.
#include "tests/cuda_emulator/lanes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include <cuda_runtime.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulator {
namespace {

enum class Waits { for_nothing, for_warp, for_block, done };

#if defined(__x86_64__)
// What a call preserves lies on the fibre's stack; a switch exchanges stacks. (swapcontext asks the system each time for the signal mask.)
struct Context {
  void* stack = nullptr;
};
extern "C" void plumb_emulator_switch(void** from, void* to);
asm(R"(
.globl plumb_emulator_switch
.type plumb_emulator_switch, @function
plumb_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size plumb_emulator_switch, . - plumb_emulator_switch
)");
void switch_to(Context& from, Context& to) { plumb_emulator_switch(&from.stack, to.stack); }
void begin(Context& c, char* top, void (*body)()) {
  void** const stack = reinterpret_cast<void**>(top) - 2;  // as after a call: 16 bytes less 8
  *stack = reinterpret_cast<void*>(body);
  c.stack = stack - 6;
}
#else
struct Context {
  ucontext_t context;
};
void switch_to(Context& from, Context& to) { swapcontext(&from.context, &to.context); }
void begin(Context& c, char* top, void (*body)()) {
  constexpr std::size_t bytes = std::size_t{60} << 10;
  getcontext(&c.context);
  c.context.uc_stack.ss_sp = top - bytes;
  c.context.uc_stack.ss_size = bytes;
  makecontext(&c.context, body, 0);
}
#endif

struct Lane {
  Context context;
  Waits waits = Waits::done;
  std::uint64_t hands_over = 0;
};

constexpr std::size_t stack_bytes = std::size_t{64} << 10;
constexpr unsigned most_threads = 1024;

struct Grid {
  std::vector<Lane> lanes;
  Context scheduler;
  int current = 0;
  const std::function<void()>* kernel = nullptr;
  std::byte* shared = nullptr;
  std::mt19937 random{1};
};
Grid& grid_state() {
  static Grid& g = *new Grid;
  return g;
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "CUDA emulator: %s, in block (%u, %u, %u), thread (%u, %u, %u)\n", what, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x,
               threadIdx.y, threadIdx.z);
  std::abort();
}

void wait(Waits what) {
  Grid& g = grid_state();
  Lane& lane = g.lanes[static_cast<std::size_t>(g.current)];
  lane.waits = what;
  switch_to(lane.context, g.scheduler);
}

void resume(int i) {
  Grid& g = grid_state();
  g.current = i;
  const auto n = static_cast<unsigned>(i);
  threadIdx = {n % blockDim.x, n / blockDim.x % blockDim.y, n / (blockDim.x * blockDim.y)};
  switch_to(g.scheduler, g.lanes[n].context);
}

// A fibre serves one thread after another.
void body() {
  for (;;) {
    (*grid_state().kernel)();
    wait(Waits::done);
  }
}

void prepare_fibres() {
  Grid& g = grid_state();
  if (!g.lanes.empty()) return;
  g.lanes.resize(most_threads);
  void* const stacks = mmap(nullptr, most_threads * stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == MAP_FAILED) fail("no memory for the stacks of a block's threads");
  for (unsigned i = 0; i < most_threads; ++i) begin(g.lanes[i].context, static_cast<char*>(stacks) + (i + 1) * stack_bytes, body);
}

// Shared memory of a block, its end at the edge of a page that is out of bounds.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t rounded = (bytes + 15) / 16 * 16, inside = (rounded + page - 1) / page * page;
    all_ = inside + page;
    pages_ = static_cast<std::byte*>(mmap(nullptr, all_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (pages_ == MAP_FAILED) fail("no shared memory");
    if (inside > 0) mprotect(pages_, inside, PROT_READ | PROT_WRITE);
    data_ = pages_ + (inside - rounded);
  }
  ~SharedMemory() { munmap(pages_, all_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }
  void poison() const { std::memset(data_, 0xff, bytes_); }

 private:
  std::size_t bytes_, all_;
  std::byte *pages_, *data_;
};

// Lets the lanes of a warp run until none can. Returns whether any did.
bool run_warp(int first, std::vector<int>& order) {
  Grid& g = grid_state();
  bool ran = false;
  for (;;) {
    std::shuffle(order.begin(), order.end(), g.random);
    for (const int i : order)
      if (g.lanes[static_cast<std::size_t>(first + i)].waits == Waits::for_nothing) resume(first + i), ran = true;
    int meet = 0, gone = 0;
    for (int i = 0; i < 32; ++i) {
      meet += g.lanes[static_cast<std::size_t>(first + i)].waits == Waits::for_warp;
      gone += g.lanes[static_cast<std::size_t>(first + i)].waits != Waits::for_warp;
    }
    if (meet == 0) return ran;
    if (gone > 0) fail("a shuffle or __syncwarp that not all lanes of the warp reach");
    for (int i = 0; i < 32; ++i) g.lanes[static_cast<std::size_t>(first + i)].waits = Waits::for_nothing;
  }
}

void run_block(int threads, std::vector<int>& warps, std::vector<int>& order) {
  Grid& g = grid_state();
  for (int i = 0; i < threads; ++i) g.lanes[static_cast<std::size_t>(i)].waits = Waits::for_nothing;
  for (;;) {
    std::shuffle(warps.begin(), warps.end(), g.random);
    for (const int w : warps) run_warp(32 * w, order);
    int meet = 0, done = 0;
    for (int i = 0; i < threads; ++i) {
      meet += g.lanes[static_cast<std::size_t>(i)].waits == Waits::for_block;
      done += g.lanes[static_cast<std::size_t>(i)].waits == Waits::done;
    }
    if (done == threads) return;
    if (meet < threads) fail("a __syncthreads that not all threads of the block reach");
    for (int i = 0; i < threads; ++i) g.lanes[static_cast<std::size_t>(i)].waits = Waits::for_nothing;
  }
}

}  // namespace

void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel) {
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > most_threads || threads % 32 != 0 || block.z > 64) fail("a block that is not 1 to 32 whole warps");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
    fail("a grid beyond the device's limits");
  if (shared_bytes > 232448) fail("more shared memory than a block of the device can have");
  prepare_fibres();
  Grid& g = grid_state();
  gridDim = grid, blockDim = block;
  g.kernel = &kernel;
  const SharedMemory shared(shared_bytes);
  g.shared = shared.data();
  std::vector<int> warps(threads / 32), order(32);
  for (std::size_t i = 0; i < warps.size(); ++i) warps[i] = static_cast<int>(i);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        shared.poison();
        run_block(static_cast<int>(threads), warps, order);
      }
}

void block_barrier() { wait(Waits::for_block); }

void warp_barrier(unsigned mask) {
  if (mask != ~0u) fail("a mask that is not that of all lanes");
  wait(Waits::for_warp);
}

std::uint64_t exchange(unsigned mask, std::uint64_t mine, int lane) {
  if (mask != ~0u) fail("a mask that is not that of all lanes");
  Grid& g = grid_state();
  const auto warp = static_cast<std::size_t>(g.current / 32 * 32);
  g.lanes[static_cast<std::size_t>(g.current)].hands_over = mine;
  wait(Waits::for_warp);
  const std::uint64_t got = g.lanes[warp + static_cast<std::size_t>(lane)].hands_over;
  wait(Waits::for_warp);  // nobody hands over the next before all have this
  return got;
}

std::byte* shared_memory() { return grid_state().shared; }

}  // namespace emulator
