#include "experiments/lab/study/own_rates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/atomic_file.h"
#include "core/one_line.h"
#include "experiments/lab/plot/text.h"
#include "experiments/lab/record/study_description.h"
#include "experiments/lab/report/rates.h"
#include "experiments/lab/run/files.h"
#include "experiments/lab/stats/trained.h"
#include "experiments/lab/study/combinations.h"

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t fewest_seeds = 4;        // with fewer seeds, no search chooses rates
constexpr std::size_t usual_trials = 6;        // trials of an average search
constexpr int octave = 2, bound = 5 * octave;  // in ticks of half an octave

// The rate at a tick of the grid around `start`, with three significant digits.
double rate_at(double start, int tick) { return rounded_to(start * std::exp2(static_cast<double>(tick) / octave), 3); }

int tick_of(double start, double rate) { return static_cast<int>(std::lround(octave * std::log2(rate / start))); }

// The best rate. The lowest of equally good rates is the first in the map.
double best_of(const TriedRates& tried) {
  internal_check(!tried.empty(), "expected a learning rate that was tried");
  return std::ranges::min_element(tried, {}, &TriedRates::value_type::second)->first;
}

// The value of a trial that a search compares; lower is better.
double loss_of(const Record& record, const RateCriterion& by) {
  const double value = record.outcome(by.value);
  return std::isfinite(value) ? by.cost(value) : infinity;
}

// The rates that trials of a search have tried; a later trial replaces an earlier one.
TriedRates tried_by(const std::vector<const Record*>& trials, const RateCriterion& by) {
  TriedRates tried;
  for (const Record* r : trials) tried[r->point.get<double>("lr")] = loss_of(*r, by);
  return tried;
}

// Whether the trials of a search end with equal losses at all rates, as those of a body that does not read its rate.
// Equal values of a score do not tell: networks that learned nothing have the same accuracy.
bool ignores_rate(const std::vector<const Record*>& trials, const RateCriterion& by) {
  const auto measured = [&](const char* name) {
    return std::ranges::any_of(trials, [&](const Record* r) { return !std::isnan(r->outcome(name)); });
  };
  const auto equal = [&](const std::string& name) {
    const double first = trials.front()->outcome(name);
    return std::isfinite(first) &&
           std::ranges::all_of(trials, [&](const Record* r) { return r->outcome(name) == first; });
  };
  if (tried_by(trials, by).size() < 3 || !equal(by.value)) return false;
  // A training loss of 0 is as low as a loss gets, so several rates may reach it.
  return measured("train_loss") ? equal("train_loss") && trials.front()->outcome("train_loss") != 0
                                : by.better == Better::lower;
}

// The choice among the rates of these trials of a search. A body that does not read its rate gets the first rate, which
// is the middle one of a search that ended after its first trials.
RateChoice choice_by(const std::vector<const Record*>& trials, const Point& cell, const RateCriterion& by) {
  RateChoice choice = choice_among(tried_by(trials, by), cell, by);
  if (by.is_training_loss())
    for (const Record* r : trials)
      if (const double entropy = r->value(target_entropy_name); std::isfinite(entropy))
        choice.target_entropy = std::max(choice.target_entropy, entropy);
  if (!ignores_rate(trials, by)) return choice;
  choice.unread = true;
  choice.rate = choice.tried[1].first;
  choice.at_bound = false, choice.passed_over.reset();
  return choice;
}

Point cell_of(const Point& trial) { return trial.without("lr").without(search_steps).without("seed"); }

std::string name_of(const Point& cell) { return cell.entries().empty() ? "this study" : cell.label(); }

// Whether all methods of the study can be trained at rates of their own.
bool takes_rates(const StudyDeclaration& study) {
  const AxisData* axis = study.axis("lr");
  return study.parts.optimization && !study.next && !study.judging.off && (!axis || axis->values_of<double>());
}

// The values of the axis "lr"; null if there is no such axis.
std::vector<double>* rates_of_axis(StudyDeclaration& study) {
  const auto axis = std::ranges::find(study.axes, "lr", &AxisData::name);
  return axis == study.axes.end() ? nullptr : std::get_if<std::vector<double>>(&axis->values);
}

