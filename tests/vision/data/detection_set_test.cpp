// Sets of images with boxes, and the generated data set shapes.
#include <algorithm>
#include <filesystem>

#include "core/atomic_file.h"
#include "experiments/vision/data/image_file.h"
#include "experiments/vision/data/shapes.h"
#include "tests/support/called.h"
#include "tests/vision/data/data_files.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

namespace {

// An image of one colour, with a left column of another.
Pixels striped(std::int64_t height, std::int64_t width) {
  Pixels image{3, height, width, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * height * width), 100)};
  for (std::int64_t c = 0; c < 3; ++c)
    for (std::int64_t y = 0; y < height; ++y) image.plane(c)[y * width] = 200;
  return image;
}

// Images of 8 x 4 and 6 x 10 pixels (width x height).
DetectionSet two_images() {
  return {.truth = {.images = {{5, "a.png", 8, 4}, {3, "b.png", 6, 10}},
                    .categories = {{9, "second"}, {2, "first"}},
                    .annotations = {{1, 5, 2, {2, 1, 4, 2}, 8, false},
                                    {2, 5, 9, {0, 0, 8, 4}, 32, true},
                                    {3, 3, 9, {-0.4, 0, 3.4, 10.4}, 30, false},
                                    {4, 3, 9, {1, 1, 3, 0}, 0, false}}},
          .pixels = {striped(4, 8), striped(10, 6)}};
}

const Normalization plain_3_channels{{0, 0, 0}, {1, 1, 1}};

}  // namespace

TEST_CASE("targets are shares of their images, without crowds and boxes without area") {
  const nn::Targets t = targets_of(two_images());
  REQUIRE(t.size() == 2);
  REQUIRE(t[0].size() == 1);
  CHECK(t[0][0].label == 1);  // the second category of the file
  CHECK(t[0][0].box == nn::Box{0.25, 0.25, 0.75, 0.75});
  REQUIRE(t[1].size() == 1);
  CHECK(t[1][0].label == 0);
  CHECK(t[1][0].box == nn::Box{0, 0, 0.5, 1});  // cut at the edge of the image
}

TEST_CASE("a batch of images of two sizes is padded and a mirrored image has mirrored boxes") {
  const DetectionSet set = two_images();
  const nn::Targets targets = targets_of(set);
  const DetectionBatch batch = batch_of(set, targets, plain_3_channels, {0, 1}, {true, false});
  CHECK(batch.images.shape() == Shape{2, 3, 10, 8});
  REQUIRE(batch.keep.defined());
  CHECK(batch.keep.shape() == Shape{2, 10, 8});
  const auto kept = batch.keep.values(), pixels = batch.images.values();
  for (std::int64_t y = 0; y < 10; ++y)
    for (std::int64_t x = 0; x < 8; ++x) {
      const auto at = [&](std::int64_t b) { return static_cast<std::size_t>((b * 10 + y) * 8 + x); };
      CHECK(kept[at(0)] == (y < 4));
      CHECK(kept[at(1)] == (x < 6));
      const auto red = [&](std::int64_t b) { return pixels[static_cast<std::size_t>((b * 30 + y) * 8 + x)]; };
      CHECK(red(0) == Approx(y >= 4 ? 0 : x == 7 ? 200 / 255.0 : 100 / 255.0));  // mirrored: the stripe is at the right
      CHECK(red(1) == Approx(x >= 6 ? 0 : x == 0 ? 200 / 255.0 : 100 / 255.0));
    }
  CHECK(batch.targets[0][0].box == nn::Box{0.25, 0.25, 0.75, 0.75});  // symmetric
  const DetectionBatch second = batch_of(set, targets, plain_3_channels, {1}, {true});
  CHECK_FALSE(second.keep.defined());
  CHECK(second.targets[0][0].box == nn::Box{0.5, 0, 1, 1});
}

TEST_CASE("an image is resized by its longer side") {
  const Pixels image = fitted(striped(4, 8), 16);
  CHECK((image.height == 8 && image.width == 16));
  const Pixels tall = fitted(striped(10, 6), 5);
  CHECK((tall.height == 5 && tall.width == 3));
  CHECK(fitted(striped(4, 8), 0).bytes == striped(4, 8).bytes);
}

