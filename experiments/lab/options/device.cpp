#include "experiments/lab/options/device.h"

#include "core/backend.h"
#include "experiments/lab/cli/cli.h"

namespace plumb::lab {

Device device_named(const std::string& text) {
  for (const Device device : {Device::cpu, Device::reference, Device::cuda}) {
    if (text != name(device)) continue;
    const std::string why = in_host_memory(device) ? "" : why_no_cuda();
    check(why.empty(), "--device {}: {}", text, why);
    return device;
  }
  fail(fmt::format("expected a device, cpu, cuda or reference, got {}", text));
}

Device best_device() {
  const std::string why = why_no_cuda();
  if (why.empty()) return Device::cuda;
  note_error(fmt::format("--device auto: the CPU ({})\n", why));
  return Device::cpu;
}

Precision precision_of(const std::string& dtype) { return dtype == "bf16" ? Precision::bf16 : Precision::f32; }

Precision precision_for(const std::string& dtype, Device device) {
  if (precision_of(dtype) == Precision::bf16 && device == Device::cpu)
    note_error(fmt::format(
        "--dtype bf16: operands of products are rounded to bf16 and multiplied by {}{}\n", bf16_products().instructions,
        bf16_products().faster_than_f32
            ? ""
            : ", as this processor has none that are faster: expect results of bf16 in the time of f32"));
  return precision_of(dtype);
}

}  // namespace plumb::lab
