// Profile: measures the time of the parts of a program. A Profile records every kernel call with its module, phase and
// step.
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

// Records the kernel calls of the thread that made the Profile, until stop() or the destructor. A thread can have one
// recording profile at a time. Without a profile nothing is measured and nothing slows down. On a GPU, a recording
// profile waits for each kernel to measure the kernel's time; table() does not count these waits.
class Profile {
 public:
  // One kernel call.
  struct Event {
    const char* kernel;       // name of the kernel in core/kernels.def
    Path path;                // the module that called the kernel
    const char* phase;        // "forward", "forward (checkpoint)", "observer", "backward", "optimizer" or ""
    std::uint32_t step;       // the step of the RandomScope
    std::int64_t start, end;  // start and end in ns since the profile began
    double operations;        // floating-point operations of matrix products; 0 for other kernels
    double bytes;             // bytes of the arrays that the kernel read and wrote
    double allocated;         // bytes taken from the allocator since the previous event
  };

  // Starts the recording. Throws Error if another profile of this thread is recording.
  [[nodiscard("a Profile records kernel calls only while it lives; name it: Profile profile;")]] Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  const std::vector<Event>& events() const { return events_; }
  // Ends the recording, like the destructor, so that later work is not recorded. stop() may be called several times.
  void stop();
  // The time in ns from construction to stop(), or to now.
  std::int64_t duration() const;

  // A table as text, at most 120 columns wide. The table has a row for each kernel and each module; numbers in paths
  // become *, as in "ViT.blocks.*.attn.qkv". A row has the time in ms for each phase ("other" is time outside all
  // phases, such as that of the loss), the share of duration(), GFLOP/s of matrix products, GB/s, and MB taken from the
  // allocator. Further lines give the time outside kernels and, for a GPU, the launches, copies and waits of a step and
  // the bytes that its launches read and write.
  std::string table() const;
  // A trace in Chrome's trace event format (JSON object format, "X" events; ts and dur in microseconds).
  // chrome://tracing and Perfetto open such traces.
  std::string chrome_trace() const;

 private:
  friend struct ProfileRecorder;  // core/profile.cpp
  // The device's launches, copies and waits from construction to stop(), or to now.
  Traffic traffic() const;

  std::vector<Event> events_;
  Device device_;
  Traffic before_, after_ = {};
  std::uint64_t own_waits_ = 0;
  std::int64_t began_, ended_ = 0;
  std::uint64_t allocated_;  // cumulative count at the last event
};

}  // namespace plumb
