#include "experiments/vision/data/coco.h"

#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

namespace {

const Coco small_coco{.images = {{7, "a.png", 64, 48}, {9, "b.png", 20, 30}},
                      .categories = {{1, "square"}, {5, "circle"}},
                      .annotations = {{1, 7, 5, {10, 5, 20.5, 30}, 400, false}, {2, 9, 1, {0, 0, 20, 30}, 600, true}}};

class File {
 public:
  std::string write(const std::string& text) {
    const std::string path = folder_ / "instances.json";
    write_file_atomically(path, text);
    return path;
  }
  std::string error(const nlohmann::json& json) {
    return error_of([&] { (void)read_coco(write(json.dump())); });
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a file of annotations has the content that was written") {
  File file;
  const Coco read = read_coco(file.write(coco_json(small_coco)));
  CHECK(coco_json(read) == coco_json(small_coco));
  REQUIRE(read.annotations.size() == 2);
  CHECK(read.annotations[0].box.width == 20.5);
  CHECK(read.annotations[0].area == 400);
  CHECK(read.annotations[1].crowd);
  CHECK(read.images[1].file == "b.png");
  CHECK(read.categories[1].name == "circle");
}

TEST_CASE("an annotation without an area has that of its box and is no crowd") {
  File file;
  nlohmann::json json = nlohmann::json::parse(coco_json(small_coco));
  for (nlohmann::json& a : json["annotations"]) a.erase("area"), a.erase("iscrowd");
  json["licenses"] = "further fields are ignored";
  const Coco read = read_coco(file.write(json.dump()));
  CHECK(read.annotations[0].area == 20.5 * 30);
  CHECK_FALSE(read.annotations[1].crowd);
}

TEST_CASE("each fault of a file of annotations has a line with the ids") {
  File file;
  const nlohmann::json good = nlohmann::json::parse(coco_json(small_coco));
  const auto with = [&](const char* list, std::size_t at, const char* field, const nlohmann::json& value) {
    nlohmann::json json = good;
    json[list][at][field] = value;
    return file.error(json);
  };
  CHECK_THAT(with("annotations", 0, "bbox", {10, 5, -2, 30}),
             contains("annotation 1: image 7: expected a box with sides of at least 0, found -2 x 30"));
  CHECK_THAT(
      with("annotations", 0, "bbox", {10, 5, 60, 30}),
      contains("annotation 1: image 7: expected a box inside the image of 64 x 48 pixels, found x 10 to 70, y 5 to "
               "35"));
  CHECK_THAT(with("annotations", 0, "bbox", {10, 5}),
             contains("annotation 1: expected a \"bbox\" of four numbers [x, y, width, height], found [10,5]"));
  CHECK_THAT(with("annotations", 1, "category_id", 4),
             contains("annotation 2: image 9: no entry of \"categories\" has the id 4"));
  CHECK_THAT(with("annotations", 1, "image_id", 8),
             contains("annotation 2: image 8: no entry of \"images\" has this id"));
  CHECK_THAT(with("annotations", 1, "id", 1), contains("annotation 1: the id occurs twice"));
  CHECK_THAT(with("annotations", 1, "area", -1), contains("expected an area of at least 0, found -1"));
  CHECK_THAT(with("annotations", 1, "id", 18446744073709551615U), contains("expected an integer \"id\""));
  CHECK_THAT(with("images", 0, "width", "64"), contains("image 7: expected an integer \"width\", found \"64\""));
  CHECK_THAT(with("images", 1, "id", 7), contains("image 7: the id occurs twice"));
  CHECK_THAT(with("categories", 0, "name", 3), contains("category 1: expected a text \"name\", found 3"));
  CHECK_THAT(with("images", 0, "width", 1'000'000'000'000), contains("image 7: expected at most 67108864 pixels, found "
                                                                     "1000000000000 x 48"));
  nlohmann::json json = good;
  json.erase("categories");
  CHECK_THAT(file.error(json), contains("expected a list \"categories\""));
  json = good;
  json["annotations"][1] = 5;
  CHECK_THAT(file.error(json), contains("annotation at index 1: expected an object {..}"));
  // COCO's own boxes are rounded and may leave their images by half a pixel, and some have no height.
  json = good;
  json["annotations"][0]["bbox"] = {10, 5, 20, 0};
  json["annotations"][1]["bbox"] = {-0.4, 0, 20.4, 30.5};
  CHECK_NOTHROW(read_coco(file.write(json.dump())));
}

TEST_CASE("all faults of a file of annotations are counted and the first twenty shown") {
  File file;
  nlohmann::json json = nlohmann::json::parse(coco_json(small_coco));
  for (int i = 0; i < 30; ++i) {
    nlohmann::json bad = json["annotations"][0];
    bad["id"] = 100 + i, bad["bbox"][2] = -1;
    json["annotations"].push_back(bad);
  }
  const std::string error = file.error(json);
  CHECK_THAT(error, contains("instances.json: 30 faults"));
  CHECK_THAT(error, contains("annotation 119: image 7") && contains("and 10 more") && !contains("annotation 120"));
}

TEST_CASE("a file that is no file of annotations is refused") {
  File file;
  CHECK_THAT(error_of([&] { (void)read_coco(file.write("{")); }),
             contains("instances.json: expected a JSON file of annotations in COCO's format"));
  CHECK_THAT(error_of([&] { (void)read_coco(file.write("[1]")); }),
             contains("expected a JSON object with the lists images, categories and annotations"));
  CHECK_THROWS_WITH(read_coco("/nowhere/instances.json"), contains("/nowhere/instances.json"));
}

TEST_CASE("a results file lists the detections") {
  const nlohmann::json json = nlohmann::json::parse(coco_json(std::vector<CocoDetection>{{7, 5, {1, 2, 3, 4}, 0.5}}));
  CHECK(json ==
        nlohmann::json::parse(R"([{"image_id": 7, "category_id": 5, "bbox": [1.0, 2.0, 3.0, 4.0], "score": 0.5}])"));
  File file;
  const std::vector<CocoDetection> read = read_coco_detections(file.write(json.dump()));
  REQUIRE(read.size() == 1);
  CHECK(coco_json(read) == json.dump(1) + "\n");
  CHECK_THAT(error_of([&] { (void)read_coco_detections(file.write(R"([{"image_id": 7}])")); }),
             contains("detection at index 0: expected an integer \"category_id\", found none"));
  CHECK_THAT(error_of([&] { (void)read_coco_detections(file.write("{}")); }),
             contains("expected a list of detections"));
}
