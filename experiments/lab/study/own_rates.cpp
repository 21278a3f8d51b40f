#include "experiments/lab/study/own_rates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/atomic_file.h"
#include "core/one_line.h"
#include "experiments/lab/options/mode.h"
#include "experiments/lab/record/study_description.h"
#include "experiments/lab/run/files.h"
#include "experiments/lab/study/combinations.h"
#include "experiments/lab/study/rate_search.h"

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t fewest_seeds = 4;  // with fewer seeds, no search chooses rates

// Whether all methods of the study can be trained at rates of their own.
bool takes_rates(const StudyDeclaration& study) {
  const AxisData* axis = study.axis("lr");
  return study.has_optimization && !study.next && !study.judging.off && (!axis || axis->values_of<double>());
}

// The values of the axis "lr"; null if there is no such axis.
std::vector<double>* rates_of_axis(StudyDeclaration& study) {
  const auto axis = std::ranges::find(study.axes, "lr", &AxisData::name);
  return axis == study.axes.end() ? nullptr : std::get_if<std::vector<double>>(&axis->values);
}

// The description of the study folder that the call resumes, shows or replays. Empty if the call does none of these,
// and for folders that StudyFolder refuses.
std::optional<StudyDescription> recorded_study(const StudyDeclaration& study) {
  const Mode mode = mode_without_dry_run(study.options);
  const fs::path file = fs::path(study.options.out) / "run.json";
  if (mode == Mode::run || mode == Mode::overwrite || !fs::exists(file)) return std::nullopt;
  check_own_files(study.options.out);
  StudyDescription run = StudyDescription::parse(read_file(file), file.string());
  return run.experiment == study.name ? std::optional(std::move(run)) : std::nullopt;
}

// Whether the trials of a study with these settings train at the same rates. A study that takes no rates (takes_rates)
// has no setting "at_lr".
bool has_fixed_rates(const Json& settings) { return !settings.contains("at_lr") || !settings["at_lr"].empty(); }

// The trials of searches in a ledger that count: for each combination, those of the code of its last trial. The values
// of single steps are left out.
std::vector<LedgerEntry> searches_in(const fs::path& file) {
  const Ledger ledger(file);
  std::map<std::string, std::string> codes;  // by combination
  std::vector<LedgerEntry> entries;
  for (const LedgerEntry& e : ledger.entries())
    if (is_of_search(e.record.point) && e.record.status != Status::failed && ledger.find(e.key, e.code) == &e) {
      entries.push_back(e);
      entries.back().record.metrics.clear(), entries.back().record.attachments.clear();
      entries.back().record.weights_saved.reset();  // the weights are in another folder
      codes[cell_of(e.record.point).label()] = e.code;
    }
  std::erase_if(entries, [&](const LedgerEntry& e) { return e.code != codes[cell_of(e.record.point).label()]; });
  return entries;
}

// The trials at a place (places_of), which are those of several combinations with Study::one_rate_for().
std::vector<LedgerEntry> at_place(const std::vector<LedgerEntry>& entries, const Point& place) {
  std::vector<LedgerEntry> found;
  std::ranges::copy_if(entries, std::back_inserter(found),
                       [&](const LedgerEntry& e) { return e.record.point.contains(place); });
  return found;
}

// The choice of a search that has ended, from its trials in a ledger.
RateChoice choice_in(const std::vector<LedgerEntry>& entries, const Point& cell, const RateCriterion& by,
                     const std::string& file, bool parabola) {
  usage_check(
      std::ranges::any_of(entries, [&](const LedgerEntry& e) { return !std::isnan(e.record.outcome(by.value)); }),
      "--rates-from {}: this study chooses learning rates by {}, which no trial of {} measured; give a file "
      "whose trials measured it, or train with --at-lr",
      file, by.value, name_of_cell(cell));
  std::vector<const Record*> trials;
  std::set<std::int64_t> seeds, lengths;
  for (const LedgerEntry& e : entries) {
    trials.push_back(&e.record);
    seeds.insert(e.record.seed()), lengths.insert(e.record.point.get<std::int64_t>(search_steps));
  }
  std::map<std::string, std::set<double>> rates;  // by combination
  for (const Record* r : trials) rates[cell_of(r->point).label()].insert(r->point.get<double>("lr"));
  usage_check(
      std::ranges::all_of(rates, [&](const auto& arm) { return arm.second == rates.begin()->second; }),
      "--rates-from {}: each combination has a search of its own there, and this study gives {} one rate; train "
      "without --rates-from",
      file, name_of_cell(cell));
  const TriedRates tried = losses_of(trials, by);
  usage_check(seeds.size() == 1 && lengths.size() == 1,
              "--rates-from {}: several searches chose the learning rate of {} (seeds {}; steps {}); give a file with "
              "one search",
              file, name_of_cell(cell), fmt::join(seeds, ", "), fmt::join(lengths, ", "));
  // A search ends with two rates that are half an octave off the grid of its other rates, which are at least three.
  const auto off_grid = static_cast<std::size_t>(std::ranges::count_if(
      tried, [&](const auto& t) { return std::lround(2 * std::log2(t.first / tried.begin()->first)) % 2 != 0; }));
  usage_check(std::min(off_grid, tried.size() - off_grid) >= 2 || ignores_rate(trials, by),
              "--rates-from {}: the search for the learning rate of {} is not finished; finish it with --resume", file,
              name_of_cell(cell));
  return choice_by(trials, cell, by, parabola);
}

