#include "experiments/lab/study/dry_run.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/backend.h"
#include "core/thread_share.h"
#include "experiments/lab/record/data_facts.h"
#include "experiments/lab/run/progress.h"
#include "experiments/lab/train/run_body.h"

namespace plumb::lab {
namespace {

constexpr std::int64_t measured_steps = 3;
constexpr double long_enough = 2;         // time in seconds after which the measurement stops
constexpr double deepest_measured = 256;  // number of blocks; measuring deeper networks would take too long

struct Measured {
  std::string trial;
  // `seconds` is the time of the fastest of three steps, or of fewer steps if steps are slow.
  double depth = 1, seconds = 0;
  std::int64_t parameters = 0;  // 0 if the body does not tell which model it trains
};

double depth_or_one(const Point& point) {
  const AxisValue* depth = point.find("depth");
  const auto* whole = depth ? std::get_if<std::int64_t>(depth) : nullptr;
  return whole ? static_cast<double>(*whole) : 1;
}

Measured measure(const TrialEnvironment& environment, const Point& point, const std::function<void(Trial&)>& body) {
  TrialState run(environment, point, "", 0);
  run.limits.leaves_files = false;
  run.limits.stop_before = measured_steps;
  run.limits.enough_seconds = long_enough;
  try {
    run_body(run, body);
  } catch (const TrialStopped&) {
  }
  check(run.record.status != Status::failed, "{}: {}", point.label(), run.record.reason);
  return {point.label(), depth_or_one(point), std::isfinite(run.fastest_step) ? run.fastest_step : 0,
          run.tracked.parameters};
}

}  // namespace

std::string dry_run(const TrialEnvironment& environment, const std::vector<Point>& named, std::size_t finished,
                    const ToFollow& later, int jobs, const DataFacts& data, const std::function<void(Trial&)>& body) {
  const StudyOptions& o = environment.options;
  std::string text;
  for (const Point& point : named) text += point.label() + "\n";
  if (!later.words.empty()) text += "\n" + later.words;
  std::vector<Point> trials = named;
  trials.insert(trials.end(), later.trials.begin(), later.trials.end());
  std::int64_t steps = 0, samples = 0;
  const char* sample_name = data.samples.empty() ? "samples" : data.samples.c_str();
  std::set<std::int64_t> lengths;
  for (const Point& point : trials) {
    const StudyOptions own = environment.by_point.study(point);
    steps += own.steps, samples += own.steps * own.batch;
    lengths.insert(own.steps);
  }
  text +=
      fmt::format("\n{}{} trial{}", later.trials.empty() ? "" : "about ", trials.size(), trials.size() == 1 ? "" : "s");
  if (trials.empty())
    text += " to run";
  else if (steps == 0)
    text += " without training steps";
  else
    text += fmt::format(
        "{}: {} steps, {} {}",
        lengths.size() == 1 ? fmt::format(" of {} steps of {} {}", *lengths.begin(), o.batch, sample_name) : "", steps,
        samples, sample_name);
  text += o.resume ? fmt::format("; --resume skips {} finished trial{}\n", finished, finished == 1 ? "" : "s") : "\n";
  text += "data: " + data.text + "\n";
  if (steps == 0 || trials.empty()) return text;

  // Measures the shallowest trial, and the deepest trial that can be measured quickly. Both trials use the threads of
  // one job.
  std::optional<ThreadShare> share;
  if (jobs > 1) share.emplace(std::max(1, num_threads() / jobs));
  const auto shallow = std::ranges::min_element(trials, {}, depth_or_one);
  auto deep = shallow;
  for (auto trial = trials.begin(); trial != trials.end(); ++trial)
    if (depth_or_one(*trial) <= deepest_measured && depth_or_one(*trial) > depth_or_one(*deep)) deep = trial;
  const Measured first = measure(environment, *shallow, body),
                 last = shallow == deep ? first : measure(environment, *deep, body);
  const auto at = [&](const Point& point, double one, double other) {
    const double depth = depth_or_one(point);
    if (last.depth == first.depth) return one * depth / first.depth;
    return std::max(one + (depth - first.depth) * (other - one) / (last.depth - first.depth), 0.0);
  };
  if (first.parameters > 0) {
    const Point& deepest = *std::ranges::max_element(trials, {}, depth_or_one);
    const auto most = static_cast<std::int64_t>(
        at(deepest, static_cast<double>(first.parameters), static_cast<double>(last.parameters)));
    text += fmt::format(
        "parameters of a network: {}{}\n", most == first.parameters ? "" : "about ",
        most == first.parameters ? fmt::format("{}", most) : fmt::format("{} to {}", first.parameters, most));
  }
  const auto time_of = [&](const std::vector<Point>& all) {
    double total = 0;
    for (const Point& point : all)
      total += static_cast<double>(environment.by_point.study(point).steps) * at(point, first.seconds, last.seconds);
    return duration(total / std::clamp(static_cast<int>(all.size()), 1, jobs));
  };
  text += fmt::format("training: about {} on this machine{}. Steps measured just now: {:.3g} ms ({})", time_of(trials),
                      jobs > 1 ? fmt::format(" in {} jobs, if each job has its own processors", jobs) : "",
                      1e3 * first.seconds, first.trial);
  if (last.trial != first.trial) text += fmt::format(", {:.3g} ms ({})", 1e3 * last.seconds, last.trial);
  text +=
      ";\nthe time of other trials is assumed proportional to depth. Evaluation and start-up take additional time.\n";
  if (!later.at_most.empty())
    text += fmt::format("until decided: this is the least; the most is {} trials, with about {} of training\n",
                        later.at_most.size(), time_of(later.at_most));
  return text;
}

}  // namespace plumb::lab
