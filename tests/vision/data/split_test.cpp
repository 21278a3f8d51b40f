// Tests of splitting a training set into two parts.
#include "experiments/vision/data/split.h"

#include <map>
#include <set>

#include "experiments/vision/data/glyphs.h"
#include "experiments/vision/data/open_data.h"
#include "tests/support/catch.h"
#include "tests/vision/data/data_files.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

namespace {

// 60 images of one pixel. The value of the pixel is the index of the image. Three classes have 30, 20 and 10 images.
ImageSet numbered() {
  ImageSet set{1, 1, 1, 3, {}, {}};
  for (int i = 0; i < 60; ++i) {
    set.pixels.push_back(static_cast<std::uint8_t>(i));
    set.labels.push_back(i % 6 < 3 ? 0 : i % 6 < 5 ? 1 : 2);
  }
  return set;
}

std::map<std::int32_t, int> by_class(const ImageSet& set) {
  std::map<std::int32_t, int> counts;
  for (const std::int32_t label : set.labels) ++counts[label];
  return counts;
}

}  // namespace

TEST_CASE("A split draws the same share of every class and puts every image into one part") {
  const ImageSet set = numbered();
  const Split s = split(set, 0.3);
  CHECK(by_class(s.part) == std::map<std::int32_t, int>{{0, 9}, {1, 6}, {2, 3}});
  CHECK(by_class(s.rest) == std::map<std::int32_t, int>{{0, 21}, {1, 14}, {2, 7}});
  std::set<std::uint8_t> seen;
  for (const ImageSet* side : {&s.part, &s.rest}) {
    CHECK((side->channels == 1 && side->height == 1 && side->width == 1 && side->classes == 3));
    CHECK(std::is_sorted(side->pixels.begin(), side->pixels.end()));  // the images are in the order of the set
    for (std::size_t i = 0; i < side->pixels.size(); ++i) {
      CHECK(seen.insert(side->pixels[i]).second);
      CHECK(side->labels[i] == set.labels[side->pixels[i]]);
    }
  }
  CHECK(seen.size() == 60);
}

TEST_CASE("A split is random but reproducible and a larger share contains a smaller one") {
  const Split small = split(numbered(), 0.2), again = split(numbered(), 0.2), large = split(numbered(), 0.5);
  CHECK(small.part.pixels == again.part.pixels);
  CHECK(std::includes(large.part.pixels.begin(), large.part.pixels.end(), small.part.pixels.begin(),
                      small.part.pixels.end()));
  std::vector<std::uint8_t> first;
  for (std::uint8_t i = 0; i < small.part.size(); ++i) first.push_back(i);
  CHECK(small.part.pixels != first);
}

TEST_CASE("Data with a validation split keep the test set separate and describe the validation images") {
  const ImageData made = glyphs(100, 20), data = with_validation_split(made, 0.1);
  CHECK(data.train.size() == 90);
  CHECK(data.validation.size() == 10);
  CHECK(data.test.labels == made.validation.labels);
  CHECK(made.validation_is ==
        "the generated test set (drawn separately from the training images by the same procedure)");
  CHECK(data.validation_is == "10 % of the training images, drawn by class; " + made.validation_is + " stays unseen");
  CHECK(ImageData().validation_is == "the published test set");
}

TEST_CASE("A share that leaves a part without images is refused") {
  for (double share : {0.0, 1.0, -0.5, std::nan("")})
    CHECK_THAT(error_of([&] { split(numbered(), share); }), contains("expected a share above 0 and below 1"));
  CHECK_THAT(error_of([] { split(numbered(), 0.001); }), contains("got 0.001 of 60 images in 3 classes"));
  CHECK(split(numbered(), 0.999).rest.size() == 3);  // one image of each of the three classes
  CHECK_THAT(error_of([] { split(ImageSet{}, 0.5); }), contains("[split]"));
}

TEST_CASE("Few images are drawn by class, also if there are fewer images than classes") {
  const ImageSet set = numbered(), few = few_images(set, 12);
  CHECK(by_class(few) == std::map<std::int32_t, int>{{0, 6}, {1, 4}, {2, 2}});
  CHECK(std::ranges::is_sorted(few.pixels));
  CHECK(few_images(set, 60).pixels == set.pixels);
  const ImageSet more = few_images(set, 20);
  CHECK(std::ranges::includes(more.pixels, few.pixels));
  // A folder is sorted by class: 100 classes with two images each.
  std::vector<std::int32_t> sorted;
  for (int i = 0; i < 200; ++i) sorted.push_back(i / 2);
  const std::vector<std::int64_t> drawn = few_of(sorted, 20);
  std::set<std::int32_t> classes;
  for (const std::int64_t i : drawn) classes.insert(sorted[static_cast<std::size_t>(i)]);
  CHECK(classes.size() == 20);
  CHECK(*classes.rbegin() >= 70);
  const std::vector<std::int64_t> of_one_class = few_of(std::vector<std::int32_t>(200), 20);
  CHECK(of_one_class.back() >= 140);
  for (const std::int64_t count : {0, 201})
    CHECK_THAT(error_of([&] { (void)few_of(sorted, count); }), contains("expected 1 to 200 samples"));
}

TEST_CASE("Data with few validation images describe them") {
  const ImageData made = glyphs(100, 20), few = with_few_validation_images(made, 5);
  CHECK(few.validation.size() == 5);
  CHECK(few.train.size() == 100);
  CHECK(few.validation_is == "5 of 20, drawn by class, of " + made.validation_is);
  CHECK(with_few_validation_images(made, 20).validation_is == made.validation_is);
  CHECK_THAT(error_of([&] { with_few_validation_images(made, 21); }), contains("expected 1 to 20 validation images"));
}
