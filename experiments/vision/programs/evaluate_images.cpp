#include "experiments/vision/programs/evaluate_images.h"

#include <algorithm>
#include <filesystem>

#include "autograd/ops.h"
#include "core/atomic_file.h"
#include "experiments/lab/options/device.h"
#include "experiments/lab/report/figure_files.h"
#include "experiments/lab/run/folder.h"
#include "experiments/lab/run/setup.h"
#include "experiments/vision/data/batch.h"
#include "experiments/vision/data/image_file.h"
#include "experiments/vision/data/image_folder.h"
#include "experiments/vision/data/loader.h"
#include "experiments/vision/data/open_data.h"
#include "experiments/vision/data/split.h"
#include "experiments/vision/pictures/attention_images.h"
#include "experiments/vision/programs/predictions.h"
#include "nn/layers/attention_maps.h"

namespace plumb::vision {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t images_at_once = 16;
constexpr std::size_t most_pictures = 32;

// The label of an image: the class with the name of a folder on the image's path, at or below `root`. The innermost
// such folder counts. Empty if no folder has the name of a class, or if two classes have that name.
std::optional<std::int64_t> label_of(const std::string& file, const fs::path& root,
                                     const std::vector<std::string>& names) {
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

// The normalization of the weights, or the normalization of --normalization if that option is given. `training` has the
// images for --normalization data; `training` is null if there are no such images.
Normalization normalization_for(const nn::ModelCard& card, const ImageOptions& options, const Cli& cli,
                                const ImageSet* training) {
  if (!cli.given("--normalization") && !card.mean.empty())
    return {{card.mean.begin(), card.mean.end()}, {card.std.begin(), card.std.end()}};
  usage_check(training || options.normalization != NormalizationKind::data,
              "--normalization data: the model was not trained on these images; choose imagenet or half");
  return normalization_of(training ? *training : ImageSet{.channels = card.channels()}, options.normalization);
}

std::string describe(const nn::ModelCard& card) {
  const auto* cait = std::get_if<nn::CaiTOptions>(&card.options);
  return std::visit(
      [&](const auto& o) {
        return fmt::format("{}, {}{} blocks, width {}, {} head{}, {}, {} classes, images of {} x {}",
                           cait ? "CaiT" : "ViT", o.depth, cait ? fmt::format(" + {}", cait->depth_token_only) : "",
                           o.dim, o.heads, o.heads == 1 ? "" : "s", o.method->label(), o.classes, o.image, o.image);
      },
      card.options);
}

// The images of --evaluate.
struct Images {
  ImageSet set = {};  // images in files have the label 0, and the labels below count
  std::vector<std::optional<std::int64_t>> labels = {};
  std::vector<std::string> names = {};  // names of the images
  std::string text = {};                // for example "images/val" or "glyphs: the published test set"
  std::vector<std::string> class_names = {};
  Normalization normalization = {};
};

// The images in files, with labels from the names of their folders. If the weights do not name the classes and no
// folder has a name from --class-names, the sorted folders are the classes in order. In this case the number of folders
// must be the number of classes. Otherwise the images have no labels, or, for the folders of a data set (train/, val/),
// UsageError is thrown.
Images images_in_files(PretrainedWeights& weights, const nn::ModelCard& card, const ImageOptions& options,
                       const Cli& cli) {
  usage_check(card.channels() == 3, "{} expects images of {} channels, but image files have 3", weights.path(),
              card.channels());
  Images images;
  images.class_names = weights.class_names();
  const fs::path given = options.data_dir;
  const bool drawn = options.validation_split > 0;
  fs::path root = given;
  if (fs::is_directory(given / "train"))
    // The last existing folder counts, as in open_image_folder(). Drawn images are training images.
    for (const char* name : {"test", "validation", "val", drawn ? "train" : "val"})
      if (fs::is_directory(given / name)) root = given / name;
  images.text = root.string();
  images.set = {.channels = 3,
                .height = card.image(),
                .width = card.image(),
                .classes = card.classes(),
                .crop = options.image_crop};
  if (drawn) {
    const ImageData data = with_validation_split(
        open_image_folder(options.data_dir, {card.image(), options.image_crop}), options.validation_split);
    images.set.files = data.validation.files;
    images.text += ": " + data.validation_is;
  } else {
    images.set.files = image_files(root.string());
  }
  const std::vector<std::string> folders = class_folders(root.string());
  const auto is_class = [&](const std::string& name) {
    return std::ranges::find(images.class_names, name) != images.class_names.end();
  };
  std::vector<std::string> by = images.class_names;
  const bool known = !card.class_names.empty() || std::ranges::any_of(folders, is_class),
             as_many = std::ssize(folders) == card.classes();
  if (!known && as_many) by = folders;
  if (images.class_names.empty()) images.class_names = by;
  if (drawn || root != given) {  // in both cases the folders must be classes
    usage_check(as_many || (known && std::ranges::all_of(folders, is_class)),
                "{} has {} classes, but {} has {}; evaluate it on images of the same classes", weights.path(),
                card.classes(), root.string(), folders.size());
    const auto other = known ? std::ranges::find_if_not(folders, is_class) : folders.end();
    usage_check(other == folders.end(), "{}: {} has no class named {}", root.string(), weights.path(),
                other == folders.end() ? "" : *other);
  } else if (!known && !as_many && !folders.empty()) {
    note_error(fmt::format(
        "{} has {} classes, but {} has {} folder{}: its images have no labels; give the names of the classes "
        "with --class-names FILE\n",
        weights.path(), card.classes(), root.string(), folders.size(), folders.size() == 1 ? "" : "s"));
  }
  images.set.labels.assign(images.set.files.size(), 0);
  images.names = images.set.files;
  for (const std::string& file : images.names) images.labels.push_back(label_of(file, root, by));
  images.normalization = normalization_for(card, options, cli, nullptr);
  return images;
}

Images images_of_data_set(PretrainedWeights& weights, const nn::ModelCard& card, const ImageOptions& options,
                          const Cli& cli) {
  ImageData data = open_data(options.data, options.data_dir);
  if (options.validation_split > 0) data = with_validation_split(std::move(data), options.validation_split);
  Images images{.set = std::move(data.validation),
                .text = fmt::format("{}: {}", options.data, data.validation_is),
                .class_names = weights.class_names()};
  const ImageSet& set = images.set;
  usage_check(set.classes == card.classes(),
              "{} has {} classes, but {} has {}; evaluate it on images of the same classes", weights.path(),
              card.classes(), options.data, set.classes);
  usage_check(set.channels == card.channels() && set.height == card.image() && set.width == card.image(),
              "{} expects images of {} channels and {} x {}, but {} has {} channels and {} x {}", weights.path(),
              card.channels(), card.image(), card.image(), options.data, set.channels, set.height, set.width);
  if (images.class_names.empty()) images.class_names = set.class_names;
  images.labels.assign(set.labels.begin(), set.labels.end());
  for (std::int64_t i = 0; i < set.size(); ++i) images.names.push_back(fmt::format("{} {}", options.data, i));
  images.normalization = normalization_for(card, options, cli, &data.train);
  return images;
}

// Appends the predictions of the model for `count` images from image `first` on. If an image of the batch cannot be
// read, the images are read again one by one, so that only this image is left out and named on stderr.
void predict(const nn::Classifier& model, const Images& images, std::int64_t first, std::int64_t count,
             std::vector<Prediction>& predictions) {
  const auto name = [&](std::int64_t i) { return images.names[static_cast<std::size_t>(i)]; };
  HostBatch batch;
  try {
    batch = evaluation_batch(images.set, images.normalization, first, count, loading_threads(images.set));
  } catch (const Error& e) {
    const std::string text = e.what();
    if (count == 1)
      return note_error(fmt::format("error: {}{}\n", text.starts_with(name(first)) ? "" : name(first) + ": ", text));
    for (std::int64_t i = first; i < first + count; ++i) predict(model, images, i, 1, predictions);
    return;
  }
  const std::vector<double> logits = model(to_tensors(batch, images.set).images).values();
  const std::size_t classes = logits.size() / static_cast<std::size_t>(count);
  for (std::int64_t i = 0; i < count; ++i)
    predictions.push_back(prediction_of({logits.data() + static_cast<std::size_t>(i) * classes, classes},
                                        images.labels[static_cast<std::size_t>(first + i)], name(first + i),
                                        first + i));
}

// Draws pictures of images of all classes into the folder `out`. Writes the names of the picture files into the
// predictions.
std::vector<Picture> draw(nn::Classifier& model, const Images& images, const EvaluationFacts& facts,
                          const fs::path& out, std::vector<Prediction>& predictions) {
  std::vector<Picture> pictures;
  // Images go through the model one by one, because the attention maps of a large model take a lot of memory.
  for (const std::size_t i : spread_over_classes(predictions, most_pictures)) {
    Prediction& p = predictions[i];
    const nn::AttentionMaps maps(model);
    model(to_tensors(evaluation_batch(images.set, images.normalization, p.number, 1), images.set).images);
    const Pixels large = for_people(fitted(images.set, p.number)),
                 picture = beside({large, heat(large, attention_of_class(maps.all(), 0))});
    std::string name = images.set.in_files() ? fs::path(p.image).stem().string() : p.image;
    std::ranges::replace(name, ' ', '-');
    const fs::path file = out / fmt::format("{:02}-{}.png", pictures.size() + 1, name);
    write_file_atomically(file, png(picture));
    p.picture = file.string();
    pictures.push_back(titled(prediction_title(facts, p), picture));
  }
  return pictures;
}

}  // namespace

int evaluate_images(PretrainedWeights& weights, const StudyOptions& run, const ImageOptions& options, const Cli& cli) {
  const bool in_files = options.data == "image-folder";
  usage_check(in_files ? !options.data_dir.empty() : cli.given("--data"),
              "--evaluate expects images: --image-folder DIR, or one file; or --data NAME");
  usage_check(run.out.empty() || !fs::exists(run.out) || fs::is_empty(run.out),
              "--out {} is not empty; choose a new folder for the pictures", run.out);
  const DefaultsScope defaults(defaults_for(run));
  const PrecisionScope precision(precision_for(run.dtype, plumb::defaults().device));
  set_num_threads(static_cast<int>(run.threads.value_or(0)));
  nn::ModelCard card = weights.card();
  if (cli.given("--image-size")) {
    usage_check(
        options.image_size.has_value(),
        "--image-size native is for training; with --evaluate give a number, or leave it out for the size of {}",
        weights.path());
    usage_check(*options.image_size % card.patch() == 0,
                "--image-size {} is not a multiple of the patch size of {}, {}", *options.image_size, weights.path(),
                card.patch());
    std::visit([&](auto& o) { o.image = *options.image_size; }, card.options);
  }
  const Images images =
      in_files ? images_in_files(weights, card, options, cli) : images_of_data_set(weights, card, options, cli);
  const std::unique_ptr<nn::Classifier> model = nn::make_model(card);
  const nn::Adapted adapted = weights.load_into(*model);
  model->eval();
  note_error(fmt::format("{}; {}\n", describe(card), adapted.text()));
  const EvaluationFacts facts{.weights = weights.path(),
                              .network = describe(card),
                              .data = images.text,
                              .in_files = in_files,
                              .classes = card.classes(),
                              .names = images.class_names};

  const fs::path out = run.out.empty() ? new_run_folder("evaluation") : fs::path(run.out);
  std::error_code error;
  fs::create_directories(out, error);
  check(!error, "cannot create {}: {}", out.string(), error.message());
  const NoGrad no_grad;
  std::vector<Prediction> predictions;
  for (std::int64_t i = 0; i < images.set.size(); i += images_at_once)
    predict(*model, images, i, std::min(images_at_once, images.set.size() - i), predictions);
  const std::vector<Picture> pictures = draw(*model, images, facts, out, predictions);
  const bool labelled = std::ranges::any_of(predictions, [](const Prediction& p) { return p.label.has_value(); });
  for (const auto& [file, text] : predictions_csv(facts, predictions)) write_file_atomically(out / file, text);
  if (labelled) {
    const Report report = predictions_report(facts, predictions, pictures);
    write_file_atomically(out / "evaluation.json", scores_json(facts, predictions));
    write_file_atomically(out / "report.html", report.html);
    write_figures(out, report.figures);
  }
  const auto json = in_files ? predictions_json : scores_json;
  write_result(run.json ? json(facts, predictions) : predictions_text(facts, predictions));
  if (!predictions.empty())
    note_error(fmt::format(
        "attention maps{}: {}\n",
        predictions.size() > pictures.size()
            ? fmt::format(", {} images{}", pictures.size(), labelled ? " from all classes in turn" : ", the first")
            : "",
        out.string()));
  if (labelled) note_error(fmt::format("report: {}\n", (out / "report.html").string()));
  return predictions.size() == images.names.size() ? 0 : 1;
}

}  // namespace plumb::vision
