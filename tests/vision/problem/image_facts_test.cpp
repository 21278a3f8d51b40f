// Tests of the facts about images in run.json, which may come from elsewhere.
#include "experiments/vision/problem/image_facts.h"

#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::vision;
using test::error_of;

TEST_CASE("the facts about images are read back, and wrong facts are refused") {
  lab::DataFacts data{.name = "pictures"};
  data.further = further_facts({.channels = 1, .height = 8, .width = 9, .classes = 3}, 40);
  CHECK(data.further == R"({"validation_images":40,"image":[1,8,9],"classes":3})");
  const ImageSet sizes = image_sizes(data);
  CHECK((sizes.channels == 1 && sizes.height == 8 && sizes.width == 9 && sizes.classes == 3));
  for (const char* none : {"", "[1]", "{", R"({"classes":3})"}) {
    data.further = none;
    CHECK(error_of([&] { image_sizes(data); }) == "[data] expected a problem with images, got pictures");
  }
  for (const char* wrong : {R"({"image":"x","classes":3})", R"({"image":[1,8],"classes":3})"}) {
    data.further = wrong;
    CHECK(error_of([&] { image_sizes(data); }) == "[data] expected three sizes of the images of pictures");
  }
  for (const char* wrong : {R"({"image":[1,8,0],"classes":3})", R"({"image":[1,8,1e300],"classes":3})",
                            R"({"image":[1,8,9],"classes":-1})", R"({"image":[1,8,9]})"}) {
    data.further = wrong;
    CHECK_THAT(error_of([&] { image_sizes(data); }), test::contains("each an integer up to 1048576"));
  }
}
