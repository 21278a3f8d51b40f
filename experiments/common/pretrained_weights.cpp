#include "experiments/common/pretrained_weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "autograd/autograd.h"
#include "core/atomic_file.h"
#include "experiments/common/attention_pictures.h"
#include "experiments/common/data/image_file.h"
#include "experiments/common/data/image_folder.h"
#include "experiments/common/data/loader.h"
#include "experiments/common/hash.h"
#include "experiments/common/run_folder.h"
#include "experiments/common/setup.h"
#include "experiments/common/trainer.h"
#include "nn/attention_maps.h"

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t images_at_once = 16, most_pictures = 32;
constexpr std::size_t shown = 5;

struct Ranked {
  std::string file;
  std::vector<std::pair<std::int64_t, double>> top = {};  // class and probability, the likeliest first
  std::optional<std::int64_t> label = {};
  std::string picture = {};
};

// "tabby (281)", "class 281"
std::string class_text(const std::vector<std::string>& names, std::int64_t label) {
  return names.empty() ? fmt::format("class {}", label) : fmt::format("{} ({})", names[static_cast<std::size_t>(label)], label);
}

// The class whose name a folder of the image has, at or below `root`; none where two classes have that name.
std::optional<std::int64_t> label_of(const std::string& file, const fs::path& root, const std::vector<std::string>& names) {
  const fs::path end = root.lexically_normal().parent_path();
  for (fs::path folder = fs::path(file).lexically_normal().parent_path(); !folder.filename().empty() && folder != end;
       folder = folder.parent_path()) {
    const auto found = std::ranges::find(names, folder.filename().string());
    if (found == names.end()) continue;
    if (std::find(found + 1, names.end(), *found) != names.end()) return std::nullopt;
    return found - names.begin();
  }
  return std::nullopt;
}

Normalization normalization_for(const nn::ModelCard& card, const RunOptions& run, const Cli& cli) {
  if (!cli.given("--normalization") && !card.mean.empty()) return {{card.mean.begin(), card.mean.end()}, {card.std.begin(), card.std.end()}};
  usage_check(run.normalization != "data", "--normalization data: these images are not what the model was trained on; choose imagenet or half");
  return normalization_named(run.normalization, {.channels = card.channels()});
}

std::string describe(const nn::ModelCard& card) {
  const auto* cait = std::get_if<nn::CaiTOptions>(&card.options);
  return std::visit(
      [&](const auto& o) {
        return fmt::format("{}, {}{} blocks, width {}, {} head{}, {}, {} classes, images of {} x {}", cait ? "CaiT" : "ViT", o.depth,
                           cait ? fmt::format(" + {}", cait->depth_token_only) : "", o.dim, o.heads, o.heads == 1 ? "" : "s", o.gate->label(),
                           o.classes, o.image, o.image);
      },
      card.options);
}

std::string json_of(const std::vector<Ranked>& images, const std::vector<std::string>& names) {
  Json all = Json::array();
  for (const Ranked& image : images) {
    Json top = Json::array();
    for (const auto& [label, probability] : image.top)
      top.push_back({{"class", label}, {"name", names.empty() ? "" : names[static_cast<std::size_t>(label)]}, {"probability", probability}});
    all.push_back({{"file", image.file}, {"label", image.label ? Json(*image.label) : Json()}, {"top", top}, {"picture", image.picture}});
  }
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string table_of(const std::vector<Ranked>& images, const std::vector<std::string>& names) {
  std::string text;
  for (const Ranked& image : images) {
    text += image.file + "\n";
    for (const auto& [label, probability] : image.top) text += fmt::format("  {:5.1f} %  {}\n", 100 * probability, class_text(names, label));
  }
  std::int64_t labelled = 0, first = 0, among = 0;
  for (const Ranked& image : images) {
    if (!image.label) continue;
    const auto place = std::ranges::find(image.top, *image.label, &std::pair<std::int64_t, double>::first);
    ++labelled, first += place == image.top.begin(), among += place != image.top.end();
  }
  if (labelled > 0)
    text += fmt::format("of {} images in folders named as classes: the likeliest is right for {} ({:.1f} %), one of {} for {} ({:.1f} %)\n", labelled,
                        first, 100.0 * static_cast<double>(first) / static_cast<double>(labelled), images.front().top.size(), among,
                        100.0 * static_cast<double>(among) / static_cast<double>(labelled));
  return text;
}

}  // namespace

