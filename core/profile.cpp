// The recorder of Profile: a table of kernels, each of which times its calls.
#include "core/profile.h"

#include <algorithm>
#include <chrono>

#include "core/backend.h"
#include "core/kernel_cost.h"

namespace plumb {
namespace {

thread_local Profile* current = nullptr;

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

struct ProfileRecorder {
  // Reserves memory for an event and returns the start time. record() must not throw, because a destructor calls it.
  static std::int64_t start() {
    std::vector<Profile::Event>& events = current->events_;
    if (events.size() == events.capacity()) events.reserve(std::max<std::size_t>(4096, 2 * events.size()));
    return now();
  }
  static void record(const char* kernel, std::int64_t start, double operations, double bytes) {
    Profile& p = *current;
    const std::uint64_t allocated = memory_stats(p.device_).allocated;
    p.events_.push_back({kernel, current_path(), current_phase(), random_state().step, start - p.began_,
                         now() - p.began_, operations, bytes, static_cast<double>(allocated - p.allocated_)});
    p.allocated_ = allocated;
  }
  static void wait(Device device) {
    memory_of(device).synchronize();
    current->own_waits_ += device == current->device_;
  }
};

namespace {

// Replaces one kernel of a device in the table of timed kernels.
template <Device device, auto entry>
struct Timed;
template <Device device, class... Args, void (*Kernels::*entry)(Args...)>
struct Timed<device, entry> {
  static inline const char* name = "";

  static void call(Args... args) {
    struct Record {  // records when the kernel has returned or thrown
      double operations, bytes;
      std::int64_t start;
      ~Record() { ProfileRecorder::record(name, start, operations, bytes); }
    } const record{detail::Operations<entry>::of(args...), detail::Bytes<entry>::of(args...), ProfileRecorder::start()};
    (detail::kernels_of(device).*entry)(args...);
    if constexpr (!in_host_memory(device)) ProfileRecorder::wait(device);
  }
};

template <Device device, auto entry>
auto timed(const char* name) {
  Timed<device, entry>::name = name;
  return &Timed<device, entry>::call;
}

template <Device device>
const Kernels& timed_kernels() {
  static const Kernels table{
#define PLUMB_KERNEL(dtypes, name, parameters) .name = timed<device, &Kernels::name>(#name),
#include "core/kernels.def"
  };
  return table;
}

}  // namespace

const Kernels& detail::profiled_kernels(Device device) {
  switch (device) {
    case Device::reference:
      return timed_kernels<Device::reference>();
    case Device::cpu:
      return timed_kernels<Device::cpu>();
    case Device::cuda:
      break;
  }
  return timed_kernels<Device::cuda>();
}

Profile::Profile()
    : device_(defaults().device),
      before_(memory_of(device_).traffic()),
      began_(now()),
      allocated_(memory_stats(device_).allocated) {
  check(!current,
        "[profile] expected at most one profile at a time in a thread, got a second one while the first still records: "
        "stop() it first");
  current = this;
  detail::profiling = true;
}

Profile::~Profile() { stop(); }

void Profile::stop() {
  if (current != this) return;
  ended_ = now();
  after_ = memory_of(device_).traffic();
  current = nullptr;
  detail::profiling = false;
}

Traffic Profile::traffic() const {
  Traffic t = (ended_ ? after_ : memory_of(device_).traffic()).since(before_);
  t.synchronizations -= own_waits_;
  return t;
}

std::int64_t Profile::duration() const { return (ended_ ? ended_ : now()) - began_; }

}  // namespace plumb