// The description of the study folder that the call resumes, shows or replays. Empty if the call does none of these,
// and for folders that StudyFolder refuses.
std::optional<StudyDescription> recorded_study(const StudyDeclaration& study) {
  const Mode mode = study.options.mode_without_dry_run();
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

std::vector<LedgerEntry> at_cell(const std::vector<LedgerEntry>& entries, const Point& cell) {
  std::vector<LedgerEntry> found;
  for (const LedgerEntry& e : entries)
    if (cell_of(e.record.point) == cell) found.push_back(e);
  return found;
}

// The choice of a search that has ended, from its trials in a ledger.
RateChoice choice_in(const std::vector<LedgerEntry>& entries, const Point& cell, const RateCriterion& by,
                     const std::string& file) {
  usage_check(
      std::ranges::any_of(entries, [&](const LedgerEntry& e) { return !std::isnan(e.record.outcome(by.value)); }),
      "--rates-from {}: this study chooses learning rates by {}, which no trial of {} measured; give a file "
      "whose trials measured it, or train with --at-lr",
      file, by.value, name_of(cell));
  std::vector<const Record*> trials;
  std::set<std::int64_t> seeds, lengths;
  for (const LedgerEntry& e : entries) {
    trials.push_back(&e.record);
    seeds.insert(e.record.seed()), lengths.insert(e.record.point.get<std::int64_t>(search_steps));
  }
  const TriedRates tried = tried_by(trials, by);
  usage_check(seeds.size() == 1 && lengths.size() == 1,
              "--rates-from {}: several searches chose the learning rate of {} (seeds {}; steps {}); give a file with "
              "one search",
              file, name_of(cell), fmt::join(seeds, ", "), fmt::join(lengths, ", "));
  // A search ends with two rates that are half an octave off the grid of its other rates, which are at least three.
  const auto off_grid = static_cast<std::size_t>(std::ranges::count_if(
      tried, [&](const auto& t) { return tick_of(tried.begin()->first, t.first) % octave != 0; }));
  usage_check(std::min(off_grid, tried.size() - off_grid) >= 2 || ignores_rate(trials, by),
              "--rates-from {}: the search for the learning rate of {} is not finished; finish it with --resume", file,
              name_of(cell));
  return choice_by(trials, cell, by);
}

// The rates of --rates-from for all cells of the call. A resumed folder has copies of the trials that chose its rates.
ChosenRates rates_from_file(const StudyDeclaration& study, bool resumed) {
  const std::string& file = study.rates_from;
  std::vector<LedgerEntry> own, others;
  if (resumed) own = searches_in(fs::path(study.options.out) / Ledger::file_name);
  ChosenRates chosen{.file = file};
  std::set<std::int64_t> choosing;
  for (const Point& cell : cells_of(study)) {
    std::vector<LedgerEntry> entries = at_cell(own, cell);
    if (entries.empty()) {
      usage_check(study.options.mode() != Mode::rebuild,
                  "{} has no search for the learning rate of {}, so its tables cannot be made; add it with --resume",
                  (fs::path(study.options.out) / Ledger::file_name).string(), name_of(cell));
      if (others.empty()) {
        if (fs::is_directory(file)) check_own_files(file);
        const fs::path ledger = fs::is_directory(file) ? fs::path(file) / Ledger::file_name : fs::path(file);
        usage_check(fs::exists(ledger), "--rates-from {}: there is no {}; give a study folder or its ledger", file,
                    ledger.string());
        others = searches_in(ledger);
        usage_check(
            !others.empty(),
            "--rates-from {}: no trial of a search for learning rates is in it; give the ledger of a study that "
            "trained each method at its own rate",
            file);
      }
      entries = at_cell(others, cell);
      usage_check(!entries.empty(),
                  "--rates-from {}: no search chose the learning rate of {}; leave these values out, or train with "
                  "--at-lr",
                  file, name_of(cell));
      chosen.taken.insert(chosen.taken.end(), entries.begin(), entries.end());
    }
    chosen.choices.push_back(choice_in(entries, cell, study.rates_by, file));
    choosing.insert(entries.front().record.seed());
  }
  for (const std::int64_t seed : study.options.seeds)
    usage_check(!choosing.contains(seed),
                "--seeds: seed {} chose learning rates in {}, so it cannot judge; leave it out of --seeds", seed, file);
  chosen.seeds.assign(choosing.begin(), choosing.end());
  return chosen;
}

// Half of the steps of a cell, rounded up.
std::int64_t half_of_steps(const StudyDeclaration& study, const Point& cell) {
  return std::max<std::int64_t>((study.by_point.study(cell).steps + 1) / 2, 1);
}

Point trial_of_search(const StudyDeclaration& study, const RateSearch& search, const Point& cell, double rate) {
  return {{"lr", rate}, {search_steps, half_of_steps(study, cell)}, {"seed", search.seed}};
}

std::vector<Point> judged_trials(const std::vector<std::int64_t>& seeds, double rate) {
  std::vector<Point> points;
  for (const std::int64_t seed : seeds) points.push_back({{"lr", rate}, {"seed", seed}});
  return points;
}

std::vector<std::int64_t> other_seeds(const StudyDeclaration& study, const RateSearch& search) {
  std::vector<std::int64_t> seeds = study.options.seeds;
  std::erase(seeds, search.seed);
  return seeds;
}

// "150 steps", or "half of the steps" if cells differ.
std::string half_in_words(const StudyDeclaration& study, const std::vector<Point>& cells) {
  std::set<std::int64_t> lengths;
  for (const Point& cell : cells) lengths.insert(half_of_steps(study, cell));
  return lengths.size() == 1 ? fmt::format("{} steps", *lengths.begin()) : "half of the steps";
}

// The rule of a call that resumes or shows a folder whose rates a search chose.
RateSearch resumed_search(StudyDeclaration& study, const Json& recorded) {
  const std::string& out = study.options.out;
  const auto seed = recorded.at("seeds").at(0).get<std::int64_t>();
  usage_check(study.options.seeds.front() == seed,
              "--seeds begins with {}, but seed {} chose the learning rates of {} and must stay the first seed; give "
              "--seeds {} and further seeds, or choose another --out",
              study.options.seeds.front(), seed, out, seed);
  if (std::vector<double>* rates = rates_of_axis(study))
    *rates = recorded.at(study.cli.declared(study.axis("lr")->option)->key()).get<std::vector<double>>();
  return {.start = 0, .seed = seed};
}

}  // namespace

