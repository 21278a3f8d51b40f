#include "experiments/lab/study/study.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "core/backend.h"
#include "experiments/lab/build_info.h"
#include "experiments/lab/data/open_data.h"
#include "experiments/lab/hash.h"
#include "experiments/lab/options/options_at.h"
#include "experiments/lab/record/csv.h"
#include "experiments/lab/record/model_facts.h"
#include "experiments/lab/record/study_description.h"
#include "experiments/lab/report/curves.h"
#include "experiments/lab/report/figure_files.h"
#include "experiments/lab/report/references.h"
#include "experiments/lab/report/report.h"
#include "experiments/lab/report/tensorboard.h"
#include "experiments/lab/report/text.h"
#include "experiments/lab/run/files.h"
#include "experiments/lab/run/interrupt.h"
#include "experiments/lab/run/progress.h"
#include "experiments/lab/run/setup.h"
#include "experiments/lab/run/step_profile.h"
#include "experiments/lab/stats/claim_check.h"
#include "experiments/lab/stats/reference.h"
#include "experiments/lab/study/dry_run.h"
#include "experiments/lab/study/replay.h"
#include "experiments/lab/study/sweep.h"
#include "experiments/lab/train/linear_model.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;

// "--drop-keys" -> "drop_key"
std::string axis_name(const std::string& option) {
  std::string name = option.substr(std::min<std::size_t>(option.find_first_not_of('-'), option.size()));
  std::ranges::replace(name, '-', '_');
  for (const char* end : {"ches", "shes", "sses", "xes"})
    if (name.ends_with(end)) return name.substr(0, name.size() - 2);
  return name.ends_with('s') && name.size() > 1 ? name.substr(0, name.size() - 1) : name;
}

// With --best-lr a method is what it is at its own rate, and what chose that rate does not judge.
std::vector<Record> at_own_rates(const StudyResults& r) {
  std::vector<Record> records;
  for (const Record& record : r.records)
    if (!r.judging.choosing.contains(record.seed()))
      records.push_back(
          {.point = record.point.without("lr"), .status = record.status, .steps = record.steps, .seconds = record.seconds, .values = record.values});
  return records;
}

// What a claim about rates is judged by: all rates, at seeds that nothing chose.
std::vector<Record> that_chose(const StudyResults& r) {
  std::vector<Record> records;
  for (const Record& record : r.records)
    if (r.judging.choosing.contains(record.seed())) records.push_back(record);
  return records;
}

std::string plural(std::size_t count, const char* noun) { return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s"); }

}  // namespace

Study::Study(std::string name, std::string question, StudyParts parts)
    : name_(name), question_(question), parts_(parts), cli_(std::move(name), std::move(question)) {
  if (parts.network) options_.warmup.reset();
}

Study::~Study() = default;

AxisData& Study::add_axis(const std::string& option, const std::string& help, AxisData data) {
  data.name = axis_name(option);
  data.option = option;
  plumb::check(std::ranges::find(axes_, option, &AxisData::option) == axes_.end() && option != "--seeds",
               "[study] expected axes with options of their own (seeds have --seeds), got a second {}", option);
  AxisData& axis = axes_.emplace_back(std::move(data));
  cli_.section("Axes");
  axis.declared = std::visit([&](auto& values) { return &cli_.option(option, &values, help); }, axis.values);
  axis.declared->decides_which_trials();
  return axis;
}

void Study::declare() {
  const Json own = Json::parse(cli_.fixed_settings());
  for (const auto& [key, value] : own.items()) own_settings_.push_back(key);
  for (const AxisData& axis : axes_) cli_.leave_out(option_of_axis(axis.name));
  if (parts_.network) network_.declare(cli_);
  if (parts_.optimization) optimization_.declare(cli_);
  options_.declare(cli_, choices_);
  check_axes();
  declare_warmups();
  if (derive_) cli_.rule(derive_);
  declare_best_lr();
}

void Study::file(const std::string& name, std::function<std::string(const StudyResults&)> text) {
  plumb::check(!is_run_file(name) && name.find('/') == name.npos, "[study] expected a file of the study's own in the run's folder, got {}", name);
  files_.emplace_back(name, std::move(text));
}

