// Draws the attention of a trained ViT or CaiT. The pictures show each head of chosen blocks, the rollout through all
// blocks, and the attention of the class token.
#include "experiments/programs.h"

#include <fmt/ranges.h>

#include <filesystem>
#include <numeric>

#include "autograd/ops.h"
#include "core/atomic_file.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/run/folder.h"
#include "experiments/vision/data/batch.h"
#include "experiments/vision/data/image_file.h"
#include "experiments/vision/data/image_folder.h"
#include "experiments/vision/data/loader.h"
#include "experiments/vision/data/open_data.h"
#include "experiments/vision/pictures/attention_images.h"
#include "nn/gates/method_text.h"

using namespace plumb;

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string weights, gate, image, data, data_dir, out;
  vision::NormalizationKind normalization = vision::NormalizationKind::imagenet;
  std::optional<std::int64_t> heads, size;
  std::vector<std::int64_t> blocks{}, numbers{0, 1, 2, 3};
  std::optional<std::int64_t> query;
  double crop = 1;
};

void declare(Options& o, lab::Cli& cli) {
  cli.section("Model");
  cli.option("--weights", &o.weights, "Trained weights: a safetensors file with timm's names or from --save-weights")
      .path("FILE");
  cli.option("--heads", &o.heads,
             "Attention heads, if the file does not state them; file: the heads of timm's models of the same width")
      .at_least(1)
      .at_most(1024)
      .or_word("file");
  cli.option("--gate", &o.gate, "The method, for a file that does not state the method's constants")
      .one_of_methods(true);
  cli.section("Images");
  cli.option("--image", &o.image, "A PNG or JPEG file, or a folder of them").path("FILE");
  std::vector<std::string> in_memory = vision::data_set_names();
  std::erase(in_memory, "image-folder");  // left out because --image accepts folders
  cli.option("--data", &o.data, "Instead of --image: a data set, of which validation images are drawn")
      .one_of("data set", in_memory);
  cli.option("--data-dir", &o.data_dir, "The folder that contains the data set's files").path("DIR");
  cli.option("--numbers", &o.numbers, "Numbers of the data set's images to draw, counted from 0").at_least(0);
  cli.option("--image-size", &o.size,
             "Side in pixels to which images are resized; file: the side stored with the weights")
      .at_least(1)
      .at_most(4096)
      .or_word("file");
  cli.option("--image-crop", &o.crop, "Share of an image's shorter side that the centre crop keeps")
      .above(0)
      .at_most(1);
  cli.option("--normalization", &o.normalization,
             "Means and standard deviations of pixels, if the file does not state them")
      .one_of("normalization", std::vector{vision::NormalizationKind::imagenet, vision::NormalizationKind::half});
  cli.section("Pictures");
  cli.option("--blocks", &o.blocks,
             "Self-attention blocks to draw, counted from 0; the default is the first, the middle and the last")
      .at_least(0);
  cli.option(
         "--query", &o.query,
         "The patch whose attention is drawn, counted row by row; all: the class token, or the mean over all patches")
      .at_least(0)
      .or_word("all");
  cli.option("--out", &o.out, "The folder for the pictures; the default is a new folder under runs/").path("DIR");
  cli.examples({"--weights cait_xxs24_224.safetensors --image cat.jpg",
                "--weights runs/vit/weights/seed-0.safetensors --image photos --blocks 0..11 --query 30"});
  cli.rule([&o] {
    lab::usage_check(!o.weights.empty() && o.image.empty() != o.data.empty(),
                     "expected --weights FILE and either --image FILE or --data NAME; see --help");
  });
}

// Names a module for people: "blocks.3.attn" becomes "block 3", "blocks_token_only.1.attn" becomes "class attention 1".
std::string title_of(const std::string& path) {
  const std::size_t dot = path.find('.');
  const std::string number = path.substr(dot + 1, path.find('.', dot + 1) - dot - 1);
  return (path.starts_with("blocks_token_only") ? "class attention " : "block ") + number;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '"' ? "&quot;" : std::string(1, c);
  return result;
}

