// An ablation in one file: axes, how one trial is built, what it expects. Command line, data, folder, ledger, resume, side by side, shards,
// checkpoints, progress, statistics and report are the library's.
//
// clang-format off
//   int main(int argc, char** argv) {
//     lab::Study study("layerscale_init", "Does the initial value of LayerScale matter?");
//     const auto depth = study.axis<int>("--depths", {12, 24, 48}, "Numbers of blocks");
//     const auto epsilon = study.axis<double>("--epsilons", {0, 1e-6, 1e-4, 0.1}, "Initial value").at_least(0);
//     study.claim("eps > 0 trains better than 0", "CaiT, table 1",
//                 lab::lower("train_loss", {{"epsilon", 1e-6}}, {{"epsilon", 0}}).at({{"depth", 24}}));
//     return study.run(argc, argv, [&](lab::Trial& trial) {
//       nn::ViT model(trial.vit({.depth = trial[depth], .gate = nn::methods::layerscale(trial[epsilon])}));
//       trial.train(model);
//     });
//   }
// clang-format on
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/network_options.h"
#include "experiments/lab/options/optimizer_options.h"
#include "experiments/lab/plot/figure.h"
#include "experiments/lab/record/study_description.h"
#include "experiments/lab/report/curves.h"
#include "experiments/lab/report/results.h"
#include "experiments/lab/stats/claims.h"
#include "experiments/lab/stats/reference.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

class Ledger;
class Sweep;

// An axis of a study: its values come from an option of the command line, or from what the study finds (Study::searched).
struct AxisData {
  std::string name, option;
  std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>> values;
  CliOption* declared = nullptr;  // null: searched
  bool slowest = false;
};

template <class T>
class Axis {
 public:
  explicit Axis(AxisData& data) : data_(&data) {}
  const std::string& name() const { return data_->name; }

  Axis named(const std::string& name) { return data_->name = name, *this; }  // "--depths" is "depth" unless this says otherwise
  Axis at_least(double low) { return option().at_least(low), *this; }
  Axis above(double low) { return option().above(low), *this; }
  Axis at_most(double high) { return option().at_most(high), *this; }
  Axis below(double high) { return option().below(high), *this; }
  Axis one_of(const std::string& noun, std::vector<std::string> names) { return option().one_of(noun, std::move(names)), *this; }
  Axis one_of_methods(const std::string& noun) { return option().one_of_methods(noun), *this; }
  // The values now, for reports; and others in their place, for presets.
  std::vector<T> values() const { return {stored().begin(), stored().end()}; }
  void set(const std::vector<T>& values) const { stored().assign(values.begin(), values.end()); }
  // Trials come in the order of the axes, the first varying slowest; but this one varies slower than all others. Columns are in the order of the
  // axes.
  Axis slowest() { return data_->slowest = true, *this; }

 private:
  auto& stored() const { return std::get<std::vector<std::conditional_t<std::is_same_v<T, int>, std::int64_t, T>>>(data_->values); }
  CliOption& option() const {
    internal_check(data_->declared, "bounds of the axis {}, whose values no option gives", data_->name);
    return *data_->declared;
  }
  AxisData* data_;
};

// One of the searches of a study with searched axes: it has a value on every other axis but the seed, and names its next trials from those that it
// has.
struct Search {
  Point place;                        // on the axes that are not searched, without the seed
  std::vector<const Record*> so_far;  // its trials, all ended (ok, diverged or hopeless), in the order in which they were named, seed by seed
  int round = 0;                      // how often it was asked before
};
// The points that are wanted next, each with a value on every searched axis; they are run for every seed. None: the search is over. To be a function
// of the search alone: so a sweep that goes on from its ledger takes the same way. A trial that fails ends its search until --resume has tried it
// again. A point that has a seed as well is run for that seed alone.
using NextPoints = std::function<std::vector<Point>(const Search& search)>;

struct StudyParts {
  bool network = true;       // options of the ViT that Trial::vit makes
  bool optimization = true;  // and of how Trial::train trains
};

