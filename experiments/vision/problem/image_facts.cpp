#include "experiments/vision/problem/image_facts.h"

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace plumb::vision {

using Json = nlohmann::ordered_json;

std::string further_facts(const ImageSet& s, std::int64_t validation_images) {
  return Json{
      {"validation_images", validation_images}, {"image", {s.channels, s.height, s.width}}, {"classes", s.classes}}
      .dump();
}

ImageSet image_sizes(const DataFacts& data) {
  const Json facts = Json::parse(data.further, nullptr, false);
  check(facts.contains("image"), "[data] expected a problem with images, got {}", data.name);
  const Json& image = facts["image"];
  constexpr std::int64_t most = 1 << 20;
  const auto size = [&](const Json& json, std::int64_t least) {
    check(json.is_number_integer() && json >= least && json <= most,
          "[data] expected three sizes of the images of {} and a number of classes, each an integer up to {}",
          data.name, most);
    return json.get<std::int64_t>();
  };
  check(image.is_array() && image.size() == 3, "[data] expected three sizes of the images of {}", data.name);
  return {.channels = size(image[0], 1),
          .height = size(image[1], 1),
          .width = size(image[2], 1),
          .classes = size(facts.value("classes", Json()), 0)};
}

}  // namespace plumb::vision
