// A study in one file: its problem, its axes, the training of one trial, and its claims. The library adds command line,
// folder, ledger, resuming, parallel jobs, shards, checkpoints, progress, statistics and report. For studies of images,
// vision::Study (experiments/vision/study.h) has the problem and its options.
//
// clang-format off
//   int main(int argc, char** argv) {
//     lab::Study study("layerscale_init", "Does the initial value of LayerScale matter?");
//     study.problem([](const lab::StudyOptions&) { return std::make_unique<Waves>(); });  // problem/problem.h
//     const auto depth = study.depths({12, 24, 48});
//     const auto epsilon = study.axis("--epsilons", {0.0, 1e-6, 1e-4, 0.1}, "Initial value").at_least(0);
//     study.defaults({.steps = 300, .lr = 3e-3});
//     study.claim("1e-6 trains better than 0", "CaiT, table 1",
//                 lower(lab::train_loss, epsilon == 1e-6, epsilon == 0).at(depth == 24));
//     return study.run(argc, argv, [&](lab::Trial& trial) {
//       nn::Stack model({.dim = 16,
//                        .depth = trial[depth],
//                        .method = nn::methods::layerscale(trial[epsilon]),
//                        .junctions = {nn::mlp({.hidden = 64})}});
//       nn::initialize(model, trial.seed());
//       trial.train(model);
//     });
//   }
// clang-format on
//
// A study without axes has one trial for each seed. If the body has a training loop of its own, as in
// examples/warmup_study.cpp, the study leaves out the options of Trial::train with {.optimization = false}.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/lab/study/declaration.h"

namespace plumb::lab {

// The defaults that a program gives to options of every study. A field without a value keeps the default of the
// library.
struct StudyDefaults {
  std::optional<std::int64_t> steps = {}, warmup = {}, batch = {};
  std::optional<double> lr = {}, weight_decay = {}, clip_norm = {}, loss_limit = {};
  std::vector<std::int64_t> seeds = {};
  bool stop_hopeless = false;
};

// The parts of a study.
struct StudyParts {
  bool optimization = true;  // options of the training by Trial::train
};

// A study. A program declares the study with the functions below, then calls run(), which is the whole program.
class Study {
 public:
  // The name is written to run.json, and --resume accepts only folders with the same name. The question is the first
  // line of --help and of the report.
  Study(std::string name, std::string question, StudyParts parts = {});

  // The command line, to which a study adds options, presets, examples and rules. The variables of options must outlive
  // the study.
  Cli& cli() { return d_.cli; }
  // Sets the defaults of options that every study has.
  //   study.defaults({.steps = 300, .lr = 3e-3});
  void defaults(const StudyDefaults& defaults);
  // All options that every study has. The values before run() are the defaults.
  StudyOptions& options() { return d_.options; }
  OptimizationOptions& optimization() { return d_.optimization; }
  // Adds a group of options, a copyable struct with the function declare(Cli&). run() calls declare(). An axis may set
  // an option of the group; Trial::group<Group>() then has the value of the trial. For this, declare() is also called
  // on copies, so it must not change the group. `group` must outlive the study.
  template <class Group>
  void add(Group& group) {
    d_.groups.push_back([&group](Cli& cli) { group.declare(cli); });
    d_.by_point.add(group);
  }
  // Sets the problem that the networks solve (problem/problem.h). If options of the program decide the data, `make`
  // reads the variables of these options.
  void problem(ProblemFactory make);
  // Sets the value by which a search chooses learning rates (own_rates.h), in place of the training loss. A study of
  // regularisation needs this: the training loss is lowest at a rate at which the network fits its training data, and
  // best without regularisation. Each trial must measure the value at its end.
  //   study.choose_rates_by("val_accuracy", lab::Better::higher);
  void choose_rates_by(const std::string& value, Better better) { d_.rates_by = {value, better}; }
  // Makes the search choose one learning rate for all values on this axis: the rate with the lowest sum of losses, at
  // which no value fails. For values that hardly differ, such as small initial values of a gate, a rate of its own for
  // each value would only add luck. Call it before run().
  template <class T>
  void one_rate_for(const Axis<T>& axis) {
    d_.shared_by.push_back(axis.name());
  }
  // Sets the method with which the report compares all others: the one of the first trial that fulfils the condition.
  //   study.control(gate == "pre" && warmup == 60);
  void control(const Point& method) { d_.control = method; }
  // The settings for comparing methods in the report. run() takes the chance levels from the problem.
  Judging& judging() { return d_.judging; }

