#include "experiments/vision/problem/detection_problem.h"

#include <cmath>
#include <set>

#include "autograd/ops.h"
#include "core/atomic_file.h"
#include "experiments/vision/data/shapes.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

TEST_CASE("found objects are the queries with their best class, best first, from the last layer") {
  // Two layers, one image, three queries, two classes and no object.
  const Tensor last = tensor({{{0, 2, 1}, {3, 0, 0}, {0, 0, 5}}}), first = zeros({1, 3, 3});
  const Tensor boxes = tensor({{{0.5, 0.5, 0.2, 0.4}, {0.3, 0.3, 0.2, 0.2}, {0.1, 0.1, 0.2, 0.2}}});
  const auto found = found_objects({stack({first, last}), stack({zeros({1, 3, 4}), boxes})});
  REQUIRE(found.size() == 1);
  REQUIRE(found[0].size() == 3);
  CHECK(found[0][0].label == 0);
  CHECK(found[0][0].score == Approx(std::exp(3) / (std::exp(3) + 2)));
  CHECK(found[0][0].box.x0 == Approx(0.2));
  CHECK(found[0][1].label == 1);
  CHECK(found[0][1].box.y1 == Approx(0.7));
  CHECK(found[0][2].score == Approx(1 / (2 + std::exp(5))));
}

TEST_CASE("the loss of a constant is that of equal predictions") {
  const nn::Targets targets{{{0, {0.1, 0.1, 0.5, 0.5}}, {1, {0.3, 0.3, 0.7, 0.9}}}, {{0, {0.2, 0.4, 0.6, 0.6}}}};
  const nn::DetrOptions model{.classes = 2, .decoder = 2, .queries = 4};
  // The weights of the classes: two objects, one object, and five queries without an object at a tenth.
  const Tensor row = log(tensor({2.0, 1.0, 0.5}) / 3.5);
  const double n = 3;
  const Tensor mean = tensor({0.6 / n, 0.8 / n, 1.8 / n, 2.0 / n});
  const nn::Detections constant{broadcast_to(row, {2, 2, 4, 3}), broadcast_to(nn::centres_of(mean), {2, 2, 4, 4})};
  CHECK(loss_of_a_constant(targets, model) == Approx(nn::set_loss(constant, targets).total.item()).epsilon(1e-5));
}

TEST_CASE("a detection problem measures average precision and the spread of queries") {
  StudyOptions study;
  study.batch = 4;
  const DetectionOptions data{.train_count = 8, .val_count = 6};
  nn::DetrOptions o{
      .classes = 3, .backbone = {4, 6}, .dim = 8, .heads = 2, .encoder = 1, .decoder = 1, .hidden = 8, .queries = 3};
  const DetectionProblem problem(data, o, study);
  CHECK(problem.data().train.size() == 8);
  CHECK(problem.data().validation.size() == 6);
  nn::Detr model(o);
  const Values values = problem.evaluate(model);
  CHECK(value_of(values, "val_loss") > 0);
  CHECK((value_of(values, "val_ap") >= 0 && value_of(values, "val_ap") <= 1));
  CHECK(std::isnan(value_of(values, "val_ap_large")));  // no object has 96 x 96 pixels
  CHECK(value_of(values, "query_spread") > 0);
  CHECK(model.training());  // the model is in its former mode
  // Queries that are equal have no spread.
  for (const nn::Parameter& p : model.parameters())
    if (p.name == "query_embed") copy_into(zeros(p.value.shape()).array(), p.value.array());
  CHECK(value_of(problem.evaluate(model), "query_spread") == Approx(0).margin(1e-6));
  for (const auto& [name, value] : values) CHECK(find_measure(problem.facts().measures, name));
  study.batch = 9;
  CHECK_THAT(error_of([&] { DetectionProblem(data, o, study); }),
             contains("--batch 9 is more than the 8 training images of shapes"));
  CHECK_THAT(error_of([&] {
               const nn::Layer& other = nn::Linear({.in = 1, .out = 1});
               const OptimizationOptions optimization;
               const Point point;
               (void)problem.task({0, study, optimization, point}, other);
             }),
             contains("expected a network of the type nn::Detr"));
}

TEST_CASE("the batches of a detection problem depend only on seed and step") {
  StudyOptions study;
  study.batch = 3;
  const OptimizationOptions optimization;
  const Point point;
  nn::DetrOptions o{
      .classes = 3, .backbone = {4, 6}, .dim = 8, .heads = 2, .encoder = 1, .decoder = 1, .hidden = 8, .queries = 3};
  const DetectionProblem problem({.train_count = 7, .val_count = 2}, o, study);
  const nn::Detr model(o);
  const auto losses = [&](std::uint64_t seed, std::int64_t from) {
    const TaskSettings settings(seed, study, optimization, point);
    const auto task = problem.task(settings, model);
    std::vector<double> all;
    for (std::int64_t step = from; step < 5; ++step) all.push_back(task->loss_of(step)().item());
    return all;
  };
  const std::vector<double> all = losses(1, 0), late = losses(1, 3);
  CHECK(late == std::vector<double>(all.begin() + 3, all.end()));
  CHECK(losses(2, 0) != all);
}

