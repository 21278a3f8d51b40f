#include "experiments/lab/study/study.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "experiments/lab/report/layers.h"
#include "experiments/lab/run/files.h"
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/lab/study/own_rates.h"
#include "experiments/lab/study/runner.h"
#include "experiments/lab/train/loss_levels.h"

namespace plumb::lab {
namespace {

// The name of the axis that belongs to an option: "drop_key" for "--drop-keys".
std::string axis_name(const std::string& option) {
  std::string name = option.substr(std::min<std::size_t>(option.find_first_not_of('-'), option.size()));
  std::ranges::replace(name, '-', '_');
  for (const char* end : {"ches", "shes", "sses", "xes"})
    if (name.ends_with(end)) return name.substr(0, name.size() - 2);
  return name.ends_with('s') && name.size() > 1 ? name.substr(0, name.size() - 1) : name;
}

// Throws Error if the program declares its axes wrongly.
void check_axes(const StudyDeclaration& study) {
  for (const AxisData& axis : study.axes) {
    const auto same_name = std::ranges::count(study.axes, axis.name, &AxisData::name);
    const bool taken = axis.name == "seed" || axis.name == "status" || axis.name == "step" || axis.name == "seconds" ||
                       axis.name == search_steps;
    check(same_name == 1 && !taken, "[study] expected unused names of axes, got {} for {}", axis.name, axis.option);
  }
  for (const CliOption& option : study.cli.left_out())
    check(
        option.scope() == Scope::trial,
        "[study] expected an axis that replaces no option of the library, or an option that each trial reads, got one "
        "for {}: choose another name with Axis::named()",
        option.name);
  check(std::ranges::any_of(study.axes, [](const AxisData& a) { return !a.declared; }) == (study.next != nullptr),
        "[study] expected search() and searched axes together, got {}",
        study.next ? "only search()" : "only searched axes");
}

// The default values of an axis of warm-ups are shares of the steps. If --steps changes, the warm-ups keep their
// shares, as --warmup does.
void declare_warmups(StudyDeclaration& study) {
  const auto axis = std::ranges::find(study.axes, "warmup", &AxisData::name);
  if (axis == study.axes.end() || !axis->declared || !std::holds_alternative<std::vector<std::int64_t>>(axis->values))
    return;
  const auto defaults = std::make_shared<std::pair<std::int64_t, std::vector<std::int64_t>>>();
  auto& values = std::get<std::vector<std::int64_t>>(axis->values);
  study.cli.when_defaults_are_set([&study, defaults, &values] { *defaults = {study.options.steps, values}; });
  study.cli.rule([&study, defaults, &values, &option = *axis->declared] {
    const auto& [of_steps, steps] = *defaults;
    if (study.cli.given(option.name) || of_steps == study.options.steps) return;
    values.clear();
    for (const std::int64_t s : steps) {
      const double share = static_cast<double>(s) / static_cast<double>(of_steps);
      const std::int64_t scaled =
          s == 0 ? 0 : std::max<std::int64_t>(std::llround(share * static_cast<double>(study.options.steps)), 1);
      if (std::ranges::find(values, scaled) == values.end()) values.push_back(scaled);
    }
    study.notes.push_back(fmt::format("{} {} of {} steps: the defaults are {} of {}", option.name,
                                      fmt::join(values, ","), study.options.steps, fmt::join(steps, ","), of_steps));
    study.cli.explain(
        option.name, fmt::format("the share of the steps of the defaults, {} of {}", fmt::join(steps, ", "), of_steps));
  });
}

// If an axis has the name of an option of the library, the axis sets that option in each trial.
void bind_axes(StudyDeclaration& study) {
  for (const AxisData& axis : study.axes)
    for (const CliOption& option : study.cli.left_out())
      if (option.name == option_of_axis(axis.name)) study.by_point.bind(axis.name, option.name);
}

}  // namespace

Study::Study(std::string name, std::string question, StudyParts parts)
    : d_(std::move(name), std::move(question), parts.optimization) {}

AxisData& Study::add_axis(const std::string& option, const std::string& help, AxisData data) {
  data.name = axis_name(option);
  data.option = option;
  plumb::check(std::ranges::find(d_.axes, option, &AxisData::option) == d_.axes.end() && option != "--seeds",
               "[study] expected an unused option for an axis (--seeds is for seeds), got a second {}", option);
  AxisData& axis = d_.axes.emplace_back(std::move(data));
  d_.cli.section("Axes");
  axis.declared = std::visit([&](auto& values) { return &d_.cli.option(option, &values, help); }, axis.values);
  axis.declared->scope(Scope::study);
  return axis;
}

Axis<std::int64_t> Study::depths(const std::vector<std::int64_t>& values, const std::string& help) {
  return axis("--depths", values, help).at_least(1).at_most(largest_size).slowest();
}

Axis<std::string> Study::methods(const std::vector<std::string>& values, const std::string& help) {
  return axis("--gates", values, help).one_of_methods();
}

Axis<double> Study::learning_rates(const std::vector<double>& values) {
  return axis("--lrs", values, "Peak learning rates").above(0);
}

void Study::defaults(const StudyDefaults& defaults) {
  const auto set = [](auto& option, const auto& value) {
    if (value) option = *value;
  };
  set(d_.options.steps, defaults.steps);
  set(d_.options.warmup, defaults.warmup);
  set(d_.options.batch, defaults.batch);
  set(d_.options.loss_limit, defaults.loss_limit);
  set(d_.optimization.lr, defaults.lr);
  set(d_.optimization.weight_decay, defaults.weight_decay);
  set(d_.optimization.clip_norm, defaults.clip_norm);
  if (!defaults.seeds.empty()) d_.options.seeds = defaults.seeds;
  d_.options.stop_hopeless |= defaults.stop_hopeless;
}

void Study::measure_layers() {
  d_.observe = [](Trial& trial, nn::Layer& model) { return record_layers(trial, model); };
  output("layers.csv", layers_csv);
}

void Study::problem(ProblemFactory make) {
  plumb::check(make != nullptr, "[study] expected a function that makes the problem, got an empty one");
  d_.problem = std::move(make);
}

std::string Study::steps_to(double loss) {
  plumb::check(std::isfinite(loss) && loss > 0,
               "[study] expected a finite training loss above 0 in steps_to(), got {}; name a level that trials reach",
               loss);
  if (std::ranges::find(d_.loss_levels, loss) == d_.loss_levels.end()) d_.loss_levels.push_back(loss);
  return steps_to_name(loss);
}

void Study::output(const std::string& file, std::function<std::string(const StudyResults&)> text) {
  plumb::check(!is_run_file(file) && file.find('/') == std::string::npos,
               "[study] expected an unused file name without folders for an output, got {}", file);
  d_.files.emplace_back(file, std::move(text));
}

void Study::declare() {
  const auto own = nlohmann::ordered_json::parse(d_.cli.fixed_settings());
  for (const auto& [key, value] : own.items()) d_.own_settings.push_back(key);
  for (const AxisData& axis : d_.axes) d_.cli.leave_out(option_of_axis(axis.name));
  for (const auto& group : d_.groups) group(d_.cli);
  if (d_.has_optimization) d_.optimization.declare(d_.cli);
  d_.options.declare(d_.cli);
  check_axes(d_);
  bind_axes(d_);
  declare_warmups(d_);
  declare_rates(d_);
}

int Study::run(int argc, const char* const* argv, std::function<void(Trial&)> body) {
  d_.body = std::move(body);
  return exit_status([&] {
    plumb::check(d_.problem != nullptr,
                 "[study] expected a problem, got none; call Study::problem(), or use vision::Study for images");
    declare();
    if (const std::optional<int> status = d_.cli.parse(argc, argv)) return *status;
    settle_rates(d_);
    return run_study(d_);
  });
}

}  // namespace plumb::lab