  // Declares an axis and its option. The values are int, std::int64_t, double, texts, or the values of an enum with
  // names_of() (core/enum_names.h), of which the option accepts all names. The name of the axis is the name of the
  // option without dashes and the plural s. If the library has an option with the name of the axis ("--dim" for
  // "--dims"), the axis replaces that option. The seed is the last axis of every study. If each method trains at its
  // own learning rate (own_rates.h), an axis of double named "lr" gives only the start of the search. Throws Error for
  // a second axis with the same option.
  //   const auto epsilon = study.axis("--epsilons", {0.0, 1e-6, 0.1}, "Initial values").at_least(0);
  template <AxisType T>
  Axis<T> axis(const std::string& option, const std::vector<T>& values, const std::string& help);
  template <class T>
  auto axis(const std::string& option, std::initializer_list<T> values, const std::string& help) {
    using Value = std::conditional_t<std::is_same_v<T, const char*>, std::string, T>;
    return axis(option, std::vector<Value>(values.begin(), values.end()), help);
  }
  // The same with all values of an enum: study.axis<Form>("--forms", "Drops in attention").
  template <NamedEnum E>
  Axis<E> axis(const std::string& option, const std::string& help) {
    return axis(option, enum_values<E>(), help);
  }
  // The axis "depth" with the option --depths: numbers of blocks. It varies slowest, so that trials of small depths
  // come first.
  Axis<std::int64_t> depths(const std::vector<std::int64_t>& values, const std::string& help = "Numbers of blocks");
  // The axis "gate" with the option --gates: residual methods, with or without constants.
  Axis<std::string> methods(const std::vector<std::string>& values,
                            const std::string& help = "Residual methods to compare");
  // The axis "lr" with the option --lrs: peak learning rates.
  Axis<double> learning_rates(const std::vector<double>& values);
  // Declares an axis whose values come from search().
  template <AxisType T>
  Axis<T> searched(const std::string& name);
  // Sets the function that names the next trials of a search.
  void search(NextPoints next) { d_.next = std::move(next); }
  // Restricts the study to the combinations of values for which `wanted` returns true. The points that `wanted`
  // receives have no seed and no searched axes; point[axis] is a value, and point.contains(axis == value) a condition.
  // If each method trains at its own learning rate, a combination of the other axes is in the study if `wanted` returns
  // true for any value on the axis "lr".
  void only(std::function<bool(const Point&)> wanted) { d_.wanted = std::move(wanted); }
  // Adds a function that is called with the facts about the data before any file is made. The function throws
  // UsageError if the options do not suit the data.
  void check(std::function<void(const DataFacts&)> f) { d_.checks.push_back(std::move(f)); }

  // Adds a claim about the trials, stated before they run. The axes and values of the claim are checked when the study
  // starts (stats/claim_check.h). If a trial of the claim ends ok without measuring the value, the study ends with an
  // error. A body that has no number for the value measures `unknown`.
  //   study.claim("LayerScale trains better than pre-norm", "CaiT, table 1",
  //               lower(lab::train_loss, gate == "layerscale", gate == "pre").at(depth == 24))
  //       .primary();  // see Claim::primary()
  Claim& claim(const std::string& text, const std::string& source, const Comparison& comparison) {
    return d_.claims.emplace_back(Claim{text, source, comparison});
  }
  // Makes every trial measure the steps to a training loss, and returns the name of this value, "steps_to_0.1" for a
  // `loss` of 0.1. The value is the number of steps after which the mean training loss over the last 20 steps was first
  // below `loss`. A trial that never gets below `loss` measures its number of steps, which then means "at least". A
  // trial that does not end ok measures nothing, and counts as not trained. The losses come from Trial::train(),
  // Step::minimise(), Trial::check_divergence(), or a logged "loss". The level is one of the loss itself: with smoothed
  // or mixed labels, give a level above the entropy of the targets. Throws Error if `loss` is not finite and above 0.
  //   study.claim("LayerScale is faster to a loss of 0.1", "CaiT",
  //               lower(study.steps_to(0.1), gate == "layerscale", gate == "pre").at(depth == 24));
  std::string steps_to(double loss);
  // Adds a reference level of a value, such as the optimum of a task. Charts and the line "Known levels" show the
  // level. The problem adds its chance levels and its baselines (DataFacts::references).
  void reference(const std::string& value, double level, const std::string& name) {
    d_.references.push_back({value, level, name});
  }
  // Adds a published result about trials at `where` to the list of published results. `source` names the publication.
  //   study.published(gate == "layerscale" && depth == 24, "val_accuracy", "82.9 % top-1 on ImageNet", "CaiT");
  void published(const Point& where, const std::string& value, const std::string& figure, const std::string& source) {
    d_.published.push_back({where, value, figure, source});
  }
  // These functions add outputs that are made from the results, in addition to the files of every study: a section, or
  // a further file in the study folder. A section is shown on the terminal, in the report and in results.md. Sections
  // appear in the order of the calls, and the published results come last. Throws Error if the file has the name of a
  // file of every study.
  //   study.output([](const lab::StudyResults& r) { return lab::Section{...}; });
  //   study.output("layers.csv", lab::layers_csv);
  void output(std::function<Section(const StudyResults&)> make) { d_.sections.push_back(std::move(make)); }
  void output(const std::string& file, std::function<std::string(const StudyResults&)> text);

