// Emulates streams, events and memory of the CUDA runtime. One lock guards everything, because the device does one
// thing at a time.
#include "tests/cuda_emulator/runtime.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

struct emulated_event {
  // The stream that has not reached the event yet. Null: the stream has reached the event, or the event was never
  // recorded.
  emulated_stream* stream = nullptr;
  std::uint64_t recorded = 0;  // number of recordings; only the last recording counts
};

struct emulated_stream {
  std::deque<std::function<void()>> pending;
};

namespace emulator {
namespace {

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "CUDA emulator: %s\n", what);
  std::abort();
}

struct Allocation {
  std::byte* pages;
  std::size_t page_bytes, bytes;  // page_bytes: without the guard page; bytes: as requested
};

struct State {
  std::recursive_mutex mutex;  // the mutex is recursive, because work may submit work
  Schedule schedule = [] {
    const char* const name = std::getenv("PLUMB_EMULATED_SCHEDULE");
    return name && std::string_view(name) == "lazy" ? Schedule::lazy : Schedule::eager;
  }();
  std::map<std::byte*, Allocation> memory;  // the allocations by their returned addresses
  std::map<std::byte*, std::size_t> pinned;
  std::map<const void*, std::size_t> shared;  // the shared memory that cudaFuncSetAttribute allows each kernel
  std::set<emulated_stream*> streams;
  std::set<emulated_event*> events;
  int running = 0;  // nesting depth of the running work

  void protect(int how) {
    for (const auto& [address, a] : memory) mprotect(a.pages, a.page_bytes, how);
  }
};

// The state is never destroyed, because objects with static lifetime may free memory at the very end.
State& state() {
  static State& s = *new State;
  return s;
}

void run(const std::function<void()>& work) {
  State& s = state();
  if (!machine().runs_kernels) return;
  if (s.running++ == 0) s.protect(PROT_READ | PROT_WRITE);
  work();
  if (--s.running == 0) s.protect(PROT_NONE);
}

void finish(emulated_stream* stream) {
  while (!stream->pending.empty()) {
    const std::function<void()> work = std::move(stream->pending.front());
    stream->pending.pop_front();
    work();
  }
}

void finish_all() {
  for (emulated_stream* stream : state().streams) finish(stream);
}

// Adds work that does not access memory.
void enqueue(emulated_stream* stream, std::function<void()> work) {
  stream->pending.push_back(std::move(work));
  if (state().schedule == Schedule::eager) finish(stream);
}

void reach(emulated_event* event) {
  while (event->stream && !event->stream->pending.empty()) {
    emulated_stream* const stream = event->stream;
    const std::function<void()> work = std::move(stream->pending.front());
    stream->pending.pop_front();
    work();
  }
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

enum class Place { device, pinned, host };

// Returns the kind of memory that holds the bytes: device memory, pinned memory, or other host memory. If the bytes
// begin in device memory and go beyond the end of their allocation, ends the process.
Place place_of(const void* address, std::size_t bytes) {
  State& s = state();
  auto* const begin = static_cast<std::byte*>(const_cast<void*>(address));
  if (auto next = s.memory.upper_bound(begin); next != s.memory.begin()) {
    const auto& [start, a] = *std::prev(next);
    if (begin < start + a.bytes) {
      if (begin + bytes > start + a.bytes) fail("a copy exceeds the end of an allocation");
      return Place::device;
    }
  }
  if (auto next = s.pinned.upper_bound(begin);
      next != s.pinned.begin() && begin < std::prev(next)->first + std::prev(next)->second)
    return Place::pinned;
  return Place::host;
}

}  // namespace

Machine& machine() {
  static Machine m = [] {
    Machine from;
    if (const std::string devices = environment("PLUMB_EMULATED_DEVICES"); !devices.empty()) {
      from.driver = devices != "driver";
      from.devices = from.driver ? std::atoi(devices.c_str()) : 0;
    }
    if (const std::string v = environment("PLUMB_EMULATED_DRIVER"); !v.empty()) from.driver_version = std::stoi(v);
    if (const std::string v = environment("PLUMB_EMULATED_CAPABILITY"); !v.empty())
      from.major = std::stoi(v), from.minor = std::stoi(v.substr(v.find('.') + 1));
    if (const std::string v = environment("PLUMB_EMULATED_MEMORY"); !v.empty()) from.memory = std::stoull(v);
    if (const std::string v = environment("PLUMB_EMULATED_FAULT"); !v.empty()) from.fault = std::stol(v);
    from.strict_cublaslt = environment("PLUMB_EMULATED_CUBLASLT") == "strict";
    from.runs_kernels = environment("PLUMB_EMULATED_KERNELS") != "none";
    return from;
  }();
  return m;
}

