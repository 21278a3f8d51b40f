// The values of --device, --dtype and --deterministic, and the device and precision for these values.
#pragma once

#include <array>

#include "core/array.h"
#include "core/precision.h"

namespace plumb::lab {

// The values of --dtype.
enum class NumberFormat {
  fp32,
  bf16,  // only the operands of matrix products are bf16; all other values are f32
  fp64
};
constexpr auto names_of(NumberFormat) { return std::array{"fp32", "bf16", "fp64"}; }

// The values of --device.
enum class DeviceChoice {
  cpu,
  cuda,
  automatic,  // the value "auto": cuda if it can be used, otherwise cpu
  reference
};
constexpr auto names_of(DeviceChoice) { return std::array{"cpu", "cuda", "auto", "reference"}; }

// The values of --deterministic. threads: calls with the same number of threads have bit-identical results. strict: all
// calls have bit-identical results.
enum class Determinism { threads, strict };
constexpr auto names_of(Determinism) { return std::array{"threads", "strict"}; }

// The precision of matrix products. For bf16 on the CPU, the function also writes to stderr which instructions
// multiply.
Precision precision_for(NumberFormat format, Device device);
Precision precision_of(NumberFormat format);  // the precision of matrix products; writes nothing
// The device for a value of --device. Throws Error if `choice` is automatic; call best_device() first in this case.
// Also throws Error if `choice` is cuda and cuda cannot be used; the message says why.
Device device_of(DeviceChoice choice);
// Returns cuda if cuda can be used. Otherwise returns cpu, and writes to stderr why cuda cannot be used.
DeviceChoice best_device();

}  // namespace plumb::lab