std::vector<double> next_rates(double start, const TriedRates& tried) {
  const auto rates = [&](std::initializer_list<int> ticks) {
    std::vector<double> some;
    for (const int tick : ticks) some.push_back(rate_at(start, tick));
    return some;
  };
  if (tried.empty()) return rates({-octave, 0, octave});
  if (std::ranges::any_of(tried, [&](const auto& t) { return tick_of(start, t.first) % octave != 0; })) return {};
  const int best = tick_of(start, best_of(tried));
  if (best == tick_of(start, tried.rbegin()->first) && best < bound) return rates({best + octave});
  if (best == tick_of(start, tried.begin()->first) && best > -bound) return rates({best - octave});
  return rates({best - 1, best + 1});
}

RateChoice choice_among(const TriedRates& tried, const Point& cell, const RateCriterion& by) {
  const double best = best_of(tried), lowest = tried.at(best);
  double highest = lowest;  // of the finite losses
  for (const auto& [rate, loss] : tried)
    if (std::isfinite(loss)) highest = std::max(highest, loss);
  const double half = (lowest + highest) / 2;
  std::optional<double> chosen;
  for (auto at = tried.begin(); at != tried.end() && at->first <= best; ++at) {
    const auto next = std::next(at);
    const bool at_edge = next != tried.end() && next->second > half;
    if (at->second <= half && !at_edge && (!chosen || at->second < tried.at(*chosen))) chosen = at->first;
  }
  const double rate = chosen.value_or(best);
  std::vector<std::pair<double, double>> values;
  for (const auto& [each, loss] : tried) values.emplace_back(each, by.cost(loss));
  return {.cell = cell,
          .rate = rate,
          .by = by,
          .tried = std::move(values),
          .at_bound = rate == tried.begin()->first || rate == tried.rbegin()->first,
          .passed_over = rate == best ? std::nullopt : std::optional(best)};
}

