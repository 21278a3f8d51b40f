#include "experiments/common/dry_run.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "autograd/autograd.h"
#include "experiments/common/cli.h"
#include "experiments/common/data/loader.h"
#include "experiments/common/progress.h"
#include "experiments/common/session.h"
#include "experiments/common/trainer.h"
#include "nn/optim/optimizer.h"

namespace plumb::lab {
namespace {

// Something that is linear in depth, from its values at depth 1 and another.
struct Linear {
  double one = 0, other = 0;
  std::int64_t other_depth = 2;
  double at(std::int64_t depth) const {
    return one + static_cast<double>(depth - 1) * std::max(other - one, 0.0) / static_cast<double>(other_depth - 1);
  }
};

// Of one step: the fastest of three, or the first where that takes long.
double seconds_a_step(nn::Layer& model, const Setup& setup, std::int64_t batch_size) {
  constexpr double long_step = 2;
  nn::AdamW optimizer(model.parameters(), {.lr = 1e-4});
  BatchLoader loader(setup.data.train, setup.normalization, {.batch = batch_size});
  double fastest = std::numeric_limits<double>::infinity();
  for (int step = 0; step < 3 && (step == 0 || fastest < long_step); ++step) {
    const TrainingStep scope(0, step);
    const Batch batch = to_tensors(loader.next(), setup.data.train);
    const auto start = std::chrono::steady_clock::now();
    optimizer.step(backward(cross_entropy(model(batch.images), batch.labels)));
    fastest = std::min(fastest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return fastest;
}

// "309066", "309066 to 2410762"
std::string range(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return least == most ? fmt::format("{:.0f}", least) : fmt::format("{:.0f} to {:.0f}", least, most);
}

}  // namespace

void dry_run(const Cli& cli, const RunOptions& o, const std::vector<PlannedRun>& runs, const MakeNetwork& make) {
  const Setup setup(o);
  RunFolder::check_beforehand(cli, o);
  std::string text;
  for (const PlannedRun& run : runs) text += run.label + "\n";
  const auto count = static_cast<std::int64_t>(runs.size());
  text += fmt::format("\n{} run{}", count, count == 1 ? "" : "s");
  if (o.steps == 0)
    text += " without training steps";
  else
    text += fmt::format(" of {} steps of {} images: {} steps, {} images", o.steps, o.batch, count * o.steps, count * o.steps * o.batch);
  text += o.resume ? "; --resume leaves out those that are finished\n" : "\n";
  text += "data: " + setup.data_text() + "\n";
  if (make) {
    std::map<std::string, Linear> parameters;
    Linear seconds;
    std::vector<double> counts;
    double total = 0;
    for (const PlannedRun& run : runs) {
      const auto [kind, is_new] = parameters.try_emplace(run.kind);
      if (is_new) {
        const auto one = make(run, 1, setup.data.train), two = make(run, 2, setup.data.train);
        kind->second = {static_cast<double>(one->parameter_count()), static_cast<double>(two->parameter_count())};
        if (&run == &runs.front() && o.steps > 0) {
          seconds.one = seconds_a_step(*one, setup, o.batch);
          if (seconds.one < 0.5) seconds.other_depth = 8;  // a longer lever, where it is cheap
          seconds.other = seconds_a_step(*make(run, seconds.other_depth, setup.data.train), setup, o.batch);
        }
      }
      counts.push_back(kind->second.at(run.depth));
      total += static_cast<double>(o.steps) * seconds.at(run.depth);
    }
    text += fmt::format("parameters of a network: {}\n", range(counts));
    if (o.steps > 0)
      text += fmt::format(
          "training: about {} on this machine. Steps of {} with this batch, measured just now, take {:.3g} ms at depth 1 and {:.3g} ms at depth {};\n"
          "others are taken to cost as much, in proportion to depth. Evaluation, passports and start-up come on top.\n",
          duration(total), runs.front().kind, 1e3 * seconds.one, 1e3 * seconds.other, seconds.other_depth);
  }
  write_result(text);
}

}  // namespace plumb::lab
