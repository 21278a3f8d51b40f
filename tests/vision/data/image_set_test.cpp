#include "experiments/vision/data/image_set.h"

#include "tests/vision/data/data_files.h"

using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

TEST_CASE("The normalization has the mean and standard deviation of each channel scaled to 0..1") {
  // Channel 0 repeats the values 0 0 255 255. Channel 1 has the constant value 51.
  const ImageSet set{2, 2, 2, 10, {0, 0, 255, 255, 51, 51, 51, 51, 255, 255, 0, 0, 51, 51, 51, 51}, {3, 4}};
  const Normalization n = normalization_of(set);
  REQUIRE(n.mean.size() == 2);
  CHECK(n.mean[0] == Approx(0.5));
  CHECK(n.std[0] == Approx(0.5));
  CHECK(n.mean[1] == Approx(0.2));
  CHECK(n.std[1] == 1.0f);
}

TEST_CASE("Padding centres the image in zeros") {
  const ImageSet set{1, 2, 3, 10, {1, 2, 3, 4, 5, 6}, {0}};
  const ImageSet padded = pad_to(set, 5);
  CHECK(padded.height == 5);
  CHECK(padded.width == 5);
  CHECK(padded.pixels ==
        std::vector<std::uint8_t>{0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(padded.labels == set.labels);
}

TEST_CASE("Padding does not change images or sides that are large enough") {
  const ImageSet set{1, 2, 3, 10, {1, 2, 3, 4, 5, 6}, {0}};
  CHECK(pad_to(set, 2).pixels == set.pixels);
  const ImageSet padded = pad_to(set, 3);
  CHECK(padded.width == 3);
  CHECK(padded.pixels == std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 0, 0, 0});
}

TEST_CASE("Padding does not mix images or channels") {
  const ImageSet padded = pad_to({2, 1, 1, 10, {1, 2, 3, 4}, {0, 1}}, 2);
  CHECK(padded.pixels == std::vector<std::uint8_t>{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0});
}

TEST_CASE("An inconsistent set is refused") {
  CHECK_THAT(error_of([] { normalization_of({1, 2, 2, 10, {}, {}}); }), contains("empty set"));
  CHECK_THAT(error_of([] { normalization_of({1, 2, 2, 10, {1, 2, 3}, {0}}); }), contains("got 3 bytes"));
  CHECK_THAT(error_of([] { normalization_of({1, 1, 1, 10, {1}, {10}}); }), contains("labels in 0..9, got 10"));
  CHECK_THAT(error_of([] { normalization_of({0, 1, 1, 10, {}, {}}); }), contains("0x1x1"));
}
