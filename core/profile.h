// Where a program's time goes: every kernel call, with its module, phase and step.
//
//   {
//     Profile profile;
//     for (...) { ... a few training steps ... }
//     fmt::print("{}", profile.table());
//     write_file_atomically("trace.json", profile.chrome_trace());
//   }
#pragma once

#include <string>
#include <vector>

#include "core/memory.h"
#include "core/scope.h"

namespace plumb {

// Records the kernel calls of the thread that made it, while it lives; one at a time. Without one, nothing is measured
// and nothing slows down. Kernels of a device are waited for one by one, so that each has its own time; what the device
// was asked for is counted without these waits.
class Profile {
 public:
  struct Event {
    const char* kernel;       // its name in core/kernels.def
    Path path;                // module
    const char* phase;        // "forward", "forward (checkpoint)", "backward", "optimizer" or ""
    std::uint32_t step;       // of RandomScope
    std::int64_t start, end;  // ns since the profile began
    double operations;        // floating-point operations of matrix products; 0 for other kernels
    double bytes;             // of the arrays that the kernel got
    double allocated;         // bytes taken from the allocator since the event before
  };

  // Error: another profile of this thread still records.
  [[nodiscard("kernel calls are recorded while it lives; name it: Profile profile;")]] Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  const std::vector<Event>& events() const { return events_; }
  Traffic traffic()
      const;  // what the device of the recorded kernels was asked for, from the beginning to stop() or to now
  // Ends the recording (as the destructor does), so that what follows does not count. May be called again.
  void stop();
  // ns from construction to stop(), or to now.
  std::int64_t duration() const;

  // For people, at most 120 columns: time by kernel and by module (numbers in paths become *: "ViT.blocks.*.attn.qkv"),
  // ms in each phase ("other": outside all, such as the loss), share of duration(), GFLOP/s of matrix products, GB/s,
  // MB taken from the allocator, and what passed outside kernels. Off the host, also launches, copies and waits a step,
  // and the bytes that launches read and write.
  std::string table() const;
  // Chrome's trace event format (JSON object format, "X" events; ts and dur in microseconds): open it in
  // chrome://tracing or Perfetto.
  std::string chrome_trace() const;

 private:
  friend struct ProfileRecorder;  // core/profile.cpp

  std::vector<Event> events_;
  Device device_;
  Traffic before_, after_ = {};
  std::uint64_t own_waits_ = 0;
  std::int64_t began_, ended_ = 0;
  std::uint64_t allocated_;  // cumulative, at the last event
};

}  // namespace plumb