  // Makes every trial record the statistics of its layers (signals/layer_probe.h) at the first step, at the last step
  // and ten times in between, and the study write them to layers.csv. The layers are those of the last nn::Stack of the
  // model: in a DETR, of the decoder. Trial::train() and Trial::loop(model, optimizer) record them, and throw Error for
  // a model without a stack; a loop() without arguments records nothing.
  void measure_layers();

  // Sets the values that come first in results.csv, in this order ("seconds" may be among them). The progress and the
  // table on the terminal show these values; without this call, the first eight that trials measure.
  void columns(std::vector<std::string> names) { d_.columns = std::move(names); }
  // Sets the title of the report. The title is followed by "on" and the name of the data.
  void title(std::string text) { d_.title = std::move(text); }

  // Runs the whole program. `body` builds and trains one trial. With --jobs above 1, several threads call `body` at
  // once. Returns the exit status: 0 if no trial failed (a divergence is no failure), 1 for an error at run time, 2 for
  // an error on the command line, 130 or 143 after an interrupt.
  int run(int argc, const char* const* argv, std::function<void(Trial&)> body);

 protected:
  // The next functions are for a study of one family of problems, such as vision::Study.
  // check_points() sets a function that is called with each point and the facts about the data before any file is
  // made. The function throws UsageError if the options of the trial do not suit the data. A second call replaces the
  // function.
  void check_points(std::function<void(const Point&, const DataFacts&)> f) { d_.check_point = std::move(f); }
  // Returns an added group, or the options of the study, as a trial at this point gets them.
  template <class Group>
  Group group_at(const Point& point) const {
    return d_.by_point.at<Group>(point);
  }
  StudyOptions options_at(const Point& point) const { return d_.by_point.study(point); }
  // Sets the functions that describe the added groups of options in reports, and the warm-up that a call without
  // --warmup has. `make` is called with the facts about the data.
  void describe(std::function<NamedTexts(const DataFacts&)> make, std::function<std::string()> warmup) {
    d_.describe = std::move(make);
    d_.describe_warmup = std::move(warmup);
  }
  // Adds a group whose options the command line does not have. The values of the program hold for all trials.
  template <class Group>
  void add_without_options(Group& group) {
    d_.by_point.add(group);
  }

 private:
  friend const StudyDeclaration& declaration_of(const Study& study) { return study.d_; }  // for vision::Study
  AxisData& add_axis(const std::string& option, const std::string& help, AxisData data);
  void declare();

  StudyDeclaration d_;
};

template <AxisType T>
Axis<T> Study::axis(const std::string& option, const std::vector<T>& values, const std::string& help) {
  std::vector<StoredAxisValue<T>> stored;
  for (const T& value : values) stored.push_back(Axis<T>::to_stored(value));
  const Axis<T> axis(add_axis(option, help, {.name = "", .option = "", .values = std::move(stored)}));
  if constexpr (NamedEnum<T>) return Axis<T>(axis).one_of(axis.name(), enum_names<T>());
  return axis;
}

template <AxisType T>
Axis<T> Study::searched(const std::string& name) {
  return Axis<T>(
      d_.axes.emplace_back(AxisData{.name = name, .option = "", .values = std::vector<StoredAxisValue<T>>()}));
}

// Runs a program whose study is a class with the function train(), the body of a trial. Returns the exit status.
template <class Program>
int run(int argc, const char* const* argv) {
  Program study;
  return study.run(argc, argv, [&](auto& trial) { study.train(trial); });
}

}  // namespace plumb::lab
