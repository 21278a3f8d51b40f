#include "experiments/lab/study/experiment.h"

#include "experiments/lab/study/study.h"

namespace plumb::lab {

int experiment(int argc, const char* const* argv, const ExperimentInfo& info, std::function<void(Run&)> body) {
  Study study(info.name, info.summary, {.network = info.network, .optimization = false});
  study.options() = info.defaults;
  if (info.declare) info.declare(study.cli());
  if (info.derive) study.cli().derive([&] { info.derive(study.cli(), study.options()); });
  study.show(info.show);
  if (info.check) study.check(info.check);
  return study.run(argc, argv, std::move(body));
}

}  // namespace plumb::lab
