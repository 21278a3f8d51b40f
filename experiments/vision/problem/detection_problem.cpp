#include "experiments/vision/problem/detection_problem.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>

#include "autograd/ops.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/data/prefetch.h"
#include "experiments/lab/data/random_stream.h"
#include "experiments/lab/hash.h"
#include "experiments/vision/data/loader.h"
#include "experiments/vision/data/shapes.h"
#include "experiments/vision/data/split.h"
#include "nn/evaluation_scope.h"
#include "nn/gates/gate.h"
#include "nn/io/detr_card.h"

namespace plumb::vision {
namespace {

constexpr std::int64_t evaluation_batch_size = 50;

const nn::Detr& detr(const nn::Module& model) {
  const auto* const found = dynamic_cast<const nn::Detr*>(&model);
  check(found, "[detection] expected a network of the type nn::Detr, got {}", *model.path());
  return *found;
}

// Draws `count` images of a set, or takes all of them if `count` is 0. Images have no class, so few_of() draws from
// all.
DetectionSet drawn(DetectionSet set, std::int64_t count) {
  if (count == 0 || count >= set.size()) return set;
  std::vector<CocoImage> images;
  std::vector<Pixels> pixels;
  std::set<std::int64_t> kept;
  for (const std::int64_t i : few_of(std::vector<std::int32_t>(set.truth.images.size()), count)) {
    const auto at = static_cast<std::size_t>(i);
    images.push_back(set.truth.images[at]), kept.insert(images.back().id);
    if (!set.in_files()) pixels.push_back(std::move(set.pixels[at]));
  }
  set.truth.images = std::move(images), set.pixels = std::move(pixels);
  std::erase_if(set.truth.annotations, [&](const CocoAnnotation& a) { return !kept.contains(a.image); });
  return set;
}

// Gives the validation images the categories of the training images. Throws Error with both files and the first
// difference if a category has another name or another id in the files, or if an object of the validation images has a
// category that the training images lack.
void join_categories(const DetectionOptions& files, const Coco& train, Coco& validation) {
  std::map<std::int64_t, std::string> name_of;
  std::map<std::string, std::int64_t> id_of;
  for (const CocoCategory& c : train.categories) name_of.emplace(c.id, c.name), id_of.emplace(c.name, c.id);
  std::set<std::int64_t> used;
  for (const CocoAnnotation& a : validation.annotations) used.insert(a.category);
  const auto differ = [&](const std::string& there, const CocoCategory& here) {
    fail(fmt::format("{} and {} disagree about categories: expected {}, got {} \"{}\" in the second file",
                     files.train_annotations, files.val_annotations, there, here.id, here.name));
  };
  for (const CocoCategory& c : validation.categories) {
    const auto same_id = name_of.find(c.id);
    const auto same_name = id_of.find(c.name);
    if (same_id != name_of.end() && same_id->second != c.name)
      differ(fmt::format("{} \"{}\"", c.id, same_id->second), c);
    if (same_id == name_of.end() && same_name != id_of.end())
      differ(fmt::format("{} \"{}\"", same_name->second, c.name), c);
    if (same_id == name_of.end() && used.contains(c.id)) differ("a category of the training images", c);
  }
  validation.categories = train.categories;
}

std::string hash_of(const DetectionData& data, const DetectionOptions& options) {
  Hash hash;
  hash.add(fmt::format("{} {:g};", options.image_side, options.mirror));
  for (const DetectionSet* set : {&data.train, &data.validation}) {
    hash.add(coco_json(set->truth));
    for (const Pixels& image : set->pixels)
      hash.add({reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()});
    if (!set->in_files()) continue;
    for (const CocoImage& image : set->truth.images) {  // reading all pixels would take hours
      std::error_code error;
      hash.add(fmt::format("{} {};", image.file, std::filesystem::file_size(set->path(image), error)));
    }
  }
  return hash.text();
}

// The name of a number of AveragePrecision as a measure: "val_ap_50".
std::string measure_of(const ApNumber& number) { return fmt::format("val_{}", number.name); }

DataFacts facts_of(const DetectionData& data, const DetectionOptions& options, const nn::Targets& targets,
                   nn::DetrOptions model) {
  model.classes = data.train.classes();
  const double constant = loss_of_a_constant(targets, model);
  const std::string text = fmt::format("a constant guess, {:.4g}", constant);
  std::vector<Measure> measures{{.name = "train_loss", .title = "train loss", .chance = constant, .chance_text = text},
                                {.name = "val_loss", .title = "val loss"}};
  for (const ApNumber& number : ap_numbers)
    measures.push_back({.name = measure_of(number),
                        .title = number.title,
                        .better = Better::higher,
                        .unit = Unit::fraction,
                        .equal_within = 0.05});
  measures.push_back({.name = "query_spread", .title = "spread of queries", .better = Better::higher});
  return {.name = data.name,
          .text = fmt::format("{}, {} training images, {} validation images: {}; {} classes of objects", data.name,
                              data.train.size(), data.validation.size(), data.validation_is, data.train.classes()),
          .validation_is = data.validation_is,
          .hash = hash_of(data, options),
          .measures = measures};
}

// The images of the batch of a step: batch k of an epoch of n batches is step k % n. The order of an epoch and the
// mirrored images depend only on seed and epoch.
struct BatchDraw {
  std::vector<std::int64_t> indices;
  std::vector<bool> mirrored;
};
class BatchDraws {
 public:
  BatchDraws(std::int64_t images, std::int64_t batch, std::uint64_t seed, double mirror)
      : images_(images), batch_(batch), seed_(seed), mirror_(mirror) {}

