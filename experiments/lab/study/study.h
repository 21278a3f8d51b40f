// An ablation in one file: axes, how one trial is built, what it expects. Command line, data, folder, ledger, resume,
// side by side, shards, checkpoints, progress, statistics and report are the library's.
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

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/lab/study/declaration.h"

namespace plumb::lab {

class Study {
 public:
  // The name stands in run.json and decides what --resume takes; the question is what --help and the report say first.
  Study(std::string name, std::string question, StudyParts parts = {})
      : d_(std::move(name), std::move(question), parts) {}

  // The command line: options of the study's own, presets, examples, rules. Variables outlive the study.
  Cli& cli() { return d_.cli; }
  // The options that every study has. Their values before run() are the defaults.
  StudyOptions& options() { return d_.options; }
  NetworkOptions& network() { return d_.network; }
  OptimizationOptions& optimization() { return d_.optimization; }
  void takes(const StudyChoices& choices) { d_.choices = choices; }
  // How the report compares methods; the number of classes is the data's.
  Judging& judging() { return d_.judging; }

  // An axis over values of int, std::int64_t, double or std::string. Its name is its option's without dashes and the
  // plural s. An option of the library that has its name ("--dim" for "--dims") makes room for it. The seed is an axis
  // of every study, the last. One of learning rates (double) that is named "lr" brings the option --best-lr, which
  // compares train_loss.
  template <AxisType T>
  Axis<T> axis(const std::string& option, std::vector<T> values, const std::string& help);
  // An axis whose values search() names.
  template <AxisType T>
  Axis<T> searched(const std::string& name);
  void search(NextPoints next) { d_.next = std::move(next); }
  // Which combinations of the axes' values are run, each without seed, without searched axes and, with --best-lr,
  // without "lr"; all if not given.
  void only(std::function<bool(const Point&)> wanted) { d_.wanted = std::move(wanted); }
  // Runs when the training images are there and before anything is made: throws UsageError where options do not suit
  // them.
  void check(std::function<void(const ImageSet&)> f) { d_.check = std::move(f); }

  // An expectation about the trials, stated before they run. It is checked when the study starts (axes, values:
  // claim_check.h). A trial that it is about, and that ends ok without the value, ends the study; a body that has no
  // number for it measures `unknown`.
  void claim(const std::string& text, const std::string& source, const Comparison& comparison) {
    d_.claims.push_back({text, source, comparison});
  }
  // A level of a value that charts and the table "Beside what is known" have, such as the optimum of a task; chance and
  // a linear model on the pixels are there for trainings on labelled images.
  void reference(const std::string& value, double level, const std::string& name) {
    d_.references.push_back({value, level, name});
  }
  // A figure from a paper, shown beside what the trials at `where` give; `source` with where it was read.
  void published(const Point& where, const std::string& value, const std::string& figure, const std::string& source) {
    d_.published.push_back({where, value, figure, source});
  }
  // A section, a file or a display of the study's own, made from its results. Sections come in the order of the calls,
  // what was published last.
  //   study.output([](const lab::StudyResults& r) { return lab::Section{...}; });
  //   study.output({"layers.csv", lab::layers_csv});
  void output(Output output);

  // Values that come first in results.csv, in this order ("seconds" may be among them), and in the table at the end.
  void columns(std::vector<std::string> names) { d_.columns = std::move(names); }
  void show(std::vector<std::string> names) { d_.show = std::move(names); }
  // The report's title is followed by "on" and the name of the data.
  void title(std::string text) { d_.title = std::move(text); }

  // The whole program. `body` makes and trains one trial; with --jobs above 1 it runs in several threads at once.
  // Returns the exit status: 0 when every trial reached a verdict (divergence is one), 1 for what went wrong at run
  // time, 2 for what is wrong on the command line, 130 and 143 after an interrupt.
  int run(int argc, const char* const* argv, std::function<void(Trial&)> body);

  // The names of before, for one version.
  template <class F>
  [[deprecated("output(make)")]] void section(F make) {
    output(Output(std::move(make)));
  }
  template <class F>
  [[deprecated("output({name, text})")]] void file(const std::string& name, F text) {
    output(Output(name, std::move(text)));
  }
  template <class F>
  [[deprecated("cli().derive(f)")]] void derive(F f) {
    cli().derive(std::move(f));
  }
  template <class F>
  [[deprecated("cli().action(f)")]] void instead(F f) {
    cli().action(std::move(f));
  }

 private:
  AxisData& add_axis(const std::string& option, const std::string& help, AxisData data);
  void declare();

  StudyDeclaration d_;
};

template <AxisType T>
Axis<T> Study::axis(const std::string& option, std::vector<T> values, const std::string& help) {
  return Axis<T>(
      add_axis(option, help,
               {.name = "", .option = "", .values = std::vector<StoredAxisValue<T>>(values.begin(), values.end())}));
}

template <AxisType T>
Axis<T> Study::searched(const std::string& name) {
  return Axis<T>(
      d_.axes.emplace_back(AxisData{.name = name, .option = "", .values = std::vector<StoredAxisValue<T>>()}));
}

}  // namespace plumb::lab