void PretrainedWeights::declare(Cli& cli) {
  cli.section("Weights");
  cli.option("--weights", &path_,
             "Trained weights, safetensors under timm's names or as --save-weights writes them; the model's sizes are the file's")
      .value_name("FILE")
      .decides_speed_only();
  cli.option("--weights-hash", &hash_, "What --weights must hold; set from the file, and recorded").value_name("HASH").same_for_all();
  cli.option("--fine-tune", &fine_tune_, "Train them on: a head for other classes is new, positions are resized to other images");
  cli.option("--evaluate", &evaluate_,
             "Train nothing: print the likeliest classes of the images of --image-folder, and draw what the class attends to")
      .decides_nothing_later();
  cli.option("--class-names", &class_names_, "Names of the classes of --weights, one a line").value_name("FILE").decides_speed_only();
  cli.rule([this, &cli] {
    usage_check(!path_.empty() || !(evaluate_ || fine_tune_), "--{} is about --weights FILE; give it", evaluate_ ? "evaluate" : "fine-tune");
    usage_check(path_.empty() || evaluate_ != fine_tune_, "--weights: give {} --evaluate {} --fine-tune", evaluate_ ? "only one of" : "either",
                evaluate_ ? "and" : "or");
    usage_check(class_names_.empty() || evaluate_, "--class-names is about what --evaluate prints; folders of images name the classes of a training");
    if (path_.empty()) return;
    const std::string hash = hash_of(read_file(path_));
    usage_check(hash_.empty() || hash_ == hash, "--weights {} holds {}, not {}, with which the run began", path_, hash, hash_);
    hash_ = hash;
    if (evaluate_)
      for (const char* option : {"--resume", "--overwrite", "--rebuild", "--train-images", "--validation-split", "--steps", "--seeds"})
        usage_check(!cli.typed(option), "{} is about training, --evaluate about images; leave one out", option);
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
  if (!card_) card_ = nn::card_of(file(), path_, heads_, method_);
  return *card_;
}

void PretrainedWeights::decide_gate(Cli& cli, std::string& gate, const nn::Method& there) {
  if (cli.given("--gate")) {
    const nn::MethodText typed = nn::method_text(gate);
    bool agrees = typed.name == there.name;
    if (agrees)
      for (const nn::MethodConstant& c : there.constants)
        if (const auto value = typed.values.find(c.name); value != typed.values.end() && c.affects != nn::Affects::start)
          agrees = agrees && value->second == there.value(c.name);
    usage_check(agrees, "--gate {}: {} has {}; leave --gate out, or give that", gate, path_, there.label());
  }
  gate = there.label();
  cli.explain("--gate", path_);
}

void PretrainedWeights::take_images(Cli& cli, RunOptions& run) {
  if (!trains_on()) return;
  if (!cli.given("--image-size")) {
    run.image_size = card().image();
    cli.explain("--image-size", path_);
  }
  const auto is = [&](const char* name) {
    const Normalization n = normalization_named(name, {.channels = 3});
    const auto near = [](const std::vector<double>& a, const std::vector<float>& b) {
      return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](double x, float y) { return std::abs(x - y) < 1e-6; });
    };
    return near(card().mean, n.mean) && near(card().std, n.std);
  };
  if (!cli.given("--normalization") && is("half")) run.normalization = "half";
}

void PretrainedWeights::take_init(Cli& cli, double& init) {
  const auto& tensors = file().tensors;
  const bool has = tensors.contains("blocks.0.gate1.gamma") || tensors.contains("blocks.0.ls1.gamma") || tensors.contains("blocks.0.gamma_1");
  if (has || cli.given("--init")) return;
  init = 1;
  cli.explain("--init", "rule: new LayerScales of trained weights start at 1");
}

void PretrainedWeights::put_into(nn::Classifier& model, Arm& arm, std::optional<double> gate_start) const {
  const nn::Adapted adapted = nn::load_pretrained(model, nn::read_safetensors(path_), path_,
                                                  {.new_head = true, .new_gates = true, .gate_start = gate_start, .method = method_});
  arm.is_trained();
  std::string text = fmt::format("{}: loaded", path_);
  if (adapted.positions_from) text += fmt::format("; positions resized from {0} x {0} patches", *adapted.positions_from);
  if (!adapted.as_initialised.empty())
    text += fmt::format("; new: {}{}",
                        fmt::join(adapted.as_initialised.begin(),
                                  adapted.as_initialised.begin() + std::min<std::ptrdiff_t>(std::ssize(adapted.as_initialised), 4), ", "),
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
        "{}: expected a name on each of {} lines, one for each class of {}, got {} lines", class_names_, card().classes(), path_, names.size());
  return names;
}