TEST_CASE("few images of a detection set are drawn from all of it, with their objects") {
  const DetectionData all = DetectionOptions().open(), few = DetectionOptions{.train_count = 20, .val_count = 5}.open();
  REQUIRE(few.train.size() == 20);
  CHECK(few.train.truth.images.back().id > all.train.size() / 2);
  CHECK(few.validation_is == fmt::format("5 of {} of {}", all.validation.size(), all.validation_is));
  CHECK(all.validation_is == shapes().validation_is);
  std::set<std::int64_t> ids;
  for (std::int64_t i = 0; i < few.train.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t id = few.train.truth.images[at].id;
    ids.insert(id);
    CHECK(few.train.pixels[at].bytes == all.train.pixels[static_cast<std::size_t>(id - 1)].bytes);
  }
  const auto objects = [&](const DetectionSet& set) {
    return std::ranges::count_if(set.truth.annotations, [&](const CocoAnnotation& a) { return ids.contains(a.image); });
  };
  CHECK(objects(few.train) == objects(all.train));
  CHECK(objects(few.train) == std::ssize(few.train.truth.annotations));
}

TEST_CASE("validation images may lack categories, and a category with another id or name is named") {
  const TemporaryFolder folder;
  DetectionSet set = make_shapes(ShapeSplit::train, 2);
  write_coco(set, folder / "train");
  const auto open_with = [&](std::vector<CocoCategory> categories, std::vector<CocoAnnotation> objects) {
    set.truth.categories = std::move(categories), set.truth.annotations = std::move(objects);
    write_coco(set, folder / "val");
    return DetectionOptions{.data = "coco",
                            .train_annotations = folder / "train/instances.json",
                            .train_images = folder / "train/images",
                            .val_annotations = folder / "val/instances.json",
                            .val_images = folder / "val/images"}
        .open();
  };
  const std::int64_t image = set.truth.images[0].id;
  const CocoAnnotation object{.id = 1, .image = image, .category = 3, .box = {1, 1, 5, 5}, .area = 25};
  const std::vector<CocoCategory> all = set.truth.categories;  // the ids are 1, 2, 3
  REQUIRE(all.size() == 3);
  // Without the first category, and with an unused one.
  const DetectionData data = open_with({{7, "unused"}, all[2], all[1]}, {object});
  CHECK(data.validation.classes() == 3);
  CHECK(targets_of(data.validation)[0].at(0).label == 2);
  const auto error = [&](const std::vector<CocoCategory>& categories, const CocoAnnotation& of) {
    const std::string text = error_of([&] { (void)open_with(categories, {of}); });
    CHECK_THAT(text, contains("train/instances.json and ") && contains("val/instances.json disagree about categories"));
    return text;
  };
  CHECK_THAT(error({all[0], all[1], {3, "star"}}, object),
             contains(fmt::format("expected 3 \"{}\", got 3 \"star\" in the second file", all[2].name)));
  CHECK_THAT(error({{4, all[1].name}, all[2]}, object),
             contains(fmt::format("expected 2 \"{0}\", got 4 \"{0}\"", all[1].name)));
  CocoAnnotation other = object;
  other.category = 7;
  CHECK_THAT(error({all[0], {7, "other"}}, other),
             contains("expected a category of the training images, got 7 \"other\""));
}

TEST_CASE("the hash of detection data changes with the files of annotations and images") {
  const TemporaryFolder folder;
  write_coco(make_shapes(ShapeSplit::train, 3), folder.path().string());
  StudyOptions study;
  study.batch = 1;
  const auto hash = [&] {
    const std::string annotations = folder / "instances.json", images = folder / "images";
    const DetectionOptions data{.data = "coco",
                                .train_annotations = annotations,
                                .train_images = images,
                                .val_annotations = annotations,
                                .val_images = images};
    return DetectionProblem(data, {}, study).facts().hash;
  };
  const std::string before = hash();
  CHECK(hash() == before);
  write_file_atomically(folder / "images/000001.png", read_file(folder / "images/000001.png") + " ");
  const std::string other_image = hash();
  CHECK(other_image != before);
  std::string json = read_file(folder / "instances.json");
  json.replace(json.find("\"circle\""), 8, "\"circus\"");
  write_file_atomically(folder / "instances.json", json);
  CHECK(hash() != other_image);
}
