#include "experiments/common/session.h"

#include "core/backend.h"
#include "experiments/common/cli.h"
#include "experiments/common/data/open_data.h"
#include "experiments/common/data/split.h"
#include "experiments/common/interrupt.h"

namespace plumb::lab {
namespace {

Defaults defaults_of(const RunOptions& o) {
  return {.dtype = o.dtype == "fp64" ? DType::f64 : DType::f32, .device = o.device == "reference" ? Device::reference : Device::cpu};
}

ImageData data_of(const RunOptions& o) {
  ImageData data = open_data(o.data, o.data_dir);
  if (o.validation_split > 0) data = with_validation_split(std::move(data), o.validation_split);
  check(o.batch <= data.train.size(), "--batch {} is more than the {} training images of {}{}", o.batch, data.train.size(), data.name,
        o.validation_split > 0 ? fmt::format(" that --validation-split {:g} leaves", o.validation_split) : "");
  return data;
}

Machine machine_of(const RunOptions& o) {
  set_num_threads(static_cast<int>(o.threads.value_or(0)));
  set_strict_determinism(o.deterministic == "strict");
  // What bf16 was asked for ran in is a fact of the machine.
  return {.device = cpu_description() +
                    (o.dtype == "bf16" ? fmt::format(", products in bf16{}",
                                                     defaults().device == Device::cpu ? fmt::format(" by {}", bf16_products().instructions) : "")
                                       : ""),
          .threads = num_threads()};
}

}  // namespace

Precision precision_for(const std::string& dtype, Device device) {
  if (dtype != "bf16") return Precision::f32;
  if (device == Device::cpu)
    note_error(fmt::format(
        "--dtype bf16: operands of products are rounded to bf16 and multiplied by {}{}\n", bf16_products().instructions,
        bf16_products().faster_than_f32 ? "" : ", as this processor has none that are faster: expect results of bf16 in the time of f32"));
  return Precision::bf16;
}

Setup::Setup(const RunOptions& o)
    : defaults_(defaults_of(o)),
      precision_(precision_for(o.dtype, defaults().device)),
      data(data_of(o)),
      normalization(normalization_of(data.train)),
      machine(machine_of(o)) {}

std::string Setup::data_text() const {
  return fmt::format("{}, {} training images, {} validation images: {}; {} classes", data.name, data.train.size(), data.validation.size(),
                     data.validation_is, data.train.classes);
}

Session::Session(const Cli& cli, const RunOptions& o) : Setup(o), folder(cli, o, machine, data_text()) {
  if (o.profile) profile_ = std::make_unique<StepProfile>(folder, o.steps);
}

int Session::finish(std::size_t finished, std::size_t runs, const char* what) const {
  if (profile_) profile_->finish();
  if (!interrupted() || finished >= runs) return 0;
  note_error(fmt::format("interrupted: {} of {} {} are finished; go on with --resume --out {}\n", finished, runs, what, folder.path().string()));
  return interrupt_status();
}

}  // namespace plumb::lab