bool is_of_search(const Point& trial) { return trial.find(search_steps) != nullptr; }

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

void settle_rates(StudyDeclaration& study) {
  const Cli& cli = study.cli;
  const StudyOptions& o = study.options;
  const std::optional<StudyDescription> folder = recorded_study(study);
  const std::optional<Json> recorded = folder ? std::optional(folder->settings.json) : std::nullopt;
  if (!takes_rates(study)) return;
  const AxisData* axis = study.axis("lr");
  std::vector<double>* rates = rates_of_axis(study);
  const bool axis_typed = axis && cli.typed(axis->option), at_typed = cli.typed("--at-lr");
  const std::string at_option = axis_typed ? axis->option : "--at-lr";
  usage_check(!at_typed || !axis_typed, "--at-lr and {} both give the learning rates; give only one", at_option);
  usage_check(!at_typed || axis || !cli.typed("--lr"), "--at-lr and --lr both give the learning rate; give only one");
  usage_check(axis || study.at_lr.size() <= 1,
              "--at-lr expects one learning rate, because {} has no axis of learning rates; got {}", cli.program(),
              fmt::join(study.at_lr, ","));
  if (axis_typed) study.at_lr = *rates;
  // A typed --rates-from replaces the rates of a configuration file.
  if (!axis_typed && !at_typed && cli.typed("--rates-from")) study.at_lr.clear();
  // A typed rate replaces the rate of a configuration file.
  if (!axis && !recorded && !study.at_lr.empty() && cli.typed("--lr")) study.at_lr = {study.optimization.lr};
  usage_check(study.at_lr.empty() || study.rates_from.empty(),
              "{} and --rates-from both set the learning rates; give only one", at_option);
  const std::vector<Point> cells = cells_of(study);
  const bool compares = cells.size() >= 2 && std::set(o.seeds.begin(), o.seeds.end()).size() >= fewest_seeds &&
                        (o.steps > 0 || study.axis("steps"));

  const bool fixed =
      recorded ? has_fixed_rates(*recorded) : !study.at_lr.empty() || (study.rates_from.empty() && !compares);
  if (fixed) {
    usage_check(study.rates_from.empty(),
                "--rates-from: the trials of {} train at fixed learning rates; leave the option out, or choose another "
                "--out",
                o.out);
    // A configuration file that was merged from several has further rates only on the axis.
    if (recorded && axis && !at_typed) study.at_lr = *rates;
    if (study.at_lr.empty()) study.at_lr = axis ? *rates : std::vector{study.optimization.lr};
    if (axis)
      *rates = study.at_lr;
    else
      study.optimization.lr = study.at_lr.front();
    if (recorded && compares && !at_typed && !axis_typed && o.mode() == Mode::resume)
      study.notes.push_back(
          fmt::format("the trials of {} train at fixed learning rates, and so does this call; for a rate for each "
                      "method choose another --out",
                      o.out));
    return;
  }
  if (recorded) {
    study.rates_by = folder->facts.rates_by;
    const std::string from = recorded->value("rates_from", "");
    usage_check(study.at_lr.empty(),
                "{}: each method of {} trains at its own learning rate; leave the option out, or choose another --out",
                at_option, o.out);
    usage_check(study.rates_from.empty() || !from.empty(),
                "--rates-from: a search chose the learning rates of {}; leave the option out, or choose another --out",
                o.out);
    if (study.rates_from.empty() && !from.empty()) {
      study.rates_from = printable(from);
      if (o.mode() != Mode::rebuild)
        note_error(fmt::format("reads {}: --rates-from in the settings of {}\n", study.rates_from, o.out));
    }
  }
  if (!study.rates_from.empty()) {
    study.rates = rates_from_file(study, recorded.has_value());
    return;
  }
  RateSearch search = recorded ? resumed_search(study, *recorded) : RateSearch{.start = 0, .seed = o.seeds.front()};
  search.start = study.optimization.lr;
  if (axis) {
    std::vector<double> sorted = *rates;
    std::ranges::sort(sorted);
    search.start = sorted[(sorted.size() - 1) / 2];
  }
  search.start = rate_at(search.start, 0);
  study.rates = search;
  if (o.mode() == Mode::run || o.mode() == Mode::overwrite)
    study.notes.push_back(fmt::format(
        "seed {} chooses a learning rate for each of {} combinations, with about {} trials of {} each; --at-lr {} "
        "trains all at one rate",
        search.seed, cells.size(), usual_trials, half_in_words(study, cells), search.start));
}

