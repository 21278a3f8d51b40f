#include "experiments/common/experiment.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/atomic_file.h"
#include "experiments/common/data/open_data.h"
#include "experiments/common/dry_run.h"
#include "experiments/common/interrupt.h"
#include "experiments/common/progress.h"
#include "experiments/common/session.h"
#include "experiments/common/statistics.h"

namespace plumb::lab {

struct Run::State {
  const RunOptions& options;
  const ImageData& data;
  const Normalization& normalization;
  Progress& progress;
  const std::filesystem::path& folder;
  std::uint64_t seed;
  std::int64_t step = 0;
  std::string metrics = {};  // lines of metrics.jsonl of this seed
  Values last = {};
  std::string divergence = {};  // what the progress says of a seed that diverged
};

namespace {

const std::string diverged_at = "diverged_at";  // the value that marks a seed

using Json = nlohmann::ordered_json;
struct Interrupted {};

struct SeedResult {
  std::uint64_t seed;
  Run::Values values;
  std::string metrics;
};

std::optional<double> logged(const Run::Values& values, const std::string& name) {
  const auto entry = std::ranges::find(values, name, &Run::Values::value_type::first);
  return entry == values.end() ? std::nullopt : std::optional(entry->second);
}

double value_or_unknown(const Run::Values& values, const std::string& name) { return logged(values, name).value_or(unknown); }

double& value_named(Run::Values& values, const std::string& name) {
  auto entry = std::ranges::find(values, name, &Run::Values::value_type::first);
  if (entry == values.end()) entry = values.insert(values.end(), {name, unknown});
  return entry->second;
}

// Every name that a seed logged, in order of first appearance.
std::vector<std::string> logged_names(const std::vector<SeedResult>& results) {
  std::vector<std::string> names;
  for (const SeedResult& r : results)
    for (const auto& [name, value] : r.values)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

std::string results_csv(const std::vector<SeedResult>& results) {
  const std::vector<std::string> names = logged_names(results);
  std::string text = "seed";
  for (const std::string& name : names) text += "," + name;
  text += '\n';
  for (const SeedResult& r : results) {
    text += fmt::format("{}", r.seed);
    for (const std::string& name : names) {
      const double value = value_or_unknown(r.values, name);
      text += std::isfinite(value) ? fmt::format(",{}", value) : ",";
    }
    text += '\n';
  }
  return text;
}

// The finished seeds of an earlier call, in order of the metrics: a seed is finished when results.csv has it.
std::vector<SeedResult> read_finished(const RunFolder& folder) {
  std::vector<SeedResult> results;
  if (!std::filesystem::exists(folder / "results.csv") || !std::filesystem::exists(folder / "metrics.jsonl")) return results;
  std::istringstream rows(read_file(folder / "results.csv")), lines(read_file(folder / "metrics.jsonl"));
  std::string line;
  std::getline(rows, line);
  while (std::getline(rows, line)) {
    const std::string seed = line.substr(0, line.find(','));
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(seed.data(), seed.data() + seed.size(), number);
    check(error == std::errc() && end == seed.data() + seed.size(), "{}: expected a row that begins with a seed, got \"{}\"; mend or delete the line",
          (folder / "results.csv").string(), line);
    results.push_back({number, {}, {}});
  }
  while (std::getline(lines, line)) {
    const Json object = Json::parse(line, nullptr, false);
    check(object.is_object() && object.contains("seed") && object["seed"].is_number_unsigned(),
          "{}: expected one JSON object with a seed a line, got \"{}\"", (folder / "metrics.jsonl").string(), line);
    const auto result = std::ranges::find(results, object["seed"].get<std::uint64_t>(), &SeedResult::seed);
    if (result == results.end()) continue;
    result->metrics += line + '\n';
    for (const auto& [name, value] : object.items())
      if (name != "seed" && name != "step" && name != "divergence")
        value_named(result->values, name) = value.is_number() ? value.get<double>() : unknown;
  }
  return results;
}

std::string shown(double value, int digits) { return std::isfinite(value) ? fmt::format("{:.{}g}", value, digits) : "not finite"; }

constexpr std::size_t shown_unasked = 8;

// Which of the names to show: those asked for, or the first few.
std::vector<std::string> names_to_show(std::vector<std::string> names, const std::vector<std::string>& asked) {
  if (!asked.empty()) return asked;
  if (names.size() > shown_unasked) names.resize(shown_unasked);
  return names;
}

std::string summary_table(const std::vector<SeedResult>& results, const std::vector<std::string>& asked, const std::string& file) {
  std::vector<SeedResult> trained;
  std::vector<std::string> diverged;
  for (const SeedResult& r : results) {
    if (const double step = value_or_unknown(r.values, diverged_at); std::isnan(step))
      trained.push_back(r);
    else
      diverged.push_back(fmt::format("seed {} at step {:.0f}", r.seed, step));
  }
  std::string text;
  const std::vector<std::string> names = logged_names(trained);
  const std::vector<std::string> shown_names = names_to_show(names, asked);
  for (const std::string& name : shown_names) {
    if (std::ranges::find(names, name) == names.end()) {
      if (!trained.empty()) text += fmt::format("{:<20} {:>12}\n", name, "never logged");
      continue;
    }
    std::vector<double> values;
    for (const SeedResult& r : trained) values.push_back(value_or_unknown(r.values, name));
    const Summary s = summarize(values);
    text += fmt::format("{:<20} {:>12}{}  n = {}\n", name, shown(s.mean, 5), s.half_width ? fmt::format(" ± {:.3g}", *s.half_width) : "", s.n);
  }
  const auto left_out = std::ranges::count_if(names, [&](const std::string& n) { return std::ranges::find(shown_names, n) == shown_names.end(); });
  if (left_out > 0) text += fmt::format("{} more value{} in {}\n", left_out, left_out == 1 ? "" : "s", file);
  if (!diverged.empty()) text += fmt::format("{:<20} {} of {} seeds: {}\n", "diverged", diverged.size(), results.size(), fmt::join(diverged, ", "));
  return text;
}

int run_seeds(const Cli& cli, const RunOptions& o, const std::vector<std::string>& show, const std::function<void(Run&)>& body) {
  if (o.dry_run) {
    std::vector<PlannedRun> runs;
    for (std::int64_t seed : o.seeds) runs.push_back({fmt::format("{} seed {}", cli.experiment(), seed)});
    dry_run(cli, o, runs);
    return 0;
  }
  const Session session(cli, o);
  const RunFolder& folder = session.folder;
  std::vector<SeedResult> results = read_finished(folder);
  std::vector<ProgressArm> bars;
  for (std::int64_t seed : o.seeds) bars.push_back({fmt::format("seed {}", seed), static_cast<double>(o.steps)});
  const auto write = [&] {
    std::ranges::sort(results, {}, [&](const SeedResult& r) { return std::ranges::find(o.seeds, static_cast<std::int64_t>(r.seed)); });
    std::string metrics;
    for (const SeedResult& r : results) metrics += r.metrics;
    write_file_atomically(folder / "metrics.jsonl", metrics);
    write_file_atomically(folder / "results.csv", results_csv(results));
  };

  const InterruptHandler interrupt;
  {
    Progress progress(std::move(bars), ProgressOutput::standard_error(o.no_progress));
    for (std::size_t i = 0; i < o.seeds.size() && !interrupted(); ++i) {
      const auto seed = static_cast<std::uint64_t>(o.seeds[i]);
      if (std::ranges::find(results, seed, &SeedResult::seed) != results.end()) {
        progress.skip(i);
        continue;
      }
      progress.begin(i, o.steps);
      Run::State state{
          .options = o, .data = session.data, .normalization = session.normalization, .progress = progress, .folder = folder.path(), .seed = seed};
      Run run(state);
      try {
        body(run);
      } catch (const Interrupted&) {
        break;
      }
      std::string outcome = state.divergence;
      if (outcome.empty())
        for (const std::string& name : names_to_show(logged_names({{seed, state.last, {}}}), show))
          if (const auto value = logged(state.last, name)) outcome += fmt::format("{}{} {}", outcome.empty() ? "" : "  ", name, shown(*value, 4));
      progress.finish(state.divergence.empty(), outcome);
      results.push_back({seed, state.last, state.metrics});
      write();
    }
  }
  write();
  if (o.json) {
    Json rows = Json::array();
    for (const SeedResult& r : results) {
      Json row{{"seed", r.seed}};
      for (const auto& [name, value] : r.values) row[name] = value;  // written as null where not finite
      rows.push_back(row);
    }
    write_result(Json{{"folder", folder.path().string()}, {"results", rows}}.dump(2) + "\n");
  } else {
    write_result(fmt::format("\n{}\ndata: {}\nfolder: {}\n", summary_table(results, show, (folder / "results.csv").string()), session.data_text(),
                             folder.path().string()));
  }
  return session.finish(results.size(), o.seeds.size(), "seeds");
}

}  // namespace

const RunOptions& Run::options() const { return state_.options; }
std::uint64_t Run::seed() const { return state_.seed; }
const ImageData& Run::data() const { return state_.data; }
const Normalization& Run::normalization() const { return state_.normalization; }
Batches Run::batches(const Augmentation& augment) { return Batches(state_, augment); }

void Run::log(const Values& values) {
  Json line{{"seed", state_.seed}, {"step", state_.step}};
  for (const auto& [name, value] : values) {
    check(!name.empty() && name != "seed" && name != "step" && name != diverged_at && name != "divergence" &&
              name.find_first_of(",\"\n") == std::string::npos,
          "[log] expected a name other than seed, step, diverged_at and divergence, without comma, quote and line end, got \"{}\"", name);
    line[name] = value;  // written as null where not finite
    value_named(state_.last, name) = value;
  }
  state_.metrics += line.dump() + '\n';
  state_.progress.step(state_.step + 1, logged(state_.last, "loss"), value_or_unknown(state_.last, "lr"));
}

void Run::diverged(std::int64_t step, const std::string& reason) {
  check(state_.divergence.empty(), "[diverged] expected one divergence a seed, got a second at step {}", step);
  value_named(state_.last, diverged_at) = static_cast<double>(step);
  state_.metrics += Json{{"seed", state_.seed}, {"step", step}, {diverged_at, step}, {"divergence", reason}}.dump() + '\n';
  state_.divergence = fmt::format("diverged at step {}: {}", step, reason);
}

void Run::note(const std::string& text) { state_.progress.note(text); }
const std::filesystem::path& Run::folder() const { return state_.folder; }

Batches::Batches(Run::State& state, const Augmentation& augment)
    : state_(state), loader_(state.data.train, state.normalization, {.batch = state.options.batch, .seed = state.seed, .augment = augment}) {}

void Batches::advance() {
  scope_.reset();
  if (interrupted()) throw Interrupted();
  if (++step_ >= state_.options.steps) return;
  state_.step = step_;
  scope_.emplace(state_.seed, step_);
  batch_ = to_tensors(loader_.next(), state_.data.train);
}

int experiment(int argc, const char* const* argv, const ExperimentInfo& info, const std::function<void(Run&)>& body) {
  return exit_status([&] {
    RunOptions options = info.defaults;
    Cli cli(info.name, info.summary);
    if (info.declare) info.declare(cli);
    add_run_options(cli, options, {.data = data_set_names(), .devices = {"cpu", "reference"}});
    if (info.derive) cli.rule([&] { info.derive(cli, options); });
    return cli.parse(argc, argv) == Action::done ? 0 : run_seeds(cli, options, info.show, body);
  });
}

}  // namespace plumb::lab
