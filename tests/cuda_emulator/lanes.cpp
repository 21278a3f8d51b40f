// Emulates the threads of a grid: fibres, warps and barriers.
//
// With PLUMB_CUDA_RACES (preset emulated-races), ThreadSanitizer checks the kernels and no other code. ThreadSanitizer
// treats every fibre as a thread. Only these events order the accesses of two fibres:
// - A whole grid comes after all work that was submitted before the grid, and before all work that is submitted after
//   the grid.
// - __syncthreads and __syncwarp order the accesses on their two sides. Shuffles order no accesses.
// Blocks are not ordered among each other, unless one block reuses the fibres of another block. Neighbouring blocks
// never reuse each other's fibres. ThreadSanitizer remembers only the last few accesses to a byte. Therefore
// ThreadSanitizer finds most races, but not all.
#include "tests/cuda_emulator/lanes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <random>
#include <vector>

#include <cuda_runtime.h>

#include "tests/cuda_emulator/runtime.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(PLUMB_CUDA_RACES)
#include <sanitizer/tsan_interface.h>
// The first race ends the process. die_after_fork=0 is needed, because tests of how a process ends call fork() after
// fibres were created.
extern "C" __attribute__((weak)) const char* __tsan_default_options() { return "halt_on_error=1:die_after_fork=0"; }
// These suppressions hide reports about the threads of the CPU kernels. The synchronization of these threads is not
// compiled with ThreadSanitizer.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libdnnl.so\nrace:libdnnl.so\nrace:plumb::cpu::\n";
}
#endif

