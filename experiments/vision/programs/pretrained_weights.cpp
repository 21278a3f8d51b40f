#include "experiments/vision/programs/pretrained_weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/atomic_file.h"
#include "experiments/lab/hash.h"
#include "experiments/vision/data/image_set.h"
#include "nn/gates/method_text.h"

namespace plumb::vision {

void PretrainedWeights::declare(Cli& cli) {
  cli.section("Weights");
  cli.option(
         "--weights", &path_,
         "Trained weights: a safetensors file with timm's names or from --save-weights; it also sets the sizes of the "
         "model")
      .path("FILE")
      .scope(Scope::speed);
  cli.option("--weights-hash", &hash_,
             "Expected hash of --weights; by default it is computed from the file, and it is recorded")
      .value_name("HASH")
      .scope(Scope::run);
  cli.option("--fine-tune", &fine_tune_,
             "Fine-tune the weights: the head is new for other classes, positions are resized for other image sizes");
  cli.option("--evaluate", &evaluate_,
             "Do not train: print the likeliest classes of the images of --image-folder, or the scores on those of "
             "--data; --out receives a report and pictures")
      .scope(Scope::call);
  cli.option("--class-names", &class_names_, "Names of the classes of --weights, one per line")
      .path("FILE")
      .scope(Scope::speed);
  cli.rule([this, &cli] {
    usage_check(!path_.empty() || !(evaluate_ || fine_tune_), "--{} needs --weights FILE",
                evaluate_ ? "evaluate" : "fine-tune");
    usage_check(path_.empty() || evaluate_ != fine_tune_, "--weights: give {} --evaluate {} --fine-tune",
                evaluate_ ? "only one of" : "either", evaluate_ ? "and" : "or");
    usage_check(class_names_.empty() || evaluate_,
                "--class-names is for --evaluate only; in a training the folders of images name the classes");
    shows_ = cli.typed("--rebuild");
    if (evaluate_)
      for (const char* option :
           {"--resume", "--overwrite", "--rebuild", "--train-images", "--eval-images", "--steps", "--seeds"})
        usage_check(!cli.typed(option), "{} is for training and does not go with --evaluate; leave one out", option);
  });
  cli.derive([this] {  // after all rules, one of which prints the paths that run.json names
    if (path_.empty() || shows_) return;
    std::error_code none;  // a pipe or a device would never end
    check(!std::filesystem::exists(path_, none) || std::filesystem::is_regular_file(path_, none),
          "--weights {}: expected a file", path_);
    const std::string hash = hash_of(read_file(path_));
    usage_check(hash_.empty() || hash_ == hash,
                "--weights {} has the hash {}, but the study began with {}; give the same file", path_, hash, hash_);
    hash_ = hash;
  });
}

const nn::TensorFile& PretrainedWeights::file() {
  if (!file_) {
    const DefaultsScope host({.dtype = DType::f32, .device = Device::cpu});
    file_ = nn::read_safetensors(path_);
  }
  return *file_;
}

const nn::ModelCard& PretrainedWeights::card() {
  if (!card_) {
    card_ = nn::card_of(file(), path_, supplied_.heads, supplied_.method);
    if (supplied_.norm_eps && !nn::has_card(file()))
      std::visit([&](auto& o) { o.norm_eps = *supplied_.norm_eps; }, card_->options);
  }
  return *card_;
}

void PretrainedWeights::decide_gate(Cli& cli, std::string& gate, const nn::Method& there) {
  if (cli.given("--gate")) {
    const nn::MethodText typed = nn::method_text(gate);
    bool agrees = typed.name == there.name;
    if (agrees)
      for (const nn::MethodConstant& c : there.constants)
        if (const auto value = typed.values.find(c.name);
            value != typed.values.end() && c.affects != nn::Affects::start)
          agrees = agrees && value->second == there.value(c.name);
    usage_check(agrees, "--gate {}: {} has {}; give the same or leave --gate out", gate, path_, there.label());
  }
  gate = there.label();
  cli.explain("--gate", path_);
}

void PretrainedWeights::take_images(Cli& cli, ImageOptions& images) {
  if (!trains_on()) return;
  if (!cli.given("--image-size")) {
    images.image_size = card().image();
    cli.explain("--image-size", path_);
  }
  const auto is = [&](NormalizationKind kind) {
    const Normalization n = normalization_of({.channels = 3}, kind);
    const auto near = [](const std::vector<double>& a, const std::vector<float>& b) {
      return a.size() == b.size() &&
             std::equal(a.begin(), a.end(), b.begin(), [](double x, float y) { return std::abs(x - y) < 1e-6; });
    };
    return near(card().mean, n.mean) && near(card().std, n.std);
  };
  if (!cli.given("--normalization") && is(NormalizationKind::half)) images.normalization = NormalizationKind::half;
}

void PretrainedWeights::take_init(Cli& cli, double& init) {
  const auto& tensors = file().tensors;
  const bool has = tensors.contains("blocks.0.gate1.gamma") || tensors.contains("blocks.0.ls1.gamma") ||
                   tensors.contains("blocks.0.gamma_1");
  if (has || cli.given("--init")) return;
  init = 1;
  cli.explain("--init", "rule: new LayerScales in trained weights start at 1");
}

nn::Adapted PretrainedWeights::load_into(nn::Classifier& model, nn::Adaptation adaptation) const {
  adaptation.method = supplied_.method;
  adaptation.given_heads = supplied_.heads.has_value();
  adaptation.given_norm_eps = supplied_.norm_eps.has_value();
  adaptation.given_pool = supplied_.pool;
  return nn::load_pretrained(model, nn::read_safetensors(path_), path_, adaptation);
}

void PretrainedWeights::put_into(nn::Classifier& model, lab::Trial& trial, std::optional<double> gate_start) const {
  const nn::Adapted adapted = load_into(model, {.new_head = true, .new_gates = true, .gate_start = gate_start});
  trial.mark_pretrained();
  std::string text = fmt::format("{}: loaded", path_);
  if (adapted.positions_from)
    text += fmt::format("; positions resized from {0} x {0} patches", *adapted.positions_from);
  if (!adapted.as_initialised.empty())
    text += fmt::format(
        "; new: {}{}",
        fmt::join(adapted.as_initialised.begin(),
                  adapted.as_initialised.begin() + std::min<std::ptrdiff_t>(std::ssize(adapted.as_initialised), 4),
                  ", "),
        adapted.as_initialised.size() > 4 ? fmt::format(" and {} more", adapted.as_initialised.size() - 4) : "");
  note_error(fmt::format("{}; {}\n", text, adapted.text()));
}

std::vector<std::string> PretrainedWeights::class_names() {
  if (class_names_.empty()) return card().class_names;
  std::ifstream in(class_names_);
  check(in.good(), "{}: cannot be read", class_names_);
  std::vector<std::string> names;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    names.push_back(line);
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  check(static_cast<std::int64_t>(names.size()) == card().classes(),
        "{}: expected {} lines, one for each class of {}, got {} lines", class_names_, card().classes(), path_,
        names.size());
  return names;
}

}  // namespace plumb::vision
