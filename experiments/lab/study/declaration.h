// The declaration of a study. Programs make the declaration through Study (study.h); plan.h, outputs.h and runner.h
// read it.
#pragma once

#include <algorithm>
#include <concepts>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
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
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

// The state of a search. A study with searched axes has one search for each combination of values on the other axes.
// Each search names its next trials from the results of its earlier trials.
struct Search {
  Point point;  // values on the axes that are not searched, without the seed
  // The trials of this search in the order in which they were named, then by seed. All trials have ended (ok, diverged
  // or hopeless).
  std::vector<const Record*> so_far;
  int round = 0;  // number of earlier calls of NextPoints for this search
};
// Returns the next points of a search, each with a value on every searched axis. A point with a seed is one trial; a
// point without a seed runs for every seed. An empty result ends the search. The result must depend on `search` only,
// so that a resumed sweep takes the same path. If a trial fails, its search stops until --resume has run the trial
// again.
using NextPoints = std::function<std::vector<Point>(const Search& search)>;

// The presentation of results: the page, and the text on the terminal.
struct Display {
  Report report;
  std::string terminal;
};
// The default display of results.
Display display_of(const StudyResults& results);

// An output that a study makes from its results. Outputs come in addition to the files of every study.
class Output {
 public:
  using Value = std::variant<Section, Display, std::string>;  // a section, a display, or the text of a file
  // `f` returns a Section or a Display. A section is shown on the terminal, in the report and in results.md. A display
  // replaces the default display.
  template <class F>
  requires std::invocable<F, const StudyResults&> Output(F f)
      : make_([f = std::move(f)](const StudyResults& r) { return Value(f(r)); }), kind_(kind_of<F>) {}
  // `text` returns the contents of a further file in the study folder. `file` is the name of that file.
  template <class F>
  Output(std::string file, F text)
      : file_(std::move(file)), make_([text = std::move(text)](const StudyResults& r) { return Value(text(r)); }) {}

  // The three kinds of outputs.
  enum class Kind { section, display, file };
  Kind kind() const { return kind_; }                // the kind of this output
  const std::string& file() const { return file_; }  // the name of the file; empty for other kinds
  // Calls the function of the output.
  Value make(const StudyResults& results) const { return make_(results); }

 private:
  template <class F>
  static constexpr Kind kind_of =
      std::is_same_v<std::invoke_result_t<F, const StudyResults&>, Section> ? Kind::section : Kind::display;
  std::string file_;
  std::function<Value(const StudyResults&)> make_;
  Kind kind_ = Kind::file;
};

// The parts of a study.
struct StudyParts {
  bool optimization = true;  // options of the training by Trial::train
};

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
  StudyDeclaration(std::string name_, std::string question_, StudyParts parts_)
      : name(name_), question(question_), parts(parts_), cli(std::move(name_), std::move(question_)) {
    by_point.add(options);
    by_point.add(optimization);
  }
  // Not copyable, because options and axes point into the declaration.
  StudyDeclaration(const StudyDeclaration&) = delete;
  StudyDeclaration& operator=(const StudyDeclaration&) = delete;

  const std::string name, question;
  StudyParts parts;
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
  std::vector<Output> outputs = {};
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