std::vector<Point> next_trials(const StudyDeclaration& study, const Search& search) {
  if (const auto* chosen = std::get_if<ChosenRates>(&study.rates)) {
    if (search.round > 0) return {};
    const auto choice = std::ranges::find(chosen->choices, search.point, &RateChoice::cell);
    internal_check(choice != chosen->choices.end(), "no learning rate for {}", search.point.label());
    return judged_trials(study.options.seeds, choice->rate);
  }
  const RateSearch& rule = std::get<RateSearch>(study.rates);
  bool measured = search.so_far.empty();
  for (const Record* r : search.so_far) {
    if (r->status == Status::failed || !is_of_search(r->point)) return {};
    measured = measured || !std::isnan(r->outcome(study.rates_by.value));
  }
  check(measured,
        "the search for a learning rate compares {}, which no trial of {} measured: call Trial::train, or "
        "Trial::measure in the loop of the study; or give --at-lr",
        study.rates_by.value, name_of(search.point));
  std::vector<Point> points;
  if (!ignores_rate(search.so_far, study.rates_by))
    for (const double rate : next_rates(rule.start, tried_by(search.so_far, study.rates_by)))
      points.push_back(trial_of_search(study, rule, search.point, rate));
  return points.empty()
             ? judged_trials(other_seeds(study, rule), choice_by(search.so_far, search.point, study.rates_by).rate)
             : points;
}

std::string note_on_rates(const StudyDeclaration& study, const Search& search, const Chance& chance) {
  const std::vector<const Record*>& trials = search.so_far;
  if (!std::holds_alternative<RateSearch>(study.rates) || trials.empty() ||
      !std::ranges::all_of(trials,
                           [](const Record* r) { return r->status != Status::failed && is_of_search(r->point); }))
    return "";
  if (ignores_rate(trials, study.rates_by))
    return "the body does not read the learning rate of its trial: all rates of a search give the same loss, so the "
           "search ends and no rate is shown (read it in the body: trial.task_settings().optimization.lr)";
  bool ended = false;
  for (const Record* r : trials) {
    const double entropy = r->value(target_entropy_name), loss = r->outcome("train_loss");
    if (!(clean_loss(loss, std::isnan(entropy) ? 0 : entropy, chance.loss) >= near_chance_share * chance.loss))
      return "";
    ended = ended || r->status == Status::hopeless || std::isfinite(loss);
  }
  return ended ? fmt::format(
                     "the search for the learning rate of {} is on a plateau: the losses at all rates so far are "
                     "near chance ({}) after {} steps; if it finds no better rate, give more --steps",
                     name_of(search.point), chance.text, half_of_steps(study, search.point))
               : "";
}

std::vector<Point> trials_to_follow(const StudyDeclaration& study, const std::vector<Point>& cells) {
  const auto* search = std::get_if<RateSearch>(&study.rates);
  if (!search) return {};
  std::vector<Point> all;
  for (const Point& cell : cells) {
    std::vector<Point> more = judged_trials(other_seeds(study, *search), search->start);
    more.insert(more.begin(), usual_trials - next_rates(search->start, {}).size(),
                trial_of_search(study, *search, cell, search->start));
    for (const Point& trial : more) {
      Point whole = cell;
      for (const auto& [name, value] : trial.entries()) whole.set(name, value);
      all.push_back(std::move(whole));
    }
  }
  return all;
}