// What can only be wrong in the program itself.
void Study::check_axes() const {
  for (const AxisData& axis : axes_) {
    const auto same_name = std::ranges::count(axes_, axis.name, &AxisData::name);
    const bool taken = axis.name == "seed" || axis.name == "status" || axis.name == "step" || axis.name == "seconds";
    plumb::check(same_name == 1 && !taken, "[study] expected axes with names of their own, got {} for {}", axis.name, axis.option);
  }
  for (const CliOption& option : cli_.left_out())
    plumb::check(option.may_differ_by_trial(),
                 "[study] expected axes that stand for no option of the library, or for one that each trial reads, got one for {}: "
                 "choose another name, Axis::named()",
                 option.name);
  plumb::check(is_searched() == (next_ != nullptr), "[study] expected search() and searched axes together, got {}",
               next_ ? "search() alone" : "searched axes alone");
}

std::vector<std::string> Study::claims_not_judged() const {
  std::vector<ClaimAxis> axes;
  for (const AxisData& axis : axes_) {
    ClaimAxis& a = axes.emplace_back(ClaimAxis{.name = axis.name, .option = axis.option, .searched = axis.declared == nullptr});
    a.text = std::holds_alternative<std::vector<std::string>>(axis.values);
    std::visit([&](const auto& values) { a.values.assign(values.begin(), values.end()); }, axis.values);
    if (axis.declared) a.names = axis.declared->names();
  }
  axes.push_back({.name = "seed", .option = "--seeds", .values = {options_.seeds.begin(), options_.seeds.end()}});
  return lab::claims_not_judged(claims_, axes, places());
}

void Study::check_measures(const Record& record) const {
  const std::optional<std::string> wrong = unmeasured_claim(claims_, record);
  plumb::check(!wrong, "{}", wrong.value_or(""));
}

// The default values of an axis of warm-ups keep their share of the steps, as --warmup does.
void Study::declare_warmups() {
  const auto axis = std::ranges::find(axes_, "warmup", &AxisData::name);
  if (axis == axes_.end() || !axis->declared || !std::holds_alternative<std::vector<std::int64_t>>(axis->values)) return;
  const auto defaults = std::make_shared<std::pair<std::int64_t, std::vector<std::int64_t>>>();
  auto& values = std::get<std::vector<std::int64_t>>(axis->values);
  cli_.when_defaults_are_set([this, defaults, &values] { *defaults = {options_.steps, values}; });
  cli_.rule([this, defaults, &values, &option = *axis->declared] {
    const auto& [of_steps, steps] = *defaults;
    if (cli_.given(option.name) || of_steps == options_.steps) return;
    values.clear();
    for (const std::int64_t s : steps) {
      const double share = static_cast<double>(s) / static_cast<double>(of_steps);
      const std::int64_t scaled = s == 0 ? 0 : std::max<std::int64_t>(std::llround(share * static_cast<double>(options_.steps)), 1);
      if (std::ranges::find(values, scaled) == values.end()) values.push_back(scaled);
    }
    notes_.push_back(
        fmt::format("{} {} of {} steps: by default {} of {}", option.name, fmt::join(values, ","), options_.steps, fmt::join(steps, ","), of_steps));
    cli_.explain(option.name, fmt::format("of the steps as by default: {} of {}", fmt::join(steps, ", "), of_steps));
  });
}

void Study::declare_best_lr() {
  const auto rates = std::ranges::find(axes_, "lr", &AxisData::name);
  if (next_ || rates == axes_.end() || !std::holds_alternative<std::vector<double>>(rates->values)) return;
  cli_.section("Axes");
  cli_.option(
          "--best-lr", &best_lr_,
          fmt::format(
              "The smallest third of the seeds (one at least) chooses a rate of {} for each combination of the other axes; the other seeds train at "
              "that one, and are judged",
              rates->option))
      .decides_which_trials();
  cli_.rule([this, &rates = *rates] {
    usage_check(!best_lr_ || std::get<std::vector<double>>(rates.values).size() > 1,
                "--best-lr chooses among rates; give several, such as {} 1e-3,3e-3", rates.option);
  });
}

const std::vector<double>& Study::rates_to_choose_from() const {
  return std::get<std::vector<double>>(std::ranges::find(axes_, "lr", &AxisData::name)->values);
}

bool Study::is_searched(const AxisData& axis) const { return !axis.declared || (best_lr_ && axis.name == "lr"); }

bool Study::is_searched() const {
  return std::ranges::any_of(axes_, [&](const AxisData& a) { return is_searched(a); });
}

