// The option --weights, for programs that evaluate (evaluate_images.h) or fine-tune a trained model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/train/trial.h"
#include "experiments/vision/options/image_options.h"
#include "nn/gates/method.h"
#include "nn/io/pretrained.h"

namespace plumb::vision {

// A file of trained weights, with the options of the command line about that file.
class PretrainedWeights {
 public:
  // Declares --weights, --weights-hash, --class-names, --evaluate and --fine-tune in a section of --help.
  void declare(Cli& cli);

  // given(): whether --weights is given. trains_on(): whether the weights are for fine-tuning in this call; --rebuild
  // reads no weights, because run.json has all values that come from the file. evaluates(): whether the weights are for
  // evaluation.
  bool given() const { return !path_.empty(); }
  bool trains_on() const { return given() && !evaluate_ && !shows_; }
  bool evaluates() const { return evaluate_; }
  const std::string& path() const { return path_; }
  // Values that the user gives for properties that a file may not state: the number of heads, eps of the norms, whether
  // --pool is given, and the method with its constants as in --gate. A value is used only if the file lacks it.
  struct Supplied {
    std::optional<std::int64_t> heads = {};
    std::optional<double> norm_eps = {};
    bool pool = false;
    std::string method = {};
  };
  // Must be called before card().
  void supply(Supplied values) { supplied_ = std::move(values); }
  // The description of the model in the file. The first call reads the file.
  const nn::ModelCard& card();
  // Sets the image size and the normalization to those of the file, unless the command line gives them. Must be called
  // before the options are checked.
  void take_images(Cli& cli, ImageOptions& images);
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

  // Loads the weights into a model (nn::load_pretrained) with the values that supply() received.
  nn::Adapted load_into(nn::Classifier& model, nn::Adaptation adaptation = {}) const;
  // Loads the weights into a model that a trial fine-tunes (nn::Adaptation). Parameters that the file lacks keep their
  // initial values. A head for other classes and new gates also keep their initial values. Prints a line about the
  // loading on stderr. The line also tells whether the network computes the same function as the network in the file.
  // Throws the errors of nn::load_pretrained.
  void put_into(nn::Classifier& model, lab::Trial& trial, std::optional<double> gate_start = {}) const;

  // The names of the classes, one for each class. --class-names comes first (a file with one name per line), then the
  // weights file. Empty if neither has names. Throws Error if the number of names is not the number of classes.
  std::vector<std::string> class_names();

 private:
  const nn::TensorFile& file();

  std::string path_, hash_, class_names_;
  Supplied supplied_;
  bool evaluate_ = false, fine_tune_ = false, shows_ = false;
  std::optional<nn::TensorFile> file_;  // the file's tensors in host memory
  std::optional<nn::ModelCard> card_;
};

}  // namespace plumb::vision
