// The memory of the host: regions by mmap, which get their pages from the system chunk by chunk.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <string>

#include "core/memory.h"

namespace plumb {
namespace {

// The bytes of a region: `tight` if address space is limited, else `roomy`.
constexpr std::size_t roomy = std::size_t{64} << 30, tight = std::size_t{32} << 20;

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

// The limit of the address space of this process in bytes.
std::size_t address_space() {
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : unlimited;
}

// Reads the number after `label` in a file of the system; returns `unlimited` if the file has none.
std::size_t number_in(const char* path, const std::string& label = "") {
  std::ifstream file(path);
  std::size_t number = 0;
  for (std::string word; !label.empty() && file >> word && word != label;) {
  }
  return file >> number ? number : unlimited;
}

class HostMemory : public Memory {
 public:
  // If the process has a limit of address space (ulimit -v), regions are small.
  std::size_t usual_region() const override { return address_space() < unlimited ? tight : roomy; }

  // The memory and swap of the machine, or the limit of the process or its container (cgroup) if this limit is lower.
  Room room() const override {
    struct sysinfo machine {};
    if (sysinfo(&machine) != 0) return {};
    const std::size_t total =
        std::min({(machine.totalram + machine.totalswap) * machine.mem_unit, address_space(),
                  number_in("/sys/fs/cgroup/memory.max"), number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes")});
    const std::size_t kib = number_in("/proc/meminfo", "MemAvailable:");
    const bool known = kib < unlimited / 1024;
    return {std::min(known ? kib * 1024 : machine.freeram * machine.mem_unit, total), total};
  }

  // Reserved memory is inaccessible (PROT_NONE) and not counted by the system, which decides whether there is enough
  // memory when a chunk is made accessible.
  std::byte* reserve(std::size_t bytes) override {
    void* p = mmap(nullptr, bytes + chunk, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return nullptr;
    auto* const begin = static_cast<std::byte*>(p);
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    std::byte* const aligned = begin + ((address + chunk - 1) / chunk * chunk - address);
    if (aligned != begin) munmap(begin, static_cast<std::size_t>(aligned - begin));
    munmap(aligned + bytes, static_cast<std::size_t>(begin + chunk - aligned));
    madvise(aligned, bytes, MADV_HUGEPAGE);  // only reduces page faults; a failure does not matter
    return aligned;
  }
  void give_back(std::byte* region, std::size_t bytes) noexcept override { munmap(region, bytes); }

  void supply(std::byte* chunks, std::size_t bytes) override {
    if (mprotect(chunks, bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  }
  void withdraw(std::byte* chunks, std::size_t bytes) noexcept override { madvise(chunks, bytes, MADV_DONTNEED); }

  void upload(const void* host, void* device, std::size_t bytes) override { copy(host, device, bytes); }
  void download(const void* device, void* host, std::size_t bytes) override { copy(device, host, bytes); }
  std::unique_ptr<Download> begin_download(const void* device, std::size_t bytes) override {
    struct Here : Download {
      bool arrived() override { return true; }
      const std::byte* bytes() override { return copied; }
      alignas(std::max_align_t) std::byte copied[most_at_once];
    };
    auto here = std::make_unique<Here>();
    copy(device, here->copied, bytes);
    return here;
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void fill(void* to, int byte, std::size_t bytes) override { std::memset(to, byte, bytes); }
  void synchronize() override {}
};

}  // namespace

// The object is never destroyed, because storages with static lifetime may outlive any static object.
Memory& host_memory() {
  static HostMemory& memory = *new HostMemory;
  return memory;
}

}  // namespace plumb
