#include "experiments/lab/options/device.h"

#include "core/backend.h"
#include "experiments/lab/cli/cli.h"

namespace plumb::lab {

Device device_of(DeviceChoice choice) {
  switch (choice) {
    case DeviceChoice::cpu:
      return Device::cpu;
    case DeviceChoice::reference:
      return Device::reference;
    case DeviceChoice::cuda:
      break;
    case DeviceChoice::automatic:
      fail("expected the device cpu, cuda or reference, got auto; choose one with best_device()");
  }
  const std::string why = why_no_cuda();
  check(why.empty(), "--device cuda: {}", why);
  return Device::cuda;
}

DeviceChoice best_device() {
  const std::string why = why_no_cuda();
  if (why.empty()) return DeviceChoice::cuda;
  note_error(fmt::format("--device auto uses the CPU ({})\n", why));
  return DeviceChoice::cpu;
}

Precision precision_of(NumberFormat format) { return format == NumberFormat::bf16 ? Precision::bf16 : Precision::f32; }

Precision precision_for(NumberFormat format, Device device) {
  if (precision_of(format) == Precision::bf16 && device == Device::cpu)
    note_error(fmt::format("--dtype bf16: the operands of matrix products are rounded to bf16 and multiplied by {}{}\n",
                           bf16_products().instructions,
                           bf16_products().faster_than_f32 ? "" : ", so the results have bf16 precision at f32 speed"));
  return precision_of(format);
}

}  // namespace plumb::lab
