#include "experiments/lab/study/outputs.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "core/atomic_file.h"
#include "experiments/lab/record/csv.h"
#include "experiments/lab/record/json_value.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/record/model_facts.h"
#include "experiments/lab/report/figure_files.h"
#include "experiments/lab/report/rates.h"
#include "experiments/lab/report/report.h"
#include "experiments/lab/report/tensorboard.h"
#include "experiments/lab/report/text.h"
#include "experiments/lab/run/progress.h"
#include "experiments/lab/study/own_rates.h"
#include "experiments/lab/study/rate_search.h"
#include "experiments/lab/study/until_decided.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;

// The settings of a study for its report: data, model, the options of the library in words, then the study's own
// options.
NamedTexts settings_texts(const StudyDeclaration& study, const DataFacts& data) {
  NamedTexts texts{{"about", study.question}, {"data", data.text}};
  std::string rates = fmt::format("{}", study.optimization.lr);
  if (const AxisData* axis = study.axis("lr"))
    if (const auto* values = axis->values_of<double>()) rates = fmt::format("{}", fmt::join(*values, ", "));
  if (study.has_own_rates()) rates = "as in the table Learning rates";
  const std::string warmup = study.options.warmup_share && study.varies("--steps")
                                 ? fmt::format("{:.3g} % of the steps", 100 * *study.options.warmup_share)
                             : study.options.warmup  ? fmt::format("{}", *study.options.warmup)
                             : study.describe_warmup ? study.describe_warmup()
                                                     : "0";
  texts.emplace_back("training", study.has_optimization
                                     ? study.optimization.describe(study.options, rates, warmup)
                                     : fmt::format("{} steps of batch {}, warm-up {}", study.options.steps,
                                                   study.options.batch, study.options.warmup.value_or(0)));
  if (study.has_optimization) texts.emplace_back("evaluated weights", study.optimization.describe_evaluated());
  if (study.describe) std::ranges::copy(study.describe(data), std::back_inserter(texts));
  std::vector<std::string> varied;
  for (const CliOption& option : study.cli.left_out())
    if (option.name != "--lr") varied.push_back(option.name);
  if (!varied.empty()) texts.emplace_back("varied by the program", fmt::format("{}", fmt::join(varied, ", ")));
  const Json fixed = Json::parse(study.cli.fixed_settings());
  for (const std::string& key : study.own_settings)
    if (key != "model")  // the text above describes the model
      texts.emplace_back(key, fixed[key].is_string() ? fixed[key].get<std::string>() : fixed[key].dump());
  texts.emplace_back("number format", enum_name(study.options.dtype));
  return texts;
}

}  // namespace

