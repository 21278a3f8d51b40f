#include "experiments/lab/run/setup.h"

#include "core/backend.h"
#include "experiments/lab/options/device.h"

namespace plumb::lab {
namespace {

Machine machine_of(const StudyOptions& o) {
  set_num_threads(static_cast<int>(o.threads.value_or(0)));
  set_strict_determinism(o.deterministic == Determinism::strict);
  // The device text of run.json includes the instructions that compute bf16 products.
  return {.device = (in_host_memory(defaults().device) ? "" : cuda_description() + ", host: ") + cpu_description() +
                    (o.dtype == NumberFormat::bf16
                         ? fmt::format(", products in bf16{}", defaults().device == Device::cpu
                                                                   ? fmt::format(" by {}", bf16_products().instructions)
                                                                   : "")
                         : ""),
          .threads = num_threads()};
}

// Removes the number of threads from a device text: "AMD EPYC, AVX-512, 2 threads, oneDNN 2.6.3" becomes "AMD EPYC,
// AVX-512, oneDNN 2.6.3".
std::string without_threads(std::string device) {
  const std::size_t end = device.find(" threads, "), begin = device.rfind(", ", end);
  return end == device.npos ? device : device.erase(begin + 2, end + 10 - begin - 2);
}

}  // namespace

Defaults defaults_for(const StudyOptions& o) {
  return {.dtype = o.dtype == NumberFormat::fp64 ? DType::f64 : DType::f32, .device = device_of(o.device)};
}

Setup::Setup(const StudyOptions& o, const ProblemFactory& make)
    : defaults_(defaults_for(o)),
      precision_(precision_for(o.dtype, defaults().device)),
      problem(make(o)),
      machine(machine_of(o)),
      arithmetic(without_threads(machine.device)),
      facts(problem->facts()) {}

}  // namespace plumb::lab