namespace {

std::atomic<long> calls_so_far = 0;

bool faulted() { return machine().fault > 0 && calls_so_far >= machine().fault; }

}  // namespace

long calls() { return calls_so_far; }

cudaError_t enter() {
  const Machine& m = machine();
  if (!m.driver || m.driver_version < CUDART_VERSION) return cudaErrorInsufficientDriver;
  if (m.devices == 0) return cudaErrorNoDevice;
  ++calls_so_far;
  return faulted() ? cudaErrorIllegalAddress : cudaSuccess;
}

cudaError_t enter_launch(const void* kernel, std::size_t shared_bytes) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  const std::lock_guard lock(state().mutex);
  const auto allowed = state().shared.find(kernel);
  const std::size_t most = allowed == state().shared.end() ? most_shared_without_attribute : allowed->second;
  return shared_bytes > most ? cudaErrorInvalidValue : cudaSuccess;
}

Schedule schedule() { return state().schedule; }

void set_schedule(Schedule schedule) {
  const std::lock_guard lock(state().mutex);
  finish_all();
  state().schedule = schedule;
}

void submit(cudaStream_t stream, std::function<void()> work) {
  const std::lock_guard lock(state().mutex);
  if (!state().streams.contains(stream)) fail("work for an unknown stream (the default stream is not supported)");
  enqueue(stream, [work = std::move(work)] { run(work); });
}

void check_device_memory(const void* address, std::size_t bytes, const char* what) {
  const std::lock_guard lock(state().mutex);
  if (place_of(address, bytes) != Place::device) fail(what);
}

std::size_t allocated() {
  const std::lock_guard lock(state().mutex);
  std::size_t sum = 0;
  for (const auto& [address, a] : state().memory) sum += a.bytes;
  return sum;
}

}  // namespace emulator

using namespace emulator;

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorDevicesUnavailable:
      return "CUDA-capable device(s) is/are busy or unavailable";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorInvalidResourceHandle:
      break;
  }
  return "invalid resource handle";
}
// Other errors than faults are returned by their calls only.
cudaError_t cudaGetLastError() { return faulted() ? cudaErrorIllegalAddress : cudaSuccess; }

cudaError_t cudaDriverGetVersion(int* version) {
  *version = machine().driver ? machine().driver_version : 0;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  *count = machine().devices;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  if (device != 0) return cudaErrorInvalidDevice;
  // The device for which the kernels are written: compute capability 9.0.
  *properties = {.name = "emulated device",
                 .major = machine().major,
                 .minor = machine().minor,
                 .multiProcessorCount = 132,
                 .sharedMemPerBlockOptin = most_shared,
                 .totalGlobalMem = machine().memory};
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<std::size_t>(value) > most_shared)
    return cudaErrorInvalidValue;
  const std::lock_guard lock(state().mutex);
  state().shared[kernel] = static_cast<std::size_t>(value);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  // `rounded` is a multiple of 256 bytes, as in the driver.
  const std::size_t rounded = (bytes + 255) / 256 * 256, page_bytes = (rounded + page - 1) / page * page;
  const std::size_t given = allocated();
  if (bytes > machine().memory || given > machine().memory - bytes) return cudaErrorMemoryAllocation;
  void* const pages = mmap(nullptr, page_bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return cudaErrorMemoryAllocation;
  madvise(pages, page_bytes, MADV_HUGEPAGE);
  auto* const first = static_cast<std::byte*>(pages);
  std::byte* const begin = first + (page_bytes - rounded);  // the end of the allocation meets the guard page
  s.memory[begin] = {first, page_bytes, bytes};
  if (s.running > 0) mprotect(first, page_bytes, PROT_READ | PROT_WRITE);
  *address = begin;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  *total = machine().memory;
  *free = *total - allocated();
  return cudaSuccess;
}