std::vector<Point> Study::next_points(const Search& search) const {
  if (!best_lr_) return next_(search);
  const std::set<std::int64_t> choosing = choosing_seeds(options_.seeds);
  const std::vector<double>& rates = rates_to_choose_from();
  std::vector<Point> points;
  if (search.round == 0) {
    for (const double rate : rates)
      for (const std::int64_t seed : choosing) points.push_back({{"lr", rate}, {"seed", seed}});
  } else if (search.round == 1) {
    std::map<double, Outcomes> by_rate;
    bool measured = false;
    for (const Record* r : search.so_far) {
      const double outcome = by_rate[r->point.get<double>("lr")].emplace_back(r->outcome("train_loss"));
      measured = measured || !std::isnan(outcome);
    }
    plumb::check(measured,
                 "--best-lr chooses by train_loss, which no run of {} measured: Trial::train does, or Trial::measure in the study's own loop",
                 search.place.label());
    for (const std::int64_t seed : options_.seeds)
      if (!choosing.contains(seed)) points.push_back({{"lr", best_rate(by_rate)}, {"seed", seed}});
  }
  return points;
}

std::vector<Point> Study::places() const {
  std::vector<const AxisData*> order;
  for (const AxisData& axis : axes_)
    if (!is_searched(axis)) order.push_back(&axis);
  std::ranges::stable_sort(order, {}, [](const AxisData* a) { return !a->slowest; });
  std::vector<Point> points{Point()};
  for (const AxisData* axis : order) {
    std::vector<Point> longer;
    for (const Point& point : points)
      std::visit(
          [&](const auto& values) {
            for (const auto& value : values) {
              longer.push_back(point);
              longer.back().set(axis->name, value);
            }
          },
          axis->values);
    points = std::move(longer);
  }
  if (wanted_) std::erase_if(points, [&](const Point& p) { return !wanted_(p); });
  usage_check(!points.empty(), "{} runs none of the combinations of these values; see --help", name_);
  return points;
}

Point Study::point_of(const Point& place, const Point& searched, std::int64_t seed) const {
  Point point;
  for (const AxisData& axis : axes_) {
    const AxisValue* value = is_searched(axis) ? searched.find(axis.name) : place.find(axis.name);
    plumb::check(value, "[search] expected points with a value of {}, got {}", axis.name, searched.label());
    point.set(axis.name, *value);
  }
  plumb::check(searched.entries().size() + place.entries().size() == axes_.size(), "[search] expected values of searched axes alone, got {}",
               searched.label());
  point.set("seed", seed);
  return point;
}

double Study::cost_of(const Point& point) const {
  const AxisValue* depth = point.find("depth");
  const auto* blocks = depth ? std::get_if<std::int64_t>(depth) : nullptr;
  return static_cast<double>(blocks ? *blocks : 1) * static_cast<double>(std::max<std::int64_t>(options_at(options_, point).steps, 1));
}

std::vector<std::string> Study::shown_in_progress(const Record& record) const {
  if (!show_.empty()) return show_;
  std::vector<std::string> names = measured_names({record});
  std::erase(names, "images_per_second");
  if (names.size() > shown_unasked) names.resize(shown_unasked);
  return names;
}

std::string Study::key_of(const Point& point, const DataFacts& data) const {
  // Strictly deterministic trials have the same bits on any number of threads.
  const std::string threads = options_.deterministic == "strict" ? "" : fmt::format("\n{} threads", num_threads());
  return hash_of(fmt::format("{}\n{}\n{}\n{}{}", name_, cli_.fixed_settings(), data.hash, to_json(point), threads));
}