class Study {
 public:
  // The name stands in run.json and decides what --resume takes; the question is what --help and the report say first.
  Study(std::string name, std::string question, StudyParts parts = {});
  ~Study();
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;

  // What the command line is to have besides: options of its own, presets, examples, rules. Variables outlive the study.
  Cli& cli() { return cli_; }
  // The options that every study has. What they hold before run() are their defaults.
  StudyOptions& options() { return options_; }
  NetworkOptions& network() { return network_; }
  OptimizationOptions& optimization() { return optimization_; }
  void takes(const StudyChoices& choices) { choices_ = choices; }
  // How the report compares what the study trains; the number of classes is the data's.
  Judging& judging() { return judging_; }

  // An axis over values of int, std::int64_t, double or std::string. Its name is its option's without dashes and the plural s. An option of the
  // library that has its name ("--dim" for "--dims") makes room for it. The seed is an axis of every study, the last. One of learning rates (double)
  // that is named "lr" brings the option --best-lr, which
  // compares train_loss.
  template <class T>
  Axis<T> axis(const std::string& option, std::vector<T> values, const std::string& help);
  // An axis whose values search() names.
  template <class T>
  Axis<T> searched(const std::string& name);
  void search(NextPoints next) { next_ = std::move(next); }

  // Which combinations of the axes' values are run, each without seed, without searched axes and, with --best-lr, without "lr"; all if not given.
  void only(std::function<bool(const Point&)> wanted) { wanted_ = std::move(wanted); }

  // An expectation about the trials, stated before they run. It is checked when the study starts (axes, values: claim_check.h). A trial that it is
  // about, and that ends ok without the value, ends the study; a body that has no number for it measures `unknown`.
  void claim(const std::string& text, const std::string& source, const Comparison& comparison) { claims_.push_back({text, source, comparison}); }
  // A level of a value that charts and the table "Beside what is known" have, such as the optimum of a task; chance and a linear model on the pixels
  // are there for trainings on labelled images.
  void reference(const std::string& value, double level, const std::string& name) { references_.push_back({value, level, name}); }
  // A figure from a paper, shown beside what the trials at `where` give; `source` with where it was read.
  void published(const Point& where, const std::string& value, const std::string& figure, const std::string& source) {
    published_.push_back({where, value, figure, source});
  }
  // A part of its own in table, report and results.md; in the order of the calls, what was published last.
  void section(std::function<Section(const StudyResults&)> make) { sections_.push_back(std::move(make)); }

  // Values that come first in results.csv, in this order ("seconds" may be among them), and in the table at the end.
  void columns(std::vector<std::string> names) { columns_ = std::move(names); }
  void show(std::vector<std::string> names) { show_ = std::move(names); }
  // A further file of the run's folder, made from the results.
  void file(const std::string& name, std::function<std::string(const StudyResults&)> text);
  // In place of the library's.
  void report(std::function<Report(const StudyResults&)> page) { report_ = std::move(page); }
  void table(std::function<std::string(const StudyResults&, bool colour)> text) { table_ = std::move(text); }
  void json_rows(std::function<std::string(const Record&)> array) { json_rows_ = std::move(array); }
  void title(std::function<std::string(const DataFacts&)> text) { title_ = std::move(text); }
  void settings(std::function<NamedTexts(const DataFacts&)> texts) { settings_ = std::move(texts); }
  // Runs before the first trial, when data and folder are there; and before anything is made, to throw UsageError where options do not suit the data.
  void before(std::function<void(const ImageData&)> f) { before_ = std::move(f); }
  void check(std::function<void(const ImageSet&)> f) { check_ = std::move(f); }
  // Runs when all options are read and before they are checked: derives some from others.
  void derive(std::function<void()> f) { derive_ = std::move(f); }
  // In place of a run, when all options are read: if it returns a status, that is the program's.
  void instead(std::function<std::optional<int>()> f) { instead_ = std::move(f); }

  // The whole program. `body` makes and trains one trial; with --jobs above 1 it runs in several threads at once. Returns the exit status: 0 when
  // every trial reached a verdict (divergence is one), 1 for what went wrong at run time, 2 for what is wrong on the command line, 130 and 143 after
  // an interrupt.
  int run(int argc, const char* const* argv, std::function<void(Trial&)> body);