std::string plural(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::vector<std::string> own_files(const StudyDeclaration& study) {
  std::vector<std::string> names;
  for (const auto& [file, text] : study.files) names.push_back(file);
  return names;
}

std::vector<std::string> shown_in_progress(const StudyDeclaration& study, const Record& record) {
  std::vector<std::string> names = study.columns.empty() ? measured_names({record}) : study.columns;
  std::erase_if(names, [](const std::string& name) {  // these values are in files only
    return is_time(name) || name == diverged_at || name == target_entropy_name;
  });
  if (study.columns.empty() && names.size() > shown_unasked) names.resize(shown_unasked);
  return names;
}

StudyResults judged_results(const StudyDeclaration& study, const Plan& plan, const Sweep& sweep,
                            const StudyDescription& run) {
  const DataFacts& data = run.facts.data;
  const std::vector<Record> ended = sweep.records();
  StudyResults r{.name = study.title.empty() ? study.name : fmt::format("{} on {}", study.title, data.name),
                 .question = study.question,
                 .columns = study.columns,
                 .data = data,
                 .judging = study.judging};
  r.judging.own_rates = study.has_own_rates();
  r.judging.chance = data.chance();
  r.judging.rates = chosen_rates(study, ended, r.judging.chance);
  r.judging.measures = data.measures;
  r.judging.planned_claims = run.claims;
  r.judging.old_trials = run.rule.empty();
  r.judging.off = study.judging.off || (study.next && !study.has_own_rates());
  std::ranges::copy_if(ended, std::back_inserter(r.records), [](const Record& e) { return is_judged(e.point); });
  std::ranges::copy_if(ended, std::back_inserter(r.neighbours), [](const Record& e) { return is_neighbour(e.point); });
  for (Record& record : r.records)
    if (const RateChoice* choice = choice_for(r.judging.rates, cell_of(record.point)); choice && choice->unread)
      record.point = record.point.without("lr");
  if (study.has_optimization && !study.has_own_rates()) {
    const AxisData* axis = study.axis("lr");
    const auto* rates = axis ? axis->values_of<double>() : nullptr;
    if (!axis) r.judging.rate = study.optimization.lr;
    if (rates && rates->size() == 1) r.judging.rate = rates->front();
  }
  const auto of_control = std::ranges::find_if(
      r.records, [&](const Record& record) { return study.control && record.point.contains(*study.control); });
  if (of_control != r.records.end()) r.judging.control = method_name(r, of_control->point);
  std::vector<Point> judged = sweep.named();
  std::erase_if(judged, std::not_fn(is_judged));
  judge_all(r, plan.claims(), judged);
  return r;
}

StudyResults results_of(const StudyDeclaration& study, const Plan& plan, const Sweep& sweep,
                        const StudyFolder& folder) {
  const StudyDescription& run = folder.description();
  const DataFacts& data = run.facts.data;
  const std::vector<std::string> machines = sweep.machines();
  StudyResults r = judged_results(study, plan, sweep, run);
  r.notes = {{"version", fmt::format("{} ({}), {}", run.version, run.commit, run.build)},
             {machines.size() > 1 ? "machines" : "machine",
              machines.empty() ? run.facts.machine.device : fmt::format("{}", fmt::join(machines, "; "))},
             {"command", run.command_line}};
  r.folder = folder.path();
  r.colour = !study.options.json && shows_colour(STDOUT_FILENO);
  for (const Record& record : r.records) r.attached.push_back(attached_to(record));
  r.judging.references = chance_references(data.measures);
  for (Reference baseline : data.references) {
    baseline.baseline = true;
    r.judging.references.push_back(std::move(baseline));
  }
  std::ranges::copy(study.references, std::back_inserter(r.judging.references));
  for (const AxisData& axis : study.axes) r.axes.push_back(axis.name);
  if (study.has_own_rates() && !study.axis("lr")) r.axes.emplace_back("lr");
  r.axes.emplace_back("seed");
  if (!r.records.empty() && std::ranges::none_of(r.records, [](const Record& e) { return e.point.find("lr"); }))
    std::erase(r.axes, "lr");
  r.settings = settings_texts(study, data);
  if (const std::string trained = describe_models(r.records); !trained.empty())
    r.settings.emplace_back("trained", trained);
  std::vector<std::string> others = sweep.codes();
  std::erase(others, run.facts.code);
  if (!others.empty())
    r.notes.emplace_back(
        "code", fmt::format("{}, and trials computed by other code: {}", run.facts.code, fmt::join(others, ", ")));
  if (const std::vector<std::string> not_judged = plan.claims_not_judged(); !not_judged.empty())
    r.notes.emplace_back("claims not judged", fmt::format("{}", fmt::join(not_judged, "; ")));
  for (const auto& make : study.sections) r.sections.push_back(make(r));
  if (study.options.until_decided) r.sections.push_back(section_of(pursued(r, plan.claims())));
  if (study.has_own_rates()) {
    const RatesText text = describe_rates(study);
    r.sections.push_back(rates_section(r.judging.rates, text.chosen_by, text.caption));
  }
  if (!study.published.empty()) r.sections.push_back(published_section(r, study.published));
  return r;
}

void write_files(const StudyDeclaration& study, const StudyResults& r, const Report& report, Writing when) {
  write_file_atomically(r.folder / "metrics.jsonl", metrics_jsonl(r.records));
  for (const auto& [file, text] : study.files) write_file_atomically(r.folder / file, text(r));
  if (!study.claims.empty())
    write_file_atomically(r.folder / "claims.csv", claims_csv(r.claims));
  else
    std::filesystem::remove(r.folder / "claims.csv");  // an earlier call with a preset may have written claims
  const std::vector<Condition>& judged = r.conditions;
  if (std::ranges::any_of(judged, [](const Condition& p) { return p.standings.size() > 1; }))
    write_file_atomically(r.folder / "comparisons.csv", comparisons_csv(judged));
  else
    // An earlier call with more axes may have written comparisons.
    std::filesystem::remove(r.folder / "comparisons.csv");
  if (!r.judging.rates.empty()) write_file_atomically(r.folder / "rates.csv", rates_csv(r));
  write_file_atomically(r.folder / "results.md", results_markdown(r));
  if (study.options.tensorboard) write_event_files(r.folder, r.records, when == Writing::last);
  write_file_atomically(r.folder / "report.html", report.html);
  write_file_atomically(r.folder / "results.csv", results_csv(r.axes, r.columns, r.records));
  if (when == Writing::last) write_figures(r.folder, report.figures);
}

void print(const StudyDeclaration& study, const Sweep& sweep, const StudyResults& r, const Report& report) {
  if (const std::size_t ended = sweep.ended(); ended < sweep.size())
    note_error(fmt::format("{} of {} have ended\n", ended, plural(sweep.size(), "trial")));
  if (const std::size_t others = sweep.elsewhere(); others > 0)
    note_error(fmt::format("{} of {} outside the axes of this call: kept there, not in the tables\n",
                           plural(others, "trial"), (r.folder / Ledger::file_name).string()));
  if (!r.wanted.empty())
    note_error(fmt::format(
        "trials at neighbouring rates of {} are missing, and so are some verdicts; {}\n",
        name_of_cell(r.wanted.front().cell),
        study.options.shard.empty() ? "--resume trains them" : "merge the shards, and --resume the merged folder"));
  if (const std::vector<std::string> machines = sweep.machines(); machines.size() > 1)
    note_error(fmt::format(
        "trials come from different machines; results are bitwise equal only within one instruction set: {}\n",
        fmt::join(machines, "; ")));
  const std::string page = (r.folder / "report.html").string();
  if (!study.options.json) return write_result(fmt::format("\n{}\nreport: {}\n", report.terminal, page));
  Json rows = Json::array();
  for (const Record& record : r.records) {
    Json row = Json::parse(to_json(record.point));
    row["status"] = enum_name(record.status);
    row[row.contains("steps") ? "steps_taken" : "steps"] = record.steps;
    for (const std::string& name : study.columns) row[name] = record.value(name);  // written as null if not finite
    row["seconds"] = record.seconds;
    for (const auto& [name, value] : record.values) row[name] = value;
    if (!record.reason.empty()) row["reason"] = record.reason;
    rows.push_back(std::move(row));
  }
  write_result(Json{{"folder", r.folder.string()}, {"report", page}, {"results", rows}}.dump(
                   2, ' ', false, Json::error_handler_t::replace) +
               "\n");
}

}  // namespace plumb::lab