int evaluate_images(PretrainedWeights& weights, const RunOptions& run, const Cli& cli) {
  usage_check(run.data == "image-folder" && !run.data_dir.empty(), "--evaluate expects images: --image-folder DIR, or one file");
  usage_check(run.out.empty() || !fs::exists(run.out) || fs::is_empty(run.out), "--out {} is not empty; choose a new folder for the pictures",
              run.out);
  const DefaultsScope defaults(defaults_for(run));
  const PrecisionScope precision(precision_for(run.dtype, plumb::defaults().device));
  set_num_threads(static_cast<int>(run.threads.value_or(0)));
  nn::ModelCard card = weights.card();
  if (cli.given("--image-size")) {
    usage_check(run.image_size.has_value(), "--image-size native is about training; --evaluate takes a number, or the size of {}", weights.path());
    usage_check(*run.image_size % card.patch() == 0, "--image-size {} is no multiple of the patches of {}, {}", *run.image_size, weights.path(),
                card.patch());
    std::visit([&](auto& o) { o.image = *run.image_size; }, card.options);
  }
  const fs::path images = run.data_dir;
  const bool split = fs::is_directory(images / "train") && fs::is_directory(images / "val");
  const std::vector<std::string> names = weights.class_names(), files = image_files(split ? (images / "val").string() : images.string());
  usage_check(card.channels() == 3, "{} is for images of {} channels; those of files have 3", weights.path(), card.channels());
  const Normalization normalization = normalization_for(card, run, cli);
  const std::unique_ptr<nn::Classifier> model = nn::make_model(card);
  const nn::Adapted adapted =
      nn::load_pretrained(*model, nn::read_safetensors(weights.path()), weights.path(), {.method = weights.supplied_method()});
  model->eval();
  note_error(fmt::format("{}; {}\n", describe(card), adapted.text()));

  const fs::path out = run.out.empty() ? new_run_folder("evaluation") : fs::path(run.out);
  std::error_code error;
  fs::create_directories(out, error);
  check(!error, "cannot create {}: {}", out.string(), error.message());
  const NoGrad no_grad;
  std::vector<Ranked> ranked;
  bool all_read = true;
  for (std::size_t next = 0; next < files.size();) {
    // Those of the next files that can be read, as a set in memory.
    ImageSet set{.channels = 3, .height = card.image(), .width = card.image(), .classes = card.classes()};
    std::vector<Ranked> now;
    for (; next < files.size() && std::ssize(now) < images_at_once; ++next) try {
        const Pixels image = fitted(read_image(files[next]), set.height, set.width, run.image_crop);
        set.pixels.insert(set.pixels.end(), image.bytes.begin(), image.bytes.end());
        set.labels.push_back(0);
        now.push_back({.file = files[next], .label = label_of(files[next], images, names)});
      } catch (const Error& e) {
        const std::string text = e.what();
        note_error(fmt::format("error: {}{}\n", text.starts_with(files[next]) ? "" : files[next] + ": ", text));
        all_read = false;
      }
    if (now.empty()) continue;
    const bool draws = std::ssize(ranked) < most_pictures;
    std::optional<nn::AttentionMaps> maps;
    if (draws) maps.emplace(*model);
    const HostBatch batch = evaluation_batch(set, normalization, 0, set.size());
    const std::vector<double> probabilities = softmax((*model)(to_tensors(batch, set).images)).values();
    const auto classes = static_cast<std::size_t>(card.classes());
    for (std::size_t i = 0; i < now.size(); ++i) {
      const auto probability = [&](std::int64_t c) { return probabilities[i * classes + static_cast<std::size_t>(c)]; };
      std::vector<std::int64_t> order(classes);
      std::iota(order.begin(), order.end(), 0);
      check(std::ranges::all_of(order, [&](std::int64_t c) { return std::isfinite(probability(c)); }),
            "{}: the model gives probabilities that are not finite; are these its weights, and its normalization?", now[i].file);
      const std::size_t count = std::min(shown, classes);
      std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                        [&](std::int64_t a, std::int64_t b) { return probability(a) > probability(b); });
      for (std::size_t k = 0; k < count; ++k) now[i].top.emplace_back(order[k], probability(order[k]));
      const auto number = std::ssize(ranked) + static_cast<std::ptrdiff_t>(i) + 1;
      if (!draws || number > most_pictures) continue;
      const Pixels large = for_people(original(set, static_cast<std::int64_t>(i)));
      const fs::path file = out / fmt::format("{:02}-{}.png", number, fs::path(now[i].file).stem().string());
      write_file_atomically(file, png(beside({large, heat(large, attention_of_class(maps->all(), static_cast<std::int64_t>(i)))})));
      now[i].picture = file.string();
    }
    ranked.insert(ranked.end(), now.begin(), now.end());
  }
  write_result(run.json ? json_of(ranked, names) : table_of(ranked, names));
  if (!ranked.empty())
    note_error(fmt::format("what the class attends to{}: {}\n",
                           std::ssize(ranked) > most_pictures ? fmt::format(", the first {} images", most_pictures) : "", out.string()));
  return all_read ? 0 : 1;
}

}  // namespace plumb::lab