  BatchDraw of_step(std::int64_t step) {
    const std::int64_t batches = images_ / batch_, first = step % batches * batch_;
    const auto epoch = static_cast<std::uint32_t>(step / batches);
    if (epoch != order_epoch_) order_ = epoch_order(images_, seed_, epoch), order_epoch_ = epoch;
    BatchDraw draw{.indices = {order_.begin() + first, order_.begin() + first + batch_}, .mirrored = {}};
    for (const std::int64_t image : draw.indices)
      draw.mirrored.push_back(RandomStream(seed_, "data.mirror", epoch, image).happens(mirror_));
    return draw;
  }

 private:
  std::int64_t images_, batch_;
  std::uint64_t seed_;
  double mirror_;
  std::optional<std::uint32_t> order_epoch_;  // the epoch of order_
  std::vector<std::int64_t> order_;
};

// The standard deviation of the centres of the boxes [L, B, Q, 4] over the queries of the last layer, as a mean over
// images and both coordinates.
double spread_of(const Tensor& boxes) { return mean(stddev(slice(boxes[-1], 2, 0, 2), {1})).item(); }

}  // namespace

void DetectionOptions::declare(Cli& cli) {
  cli.section("Data");
  cli.option("--data", &data, "Data set (shapes: generated images; coco: files in COCO's format)")
      .one_of("data set", {"shapes", "coco"})
      .scope(Scope::run);
  const auto path = [&](const char* option, std::string* value, const char* help, const char* name) {
    cli.option(option, value, help).path(name).scope(Scope::run);
  };
  path("--train-annotations", &train_annotations, "File of annotations of the training images, of --data coco", "FILE");
  path("--train-images", &train_images, "Folder of the training images", "DIR");
  path("--val-annotations", &val_annotations, "File of annotations of the validation images", "FILE");
  path("--val-images", &val_images, "Folder of the validation images", "DIR");
  cli.option("--image-side", &image_side, "Longer side to which images are resized, in pixels; 0: unchanged")
      .at_least(0)
      .at_most(4096)
      .scope(Scope::run);
  cli.option("--train-count", &train_count, "Number of training images, drawn from the set; 0: all")
      .at_least(0)
      .scope(Scope::run);
  cli.option("--val-count", &val_count, "Number of validation images, drawn from the set; 0: all")
      .at_least(0)
      .scope(Scope::run);
  cli.option("--mirror", &mirror, "Probability that a training image is mirrored left to right")
      .at_least(0)
      .at_most(1)
      .scope(Scope::run);
  // The rule looks at the values: the settings of a study folder name all options, also unused ones.
  cli.rule([this] {
    for (const auto& [option, value] : {std::pair("--train-annotations", &train_annotations),
                                        {"--train-images", &train_images},
                                        {"--val-annotations", &val_annotations},
                                        {"--val-images", &val_images}})
      usage_check((data == "coco") != value->empty(), "{}",
                  data == "coco"
                      ? fmt::format("--data coco needs {}; give the path, or use --data shapes", option)
                      : fmt::format("{} applies only to --data coco; give --data coco, or leave it out", option));
  });
}

DetectionData DetectionOptions::open() const {
  DetectionData opened;
  if (data == "shapes") {
    opened = shapes();
    opened.train.side = opened.validation.side = image_side;
  } else {
    opened = {.name = "coco",
              .train = open_coco(train_annotations, train_images, image_side),
              .validation = open_coco(val_annotations, val_images, image_side),
              .validation_is = val_annotations};
    join_categories(*this, opened.train.truth, opened.validation.truth);
  }
  opened.train = drawn(std::move(opened.train), train_count);
  const std::int64_t all = opened.validation.size();
  opened.validation = drawn(std::move(opened.validation), val_count);
  if (opened.validation.size() < all)
    opened.validation_is = fmt::format("{} of {} of {}", val_count, all, opened.validation_is);
  return opened;
}

std::vector<std::vector<FoundObject>> found_objects(const nn::Detections& predicted) {
  const Tensor logits = predicted.logits[-1], boxes = nn::corners_of(predicted.boxes[-1]);  // [B, Q, ..]
  const std::vector<double> p = softmax(logits).values(), corners = boxes.values();
  const std::int64_t B = logits.dim(0), Q = logits.dim(1), K = logits.dim(2);
  std::vector<std::vector<FoundObject>> found(static_cast<std::size_t>(B));
  for (std::int64_t b = 0; b < B; ++b) {
    auto& of_image = found[static_cast<std::size_t>(b)];
    for (std::int64_t q = 0; q < Q; ++q) {
      const auto row = p.begin() + (b * Q + q) * K, best = std::max_element(row, row + K - 1);
      const double* c = corners.data() + (b * Q + q) * 4;
      of_image.push_back({.label = best - row, .score = *best, .box = {c[0], c[1], c[2], c[3]}});
    }
    std::ranges::stable_sort(of_image, std::greater(), &FoundObject::score);
  }
  return found;
}

double loss_of_a_constant(const nn::Targets& targets, const nn::DetrOptions& model) {
  const nn::SetLossOptions options;
  std::vector<double> weights(static_cast<std::size_t>(model.classes) + 1, 0);
  double objects = 0;
  nn::Box mean{};
  for (const auto& of_image : targets)
    for (const nn::Target& t : of_image) {
      ++objects, ++weights[static_cast<std::size_t>(t.label)];
      mean = {mean.x0 + t.box.x0, mean.y0 + t.box.y0, mean.x1 + t.box.x1, mean.y1 + t.box.y1};
    }
  weights.back() = options.no_object *
                   std::max(0.0, static_cast<double>(model.queries) * static_cast<double>(targets.size()) - objects);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double loss = 0;
  for (const double w : weights)
    if (w > 0) loss -= options.loss.classes * w / total * std::log(w / total);
  if (objects > 0) {
    mean = {mean.x0 / objects, mean.y0 / objects, mean.x1 / objects, mean.y1 / objects};
    for (const auto& of_image : targets)
      for (const nn::Target& t : of_image)
        loss += (options.loss.l1 * nn::l1_distance(mean, t.box) +
                 options.loss.giou * (1 - nn::generalized_iou(mean, t.box))) /
                objects;
  }
  return loss * static_cast<double>(model.decoder);
}

DetectionProblem::DetectionProblem(const DetectionOptions& data, const nn::DetrOptions& model,
                                   const StudyOptions& options)
    : mirror_(data.mirror),
      data_(data.open()),
      train_targets_(targets_of(data_.train)),
      val_targets_(targets_of(data_.validation)),
      normalization_(normalization_of(ImageSet{.channels = 3}, NormalizationKind::imagenet)),
      facts_(facts_of(data_, data, train_targets_, model)) {
  check(options.batch <= data_.train.size(), "--batch {} is more than the {} training images of {}", options.batch,
        data_.train.size(), data_.name);
}

std::unique_ptr<Task> DetectionProblem::task(const TaskSettings& s, const nn::Layer& model) const {
  struct DetectionTask : Task {
    DetectionTask(const DetectionProblem& p, const TaskSettings& s, const nn::Detr& m)
        : problem(p), model(m), draws(p.data_.train.size(), s.study.batch, s.seed, p.mirror_) {}
    std::function<Tensor()> loss_of(std::int64_t step) override {
      if (!ahead)  // a background thread makes the next two batches
        ahead.emplace(
            [this, step]() mutable {
              const BatchDraw draw = draws.of_step(step++);
              return host_batch_of(problem.data_.train, problem.train_targets_, problem.normalization_, draw.indices,
                                   draw.mirrored);
            },
            2);
      return [this, batch = to_tensors(ahead->next())] {
        return nn::set_loss(model.detect(batch.images, batch.keep), batch.targets).total;
      };
    }
    const DetectionProblem& problem;
    const nn::Detr& model;
    BatchDraws draws;
    std::optional<Prefetch<HostDetectionBatch>> ahead;
  };
  return std::make_unique<DetectionTask>(*this, s, detr(model));
}

Values DetectionProblem::evaluate(nn::Layer& layer) const {
  const nn::Detr& model = detr(layer);
  const NoGrad no_grad;
  const nn::EvaluationScope scope(layer);
  const DetectionSet& set = data_.validation;
  std::vector<CocoDetection> all;
  double loss = 0, spread = 0;
  for (std::int64_t first = 0; first < set.size(); first += evaluation_batch_size) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(evaluation_batch_size, set.size() - first)));
    std::iota(indices.begin(), indices.end(), first);
    const DetectionBatch batch = batch_of(set, val_targets_, normalization_, indices);
    const nn::Detections predicted = model.detect(batch.images, batch.keep);
    const double share = static_cast<double>(indices.size()) / static_cast<double>(set.size());
    loss += share * nn::set_loss(predicted, batch.targets).total.item();
    spread += share * spread_of(predicted.boxes);
    const auto found = found_objects(predicted);
    for (std::size_t b = 0; b < indices.size(); ++b) {
      const CocoImage& image = set.truth.images[static_cast<std::size_t>(indices[b])];
      const auto w = static_cast<double>(image.width), h = static_cast<double>(image.height);
      for (const FoundObject& o : found[b])
        if (std::isfinite(o.score + o.box.area()))
          all.push_back({.image = image.id,
                         .category = set.truth.categories[static_cast<std::size_t>(o.label)].id,
                         .box = {o.box.x0 * w, o.box.y0 * h, o.box.width() * w, o.box.height() * h},
                         .score = o.score});
    }
  }
  const AveragePrecision ap = average_precision(set.truth, all);
  Values values{{"val_loss", loss}, {"query_spread", spread}};
  for (const ApNumber& number : ap_numbers)  // a number that no object counts for is unknown, and not -1
    values.emplace_back(measure_of(number), ap.*number.value < 0 ? unknown : ap.*number.value);
  return values;
}

void DetectionProblem::calibrate(nn::Layer& model, const TaskSettings& s) const {
  const BatchDraw draw = BatchDraws(data_.train.size(), s.study.batch, s.seed, mirror_).of_step(0);
  nn::calibrate(model, batch_of(data_.train, train_targets_, normalization_, draw.indices, draw.mirrored).images);
}

std::map<std::string, std::string> DetectionProblem::weights_metadata(const nn::Module& model) const {
  nn::DetrCard card{
      .options = detr(model).options(), .image_side = data_.train.side, .largest_image = data_.train.longest_side()};
  card.mean.assign(normalization_.mean.begin(), normalization_.mean.end());
  card.std.assign(normalization_.std.begin(), normalization_.std.end());
  for (const CocoCategory& category : data_.train.truth.categories) card.class_names.push_back(category.name);
  return nn::metadata_of(card);
}

}  // namespace plumb::vision