// How it was done: what was compared, the options of the library in words, then the study's own.
NamedTexts Study::settings_texts(const DataFacts& data) const {
  const auto by_axis = [&](const char* option) { return std::ranges::find(cli_.left_out(), option, &CliOption::name) != cli_.left_out().end(); };
  NamedTexts texts{{"data", data.text}};
  if (parts_.network) texts.emplace_back("model", network_.describe(data.images));
  std::string rates = fmt::format("{}", optimization_.lr);
  for (const AxisData& axis : axes_)
    if (const auto* values = std::get_if<std::vector<double>>(&axis.values); values && axis.name == "lr")
      rates = fmt::format("{}", fmt::join(*values, ", "));
  const std::string warmup = options_.warmup_share && by_axis("--steps") ? fmt::format("{:.3g} % of the steps", 100 * *options_.warmup_share)
                                                                         : network_.describe_warmup(options_.warmup);
  texts.emplace_back("training", parts_.optimization
                                     ? optimization_.describe(options_, rates, warmup)
                                     : fmt::format("{} steps of batch {}, warm-up {}", options_.steps, options_.batch, options_.warmup.value_or(0)));
  if (parts_.optimization) {
    texts.emplace_back("augmentation", optimization_.augment.describe(optimization_.augment.make(data.name, data.images, options_.batch)));
    texts.emplace_back("evaluated weights", optimization_.describe_evaluated());
  }
  if (parts_.network) {
    const DropOptions& drop = network_.drop;
    texts.insert(texts.end(),
                 {{"recipe", by_axis("--recipe") ? "varied" : network_.describe_recipe()},
                  {"DropKey", by_axis("--drop-key") ? "varied" : network_.describe_drop_key(data.images)},
                  {"attention dropout", by_axis("--attn-drop") ? "varied"
                                        : drop.attn_drop > 0   ? fmt::format("{:g}", drop.attn_drop)
                                                               : "none"},
                  {"DropHead", drop.drop_head > 0 ? fmt::format("{:g} at the ends of training, 0 at its middle", drop.drop_head) : "none"},
                  {"drop-path", by_axis("--drop-path") ? "varied" : drop.describe_path()}});
  }
  if (const auto gates = std::ranges::find(axes_, "gate", &AxisData::name); gates != axes_.end() && network_.recipe == "paper")
    if (const auto* names = std::get_if<std::vector<std::string>>(&gates->values))
      for (const std::string& name : *names) texts.emplace_back("recipe of " + name, network_.describe_recipe_of(nn::method_named(name)));
  std::vector<std::string> varied;
  for (const CliOption& option : cli_.left_out())
    if (option.name != "--lr") varied.push_back(option.name);
  if (!varied.empty()) texts.emplace_back("varied by the program", fmt::format("{}", fmt::join(varied, ", ")));
  const Json fixed = Json::parse(cli_.fixed_settings());
  for (const std::string& key : own_settings_) texts.emplace_back(key, fixed[key].is_string() ? fixed[key].get<std::string>() : fixed[key].dump());
  texts.emplace_back("number format", options_.dtype);
  return texts;
}

StudyResults Study::results(const Sweep& sweep, const StudyFolder& folder) const {
  const StudyDescription& run = folder.description();
  const DataFacts& data = run.facts.data;
  const std::vector<std::string> machines = sweep.machines();
  StudyResults r{.name = title_ ? title_(data) : name_,
                 .question = question_,
                 .columns = columns_,
                 .show = show_,
                 .records = sweep.records(),
                 .data = data,
                 .notes = {{"version", fmt::format("{} ({}), {}", run.version, run.commit, run.build)},
                           {machines.size() > 1 ? "machines" : "machine",
                            machines.empty() ? run.facts.machine.device : fmt::format("{}", fmt::join(machines, "; "))},
                           {"command", run.command_line}},
                 .judging = judging_,
                 .folder = folder.path()};
  r.judging.classes = data.images.classes;
  r.judging.off = next_ != nullptr;
  r.judging.references = chance_references(data.images.classes);
  if (data.linear) std::ranges::copy(references_of(*data.linear), std::back_inserter(r.judging.references));
  std::ranges::copy(references_, std::back_inserter(r.judging.references));
  if (parts_.optimization && std::ranges::find(axes_, "lr", &AxisData::name) == axes_.end()) r.judging.rate = optimization_.lr;
  for (const Record& record : r.records)
    if (Point place = record.point.without("seed").without("lr").without("depth"); place.label() == judging_.control)
      r.judging.control = method_name(r, record.point);
  if (best_lr_) r.judging.choosing = choosing_seeds(options_.seeds), r.judging.no_others = options_.seeds.size() == 1;
  for (const AxisData& axis : axes_) r.axes.push_back(axis.name);
  r.axes.emplace_back("seed");
  r.settings = settings_ ? settings_(data) : settings_texts(data);
  if (const std::string trained = describe_models(r.records); !trained.empty()) r.settings.emplace_back("trained", trained);
  std::vector<std::string> others = sweep.codes();
  std::erase(others, run.facts.code);
  if (!others.empty()) r.notes.emplace_back("code", fmt::format("{}, and runs computed by other code: {}", run.facts.code, fmt::join(others, ", ")));
  if (const std::vector<std::string> not_judged = claims_not_judged(); !not_judged.empty())
    r.notes.emplace_back("claims not judged", fmt::format("{}", fmt::join(not_judged, "; ")));
  const std::vector<Point> named = sweep.named();
  const std::vector<Record> own = best_lr_ ? at_own_rates(r) : std::vector<Record>(), tried = best_lr_ ? that_chose(r) : std::vector<Record>();
  for (const Claim& claim : claims_) {
    const Comparison& c = claim.comparison;
    const auto any_at = [&](const Point& side) {
      return std::ranges::any_of(named, [&](const Point& p) { return p.contains(side) && p.contains(c.where); });
    };
    if (!any_at(c.a) || !any_at(c.b)) continue;  // not about these values of the axes
    r.claims.push_back({claim.text, claim.source, judge(c, !best_lr_ ? r.records : c.names("lr") ? tried : own)});
  }
  for (const auto& make : sections_) r.sections.push_back(make(r));
  if (!published_.empty()) r.sections.push_back(published_section(r, published_));
  if (data.linear || !references_.empty()) r.sections.push_back(references_section(r));
  return r;
}