// Writes the pictures of one image as files NUMBER-NAME.png, and makes the HTML that shows the pictures.
class Gallery {
 public:
  Gallery(fs::path out, const std::string& file, std::size_t number)
      : out_(std::move(out)),
        name_(fmt::format("{:02}-{}", number, fs::path(file).stem().string())),
        html_(fmt::format("<h2>{}</h2>\n<div class=\"images\">\n", escaped(file))) {}

  void add(const std::string& title, const vision::Pixels& picture) {
    std::string file = name_ + "-" + title + ".png";
    std::ranges::replace(file, ' ', '-');
    std::erase(file, ',');
    write_file_atomically(out_ / file, vision::png(picture));
    html_ += fmt::format("<figure><img src=\"{}\" alt=\"{}\"><figcaption>{}</figcaption></figure>\n", escaped(file),
                         escaped(title), escaped(title));
  }
  const std::string& html() const { return html_; }

 private:
  fs::path out_;
  std::string name_, html_;
};

const char* const page_head =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
    "content=\"width=device-width, initial-scale=1\">\n"
    "<title>Attention maps</title>\n<style>\n:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; "
    "}\n"
    "body { max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }\nh2 { overflow-wrap: anywhere; font-size: 1.1rem; "
    "margin-top: 2.5rem; }\n"
    ".images { display: flex; flex-wrap: wrap; gap: 1rem 1.5rem; }\nfigure { margin: 0; max-width: 100%; overflow-x: "
    "auto; }\nimg { image-rendering: "
    "auto; max-width: none; height: auto; display: block; }\n"
    "figcaption { position: sticky; left: 0; opacity: .75; font-size: .9rem; }\n</style></head><body>\n<h1>Attention "
    "maps</h1>\n";

void draw(const nn::ModelCard& card, const std::vector<nn::AttentionMap>& maps, const Options& o,
          const vision::Pixels& image, Gallery& gallery) {
  gallery.add("what the class attends to",
              vision::beside({image, vision::heat(image, vision::attention_of_class(maps, 0))}));
  gallery.add("rollout, above its least", vision::beside({image, vision::heat(image, vision::rolled_out(maps, 0))}));
  std::int64_t depth = std::visit([](const auto& options) { return options.depth; }, card.options);
  std::vector<std::int64_t> blocks = o.blocks;
  if (blocks.empty()) {
    blocks = {0, depth / 2, depth - 1};
    blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  }
  const auto add = [&](const nn::AttentionMap& map, std::int64_t query) {
    std::vector<vision::Pixels> heads;
    for (const vision::PatchWeights& weights : vision::attention_by_head(map, 0, query))
      heads.push_back(vision::heat(image, weights));
    gallery.add(title_of(map.path) + ", by head", vision::beside(heads, 8));
  };
  for (const std::int64_t block : blocks) add(maps[static_cast<std::size_t>(block)], o.query.value_or(-1));
  for (const nn::AttentionMap& map : maps)
    if (map.path.starts_with("blocks_token_only")) add(map, -1);
}

struct Images {
  vision::ImageSet set = {};
  std::vector<std::int64_t> numbers = {};
  std::vector<std::string> names = {};  // names of the images in `numbers`
};

Images images_of(const Options& o, const nn::ModelCard& card) {
  Images images;
  if (o.data.empty()) {
    lab::usage_check(card.channels() == 3, "{} needs images of {} channels, but images from files have 3", o.weights,
                     card.channels());
    images.set = {.channels = 3,
                  .height = card.image(),
                  .width = card.image(),
                  .classes = card.classes(),
                  .files = vision::image_files(o.image),
                  .crop = o.crop};
    images.set.labels.assign(images.set.files.size(), 0);
    images.names = images.set.files;
    images.numbers.resize(images.names.size());
    std::iota(images.numbers.begin(), images.numbers.end(), 0);
    return images;
  }
  images.set = vision::open_data(o.data, o.data_dir, {card.image(), o.crop}).validation;
  lab::usage_check(
      images.set.channels == card.channels() && images.set.height == card.image() && images.set.width == card.image(),
      "{} needs images of {} channels and {} x {} pixels; those of {} have {} channels and {} x {} pixels", o.weights,
      card.channels(), card.image(), card.image(), o.data, images.set.channels, images.set.height, images.set.width);
  images.numbers = o.numbers;
  for (const std::int64_t n : o.numbers) {
    lab::usage_check(n < images.set.size(), "--numbers {}: {} has only the images 0 to {}", n, o.data,
                     images.set.size() - 1);
    images.names.push_back(fmt::format("{} {}", o.data, n));
  }
  return images;
}

