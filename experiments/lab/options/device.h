// Where and in which number format a call computes: what --device and --dtype mean.
#pragma once

#include <array>

#include "core/array.h"
#include "core/precision.h"

namespace plumb::lab {

enum class NumberFormat {
  fp32,
  bf16,  // of the operands of matrix products; sums and the rest are f32
  fp64
};
constexpr auto names_of(NumberFormat) { return std::array{"fp32", "bf16", "fp64"}; }

enum class DeviceChoice {
  cpu,
  cuda,
  automatic,  // "auto": cuda, where it can be used, else cpu
  reference
};
constexpr auto names_of(DeviceChoice) { return std::array{"cpu", "cuda", "auto", "reference"}; }

// For which calls the bits are the same: those with equally many threads, or all.
enum class Determinism { threads, strict };
constexpr auto names_of(Determinism) { return std::array{"threads", "strict"}; }

// What products run in; of bf16, stderr gets by which instructions.
Precision precision_for(NumberFormat format, Device device);
Precision precision_of(NumberFormat format);  // the same without a word
// Throws an Error that says what cuda lacks, if it does. The choice must be made: not automatic (best_device).
Device device_of(DeviceChoice choice);
// cuda, where it can be used, else cpu; stderr gets a line that says what is missing.
DeviceChoice best_device();

}  // namespace plumb::lab
