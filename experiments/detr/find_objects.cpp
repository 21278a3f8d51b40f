#include "experiments/detr/find_objects.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <set>

#include "autograd/ops.h"
#include "core/atomic_file.h"
#include "core/backend.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/run/folder.h"
#include "experiments/lab/run/setup.h"
#include "experiments/vision/data/image_file.h"
#include "experiments/vision/data/image_folder.h"
#include "experiments/vision/pictures/object_images.h"
#include "nn/io/detr_card.h"

namespace plumb::vision {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The objects of an image with a score of at least `least`, best first. The image is resized as in the training.
std::vector<FoundObject> objects_in(const Pixels& image, const nn::DetrCard& card, const nn::Detr& model,
                                    const Normalization& pixels, double least) {
  const Pixels seen = card.image_side > 0      ? fitted(image, card.image_side)
                      : card.largest_image > 0 ? reduced(image, card.largest_image)
                                               : image;
  std::vector<FoundObject> found = found_objects(model.detect(batch_of(seen, pixels).images)).front();
  std::erase_if(found, [&](const FoundObject& o) { return !(o.score >= least); });
  return found;
}

// Whether an option applies to a search for objects.
bool searches_with(const std::string& option) {
  constexpr std::array options{"--weights", "--image", "--score",   "--out",           "--json",
                               "--device",  "--dtype", "--threads", "--deterministic", "--no-progress"};
  return std::ranges::find(options, option) != options.end();
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
      .path("FILE")
      .scope(Scope::call);
  cli.option("--image", &image_, "A PNG or JPEG file, or a folder of such files, for --weights")
      .path("PATH")
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
    if (!given()) return;
    for (const std::string& option : cli.typed_options())
      usage_check(searches_with(option), "{} is for training and does not go with --weights; leave one out", option);
  });
}

int ObjectSearch::run(const StudyOptions& options) const {
  std::error_code error;
  usage_check(options.out.empty() || !fs::exists(options.out) ||
                  (fs::is_directory(options.out) && fs::is_empty(options.out, error)),
              "--out {} is not an empty folder; choose a new folder for the pictures", options.out);
  const std::vector<std::string> files = image_files(image_);
  const DefaultsScope defaults(defaults_for(options));
  const PrecisionScope precision(precision_for(options.dtype, plumb::defaults().device));
  set_num_threads(static_cast<int>(options.threads.value_or(0)));
  const auto [card, model] = nn::load_detr(weights_);
  usage_check(card.options.channels == 3, "{} expects images of {} channels, but image files have 3", weights_,
              card.options.channels);
  usage_check(!card.mean.empty(), "{} does not say how its training normalized the pixels (nn::DetrCard)", weights_);
  const Normalization pixels{{card.mean.begin(), card.mean.end()}, {card.std.begin(), card.std.end()}};
  const fs::path out = options.out.empty() ? new_run_folder("objects") : fs::path(options.out);
  fs::create_directories(out, error);
  check(!error, "cannot create {}: {}", out.string(), error.message());

  const NoGrad no_grad;
  std::set<std::string> taken;
  Json list = Json::array();
  for (const std::string& file : files) {
    const auto failed = [&](const std::string& why) {
      note_error(fmt::format("error: {}{}\n", why.starts_with(file) ? "" : file + ": ", why));
    };
    Pixels image;
    std::vector<FoundObject> found;
    try {
      image = read_image(file);
      found = objects_in(image, card, *model, pixels, score_);
    } catch (const Error& e) {
      failed(e.what());
      continue;
    } catch (const OutOfMemory& e) {
      failed(fmt::format("{}, or make the image smaller", e.what()));
      continue;
    } catch (const std::bad_alloc&) {
      failed("out of memory; make the image smaller");
      continue;
    }
    const fs::path picture = out / picture_name(file, taken);
    write_file_atomically(picture, objects_svg(image, found, card.class_names));
    Json objects = Json::array();
    std::string text = fmt::format("{}: {} object{} with a score of at least {:g}\n", file, found.size(),
                                   found.size() == 1 ? "" : "s", score_);
    for (const FoundObject& o : found) {
      const std::string name = class_name(card.class_names, o.label);
      const CocoBox box = in_pixels(o.box, image);
      objects.push_back(
          {{"class", name}, {"label", o.label}, {"score", o.score}, {"box", {box.x, box.y, box.width, box.height}}});
      text += fmt::format("  {:<16} {:>5.1f} %  {:.0f} x {:.0f} pixels at ({:.0f}, {:.0f})\n", name, 100 * o.score,
                          box.width, box.height, box.x, box.y);
    }
    list.push_back({{"image", file},
                    {"width", image.width},
                    {"height", image.height},
                    {"picture", picture.string()},
                    {"objects", objects}});
    if (!options.json) write_result(text);  // at once, so that an interrupt keeps the images before it
  }
  if (options.json) write_result(list.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  if (!list.empty()) note_error(fmt::format("pictures: {}\n", out.string()));
  return list.size() == files.size() ? 0 : 1;
}

}  // namespace plumb::vision