// The trials of searches in the study folder or ledger `file`.
std::vector<LedgerEntry> searches_of_file(const std::string& file) {
  if (fs::is_directory(file)) check_own_files(file);
  const fs::path ledger = fs::is_directory(file) ? fs::path(file) / Ledger::file_name : fs::path(file);
  usage_check(fs::exists(ledger), "--rates-from {}: there is no {}; give a study folder or its ledger", file,
              ledger.string());
  std::vector<LedgerEntry> entries = searches_in(ledger);
  usage_check(!entries.empty(),
              "--rates-from {}: no trial of a search for learning rates is in it; give the ledger of a study that "
              "trained each method at its own rate",
              file);
  return entries;
}

// The rates of --rates-from for all places of the call. A resumed folder has copies of the trials that chose its rates.
ChosenRates rates_from_file(const StudyDeclaration& study, bool resumed, bool parabola) {
  const std::string& file = study.rates_from;
  const fs::path own_ledger = fs::path(study.options.out) / Ledger::file_name;
  const std::vector<LedgerEntry> own = resumed ? searches_in(own_ledger) : std::vector<LedgerEntry>();
  std::vector<LedgerEntry> others;
  ChosenRates chosen{.file = file, .parabola = parabola};
  std::set<std::int64_t> choosing;
  for (const Point& place : places_of(study)) {
    std::vector<LedgerEntry> entries = at_place(own, place);
    if (entries.empty()) {
      usage_check(mode_of(study.options) != Mode::rebuild,
                  "{} has no search for the learning rate of {}, so its tables cannot be made; add it with --resume",
                  own_ledger.string(), name_of_cell(place));
      if (others.empty()) others = searches_of_file(file);
      entries = at_place(others, place);
      usage_check(!entries.empty(),
                  "--rates-from {}: no search chose the learning rate of {}; leave these values out, or train with "
                  "--at-lr",
                  file, name_of_cell(place));
      chosen.taken.insert(chosen.taken.end(), entries.begin(), entries.end());
    }
    chosen.choices.push_back(choice_in(entries, place, study.rates_by, file, parabola));
    choosing.insert(entries.front().record.seed());
    std::ranges::copy(entries, std::back_inserter(chosen.searches));
  }
  for (const std::int64_t seed : study.options.seeds)
    usage_check(!choosing.contains(seed),
                "--seeds: seed {} chose learning rates in {}, so it cannot judge; leave it out of --seeds", seed, file);
  chosen.seeds.assign(choosing.begin(), choosing.end());
  return chosen;
}

// The rule of a call that resumes or shows a folder whose rates a search chose.
std::int64_t resumed_seed(StudyDeclaration& study, const Json& recorded) {
  const std::string& out = study.options.out;
  const auto seed = recorded.at("seeds").at(0).get<std::int64_t>();
  usage_check(study.options.seeds.front() == seed,
              "--seeds begins with {}, but seed {} chose the learning rates of {} and must stay the first seed; give "
              "--seeds {} and further seeds, or choose another --out",
              study.options.seeds.front(), seed, out, seed);
  if (std::vector<double>* rates = rates_of_axis(study))
    *rates = recorded.at(study.cli.declared(study.axis("lr")->option)->key()).get<std::vector<double>>();
  return seed;
}

}  // namespace