namespace emulator {
namespace {

enum class Waits { for_nothing, for_warp, for_block, done };

#if defined(__x86_64__)
// The registers that a call preserves are stored on the stack of the fibre. A switch exchanges the stack pointers.
// (swapcontext would be slow, because each swapcontext makes a system call for the signal mask.)
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
  void** const stack = reinterpret_cast<void**>(top) - 2;  // the alignment after a call is 16 bytes less 8
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

#if defined(PLUMB_CUDA_RACES)
// The accesses before release() come before the accesses after a later acquire().
struct Edge {
  char address = 0;
  void release() { __tsan_release(&address); }
  void acquire() { __tsan_acquire(&address); }
};
using Watched = void*;  // ThreadSanitizer's handle of a fibre
Watched watched() { return __tsan_get_current_fiber(); }
Watched new_watched() { return __tsan_create_fiber(0); }
void now_runs(Watched fibre) { __tsan_switch_to_fiber(fibre, __tsan_switch_to_fiber_no_sync); }
constexpr std::size_t sets = 3;  // number of sets of fibres; a block never uses the set of the block before it
#else
struct Edge {
  void release() {}
  void acquire() {}
};
struct Watched {};
Watched watched() { return {}; }
Watched new_watched() { return {}; }
void now_runs(Watched) {}
constexpr std::size_t sets = 1;
#endif

struct Lane {
  Context context;
  Watched watched;
  Waits waits = Waits::done;
  std::uint64_t hands_over = 0;
  unsigned barriers = 0, warp_barriers = 0;  // numbers of barriers that the lane has reached so far
};

constexpr std::size_t stack_bytes = std::size_t{64} << 10;
constexpr unsigned most_threads = 1024;

// The barriers of a block. Every second barrier uses the same edge. Two edges are enough, because no thread can be two
// barriers ahead of another thread.
struct Edges {
  Edge barriers[2], warp_barriers[most_threads / 32][2];
};

struct Grid {
  std::vector<Lane> all[sets] = {};
  std::size_t set = 0;
  Lane* lanes = nullptr;  // the lanes of the current block
  Edges* edges = nullptr;
  Context scheduler;
  Watched host;
  int current = 0;
  const std::function<void()>* kernel = nullptr;
  std::byte* shared = nullptr;
  std::mt19937 random{1};
  Edge begin, end;
};
Grid& grid_state() {
  static Grid& g = *new Grid;
  return g;
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "CUDA emulator: %s, in block (%u, %u, %u), thread (%u, %u, %u)\n", what, blockIdx.x, blockIdx.y,
               blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
  std::abort();
}

void wait(Waits what) {
  Grid& g = grid_state();
  Lane& lane = g.lanes[g.current];
  lane.waits = what;
  now_runs(g.host);
  switch_to(lane.context, g.scheduler);
}

void resume(int i) {
  Grid& g = grid_state();
  g.current = i;
  const auto n = static_cast<unsigned>(i);
  threadIdx = {n % blockDim.x, n / blockDim.x % blockDim.y, n / (blockDim.x * blockDim.y)};
  now_runs(g.lanes[n].watched);
  switch_to(g.scheduler, g.lanes[n].context);
}

// The body of a fibre. A fibre runs one thread after another.
void body() {
  Grid& g = grid_state();
  for (;;) {
    g.begin.acquire();
    (*g.kernel)();
    g.end.release();
    wait(Waits::done);
  }
}

void prepare_fibres(std::uint64_t threads) {
  for (std::vector<Lane>& lanes : grid_state().all) {
    if (lanes.empty()) lanes.reserve(most_threads);
    if (lanes.size() >= threads) continue;
    const std::uint64_t more = threads - lanes.size();
    void* const stacks =
        mmap(nullptr, more * stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) fail("cannot allocate the stacks of a block's threads");
    for (std::uint64_t i = 0; i < more; ++i) {
      Lane& lane = lanes.emplace_back();
      begin(lane.context, static_cast<char*>(stacks) + (i + 1) * stack_bytes, body);
      lane.watched = new_watched();
    }
  }
}

// The shared memory of a block. The shared memory ends at the start of an inaccessible page.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t rounded = (bytes + 15) / 16 * 16, inside = (rounded + page - 1) / page * page;
    all_ = inside + page;
    pages_ = static_cast<std::byte*>(mmap(nullptr, all_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (pages_ == MAP_FAILED) fail("cannot allocate shared memory");
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

// Runs the lanes of a warp until none can continue. Returns whether any lane ran.
bool run_warp(int first, std::vector<int>& order) {
  Grid& g = grid_state();
  bool ran = false;
  for (;;) {
    std::shuffle(order.begin(), order.end(), g.random);
    for (const int i : order)
      if (g.lanes[first + i].waits == Waits::for_nothing) resume(first + i), ran = true;
    int meet = 0, gone = 0;
    for (int i = 0; i < 32; ++i) {
      meet += g.lanes[first + i].waits == Waits::for_warp;
      gone += g.lanes[first + i].waits != Waits::for_warp;
    }
    if (meet == 0) return ran;
    if (gone > 0) fail("not all lanes of the warp reach a shuffle or __syncwarp");
    for (int i = 0; i < 32; ++i) g.lanes[first + i].waits = Waits::for_nothing;
  }
}

void run_block(int threads, std::vector<int>& warps, std::vector<int>& order) {
  Grid& g = grid_state();
  if constexpr (sets > 1) g.set = (g.set + 1 + g.random() % (sets - 1)) % sets;
  g.lanes = g.all[g.set].data();
  for (int i = 0; i < threads; ++i)
    g.lanes[i].waits = Waits::for_nothing, g.lanes[i].barriers = g.lanes[i].warp_barriers = 0;
  g.begin.release();
  for (;;) {
    std::shuffle(warps.begin(), warps.end(), g.random);
    for (const int w : warps) run_warp(32 * w, order);
    int meet = 0, done = 0;
    for (int i = 0; i < threads; ++i) {
      meet += g.lanes[i].waits == Waits::for_block;
      done += g.lanes[i].waits == Waits::done;
    }
    if (done == threads) return;
    if (meet < threads) fail("not all threads of the block reach a __syncthreads");
    for (int i = 0; i < threads; ++i) g.lanes[i].waits = Waits::for_nothing;
  }
}

}  // namespace

void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel) {
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > most_threads || threads % 32 != 0 || block.z > 64)
    fail("expected a block of 1 to 32 whole warps");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
    fail("the grid exceeds the limits of the device");
  if (shared_bytes > most_shared) fail("the shared memory exceeds the device's limit for a block");
  prepare_fibres(threads);
  Grid& g = grid_state();
  gridDim = grid, blockDim = block;
  g.kernel = &kernel;
  g.host = watched();
  // All blocks share one Block. Under the race checker, each block has a separate Block, so that accesses of different
  // blocks are not taken for accesses to the same memory.
  struct Block {
    explicit Block(std::size_t shared_bytes) : shared(shared_bytes) {}
    SharedMemory shared;
    Edges edges;
  };
  std::list<Block> blocks;
  std::vector<int> warps(threads / 32), order(32);
  for (std::size_t i = 0; i < warps.size(); ++i) warps[i] = static_cast<int>(i);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        if (blocks.empty() || sets > 1) blocks.emplace_back(shared_bytes);
        blocks.back().shared.poison();
        g.shared = blocks.back().shared.data();
        g.edges = &blocks.back().edges;
        run_block(static_cast<int>(threads), warps, order);
      }
  g.end.acquire();
}

void block_barrier() {
  Grid& g = grid_state();
  Edge& edge = g.edges->barriers[g.lanes[g.current].barriers++ % 2];
  edge.release();
  wait(Waits::for_block);
  edge.acquire();
}

void warp_barrier(unsigned mask) {
  if (mask != ~0u) fail("expected a mask of all lanes");
  Grid& g = grid_state();
  Edge& edge = g.edges->warp_barriers[g.current / 32][g.lanes[g.current].warp_barriers++ % 2];
  edge.release();
  wait(Waits::for_warp);
  edge.acquire();
}

std::uint64_t exchange(unsigned mask, std::uint64_t mine, int lane) {
  if (mask != ~0u) fail("expected a mask of all lanes");
  Grid& g = grid_state();
  Lane* const warp = g.lanes + g.current / 32 * 32;
  g.lanes[g.current].hands_over = mine;
  wait(Waits::for_warp);
  const std::uint64_t got = warp[lane].hands_over;
  wait(Waits::for_warp);  // no lane may overwrite its value before all lanes have read the value
  return got;
}

std::byte* shared_memory() { return grid_state().shared; }

}  // namespace emulator