int run(int argc, const char* const* argv) {
  Options o;
  lab::Cli cli(
      "attention_maps",
      "Draws the attention of a trained ViT or CaiT over images: each head of some blocks, the rollout through "
      "all blocks (Abnar and Zuidema 2020), and the attention from which the class is read. Writes PNG "
      "pictures and an HTML page that shows them.");
  declare(o, cli);
  if (const std::optional<int> status = cli.parse(argc, argv)) return *status;
  const nn::TensorFile file = nn::read_safetensors(o.weights);
  nn::ModelCard card = nn::card_of(file, o.weights, o.heads, o.gate);
  const auto& [heads, method] =
      std::visit([](const auto& options) { return std::pair(options.heads, options.method->label()); }, card.options);
  lab::usage_check(o.heads.value_or(heads) == heads,
                   "--heads {}: {} has {}; give the same value or leave the option out", o.heads.value_or(heads),
                   o.weights, heads);
  lab::usage_check(o.gate.empty() || nn::method_text(o.gate).name == nn::method_text(method).name,
                   "--gate {}: {} has {}; give the same or leave --gate out", o.gate, o.weights, method);
  if (o.size) {
    lab::usage_check(*o.size % card.patch() == 0, "--image-size {} is not a multiple of the patch side of {}, {}",
                     *o.size, o.weights, card.patch());
    std::visit([&](auto& options) { options.image = *o.size; }, card.options);
  }
  const std::int64_t depth = std::visit([](const auto&options) { return options.depth; }, card.options),
                     side = card.image() / card.patch();
  for (const std::int64_t block : o.blocks)
    lab::usage_check(block < depth, "--blocks {}: {} has only the blocks 0 to {}", block, o.weights, depth - 1);
  lab::usage_check(o.query.value_or(0) < side * side, "--query {}: there are only the patches 0 to {}",
                   o.query.value_or(0), side * side - 1);
  Images images = images_of(o, card);
  const auto model = nn::make_model(card);
  lab::note_error(fmt::format(
      "{}: {}\n", o.weights,
      nn::load_pretrained(*model, file, o.weights, {.method = o.gate, .given_heads = o.heads.has_value()}).text()));
  model->eval();
  const vision::Normalization normalization =
      card.mean.empty() || cli.given("--normalization")
          ? vision::normalization_of(images.set, o.normalization)
          : vision::Normalization{{card.mean.begin(), card.mean.end()}, {card.std.begin(), card.std.end()}};
  const fs::path out = o.out.empty() ? lab::new_run_folder("attention") : fs::path(o.out);
  std::error_code error;
  fs::create_directories(out, error);
  check(!error, "cannot create {}: {}", out.string(), error.message());
  const NoGrad no_grad;
  std::string page = page_head;
  bool all_read = true;
  for (std::size_t i = 0; i < images.numbers.size(); ++i) {
    try {
      const vision::Batch batch =
          vision::to_tensors(vision::evaluation_batch(images.set, normalization, images.numbers[i], 1), images.set);
      const nn::AttentionMaps maps(*model);
      (*model)(batch.images);
      Gallery gallery(out, images.names[i], i + 1);
      draw(card, maps.all(), o, vision::for_people(vision::fitted(images.set, images.numbers[i])), gallery);
      page += gallery.html() + "</div>\n";
    } catch (const Error& e) {
      lab::note_error(fmt::format("error: {}\n", e.what()));
      all_read = false;
    }
  }
  write_file_atomically(out / "index.html", page + "</body></html>\n");
  lab::write_result((out / "index.html").string() + "\n");
  return all_read ? 0 : 1;
}

}  // namespace

int plumb::lab::attention_maps(int argc, const char* const* argv) {
  return lab::exit_status([&] { return run(argc, argv); });
}
