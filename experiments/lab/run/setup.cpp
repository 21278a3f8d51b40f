#include "experiments/lab/run/setup.h"

#include <fmt/ranges.h>

#include <cmath>
#include <set>

#include "core/backend.h"
#include "experiments/lab/options/device.h"
#include "experiments/lab/record/study_description.h"

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

std::unique_ptr<Problem> made_by(const ProblemFactory& make, const StudyOptions& o) {
  std::unique_ptr<Problem> problem = make(o);
  check(problem != nullptr, "[problem] expected the function of Study::problem() to make a problem, got null");
  return problem;
}

// Refuses a description of measures that verdicts and reports cannot use, before any trial runs.
DataFacts checked(DataFacts facts) {
  check_further(facts);
  std::set<std::string> names;
  for (const Measure& m : facts.measures) {
    check(!m.name.empty() && names.insert(m.name).second,
          "[problem] expected facts().measures to have a different name for each measure, got \"{}\" {}", m.name,
          m.name.empty() ? "as a name" : "twice");
    check(!m.chance || std::isfinite(*m.chance),
          "[problem] expected a finite chance level of {}, got {}: leave the level out if it is unknown", m.name,
          m.chance.value_or(0));
    check(
        m.name != "train_loss" || !m.chance || *m.chance > 0,
        "[problem] expected a chance level of train_loss above 0, got {}: a loss that can be negative needs an offset, "
        "because \"trained\" and \"diverged\" are multiples of the level",
        m.chance.value_or(0));
  }
  for (const char* name : {"train_loss", "val_loss"})
    check(names.contains(name), "[problem] expected facts().measures to describe {}, got only {}", name,
          fmt::join(names, ", "));
  return facts;
}

}  // namespace

Defaults defaults_for(const StudyOptions& o) {
  return {.dtype = o.dtype == NumberFormat::fp64 ? DType::f64 : DType::f32, .device = device_of(o.device)};
}

Setup::Setup(const StudyOptions& o, const ProblemFactory& make)
    : defaults_(defaults_for(o)),
      precision_(precision_for(o.dtype, defaults().device)),
      problem(made_by(make, o)),
      machine(machine_of(o)),
      arithmetic(without_threads(machine.device)),
      facts(checked(problem->facts())) {}

}  // namespace plumb::lab