void declare_rates(StudyDeclaration& study) {
  if (!takes_rates(study)) return;
  const AxisData* axis = study.axis("lr");
  study.cli.section("Axes");
  study.cli
      .option("--at-lr", &study.at_lr,
              fmt::format("Train all methods at {}. By default, with at least four seeds and two combinations of the "
                          "other axes, each combination trains at its own rate: the first seed chooses the rate by a "
                          "search from {}, and the other seeds are judged{}",
                          axis ? "each of these learning rates" : "this learning rate",
                          axis ? "the middle rate of " + axis->option : "--lr",
                          axis ? fmt::format(". {} on the command line means the same", axis->option) : ""))
      .above(0)
      .may_be_empty()
      .scope(Scope::study);
  study.cli
      .option("--rates-from", &study.rates_from,
              "Train each combination of the axes at the rate that an earlier search chose; FILE is a study folder or "
              "its ledger")
      .path("FILE")
      .scope(Scope::study);
  if (!axis) study.by_point.bind("lr", "--lr");
}

namespace {

// The option with which the user gives the rates of all trials.
std::string rates_option(const StudyDeclaration& study) {
  const AxisData* axis = study.axis("lr");
  return axis && study.cli.typed(axis->option) ? axis->option : "--at-lr";
}

// Reads the rates that the user gives. Throws UsageError if options contradict each other.
void read_typed_rates(StudyDeclaration& study, bool resumes) {
  const Cli& cli = study.cli;
  const bool axis = study.axis("lr") != nullptr, at_typed = cli.typed("--at-lr");
  const std::string option = rates_option(study);
  const bool axis_typed = option != "--at-lr";
  usage_check(!at_typed || !axis_typed, "--at-lr and {} both give the learning rates; give only one", option);
  usage_check(!at_typed || axis || !cli.typed("--lr"), "--at-lr and --lr both give the learning rate; give only one");
  usage_check(axis || study.at_lr.size() <= 1,
              "--at-lr expects one learning rate, because {} has no axis of learning rates; got {}", cli.program(),
              fmt::join(study.at_lr, ","));
  if (axis_typed) study.at_lr = *rates_of_axis(study);
  // A typed --rates-from replaces the rates of a configuration file.
  if (!axis_typed && !at_typed && cli.typed("--rates-from")) study.at_lr.clear();
  // A typed rate replaces the rate of a configuration file.
  if (!axis && !resumes && !study.at_lr.empty() && cli.typed("--lr")) study.at_lr = {study.optimization.lr};
  usage_check(study.at_lr.empty() || study.rates_from.empty(),
              "{} and --rates-from both set the learning rates; give only one", option);
}

// Trains all trials at the rates of the call, or at those of the folder that the call resumes.
void fix_rates(StudyDeclaration& study, bool resumes, bool compares) {
  std::vector<double>* const rates = rates_of_axis(study);
  const bool axis = study.axis("lr") != nullptr, at_typed = study.cli.typed("--at-lr");
  usage_check(study.rates_from.empty(),
              "--rates-from: the trials of {} train at fixed learning rates; leave the option out, or choose another "
              "--out",
              study.options.out);
  // A configuration file that was merged from several has further rates only on the axis.
  if (resumes && axis && !at_typed) study.at_lr = *rates;
  if (study.at_lr.empty()) study.at_lr = axis ? *rates : std::vector{study.optimization.lr};
  if (axis)
    *rates = study.at_lr;
  else
    study.optimization.lr = study.at_lr.front();
  if (resumes && compares && !at_typed && rates_option(study) == "--at-lr" && mode_of(study.options) == Mode::resume)
    study.notes.push_back(
        fmt::format("the trials of {} train at fixed learning rates, and so does this call; for a rate for each "
                    "method choose another --out",
                    study.options.out));
}

// Takes the way in which the folder that the call resumes chose its rates.
void take_rates_of(StudyDeclaration& study, const StudyDescription& folder) {
  const StudyOptions& o = study.options;
  study.rates_by = folder.facts.rates_by;
  if (folder.rule.empty()) study.shared_by.clear();  // each combination of an old folder has a search of its own
  const std::string from = folder.settings.json.value("rates_from", "");
  usage_check(study.at_lr.empty(),
              "{}: each method of {} trains at its own learning rate; leave the option out, or choose another --out",
              rates_option(study), o.out);
  usage_check(study.rates_from.empty() || !from.empty(),
              "--rates-from: a search chose the learning rates of {}; leave the option out, or choose another --out",
              o.out);
  if (!study.rates_from.empty() || from.empty()) return;
  study.rates_from = printable(from);
  if (mode_of(o) != Mode::rebuild)
    note_error(fmt::format("reads {}: --rates-from in the settings of {}\n", study.rates_from, o.out));
}

// Searches for the rate of each combination.
void search_rates(StudyDeclaration& study, RateSearch search) {
  const StudyOptions& o = study.options;
  search.start = study.optimization.lr;
  if (const std::vector<double>* rates = rates_of_axis(study); study.axis("lr")) {
    std::vector<double> sorted = *rates;
    std::ranges::sort(sorted);
    search.start = sorted[(sorted.size() - 1) / 2];
  }
  search.start = rate_at(search.start, 0);
  study.rates = search;
  if (mode_of(o) == Mode::run || mode_of(o) == Mode::overwrite)
    study.notes.push_back(fmt::format(
        "seed {} chooses a learning rate for each of {} combinations, with about {} trials of {} each; --at-lr {} "
        "trains all at one rate",
        search.seed, cells_of(study).size(), usual_trials, search_steps_words(study, places_of(study)), search.start));
}

}  // namespace

