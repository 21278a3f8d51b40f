// --weights of the programs that take a trained model: to evaluate it as it is, or to train it on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/study_options.h"
#include "experiments/lab/train/trial.h"
#include "nn/io/pretrained.h"

namespace plumb::lab {

class PretrainedWeights {
 public:
  // --weights, --weights-hash, --class-names, --evaluate and --fine-tune, in a section of their own.
  void declare(Cli& cli);

  bool given() const { return !path_.empty(); }
  bool trains_on() const { return given() && !evaluate_; }
  bool evaluates() const { return evaluate_; }
  const std::string& path() const { return path_; }
  // Supplies a ViT's heads, and constants of the method as --gate gives them, for a file that does not say them. Call
  // it before card().
  void supply(std::optional<std::int64_t> heads, const std::string& method) { heads_ = heads, method_ = method; }
  // What the file says of its model; read when it is asked for first.
  const nn::ModelCard& card();
  // To be called before options are checked: image size and normalization as the file has them, where they were not
  // given.
  void take_images(Cli& cli, StudyOptions& run);
  // LayerScale's initial value, where the file has none of its own and nobody gave one: 1, so that the network computes
  // at first what it did.
  void take_init(Cli& cli, double& init);
  // Sets an option's variable as the file has it. Throws UsageError where the command line gave it otherwise.
  template <class T>
  void decide(Cli& cli, const std::string& option, T& variable, const T& there) {
    const auto shown = [](const T& value) {
      if constexpr (NamedEnum<T>)
        return enum_name(value);
      else
        return value;
    };
    usage_check(!cli.given(option) || variable == there, "{} {}: {} has {}", option, shown(variable), path_,
                shown(there));
    variable = there;
    cli.explain(option, path_);
  }

  // --gate as the file has it. Throws UsageError where the command line gave another method, or another constant that
  // its weights depend on.
  void decide_gate(Cli& cli, std::string& gate, const nn::Method& there);

  // Puts the weights into a model that a trial trains on, with what the file lacks as it was initialised, a head for
  // other classes, and new gates at their start (nn::Adaptation). stderr gets a line about it, and whether the network
  // computes what the file's did. Throws as nn::load_pretrained does.
  void put_into(nn::Classifier& model, Trial& trial, std::optional<double> gate_start = {}) const;
  const std::string& supplied_method() const { return method_; }

  // Names of the classes: those of --class-names (one a line), of the file, or none. Throws where they are not as many
  // as the classes.
  std::vector<std::string> class_names();

 private:
  const nn::TensorFile& file();

  std::string path_, hash_, class_names_, method_;
  std::optional<std::int64_t> heads_;
  bool evaluate_ = false, fine_tune_ = false;
  std::optional<nn::TensorFile> file_;  // in host memory
  std::optional<nn::ModelCard> card_;
};

// --evaluate: the five likeliest classes of each image at or below --image-folder (below val/, if that stands beside
// train/), or the validation images of --data; with --validation-split those that it draws. Of images with labels, as
// in a data set and in folders named as classes, also mean loss, accuracy, accuracy by class and a confusion matrix.
// stdout gets tables (--json: an array of the files, or an object of scores),
// --out the same as CSV, evaluation.json and report.html, and pictures of what the class attends to, from all classes
// in turn. Returns the exit status: 1 if a file cannot be read. Throws UsageError for images of other classes than
// those of the weights.
int evaluate_images(PretrainedWeights& weights, const StudyOptions& run, const Cli& cli);

}  // namespace plumb::lab
