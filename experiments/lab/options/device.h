// The values of --device, --dtype and --deterministic, and the device and precision that they select.
#pragma once

#include <array>

#include "core/array.h"
#include "core/precision.h"

namespace plumb::lab {

// The values of --dtype.
enum class NumberFormat {
  fp32,
  bf16,  // only the operands of matrix products; sums and all other values are f32
  fp64
};
// The names on the command line.
constexpr auto names_of(NumberFormat) { return std::array{"fp32", "bf16", "fp64"}; }

// The values of --device.
enum class DeviceChoice {
  cpu,
  cuda,
  automatic,  // "auto": cuda if it can be used, otherwise cpu
  reference
};
// The names on the command line.
constexpr auto names_of(DeviceChoice) { return std::array{"cpu", "cuda", "auto", "reference"}; }

// The values of --deterministic: bit-identical results for calls with the same number of threads, or for all calls.
enum class Determinism { threads, strict };
constexpr auto names_of(Determinism) { return std::array{"threads", "strict"}; }

// The precision of matrix products. For bf16 on the CPU it writes to stderr which instructions multiply.
Precision precision_for(NumberFormat format, Device device);
Precision precision_of(NumberFormat format);  // the same precision, without writing to stderr
// The device of a choice. Throws Error if `choice` is automatic (resolve it with best_device() first), or if it is cuda
// and cuda cannot be used; the message says why.
Device device_of(DeviceChoice choice);
// cuda if it can be used. Otherwise cpu, and it writes a line to stderr that says why cuda cannot be used.
DeviceChoice best_device();

}  // namespace plumb::lab
