#include "experiments/lab/study/runner.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "experiments/lab/build_info.h"
#include "experiments/lab/options/mode.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/report/report.h"
#include "experiments/lab/run/interrupt.h"
#include "experiments/lab/run/progress.h"
#include "experiments/lab/run/setup.h"
#include "experiments/lab/run/step_profile.h"
#include "experiments/lab/run/stored_run.h"
#include "experiments/lab/stats/claim_check.h"
#include "experiments/lab/study/dry_run.h"
#include "experiments/lab/study/outputs.h"
#include "experiments/lab/study/plan.h"
#include "experiments/lab/study/rate_search.h"
#include "experiments/lab/study/replay.h"
#include "experiments/lab/study/sweep.h"
#include "experiments/lab/study/until_decided.h"

namespace plumb::lab {
namespace {

// Throws UsageError if the ledger has no trial of the code in --accept-code, or if no trial of that code is `usable`.
// Without the option the function has no effect.
void check_accept_code(const StudyOptions& options, const Ledger& ledger,
                       const std::function<bool(const LedgerEntry&)>& usable) {
  const std::string& code = options.accept_code;
  if (code.empty()) return;
  const std::vector<std::string> there = ledger.codes();
  usage_check(std::ranges::find(there, code) != there.end(), "--accept-code {}: {} has only trials of {}", code,
              ledger.path().string(), there.empty() ? "no code" : fmt::format("{}", fmt::join(there, ", ")));
  usage_check(std::ranges::any_of(ledger.entries(), [&](const LedgerEntry& e) { return e.code == code && usable(e); }),
              "--accept-code {}: all trials of this code in {} have other data or lack an option of this program, so "
              "this study "
              "cannot be resumed, only displayed (--rebuild); for new trials choose another --out",
              code, ledger.path().string());
}

// The hashes of the codes whose trials count. Prints notes on stderr about damaged lines of the ledger and about trials
// of other code. The trials that chose the rates of --rates-from may be of any code.
std::vector<std::string> codes_of(const StudyDeclaration& study, const Ledger& ledger,
                                  const StudyDescription& description) {
  const StudyOptions& options = study.options;
  const bool chosen_elsewhere = std::holds_alternative<ChosenRates>(study.rates);
  for (const std::string& line : ledger.damaged())
    note_error(fmt::format(
        "damaged: {}; the line stays, {}\n", line,
        mode_of(options) == Mode::rebuild ? "but is ignored" : "its trial is repeated unless another line has it"));
  std::vector<std::string> codes{description.facts.code};
  const std::vector<std::string>& accepted = description.accepted_code;
  codes.insert(codes.end(), accepted.begin(), accepted.end());
  if (!options.accept_code.empty()) codes.push_back(options.accept_code);
  for (const std::string& code : ledger.codes())
    if (std::ranges::find(codes, code) == codes.end()) {
      const auto count = std::ranges::count_if(ledger.entries(), [&](const LedgerEntry& e) {
        return e.code == code && ledger.find(e.key, code) == &e && !(chosen_elsewhere && is_of_search(e.record.point));
      });
      if (count == 0) continue;
      note_error(fmt::format(
          "{} of {} computed by other code, {} (this is {}): kept but not used; --accept-code {} uses them\n",
          plural(static_cast<std::size_t>(count), "trial"), ledger.path().string(), code, codes.front(), code));
    }
  return codes;
}

// Prints notes on stderr before the first trial.
void announce(const StudyDeclaration& study, const std::vector<std::string>& claims_not_judged) {
  for (const std::string& note : study.notes) note_error(note + "\n");
  if (!claims_not_judged.empty())
    note_error(fmt::format(
        "{} not judged in this call: {}{}\n", plural(claims_not_judged.size(), "claim"), claims_not_judged.front(),
        claims_not_judged.size() > 1 ? fmt::format("; the report has {} more", claims_not_judged.size() - 1) : ""));
}

// The trials at neighbouring rates that the verdicts on the trials of a sweep want, and with --until-decided then the
// next seeds of open comparisons. A shard names none, because it has not all trials of the study; --resume of the
// merged folder does.
Sweep::NextRound rounds_of(const StudyDeclaration& study, const Plan& plan, const StudyDescription& run) {
  return [&](const Sweep& sweep) {
    Sweep::Round round;
    if (!study.options.shard.empty() || (!study.has_own_rates() && !study.options.until_decided)) return round;
    const StudyResults results = judged_results(study, plan, sweep, run);
    if (study.has_own_rates()) round.points = neighbour_trials(study, results);
    if (!round.points.empty() || !study.options.until_decided) return round;
    const std::vector<Pursued> comparisons = pursued(results, plan.claims());
    round.points = next_seeds(study, results, comparisons);
    round.note = progress_of(comparisons);
    return round;
  };
}

// Writes the last files and prints the table.
StudyResults write_and_print(const StudyDeclaration& study, const Plan& plan, const Sweep& sweep,
                             const StudyFolder& folder) {
  StudyResults results = results_of(study, plan, sweep, folder);
  const Report report = results_report(results);
  write_files(study, results, report, Writing::last);
  print(study, sweep, results, report);
  return results;
}

// Prints the number of trials that are not finished or whose weights are missing, and returns the exit status.
int status_of(const StudyDeclaration& study, const Sweep& sweep, const StudyFolder& folder) {
  const std::size_t all = sweep.size(), finished = sweep.count(Status::ok) + sweep.count(Status::diverged);
  if (interrupted() && finished < all) {
    note_error(fmt::format("interrupted: {} of {} trials are finished; continue with --resume --out {}\n", finished,
                           all, folder.path().string()));
    return interrupt_status();
  }
  if (const std::size_t hopeless = sweep.count(Status::hopeless); hopeless > 0)
    note_error(
        fmt::format("{} of {} stopped as hopeless, not finished; --resume without --stop-hopeless continues them\n",
                    hopeless, plural(all, "trial")));
  if (const std::size_t left = all - sweep.ended(); study.options.until_decided && left > 0)
    note_error(fmt::format("the budget is spent, and {} of this round {} not begun; --resume goes on, in {}\n",
                           plural(left, "trial"), left == 1 ? "is" : "are", folder.path().string()));
  const std::size_t failed = sweep.count(Status::failed);
  if (failed > 0)
    note_error(fmt::format("error: {} of {} failed; --resume tries them again\n", failed, plural(all, "trial")));
  const std::size_t unsaved = sweep.without_weights();
  const bool wanted = unsaved > 0 && study.options.save_weights;
  if (unsaved > 0)
    note_error(fmt::format("{}the weights of {} of {} were not saved; --resume --save-weights writes them\n",
                           wanted ? "error: " : "", unsaved, plural(all, "trial")));
  return failed > 0 || wanted ? 1 : 0;
}

int rebuild(const StudyDeclaration& study, const Plan& plan) {
  const StudyFolder folder(study.cli, study.options);
  Ledger ledger(folder / Ledger::file_name);
  check_accept_code(study.options, ledger, [](const LedgerEntry&) { return true; });
  const Sweep sweep(plan, folder.description().facts.data, ledger, codes_of(study, ledger, folder.description()),
                    Sweep::Takes::ended, rounds_of(study, plan, folder.description()));
  const StudyResults results = write_and_print(study, plan, sweep, folder);
  for (const Record& record : results.records)
    if (const std::optional<std::string> wrong = unmeasured_claim(study.claims, record)) {
      note_error(*wrong + "\n");
      break;
    }
  return 0;
}

// --dry-run: prints the trials and their cost.
void list_trials(const StudyDeclaration& study, const Plan& plan, const DataFacts& facts,
                 const TrialEnvironment& environment) {
  const StudyOptions& options = study.options;
  const std::filesystem::path folder = options.resume ? options.out : "";
  const bool resumes = !folder.empty() && std::filesystem::exists(folder / "run.json");
  Ledger ledger(resumes ? folder / Ledger::file_name : "");
  std::vector<std::string> codes;
  StudyDescription description;
  if (resumes) {
    description = described(folder);
    description.facts.code = code_hash();
    codes = codes_of(study, ledger, description);
  }
  const Sweep sweep(plan, facts, ledger, codes, Sweep::Takes::finished,
                    resumes ? rounds_of(study, plan, description) : Sweep::NextRound());
  const std::vector<Record> finished = sweep.records();
  std::vector<Point> named = sweep.named(), cells = sweep.cells();
  std::erase_if(named, [&](const Point& point) {
    return std::ranges::any_of(finished, [&](const Record& record) { return record.point == point; });
  });
  ToFollow later{.trials = trials_to_follow(study, cells), .words = plan_of_search(study, cells)};
  if (!named.empty() || !later.trials.empty()) {
    later.at_most = trials_at_most(study);
    const auto had = static_cast<std::size_t>(
        std::ranges::count_if(finished, [](const Record& r) { return !is_of_search(r.point); }));
    later.at_most.resize(later.at_most.size() - std::min(later.at_most.size(), had));
    if (study.options.until_decided)
      for (const auto* trials : {&std::as_const(named), &std::as_const(later.trials)})
        std::ranges::copy_if(*trials, std::back_inserter(later.at_most), is_of_search);
  } else if (!sweep.note().empty()) {
    later.words = sweep.note() + "\n";
  }
  const int jobs = jobs_for(plan, named.size() + later.trials.size());
  write_result(dry_run(environment, named, finished.size(), later, jobs, facts, study.body) +
               (study.next && !study.has_own_rates()
                    ? "These are the first trials of each search; further trials follow from their results.\n"
                    : ""));
}

}  // namespace

int run_study(const StudyDeclaration& study) {
  const StudyOptions& options = study.options;
  const Plan plan(study);
  usage_check(!options.until_decided || (!study.judging.off && (!study.next || study.has_own_rates())),
              "--until-decided: this study judges no comparisons, so nothing can be decided; leave the option out");
  if (mode_of(options) == Mode::rebuild) return rebuild(study, plan);
  // Checked early, because reading the data and training a baseline may take minutes.
  StudyFolder::check_beforehand(study.cli, options, own_files(study));
  const std::vector<std::string> not_judged = plan.claims_not_judged();
  const Setup setup(options, study.problem);
  plan.check_for(setup.facts);
  announce(study, not_judged);
  const auto environment = [&](const std::filesystem::path& folder, Progress* progress) {
    return TrialEnvironment{
        options,        *setup.problem, setup.facts.chance().loss, folder,       code_hash(), setup.arithmetic,
        study.by_point, progress,       study.loss_levels,         study.observe};
  };
  if (mode_of(options) == Mode::dry_run) {
    list_trials(study, plan, setup.facts, environment({}, nullptr));
    return 0;
  }
  if (mode_of(options) == Mode::replay) {
    const StudyFolder folder(study.cli, options);
    return replay(
        environment(folder.path(), nullptr), folder,
        [&](const Point& point) { return plan.key_of(point, setup.facts); }, study.body);
  }

  if (!options.accept_code.empty())  // checked before anything is written
    check_accept_code(options, Ledger(std::filesystem::path(options.out) / Ledger::file_name),
                      [&](const LedgerEntry& e) { return e.key == plan.key_of(e.record.point, setup.facts); });
  if (options.resume && !std::filesystem::exists(std::filesystem::path(options.out) / "run.json"))
    note_error(fmt::format("{} has no study yet; --resume starts a new one\n", options.out));
  DataFacts facts = setup.facts;
  setup.problem->add_baseline(facts);
  for (const Reference& r : facts.references)
    check(std::isfinite(r.level), "[problem] expected finite levels in DataFacts::references, got {} for {} of {}",
          r.level, r.value, r.name);
  std::vector<std::string> claims;
  for (const Claim& claim : study.claims) claims.push_back(claim.name());
  StudyFolder folder(study.cli, options,
                     {.machine = setup.machine,
                      .data = facts,
                      .code = code_hash(),
                      .rates_by = study.rates_by,
                      .outputs = own_files(study),
                      .claims = claims});
  Ledger ledger(folder / Ledger::file_name);
  if (const auto* chosen = std::get_if<ChosenRates>(&study.rates)) ledger.append_all(chosen->taken);
  Sweep sweep(plan, setup.facts, ledger, codes_of(study, ledger, folder.description()), Sweep::Takes::finished,
              rounds_of(study, plan, folder.description()));
  std::unique_ptr<StepProfile> profile;
  if (options.profile) profile = std::make_unique<StepProfile>(folder, options.steps);
  const auto check_measures = [&](const Record& record) {
    if (is_of_search(record.point)) return;
    const std::optional<std::string> wrong = unmeasured_claim(study.claims, record);
    check(!wrong, "{}", wrong.value_or(""));
  };
  const InterruptHandler interrupt;
  try {
    for (const Record& record : sweep.records()) check_measures(record);
    Progress progress({}, ProgressOutput::standard_error(options.no_progress));
    sweep.run(environment(folder.path(), &progress), progress,
              {.body = study.body,
               .shown = [&](const Record& record) { return shown_in_progress(study, record); },
               .ended = check_measures,
               .changed =
                   [&] {
                     const StudyResults results = results_of(study, plan, sweep, folder);
                     write_files(study, results, results_report(results), Writing::between);
                   }});
  } catch (const UsageError&) {
    if (ledger.entries().empty()) folder.discard();
    throw;
  }
  write_and_print(study, plan, sweep, folder);
  if (profile) profile->finish();
  return status_of(study, sweep, folder);
}

}  // namespace plumb::lab
