#include "experiments/vision/data/split.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/error.h"
#include "core/random.h"

namespace plumb::vision {
namespace {

ImageSet empty_like(const ImageSet& set) {
  return {.channels = set.channels,
          .height = set.height,
          .width = set.width,
          .classes = set.classes,
          .crop = set.crop,
          .class_names = set.class_names};
}

void append(ImageSet& to, const ImageSet& from, std::int64_t index) {
  to.labels.push_back(from.labels[static_cast<std::size_t>(index)]);
  if (from.in_files()) return to.files.push_back(from.files[static_cast<std::size_t>(index)]);
  to.pixels.insert(to.pixels.end(), from.image(index), from.image(index) + from.image_bytes());
}

// For each class, the random draw and the index of each sample of the class.
std::vector<std::vector<std::pair<std::uint32_t, std::int64_t>>> draws_by_class(const std::vector<std::int32_t>& labels,
                                                                                std::uint64_t key) {
  const std::int32_t last = labels.empty() ? -1 : *std::ranges::max_element(labels);
  std::vector<std::vector<std::pair<std::uint32_t, std::int64_t>>> drawn(static_cast<std::size_t>(last + 1));
  for (std::int64_t i = 0; i < std::ssize(labels); ++i)
    drawn[static_cast<std::size_t>(labels[static_cast<std::size_t>(i)])].emplace_back(
        element_draw(key, 0, Purpose::augmentation, static_cast<std::uint64_t>(i))[0], i);
  return drawn;
}

}  // namespace

Split split(const ImageSet& set, double share) {
  check_consistent(set, "split");
  check(0 < share && share < 1, "[split] expected a share above 0 and below 1, got {}", share);
  std::vector<std::vector<std::pair<std::uint32_t, std::int64_t>>> drawn =
      draws_by_class(set.labels, random_key(0, "data.split"));
  std::vector<bool> in_part(static_cast<std::size_t>(set.size()), false);
  for (auto& images : drawn) {
    std::ranges::sort(images);
    const auto all = static_cast<std::int64_t>(images.size());
    const std::int64_t count =
        std::clamp<std::int64_t>(std::llround(share * static_cast<double>(all)), 0, std::max<std::int64_t>(all - 1, 0));
    for (std::int64_t i = 0; i < count; ++i)
      in_part[static_cast<std::size_t>(images[static_cast<std::size_t>(i)].second)] = true;
  }
  Split result{empty_like(set), empty_like(set)};
  for (std::int64_t i = 0; i < set.size(); ++i)
    append(in_part[static_cast<std::size_t>(i)] ? result.part : result.rest, set, i);
  check(result.part.size() > 0 && result.rest.size() > 0,
        "[split] expected a share that leaves images in both parts, got {} of {} images in {} classes", share,
        set.size(), set.classes);
  return result;
}

std::vector<std::int64_t> few_of(const std::vector<std::int32_t>& labels, std::int64_t count) {
  check(0 < count && count <= std::ssize(labels), "[few_of] expected 1 to {} samples, got {}", labels.size(), count);
  // Samples are ranked within their class by random draw, and the rank is divided by the size of the class. The samples
  // with the lowest quotients are taken; the draw decides between classes of equal size.
  std::vector<std::tuple<double, std::uint32_t, std::int64_t>> places;
  for (auto& samples : draws_by_class(labels, random_key(0, "data.few"))) {
    std::ranges::sort(samples);
    for (std::size_t i = 0; i < samples.size(); ++i)
      places.emplace_back((static_cast<double>(i) + 0.5) / static_cast<double>(samples.size()), samples[i].first,
                          samples[i].second);
  }
  std::ranges::sort(places);
  std::vector<std::int64_t> taken;
  for (std::int64_t i = 0; i < count; ++i) taken.push_back(std::get<2>(places[static_cast<std::size_t>(i)]));
  std::ranges::sort(taken);
  return taken;
}

ImageSet few_images(const ImageSet& set, std::int64_t count) {
  ImageSet few = empty_like(set);
  for (const std::int64_t i : few_of(set.labels, count)) append(few, set, i);
  return few;
}

ImageData with_few_training_images(ImageData data, std::int64_t count) {
  check(0 < count && count <= data.train.size(), "expected 1 to {} training images of {}, got {}", data.train.size(),
        data.name, count);
  data.train = few_images(data.train, count);
  return data;
}

ImageData with_few_validation_images(ImageData data, std::int64_t count) {
  const std::int64_t all = data.validation.size();
  check(0 < count && count <= all, "expected 1 to {} validation images of {}, got {}", all, data.name, count);
  if (count == all) return data;
  data.validation = few_images(data.validation, count);
  data.validation_is = fmt::format("{} of {}, drawn by class, of {}", count, all, data.validation_is);
  return data;
}

ImageData with_validation_split(ImageData data, double share) {
  Split parts = split(data.train, share);
  return {.name = std::move(data.name),
          .train = std::move(parts.rest),
          .validation = std::move(parts.part),
          .validation_is =
              fmt::format("{:g} % of the training images, drawn by class{}", 100 * share,
                          data.validation_is == "none" ? "" : fmt::format("; {} stays unseen", data.validation_is)),
          .test = std::move(data.validation)};
}

}  // namespace plumb::vision