TEST_CASE("a set in COCO's format is read from its files") {
  const TemporaryFolder folder;
  const std::string out = folder / "set";
  write_coco(two_images(), out);
  const DetectionSet read = open_coco(out + "/instances.json", out + "/images", 0);
  CHECK(read.in_files());
  CHECK(coco_json(read.truth) == coco_json(two_images().truth));
  CHECK(fitted(read, 1).bytes == striped(10, 6).bytes);
  CHECK_THAT(error_of([&] { write_coco(read, out); }), contains("[write_coco] expected images in memory"));
  // Each fault has a message.
  write_file_atomically(out + "/images/a.png", png(striped(5, 8)));
  CHECK_THAT(error_of([&] { (void)fitted(read, 0); }),
             contains("a.png: expected 8 x 4 pixels, as the file of annotations says of image 5, got 8 x 5"));
  std::filesystem::remove(out + "/images/b.png");
  CHECK_THAT(error_of([&] { (void)open_coco(out + "/instances.json", out + "/images", 0); }),
             contains("1 of 2 images of") && contains("are not in this folder, such as b.png"));
}

TEST_CASE("boxes are in the stored pixels of a photo with an EXIF turn") {
  const TemporaryFolder folder;
  const std::filesystem::path golden = std::filesystem::path(source_dir()) / "tests/golden/images";
  const Pixels stored = read_image(golden / "colours.jpg");
  REQUIRE(stored.height != stored.width);
  Bytes wide = read_bytes(golden / "colours.jpg");
  const Bytes turn = exif_segment(6), half_turn = exif_segment(3, false);
  wide.insert(wide.begin() + 2, turn.begin(), turn.end());
  Bytes mirrored = read_bytes(golden / "colours.jpg");
  mirrored.insert(mirrored.begin() + 2, half_turn.begin(), half_turn.end());
  write_bytes(folder / "wide.jpg", wide), write_bytes(folder / "half.jpg", mirrored);
  write_bytes(folder / "square.jpg", empty_jpeg(8, 1, turn)), write_bytes(folder / "plain.jpg", empty_jpeg(8, 1));
  const DetectionSet set{.truth = {.images = {{1, "wide.jpg", stored.width, stored.height},
                                              {2, "plain.jpg", 8, 8},
                                              {3, "square.jpg", 8, 8},
                                              {4, "half.jpg", stored.width, stored.height},
                                              {5, "wide.jpg", stored.height, stored.width}}},
                         .folder = folder.path()};
  const auto read = [&](std::int64_t index) {
    return call(folder.path(),
                [&](int, const char* const*) {
                  const Pixels image = fitted(set, index);
                  return image.bytes == read_image(set.path(set.truth.images[static_cast<std::size_t>(index)])).bytes
                             ? 0
                             : 1;
                },
                {})
        .err;
  };
  CHECK(read(0) == "");  // the sides show that the boxes are in the stored pixels
  CHECK(read(1) == "");
  CHECK_THAT(read(2), contains("square.jpg: a viewer turns or mirrors this photo (EXIF orientation 6); its boxes are "
                               "read in the stored pixels, as by pycocotools and torchvision"));
  CHECK(read(3) == "");  // only the first photo is named
  CHECK_THAT(
      error_of([&] { (void)fitted(set, 4); }),
      contains("expected 23 x 37 pixels") && contains("but boxes are in the stored pixels: store the photo turned"));
}

TEST_CASE("the data set shapes has one to four shapes in an image, with tight boxes, and is the same in every run") {
  const DetectionSet set = make_shapes(ShapeSplit::train, 200);
  CHECK(set.size() == 200);
  CHECK(set.classes() == 3);
  std::vector<int> counts(200, 0), kinds(4, 0);
  for (const CocoAnnotation& a : set.truth.annotations) {
    ++counts[static_cast<std::size_t>(a.image - 1)], ++kinds[static_cast<std::size_t>(a.category)];
    CHECK((a.box.x >= 0 && a.box.y >= 0 && a.box.x + a.box.width <= 64 && a.box.y + a.box.height <= 64));
    CHECK((a.box.width >= 9 && a.box.width <= 28 && a.box.height >= 9 && a.box.height <= 28));
    // A circle fills pi / 4 of its box, a square all of it, a triangle half.
    const double share = a.area / a.box.area();
    CHECK(share == Approx(a.category == 1 ? 0.785 : a.category == 2 ? 1 : 0.5).margin(0.07));
  }
  CHECK(*std::ranges::max_element(counts) == 4);
  CHECK(std::ranges::count(counts, 0) <= 2);
  for (int kind = 1; kind <= 3; ++kind) CHECK(kinds[static_cast<std::size_t>(kind)] > 100);
  // Image i depends neither on the number of images nor on the other split.
  CHECK(make_shapes(ShapeSplit::train, 3).pixels[2].bytes == set.pixels[2].bytes);
  CHECK(make_shapes(ShapeSplit::validation, 3).pixels[2].bytes != set.pixels[2].bytes);
  std::uint64_t sum = 0;
  for (const std::uint8_t byte : set.pixels[7].bytes) sum = sum * 31 + byte;
  CHECK(sum == 0x99a2e37c078b4439U);  // the same bytes on every machine
}