 private:
  friend class Sweep;
  template <class T>
  static constexpr bool is_axis_type =
      std::is_same_v<T, int> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, double> || std::is_same_v<T, std::string>;
  AxisData& add_axis(const std::string& option, const std::string& help, AxisData data);

  void declare();
  std::vector<Point> places() const;  // on the axes that are not searched, without the seed, in the order of the trials
  Point point_of(const Point& place, const Point& searched, std::int64_t seed) const;  // in the order of the columns
  bool is_searched() const;
  bool is_searched(const AxisData& axis) const;  // its values are not all combined with those of the other axes
  std::vector<Point> next_points(const Search& search) const;
  void declare_best_lr();
  void declare_warmups();
  const std::vector<double>& rates_to_choose_from() const;  // with --best-lr
  std::vector<Point> to_follow(const Sweep& sweep) const;
  std::string key_of(const Point& point, const DataFacts& data) const;
  double cost_of(const Point& point) const;
  std::vector<std::string> shown_in_progress(const Record& record) const;
  std::vector<std::string> codes_of(const Ledger& ledger, const StudyFolder& folder) const;
  void check_axes() const;
  std::vector<std::string> claims_not_judged() const;
  void check_measures(const Record& record) const;  // throws for a claim about what it has not measured
  NamedTexts settings_texts(const DataFacts& data) const;
  void check_places(const ImageSet& images) const;
  void check_accepted(const Ledger& ledger) const;
  StudyResults results(const Sweep& sweep, const StudyFolder& folder) const;
  enum class Writing { between, last };  // trials are yet to come, or not: figures are written at the last alone
  void write_files(const StudyResults& results, Writing when) const;
  void print(const Sweep& sweep, const StudyResults& results) const;
  int run_or_look();
  int rebuild();

  std::string name_, question_;
  StudyParts parts_;
  Cli cli_;
  StudyOptions options_;
  StudyChoices choices_;
  NetworkOptions network_;
  OptimizationOptions optimization_;
  std::deque<AxisData> axes_;  // a deque keeps references valid
  NextPoints next_;
  bool best_lr_ = false;  // --best-lr: the axis lr is searched
  std::function<bool(const Point&)> wanted_;
  std::vector<Claim> claims_;
  std::vector<Published> published_;
  std::vector<Reference> references_;
  std::vector<std::string> notes_;  // lines on stderr before the first trial
  std::vector<std::function<Section(const StudyResults&)>> sections_;
  std::vector<std::string> columns_, show_, own_settings_;  // the last: what its own options decide
  std::vector<std::pair<std::string, std::function<std::string(const StudyResults&)>>> files_;
  std::function<Report(const StudyResults&)> report_;
  Judging judging_;
  std::function<std::string(const StudyResults&, bool)> table_;
  std::function<std::string(const Record&)> json_rows_;
  std::function<std::string(const DataFacts&)> title_;
  std::function<NamedTexts(const DataFacts&)> settings_;
  std::function<void(const ImageData&)> before_;
  std::function<void(const ImageSet&)> check_;
  std::function<void()> derive_;
  std::function<std::optional<int>()> instead_;
  std::function<void(Trial&)> body_;
};

template <class T>
Axis<T> Study::axis(const std::string& option, std::vector<T> values, const std::string& help) {
  static_assert(is_axis_type<T>, "an axis has values of int, std::int64_t, double or std::string");
  AxisData data;
  if constexpr (std::is_same_v<T, int>)
    data.values = std::vector<std::int64_t>(values.begin(), values.end());
  else
    data.values = std::move(values);
  return Axis<T>(add_axis(option, help, std::move(data)));
}

template <class T>
Axis<T> Study::searched(const std::string& name) {
  static_assert(is_axis_type<T>, "an axis has values of int, std::int64_t, double or std::string");
  AxisData& data = axes_.emplace_back();
  data.name = name;
  return Axis<T>(data);
}

}  // namespace plumb::lab
