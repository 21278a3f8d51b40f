#include "experiments/detr/find_objects.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "autograd/autograd.h"
#include "core/atomic_file.h"
#include "core/backend.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/data/image_file.h"
#include "experiments/lab/data/image_folder.h"
#include "experiments/lab/run/folder.h"
#include "experiments/lab/run/setup.h"
#include "experiments/lab/signals/object_images.h"
#include "nn/io/detr_card.h"

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The objects of an image file with a score of at least `least`, best first.
std::vector<FoundObject> objects_in(const Pixels& image, const nn::LoadedDetr& network, const Normalization& pixels,
                                    double least) {
  const DetectionBatch batch = batch_of(fitted(image, network.card.image_side), pixels);
  std::vector<FoundObject> found = found_objects(network.model->detect(batch.images)).front();
  std::erase_if(found, [&](const FoundObject& o) { return !(o.score >= least); });
  return found;
}

// The box of an object in pixels of its image: the corner at the upper left, and the size.
CocoBox in_pixels(const nn::Box& box, const Pixels& image) {
  const auto w = static_cast<double>(image.width), h = static_cast<double>(image.height);
  return {box.x0 * w, box.y0 * h, box.width() * w, box.height() * h};
}

// A name for the picture of a file that no other file of the call has: "cat.svg", then "cat-2.svg".
std::string picture_name(const fs::path& file, std::set<std::string>& taken) {
  const std::string stem = file.stem().string();
  std::string name = stem + ".svg";
  for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}-{}.svg", stem, i);
  return name;
}

}  // namespace

void ObjectSearch::declare(Cli& cli) {
  cli.section(Cli::instead);
  cli.option("--weights", &weights_,
             "Find objects in --image with these weights, a file of --save-weights, and draw them; train nothing")
      .value_name("FILE")
      .scope(Scope::call);
  cli.option("--image", &image_, "A PNG or JPEG file, or a folder of such files, for --weights")
      .value_name("PATH")
      .scope(Scope::call);
  cli.option("--score", &score_, "Least probability of an object that --weights shows")
      .at_least(0)
      .at_most(1)
      .scope(Scope::call);
  cli.rule([this, &cli] {
    usage_check(weights_.empty() == image_.empty(), "{}",
                weights_.empty() ? "--image needs --weights FILE, the weights of a trained detector"
                                 : "--weights needs --image PATH, an image or a folder of images");
    usage_check(given() || !cli.given("--score"), "--score is for --weights; leave it out");
    if (given())
      for (const char* option : {"--resume", "--overwrite", "--rebuild", "--steps", "--seeds", "--write-data"})
        usage_check(!cli.typed(option), "{} does not go with --weights; leave one out", option);
  });
}

int ObjectSearch::run(const StudyOptions& options) const {
  usage_check(options.out.empty() || !fs::exists(options.out) || fs::is_empty(options.out),
              "--out {} is not empty; choose a new folder for the pictures", options.out);
  const DefaultsScope defaults(defaults_for(options));
  const PrecisionScope precision(precision_for(options.dtype, plumb::defaults().device));
  set_num_threads(static_cast<int>(options.threads.value_or(0)));
  const nn::LoadedDetr network = nn::load_detr(weights_);
  const nn::DetrCard& card = network.card;
  usage_check(card.options.channels == 3, "{} expects images of {} channels, but image files have 3", weights_,
              card.options.channels);
  usage_check(!card.mean.empty(), "{} does not say how its training normalized the pixels (nn::DetrCard)", weights_);
  const Normalization pixels{{card.mean.begin(), card.mean.end()}, {card.std.begin(), card.std.end()}};
  const std::vector<std::string> files = image_files(image_);
  const fs::path out = options.out.empty() ? new_run_folder("objects") : fs::path(options.out);
  fs::create_directories(out);

  const NoGrad no_grad;
  const auto class_of = [&](const FoundObject& o) {
    return card.class_names.empty() ? fmt::format("class {}", o.label)
                                    : card.class_names[static_cast<std::size_t>(o.label)];
  };
  std::set<std::string> taken;
  Json list = Json::array();
  std::string text;
  bool all_read = true;
  for (const std::string& file : files) try {
      const Pixels image = read_image(file);
      const std::vector<FoundObject> found = objects_in(image, network, pixels, score_);
      const fs::path picture = out / picture_name(file, taken);
      write_file_atomically(picture, objects_svg(image, found, card.class_names));
      Json objects = Json::array();
      text += fmt::format("{}: {} object{}\n", file, found.size(), found.size() == 1 ? "" : "s");
      for (const FoundObject& o : found) {
        const CocoBox box = in_pixels(o.box, image);
        objects.push_back({{"class", class_of(o)},
                           {"label", o.label},
                           {"score", o.score},
                           {"box", {box.x, box.y, box.width, box.height}}});
        text += fmt::format("  {:<16} {:>5.1f} %  {:.0f} x {:.0f} pixels at ({:.0f}, {:.0f})\n", class_of(o),
                            100 * o.score, box.width, box.height, box.x, box.y);
      }
      list.push_back({{"image", file},
                      {"width", image.width},
                      {"height", image.height},
                      {"picture", picture.string()},
                      {"objects", objects}});
    } catch (const Error& e) {
      all_read = false;
      const std::string what = e.what();
      note_error(fmt::format("error: {}{}\n", what.starts_with(file) ? "" : file + ": ", what));
    }
  write_result(options.json ? list.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text);
  if (!list.empty()) note_error(fmt::format("pictures: {}\n", out.string()));
  return all_read ? 0 : 1;
}

}  // namespace plumb::lab