std::string plan_of_search(const StudyDeclaration& study, const std::vector<Point>& cells) {
  const auto* search = std::get_if<RateSearch>(&study.rates);
  if (!search) return "";
  std::set<std::int64_t> lengths;
  for (const Point& cell : cells) lengths.insert(study.by_point.study(cell).steps);
  return fmt::format(
      "search: about {} trials of {} for each of {} combinations, of which the first {} are listed; then {} trials{} "
      "at the chosen rates\n",
      usual_trials, half_in_words(study, cells), cells.size(), next_rates(search->start, {}).size(),
      cells.size() * other_seeds(study, *search).size(),
      lengths.size() == 1 ? fmt::format(" of {} steps", *lengths.begin()) : "");
}

std::vector<RateChoice> chosen_rates(const StudyDeclaration& study, const std::vector<Record>& trials) {
  if (const auto* chosen = std::get_if<ChosenRates>(&study.rates)) return chosen->choices;
  const auto* search = std::get_if<RateSearch>(&study.rates);
  if (!search) return {};
  std::vector<std::pair<Point, std::vector<const Record*>>> searches;
  for (const Record& r : trials) {
    if (!is_of_search(r.point) || r.status == Status::failed) continue;
    const Point cell = cell_of(r.point);
    auto found = std::ranges::find(searches, cell, &std::pair<Point, std::vector<const Record*>>::first);
    if (found == searches.end()) found = searches.insert(found, {cell, {}});
    found->second.push_back(&r);
  }
  std::vector<RateChoice> choices;
  for (const auto& [cell, tried] : searches)
    if (ignores_rate(tried, study.rates_by) || next_rates(search->start, tried_by(tried, study.rates_by)).empty())
      choices.push_back(choice_by(tried, cell, study.rates_by));
  return choices;
}

bool has_unread_rate(const std::vector<RateChoice>& rates, const Point& trial) {
  const auto choice = std::ranges::find(rates, cell_of(trial), &RateChoice::cell);
  return choice != rates.end() && choice->unread;
}

Section section_of_rates(const StudyDeclaration& study, const std::vector<RateChoice>& rates) {
  const RateCriterion& by = study.rates_by;
  const bool by_loss = by.is_training_loss();
  const std::string rule = fmt::format(
      "The tried rate with the {0} {1} was chosen, except for a rate whose next higher tried rate ended in "
      "the {2} half of the {4}, or without a {3}: other seeds may fail there. A {3} is \"none\" if the trial "
      "diverged or was stopped as hopeless. If a rate is at the bound of the search, a better rate may lie beyond it.",
      by.better == Better::lower ? "lowest" : "highest", by_loss ? "training loss" : by.value,
      by.better == Better::lower ? "upper" : "lower", by_loss ? "loss" : "value", by_loss ? "losses" : "values");
  if (const auto* chosen = std::get_if<ChosenRates>(&study.rates))
    return rates_section(
        rates, "taken from " + chosen->file,
        fmt::format("A search in {} (seed{} {}) chose these rates before this study, so all seeds of this study are "
                    "judged. {}",
                    chosen->file, chosen->seeds.size() > 1 ? "s" : "", fmt::join(chosen->seeds, ", "), rule));
  const auto* search = std::get_if<RateSearch>(&study.rates);
  if (!search) return {};
  return rates_section(
      rates, fmt::format("chosen by seed {} in half of the steps", search->seed),
      fmt::format(
          "Seed {} trained each combination for half of the steps at several learning rates, and is not judged: "
          "{} and its octaves, until the best rate had a worse one on both sides, then half octaves around "
          "it. The other seeds trained at the chosen rate. {}",
          search->seed, search->start, rule));
}

std::string rule_for_rates(const StudyDescription& run) {
  const Json& s = run.settings.json;
  if (has_fixed_rates(s)) return "the same rates for all methods";
  const RateCriterion& by = run.facts.rates_by;
  const std::string best = by.is_training_loss() ? "" : " for the best " + by.value, from = s.value("rates_from", "");
  return (from.empty() ? fmt::format("a search by seed {}", s.at("seeds").at(0).get<std::int64_t>())
                       : "the rates of " + from) +
         best;
}

}  // namespace plumb::lab
