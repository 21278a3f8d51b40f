// Device memory. Regions come from cudaMalloc. Copies to and from the host go through pinned memory, so that host and
// device rarely wait for each other.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "backends/cuda/runtime.h"

namespace plumb {
namespace {

using cuda::counters, cuda::stream;

bool has_passed(cudaEvent_t event) {
  const cudaError_t status = cudaEventQuery(event);
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  PLUMB_CUDA_CHECKED(status);
  return true;
}

void wait_for(cudaEvent_t event) {
  if (has_passed(event)) return;
  ++counters.paced;
  PLUMB_CUDA_CHECKED(cudaEventSynchronize(event));
}

// Slots of pinned memory for asynchronous downloads. Each slot has its own event. A slot may be reused while a copy
// into the slot is still under way, because the stream runs the next copy after this copy, and the reader waits for
// the event of the next copy.
class Places {
 public:
  struct Place {
    std::byte* data;
    cudaEvent_t filled;
  };

  Place take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) grow();
    const Place place = free_.back();
    free_.pop_back();
    return place;
  }
  void put_back(const Place& place) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(place);  // push_back() allocates nothing here, because grow() has reserved the space
  }

 private:
  static constexpr std::size_t at_once = 16;

  void grow() {
    made_ += at_once;
    free_.reserve(made_);
    void* p = nullptr;
    PLUMB_CUDA_CHECKED(cudaHostAlloc(&p, at_once * Memory::most_at_once, cudaHostAllocDefault));
    for (std::size_t i = 0; i < at_once; ++i) {
      Place place{static_cast<std::byte*>(p) + i * Memory::most_at_once, nullptr};
      PLUMB_CUDA_CHECKED(cudaEventCreateWithFlags(&place.filled, cudaEventDisableTiming));
      free_.push_back(place);
    }
  }

  std::mutex mutex_;
  std::vector<Place> free_;
  std::size_t made_ = 0;
};

class CudaDownload : public Download {
 public:
  CudaDownload(Places& places, const void* device, std::size_t bytes) : places_(places), place_(places.take()) {
    try {
      if (bytes > 0) PLUMB_CUDA_CHECKED(cudaMemcpyAsync(place_.data, device, bytes, cudaMemcpyDeviceToHost, stream()));
      PLUMB_CUDA_CHECKED(cudaEventRecord(place_.filled, stream()));
    } catch (...) {
      places_.put_back(place_);
      throw;
    }
  }
  ~CudaDownload() override { places_.put_back(place_); }
  bool arrived() override { return has_passed(place_.filled); }
  const std::byte* bytes() override {
    wait_for(place_.filled);
    return place_.data;
  }

 private:
  Places& places_;
  Places::Place place_;
};

// Pinned memory in two halves that are used in turn. The host fills one half while the device copies from the other
// half.
class Staging {
 public:
  Staging() {
    for (Half& half : halves_) {
      void* p = nullptr;
      PLUMB_CUDA_CHECKED(cudaHostAlloc(&p, half_bytes, cudaHostAllocDefault));
      half.data = static_cast<std::byte*>(p);
      PLUMB_CUDA_CHECKED(cudaEventCreateWithFlags(&half.emptied, cudaEventDisableTiming));
    }
  }

  void upload(const std::byte* host, std::byte* device, std::size_t bytes) {
    while (bytes > 0) {
      if (used_ == half_bytes) turn();
      const std::size_t part = std::min(bytes, half_bytes - used_);
      std::byte* const place = halves_[current_].data + used_;
      std::memcpy(place, host, part);
      PLUMB_CUDA_CHECKED(cudaMemcpyAsync(device, place, part, cudaMemcpyHostToDevice, stream()));
      used_ = std::min(half_bytes, (used_ + part + 255) / 256 * 256);
      host += part, device += part, bytes -= part;
    }
  }

 private:
  static constexpr std::size_t half_bytes = std::size_t{8} << 20;
  struct Half {
    std::byte* data = nullptr;
    cudaEvent_t emptied = nullptr;
  };

  void turn() {
    PLUMB_CUDA_CHECKED(cudaEventRecord(halves_[current_].emptied, stream()));
    current_ = 1 - current_;
    wait_for(halves_[current_].emptied);  // returns at once if the event was never recorded
    used_ = 0;
  }

  Half halves_[2];
  int current_ = 0;
  std::size_t used_ = 0;  // number of bytes of the current half that are used
};

class CudaMemory : public Memory {
 public:
  std::size_t usual_region() const override { return std::size_t{256} << 20; }
  bool by_chunks() const override { return false; }
  Room room() const override {
    Room room;
    PLUMB_CUDA_CHECKED(cudaMemGetInfo(&room.free, &room.total));
    return room;
  }
  std::byte* reserve(std::size_t bytes) override {
    void* p = nullptr;
    const cudaError_t status = cudaMalloc(&p, bytes);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // clears the error, so that the next call does not report it
      return nullptr;
    }
    PLUMB_CUDA_CHECKED(status);
    return static_cast<std::byte*>(p);
  }
  void give_back(std::byte* region, std::size_t) noexcept override {
    cudaStreamSynchronize(stream());
    cudaFree(region);
  }
  void supply(std::byte*, std::size_t) override {}  // regions are allocated together with their memory
  void withdraw(std::byte*, std::size_t) noexcept override {}

  void upload(const void* host, void* device, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    ++counters.uploads;
    staging_.upload(static_cast<const std::byte*>(host), static_cast<std::byte*>(device), bytes);
  }
  void download(const void* device, void* host, std::size_t bytes) override {
    ++counters.downloads;
    if (bytes > 0) PLUMB_CUDA_CHECKED(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream()));
    synchronize();
  }
  std::unique_ptr<Download> begin_download(const void* device, std::size_t bytes) override {
    ++counters.readbacks;
    return std::make_unique<CudaDownload>(places_, device, bytes);
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    ++counters.copies;
    counters.bytes += 2 * bytes;
    if (bytes > 0) PLUMB_CUDA_CHECKED(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()));
  }
  void fill(void* device, int byte, std::size_t bytes) override {
    if (bytes > 0) PLUMB_CUDA_CHECKED(cudaMemsetAsync(device, byte, bytes, stream()));
  }
  void synchronize() override {
    ++counters.synchronizations;
    PLUMB_CUDA_CHECKED(cudaStreamSynchronize(stream()));
  }
  Traffic traffic() const override {
    return {.launches = counters.launches,
            .bytes = counters.bytes,
            .through_host = counters.through_host,
            .uploads = counters.uploads,
            .downloads = counters.downloads,
            .copies = counters.copies,
            .synchronizations = counters.synchronizations,
            .readbacks = counters.readbacks,
            .paced = counters.paced,
            .plain_products = counters.plain_products};
  }

 private:
  // The first member, because stream() throws Error if there is no device.
  [[maybe_unused]] const cudaStream_t stream_ = stream();
  std::mutex mutex_;
  Staging staging_;
  Places places_;
};

}  // namespace

// The memory is never destroyed, because storages with static lifetime may outlive any static object.
Memory& cuda_memory() {
  static CudaMemory& memory = *new CudaMemory;
  return memory;
}

}  // namespace plumb