void settle_rates(StudyDeclaration& study) {
  const StudyOptions& o = study.options;
  const std::optional<StudyDescription> folder = recorded_study(study);
  if (!takes_rates(study)) return;
  read_typed_rates(study, folder.has_value());
  const bool compares = cells_of(study).size() >= 2 &&
                        std::set(o.seeds.begin(), o.seeds.end()).size() >= fewest_seeds &&
                        (o.steps > 0 || study.axis("steps"));
  if (folder ? has_fixed_rates(folder->settings.json) : !study.at_lr.empty() || (study.rates_from.empty() && !compares))
    return fix_rates(study, folder.has_value(), compares);
  if (folder) take_rates_of(study, *folder);
  const bool parabola = !folder || !folder->rule.empty();
  if (!study.rates_from.empty()) {
    study.rates = rates_from_file(study, folder.has_value(), parabola);
  } else {
    const std::int64_t seed = folder ? resumed_seed(study, folder->settings.json) : o.seeds.front();
    search_rates(study, {.seed = seed, .parabola = parabola});
  }
  study.next = rate_search(study);
}

RatesText describe_rates(const StudyDeclaration& study) {
  const RateCriterion& by = study.rates_by;
  const auto* chosen = std::get_if<ChosenRates>(&study.rates);
  const auto* search = std::get_if<RateSearch>(&study.rates);
  const bool lower = by.better == Better::lower, old = search ? !search->parabola : !chosen->parabola;
  const std::string rule = fmt::format(
      "The rate is {} with the {} {}. A rate whose next higher tried rate failed, or ended in the {} half, is passed "
      "over: other seeds may fail there. If a rate is at the bound of the search, a better rate may lie beyond it.",
      old ? "the tried one" : "the vertex of a parabola through the tried rates around the one",
      lower ? "lowest" : "highest", by.is_training_loss() ? "training loss" : by.value, lower ? "upper" : "lower");
  if (chosen)
    return {
        "taken from " + chosen->file,
        fmt::format("A search in {} (seed{} {}) chose these rates before this study, so all seeds of this study are "
                    "judged. {}",
                    chosen->file, chosen->seeds.size() > 1 ? "s" : "", fmt::join(chosen->seeds, ", "), rule)};
  return {fmt::format("chosen by seed {}", search->seed),
          fmt::format("Seed {} trained each combination for half of the steps, with {} warm-up, and is not judged: at "
                      "{} and its octaves, until the best rate had a worse one on both sides, then half octaves around "
                      "it. The other seeds trained at the chosen rate. {}",
                      search->seed, old ? "half of the" : "the whole", search->start, rule)};
}

std::string rule_for_rates(const StudyDescription& run) {
  const Json& s = run.settings.json;
  if (has_fixed_rates(s)) return "the same rates for all methods";
  const RateCriterion& by = run.facts.rates_by;
  const std::string best = by.is_training_loss() ? "" : " for the best " + by.value, from = s.value("rates_from", "");
  return (from.empty() ? fmt::format("a search by seed {}", s.at("seeds").at(0).get<std::int64_t>())
                       : "the rates of " + from) +
         best + (run.rule.empty() ? ", by the rule of older folders" : "");
}

}  // namespace plumb::lab