// The ledger is what counts; these are made from it.
void Study::write_files(const StudyResults& r, Writing when) const {
  write_file_atomically(r.folder / "metrics.jsonl", metrics_jsonl(r.records));
  for (const auto& [name, text] : files_) write_file_atomically(r.folder / name, text(r));
  if (!claims_.empty())
    write_file_atomically(r.folder / "claims.csv", claims_csv(r.claims));
  else
    std::filesystem::remove(r.folder / "claims.csv");  // of a former call, under a preset that claims
  const std::vector<Condition> judged = judged_conditions(r);
  if (std::ranges::any_of(judged, [](const Condition& p) { return p.standings.size() > 1; }))
    write_file_atomically(r.folder / "comparisons.csv", comparisons_csv(judged));
  else
    std::filesystem::remove(r.folder / "comparisons.csv");  // of a former call, with more axes
  write_file_atomically(r.folder / "results.md", results_markdown(r));
  if (options_.tensorboard) write_event_files(r.folder, r.records, when == Writing::last);
  const Report report = report_ ? report_(r) : results_report(r);
  write_file_atomically(r.folder / "report.html", report.html);
  write_file_atomically(r.folder / "results.csv", results_csv(r.axes, r.columns, r.records));
  if (when == Writing::last) write_figures(r.folder, report.figures);
}

