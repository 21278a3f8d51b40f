// The option --weights of programs that accept a trained model, to evaluate it or to fine-tune it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/study_options.h"
#include "experiments/lab/train/trial.h"
#include "nn/io/pretrained.h"

namespace plumb::lab {

// A file of trained weights, and the options of the command line about it.
class PretrainedWeights {
 public:
  // Declares --weights, --weights-hash, --class-names, --evaluate and --fine-tune in a section of --help.
  void declare(Cli& cli);

  // Whether --weights is given, and whether it is for fine-tuning or for evaluation.
  bool given() const { return !path_.empty(); }
  bool trains_on() const { return given() && !evaluate_; }
  bool evaluates() const { return evaluate_; }
  const std::string& path() const { return path_; }
  // Supplies the number of heads of a ViT, and the method with its constants as in --gate, for a file that does not
  // have them. Must be called before card().
  void supply(std::optional<std::int64_t> heads, const std::string& method) { heads_ = heads, method_ = method; }
  // The description of the model in the file. The first call reads the file.
  const nn::ModelCard& card();
  // Sets image size and normalization to those of the file if the command line does not give them. Must be called
  // before the options are checked.
  void take_images(Cli& cli, StudyOptions& run);
  // Sets the initial value of LayerScale to 1 if the file has no LayerScale and --init is not given. The fine-tuned
  // network then starts with the same function as the network in the file.
  void take_init(Cli& cli, double& init);
  // Sets the variable of an option to the value in the file. Throws UsageError if the command line gives another value.
  template <class T>
  void decide(Cli& cli, const std::string& option, T& variable, const T& there) {
    const auto shown = [](const T& value) {
      if constexpr (NamedEnum<T>)
        return enum_name(value);
      else
        return value;
    };
    usage_check(!cli.given(option) || variable == there,
                "{} {}: {} has {}; give the same value or leave the option out", option, shown(variable), path_,
                shown(there));
    variable = there;
    cli.explain(option, path_);
  }

  // Sets --gate to the method in the file. Throws UsageError if the command line gives another method, or another value
  // of a constant on which the trained weights depend.
  void decide_gate(Cli& cli, std::string& gate, const nn::Method& there);

  // Loads the weights into a model that a trial fine-tunes (nn::Adaptation). Parameters that the file lacks keep their
  // initial values, as do a head for other classes and new gates. Prints a line about it on stderr, which also tells
  // whether the network computes the same function as the one in the file. Throws the errors of nn::load_pretrained.
  void put_into(nn::Classifier& model, Trial& trial, std::optional<double> gate_start = {}) const;
  const std::string& supplied_method() const { return method_; }

  // The names of the classes: from --class-names (one per line), else from the file, else none. Throws Error if their
  // number is not the number of classes.
  std::vector<std::string> class_names();

 private:
  const nn::TensorFile& file();

  std::string path_, hash_, class_names_, method_;
  std::optional<std::int64_t> heads_;
  bool evaluate_ = false, fine_tune_ = false;
  std::optional<nn::TensorFile> file_;  // in host memory
  std::optional<nn::ModelCard> card_;
};

// --evaluate: predicts the classes of images with the weights. The images are those at or below --image-folder (below
// val/ if it is next to train/), or the validation images of --data, or the images that --validation-split draws. For
// each file in a folder stdout has the five likeliest classes. For images with labels (from a data set, or in folders
// named as classes) it also has mean loss, accuracy, and accuracy by class. With --json stdout has an array of the
// files, or an object of scores. The folder --out receives CSV files and attention maps of some images, and, for images
// with labels, a confusion matrix, evaluation.json and report.html. Returns the exit status, 1 if a file cannot be
// read. Throws UsageError if the images have other classes than the weights.
int evaluate_images(PretrainedWeights& weights, const StudyOptions& run, const Cli& cli);

}  // namespace plumb::lab
