#include "experiments/vision/problem/average_precision.h"

#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

namespace {

// Two images of 100 x 100 pixels and two categories.
Coco two_images_with(std::vector<CocoAnnotation> annotations) {
  return {.images = {{1, "a.png", 100, 100}, {2, "b.png", 100, 100}},
          .categories = {{1, "square"}, {2, "circle"}},
          .annotations = std::move(annotations)};
}

const CocoBox box{10, 10, 20, 20}, other{60, 60, 30, 30};

}  // namespace

TEST_CASE("average precision equals that of pycocotools") {
  const TemporaryFolder folder;
  for (const nlohmann::json& c :
       nlohmann::json::parse(read_file(test::source_dir() + "/tests/golden/detection/average_precision.json"))) {
    const std::string file = folder / "truth.json";
    nlohmann::json truth = c["truth"];
    write_file_atomically(file, truth.dump());
    std::vector<CocoDetection> found;
    for (const nlohmann::json& d : c["detections"]) {
      const nlohmann::json& b = d["bbox"];
      found.push_back({d["image_id"], d["category_id"], {b[0], b[1], b[2], b[3]}, d["score"]});
    }
    const AveragePrecision a = average_precision(read_coco(file), found);
    const auto theirs = c["stats"].get<std::vector<double>>();
    REQUIRE(theirs.size() == ap_numbers.size());
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      INFO(ap_numbers[i].name);
      CHECK(a.*ap_numbers[i].value == Approx(theirs[i]).margin(1e-12));
    }
  }
}

TEST_CASE("right detections have an average precision of 1 and none have 0") {
  const Coco truth = two_images_with({{1, 1, 1, box, box.area(), false}, {2, 2, 2, other, other.area(), false}});
  const AveragePrecision all = average_precision(truth, {{1, 1, box, 0.4}, {2, 2, other, 0.9}});
  CHECK(all.ap == Approx(1));
  CHECK(all.ar_1 == 1);
  CHECK(all.ap_large == -1);  // there are no objects of at least 96 x 96 pixels
  CHECK(average_precision(truth, {}).ap == 0);
  CHECK(average_precision(two_images_with({}), {{1, 1, box, 0.4}}).ap == -1);
}

TEST_CASE("a wrong detection counts only if its score is higher") {
  const Coco truth = two_images_with({{1, 1, 1, box, box.area(), false}});
  CHECK(average_precision(truth, {{1, 1, box, 0.8}, {2, 1, other, 0.3}}).ap == Approx(1));
  CHECK(average_precision(truth, {{1, 1, box, 0.8}, {2, 1, other, 0.9}}).ap == Approx(0.5));
  // A second detection of the same object is wrong: of two objects, the second is found after one mistake. Precision is
  // then 1 at the 51 recalls up to one half, and 2 / 3 at the other 50.
  const Coco both = two_images_with({{1, 1, 1, box, box.area(), false}, {2, 2, 1, other, other.area(), false}});
  CHECK(average_precision(both, {{1, 1, box, 0.9}, {1, 1, box, 0.8}, {2, 1, other, 0.7}}).ap ==
        Approx((51 + 50 * 2.0 / 3) / 101));
}

TEST_CASE("a detection of a crowd counts neither as right nor as wrong") {
  const CocoBox inside{62, 62, 5, 5};
  const Coco truth = two_images_with({{1, 1, 1, box, box.area(), false}, {2, 1, 1, other, other.area(), true}});
  CHECK(average_precision(truth, {{1, 1, box, 0.5}, {1, 1, inside, 0.9}, {1, 1, inside, 0.8}}).ap == Approx(1));
}

TEST_CASE("average precision refuses detections of unknown images and scores that are not finite") {
  const Coco truth = two_images_with({{1, 1, 1, box, box.area(), false}});
  CHECK_THAT(error_of([&] {
               (void)average_precision(truth, {{3, 1, box, 0.5}});
             }),
             contains("got image 3 and category 1"));
  CHECK_THAT(error_of([&] {
               (void)average_precision(truth, {{1, 1, box, std::nan("")}});
             }),
             contains("expected finite scores and boxes, got a score of nan"));
  CHECK_THAT(error_of([&] {
               (void)average_precision(truth, {{1, 1, {0, 0, std::nan(""), 1}, 0.5}});
             }),
             contains("expected finite scores and boxes"));
}