void Study::print(const Sweep& sweep, const StudyResults& r) const {
  if (r.records.size() < sweep.size()) note_error(fmt::format("{} of {} have ended\n", r.records.size(), plural(sweep.size(), "run")));
  if (const std::size_t others = sweep.elsewhere(); others > 0)
    note_error(fmt::format("{} of {} outside the axes of this call: kept there, not in the tables\n", plural(others, "run"),
                           (r.folder / Ledger::file_name).string()));
  if (const std::vector<std::string> machines = sweep.machines(); machines.size() > 1)
    note_error(fmt::format("runs of different machines; equal bits are promised within one instruction set: {}\n", fmt::join(machines, "; ")));
  const std::string report = (r.folder / "report.html").string();
  if (!options_.json) {
    const bool colour = shows_colour(STDOUT_FILENO);
    const std::string table = r.records.empty() ? "No run has ended yet.\n" : table_ ? table_(r, colour) : results_text(r, colour);
    return write_result(fmt::format("\n{}\nreport: {}\n", table, report));
  }
  Json rows = Json::array();
  for (const Record& record : r.records) {
    if (json_rows_) {
      for (Json& row : Json::parse(json_rows_(record))) rows.push_back(std::move(row));
      continue;
    }
    Json row = Json::parse(to_json(record.point));
    row["status"] = to_string(record.status);
    row[row.contains("steps") ? "steps_taken" : "steps"] = record.steps;
    for (const std::string& name : columns_) row[name] = record.value(name);  // written as null where not finite
    row["seconds"] = record.seconds;
    for (const auto& [name, value] : record.values) row[name] = value;
    if (!record.reason.empty()) row["reason"] = record.reason;
    rows.push_back(std::move(row));
  }
  write_result(Json{{"folder", r.folder.string()}, {"report", report}, {"results", rows}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

int Study::run(int argc, const char* const* argv, std::function<void(Trial&)> body) {
  body_ = std::move(body);
  return exit_status([&] {
    declare();
    if (cli_.parse(argc, argv) == Action::done) return 0;
    if (instead_)
      if (const std::optional<int> status = instead_()) return *status;
    return options_.rebuild ? rebuild() : run_or_look();
  });
}

// With --best-lr: the runs whose rates those that are named will choose, here at the lowest of them.
std::vector<Point> Study::to_follow(const Sweep& sweep) const {
  std::vector<Point> points;
  if (!best_lr_) return points;
  const std::set<std::int64_t> choosing = choosing_seeds(options_.seeds);
  const std::vector<double>& rates = rates_to_choose_from();
  for (Point point : sweep.named()) {
    if (point.get<double>("lr") != std::ranges::min(rates) || point.get<std::int64_t>("seed") != *choosing.begin()) continue;
    for (const std::int64_t seed : options_.seeds) {
      if (choosing.contains(seed)) continue;
      point.set("seed", seed);
      points.push_back(point);
    }
  }
  return points;
}

// What the data must suit, before anything is made.
void Study::check_places(const ImageSet& images) const {
  std::vector<Point> all = places();
  if (best_lr_) {
    std::vector<Point> with_rates;
    for (const double rate : rates_to_choose_from())
      for (Point place : all) place.set("lr", rate), with_rates.push_back(place);
    all = std::move(with_rates);
  }
  for (const Point& place : all) {
    if (parts_.network) options_at(network_, place).check_for(images);
    const StudyOptions o = trial_options_at(options_, place);
    if (parts_.optimization) options_at(optimization_, place).augment.make(options_.data, images, o.batch);
    usage_check(o.warmup.value_or(0) <= o.steps, "--warmup {} is longer than --steps {}", o.warmup.value_or(0), o.steps);
  }
  if (check_) check_(images);
}

int Study::run_or_look() {
  const std::vector<std::string> not_judged = claims_not_judged();
  const Setup setup(options_);
  check_places(setup.data.train);
  if (const std::string enlarged = enlargement(setup.data.train); !enlarged.empty() && !cli_.typed("--image-size"))
    note_error(
        fmt::format("{}{}; --image-size native keeps their size\n", enlarged, parts_.network ? ": " + network_.describe(setup.data.train) : ""));
  for (const std::string& note : notes_) note_error(note + "\n");
  if (!not_judged.empty())
    note_error(fmt::format("{} not judged in this call: {}{}\n", plural(not_judged.size(), "claim"), not_judged.front(),
                           not_judged.size() > 1 ? fmt::format("; and {} more, in the report", not_judged.size() - 1) : ""));
  const auto environment = [&](const std::filesystem::path& folder, Progress* progress) {
    return TrialEnvironment{options_, setup.data, setup.normalization, folder, code_hash(), setup.arithmetic, network_, optimization_, progress};
  };
  if (options_.dry_run) {
    StudyFolder::check_beforehand(cli_, options_);
    Ledger none{{}};
    const Sweep sweep(*this, setup.facts, none, {}, Sweep::Takes::finished);
    const std::vector<Point> named = sweep.named(), later = to_follow(sweep);
    write_result(lab::dry_run(environment({}, nullptr), named, later, sweep.jobs_for(named.size() + later.size()), setup.facts, body_) +
                 (is_searched() && !best_lr_ ? "These are the first runs of each search; the others follow from their results.\n" : ""));
    return 0;
  }
  if (!options_.replay.empty()) {
    const StudyFolder folder(cli_, options_);
    const auto key = [&](const Point& point) { return key_of(point, setup.facts); };
    return lab::replay(environment(folder.path(), nullptr), folder, key, body_);
  }

  if (!options_.accept_code.empty()) {  // before anything is written
    const Ledger ledger(std::filesystem::path(options_.out) / Ledger::file_name);
    check_accepted(ledger);
    usage_check(
        std::ranges::any_of(ledger.entries(),
                            [&](const LedgerEntry& e) { return e.code == options_.accept_code && e.key == key_of(e.record.point, setup.facts); }),
        "--accept-code {}: all its runs in {} are of other data, or recorded before an option of this program was there: they cannot be gone on "
        "with, only shown (--rebuild); for new runs choose another --out",
        options_.accept_code, ledger.path().string());
  }
  std::vector<std::string> outputs;
  for (const auto& [name, text] : files_) outputs.push_back(name);
  DataFacts facts = setup.facts;
  const bool plain_glyphs = options_.data == "glyphs" && options_.train_images == 0 && options_.validation_split == 0;
  facts.linear = plain_glyphs ? linear_model_of_glyphs() : linear_model(setup.data);
  StudyFolder folder(cli_, options_, {.machine = setup.machine, .data = facts, .code = code_hash(), .outputs = outputs});
  Ledger ledger(folder / Ledger::file_name);
  Sweep sweep(*this, setup.facts, ledger, codes_of(ledger, folder), Sweep::Takes::finished);
  if (before_) before_(setup.data);
  std::unique_ptr<StepProfile> profile;
  if (options_.profile) profile = std::make_unique<StepProfile>(folder, options_.steps);
  const auto write = [&] { write_files(results(sweep, folder), Writing::between); };
  const InterruptHandler interrupt;
  try {
    for (const Record& record : sweep.records()) check_measures(record);
    Progress progress({}, ProgressOutput::standard_error(options_.no_progress));
    sweep.run(environment(folder.path(), &progress), progress, write);
  } catch (const UsageError&) {
    if (ledger.entries().empty()) folder.discard();
    throw;
  }
  const StudyResults all_results = results(sweep, folder);
  write_files(all_results, Writing::last);
  print(sweep, all_results);
  if (profile) profile->finish();
  const std::size_t all = sweep.size(), finished = sweep.count(Status::ok) + sweep.count(Status::diverged);
  if (interrupted() && finished < all) {
    note_error(fmt::format("interrupted: {} of {} runs are finished; go on with --resume --out {}\n", finished, all, folder.path().string()));
    return interrupt_status();
  }
  if (const std::size_t hopeless = sweep.count(Status::hopeless); hopeless > 0)
    note_error(fmt::format("{} of {} stopped as hopeless, not finished; --resume without --stop-hopeless goes on with them\n", hopeless,
                           plural(all, "run")));
  const std::size_t failed = sweep.count(Status::failed);
  if (failed > 0) note_error(fmt::format("error: {} of {} failed; --resume tries them again\n", failed, plural(all, "run")));
  return failed > 0 ? 1 : 0;
}

void Study::check_accepted(const Ledger& ledger) const {
  const std::vector<std::string> there = ledger.codes();
  usage_check(std::ranges::find(there, options_.accept_code) != there.end(), "--accept-code {}: {} has runs of {}", options_.accept_code,
              ledger.path().string(), there.empty() ? "no code" : fmt::format("{}", fmt::join(there, ", ")));
}

// Whose trials count; says what does not.
std::vector<std::string> Study::codes_of(const Ledger& ledger, const StudyFolder& folder) const {
  for (const std::string& line : ledger.damaged())
    note_error(fmt::format("damaged: {}; the line stays, {}\n", line,
                           options_.rebuild ? "and counts for nothing" : "its run is repeated unless another line has it"));
  std::vector<std::string> codes{folder.description().facts.code};
  const std::vector<std::string>& accepted = folder.description().accepted_code;
  codes.insert(codes.end(), accepted.begin(), accepted.end());
  if (!options_.accept_code.empty()) {
    check_accepted(ledger);
    codes.push_back(options_.accept_code);
  }
  for (const std::string& code : ledger.codes())
    if (std::ranges::find(codes, code) == codes.end()) {
      const auto count = std::ranges::count(ledger.entries(), code, &LedgerEntry::code);
      note_error(fmt::format("{} of {} computed by other code, {} (this is {}): kept and not used; --accept-code {} uses them\n",
                             plural(static_cast<std::size_t>(count), "run"), ledger.path().string(), code, codes.front(), code));
    }
  return codes;
}

int Study::rebuild() {
  const StudyFolder folder(cli_, options_);
  Ledger ledger(folder / Ledger::file_name);
  const Sweep sweep(*this, folder.description().facts.data, ledger, codes_of(ledger, folder), Sweep::Takes::ended);
  const StudyResults all = results(sweep, folder);
  write_files(all, Writing::last);
  print(sweep, all);
  for (const Record& record : all.records)
    if (const std::optional<std::string> wrong = unmeasured_claim(claims_, record)) {
      note_error(*wrong + "\n");
      break;
    }
  return 0;
}

}  // namespace plumb::lab
