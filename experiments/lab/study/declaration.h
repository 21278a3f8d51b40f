// The declaration of a study. Programs make the declaration through Study (study.h); plan.h, outputs.h and runner.h
// read it.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/options_by_point.h"
#include "experiments/lab/plot/figure.h"
#include "experiments/lab/plot/section.h"
#include "experiments/lab/problem/problem.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/report/curves.h"
#include "experiments/lab/report/results.h"
#include "experiments/lab/stats/claims.h"
#include "experiments/lab/stats/reference.h"
#include "experiments/lab/study/axis.h"
#include "experiments/lab/study/axis_data.h"
#include "experiments/lab/study/search.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

// Each combination of the axes trains at its own learning rate, which a search chooses (rate_search.h).
struct RateSearch {
  double start = 0;       // the first rate of the search
  std::int64_t seed = 0;  // the seed that chooses; the other seeds are judged
  bool parabola = true;   // choice_among(); false for old study folders, which chose a rate that was tried
};
// Each combination of the axes trains at the rate that an earlier search chose (--rates-from).
struct ChosenRates {
  std::string file = {};                   // the value of --rates-from
  std::vector<std::int64_t> seeds = {};    // the seeds that chose
  std::vector<RateChoice> choices = {};    // a choice for each combination
  bool parabola = true;                    // as in RateSearch
  std::vector<LedgerEntry> searches = {};  // the trials that chose
  // Those of these trials that come from the file, for the ledger of the study. The study folder then does not
  // depend on the file.
  std::vector<LedgerEntry> taken = {};
};
// How a study sets learning rates. std::monostate: all combinations train at the same rates.
using Rates = std::variant<std::monostate, RateSearch, ChosenRates>;

// The parts of a study that its program declares, and the values of its options.
struct StudyDeclaration {
  StudyDeclaration(std::string name_, std::string question_, bool has_optimization_)
      : name(name_),
        question(question_),
        has_optimization(has_optimization_),
        cli(std::move(name_), std::move(question_)) {
    by_point.add(options);
    by_point.add(optimization);
  }
  // Not copyable, because options and axes point into the declaration.
  StudyDeclaration(const StudyDeclaration&) = delete;
  StudyDeclaration& operator=(const StudyDeclaration&) = delete;

  const std::string name, question;
  const bool has_optimization;  // whether trials have the options of the training by Trial::train
  // Title of the report, followed by "on" and the name of the data; if empty, the name of the study.
  std::string title = {};
  Cli cli;
  StudyOptions options = {};
  OptimizationOptions optimization = {};
  std::vector<std::function<void(Cli&)>> groups = {};  // functions that declare further groups of options
  OptionsByPoint by_point = {};
  std::deque<AxisData> axes = {};  // a deque keeps references to axes valid
  NextPoints next = {};
  // The values of --at-lr and --rates-from, and the rule for learning rates that settle_rates() derives (own_rates.h).
  std::vector<double> at_lr = {};
  std::string rates_from = {};
  RateCriterion rates_by = {};              // what a search compares
  std::vector<std::string> shared_by = {};  // the axes of Study::one_rate_for()
  Rates rates = {};
  std::function<bool(const Point&)> wanted = {};
  std::vector<std::function<void(const DataFacts&)>> checks = {};
  std::function<void(const Point&, const DataFacts&)> check_point = {};
  std::function<NamedTexts(const DataFacts&)> describe = {};
  std::function<std::string()> describe_warmup = {};
  ProblemFactory problem = {};
  std::function<void(Trial&)> body = {};
  // The outputs of Study::output(). Each file has its name.
  std::vector<std::function<Section(const StudyResults&)>> sections = {};
  std::vector<std::pair<std::string, std::function<std::string(const StudyResults&)>>> files = {};
  std::vector<Claim> claims = {};
  std::vector<double> loss_levels = {};                                  // the levels of Study::steps_to()
  std::function<Observer(Trial& trial, nn::Layer& model)> observe = {};  // of Study::measure_layers()
  std::vector<Published> published = {};
  std::vector<Reference> references = {};
  Judging judging = {};
  std::optional<Point> control = {};  // of Study::control()
  std::vector<std::string> columns = {};
  std::vector<std::string> own_settings = {};  // names of settings that come from the options of this study
  std::vector<std::string> notes = {};         // lines on stderr before the first trial

  // Whether each combination of the axes has its own learning rate.
  bool has_own_rates() const { return !std::holds_alternative<std::monostate>(rates); }
  // Whether the command line leaves out the option of this name, because an axis or the program varies it.
  bool varies(const std::string& option) const {
    return std::ranges::any_of(cli.left_out(), [&](const CliOption& o) { return o.name == option; });
  }
  // The axis with this name; null if there is none.
  const AxisData* axis(const std::string& axis_name) const {
    for (const AxisData& a : axes)
      if (a.name == axis_name) return &a;
    return nullptr;
  }
};

}  // namespace plumb::lab