// Waits for all work under way, as a device does.
cudaError_t cudaFree(void* address) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  if (!address) return cudaSuccess;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto found = s.memory.find(static_cast<std::byte*>(address));
  if (found == s.memory.end()) return cudaErrorInvalidValue;
  finish_all();
  munmap(found->second.pages, found->second.page_bytes + static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  s.memory.erase(found);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  const std::lock_guard lock(state().mutex);
  *address = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*address) return cudaErrorMemoryAllocation;
  state().pinned[static_cast<std::byte*>(*address)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* address) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  const std::lock_guard lock(state().mutex);
  if (address && state().pinned.erase(static_cast<std::byte*>(address)) == 0) return cudaErrorInvalidValue;
  finish_all();
  std::free(address);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  const std::lock_guard lock(state().mutex);
  state().streams.insert(*stream = new emulated_stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  const std::lock_guard lock(state().mutex);
  if (!state().streams.contains(stream)) return cudaErrorInvalidResourceHandle;
  finish(stream);
  state().streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  const std::lock_guard lock(state().mutex);
  if (!state().streams.contains(stream)) return cudaErrorInvalidResourceHandle;
  finish(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  const std::lock_guard lock(state().mutex);
  if (!state().streams.contains(stream) || !state().events.contains(event)) return cudaErrorInvalidResourceHandle;
  if (event->stream != stream) enqueue(stream, [event] { reach(event); });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  const std::lock_guard lock(state().mutex);
  state().events.insert(*event = new emulated_event);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  const std::lock_guard lock(state().mutex);
  if (state().events.erase(event) == 0) return cudaErrorInvalidResourceHandle;
  finish_all();
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  const std::lock_guard lock(state().mutex);
  if (!state().streams.contains(stream) || !state().events.contains(event)) return cudaErrorInvalidResourceHandle;
  event->stream = stream;
  enqueue(stream, [event, times = ++event->recorded] {
    if (event->recorded == times) event->stream = nullptr;
  });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  const std::lock_guard lock(state().mutex);
  if (!state().events.contains(event)) return cudaErrorInvalidResourceHandle;
  return event->stream ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  const std::lock_guard lock(state().mutex);
  if (!state().events.contains(event)) return cudaErrorInvalidResourceHandle;
  reach(event);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  const std::lock_guard lock(state().mutex);
  finish_all();
  return cudaSuccess;
}

// Copies the bytes when the stream reaches the copy, also from and to host memory. On a device, pinned memory may also
// be read only at this time. The driver sometimes reads memory that is not pinned earlier. A copy to memory that is not
// pinned returns after the copy is done.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  const std::lock_guard lock(state().mutex);
  const Place target = place_of(to, bytes), source = place_of(from, bytes);
  const bool to_device = kind != cudaMemcpyDeviceToHost, from_device = kind != cudaMemcpyHostToDevice;
  if ((target == Place::device) != to_device || (source == Place::device) != from_device)
    fail("the kind of a copy does not match its addresses");
  if (to_device && from_device && static_cast<char*>(to) < static_cast<const char*>(from) + bytes &&
      static_cast<const char*>(from) < static_cast<char*>(to) + bytes)
    fail("source and destination of a copy overlap");
  if (!machine().runs_kernels && kind == cudaMemcpyDeviceToHost) {
    // Memory that no kernel has written may say that a training is not finite. With these bytes, a number of any type
    // is positive and finite.
    std::memset(to, 0x3f, bytes);
    return cudaSuccess;
  }
  submit(stream, [=] { std::memcpy(to, from, bytes); });
  if (target == Place::host) finish(stream);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int byte, std::size_t bytes, cudaStream_t stream) {
  if (const cudaError_t status = enter(); status != cudaSuccess) return status;
  const std::lock_guard lock(state().mutex);
  if (place_of(to, bytes) != Place::device) fail("memset of memory that is not device memory");
  submit(stream, [=] { std::memset(to, byte, bytes); });
  return cudaSuccess;
}
