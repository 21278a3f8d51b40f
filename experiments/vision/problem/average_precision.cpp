#include "experiments/vision/problem/average_precision.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "core/error.h"

namespace plumb::vision {
namespace {

constexpr std::size_t thresholds = 10, recalls = 101;
constexpr std::array<std::size_t, 3> most_detections{1, 10, 100};

// The IoU thresholds 0.5 .. 0.95, with the rounding of numpy.linspace.
constexpr std::array<double, thresholds> iou_thresholds = [] {
  std::array<double, thresholds> t{};
  for (std::size_t i = 0; i < thresholds; ++i) t[i] = static_cast<double>(i) * ((0.95 - 0.5) / 9) + 0.5;
  t.back() = 0.95;
  return t;
}();

// A range of the areas of objects, in pixels; both ends belong to the range.
struct AreaRange {
  double least, most;
  bool contains(double area) const { return least <= area && area <= most; }
};
constexpr std::array<AreaRange, 4> area_ranges{
    {{0, 1e10}, {0, 32.0 * 32.0}, {32.0 * 32.0, 96.0 * 96.0}, {96.0 * 96.0, 1e10}}};

// The IoU of a detection and an object. The "union" of a detection and a crowd is the detection.
double overlap(const CocoBox& detection, const CocoAnnotation& object) {
  const double both = nn::intersection(detection.corners(), object.box.corners());
  if (both == 0) return 0;
  return both / (object.crowd ? detection.area() : detection.area() + object.box.area() - both);
}

// The objects and the detections of one category in one image, the detections by descending score.
struct Scene {
  std::vector<CocoAnnotation> objects;
  std::vector<CocoDetection> detections;
};

// A detection after the matching of its scene: for each threshold, whether it took an object and whether it is ignored.
struct Judged {
  double score;
  std::array<bool, thresholds> right, ignored;
};
struct JudgedScene {
  std::vector<Judged> detections;
  std::int64_t objects = 0;  // that are not ignored
};

JudgedScene judge(const Scene& scene, const AreaRange& range) {
  // Objects that count come first, so that a detection takes an ignored object only if no other one is left.
  std::vector<const CocoAnnotation*> objects;
  for (const CocoAnnotation& object : scene.objects) objects.push_back(&object);
  const auto is_ignored = [&](const CocoAnnotation* o) { return o->crowd || !range.contains(o->area); };
  const auto first_ignored = std::ranges::stable_partition(objects, [&](auto* o) { return !is_ignored(o); }).begin();
  const auto counted = static_cast<std::size_t>(first_ignored - objects.begin());
  JudgedScene judged{.detections = {}, .objects = static_cast<std::int64_t>(counted)};
  std::vector<std::array<bool, thresholds>> taken(objects.size(), std::array<bool, thresholds>{});
  for (const CocoDetection& d : scene.detections) {
    std::vector<double> ious;
    for (const CocoAnnotation* object : objects) ious.push_back(overlap(d.box, *object));
    Judged& result = judged.detections.emplace_back(Judged{.score = d.score, .right = {}, .ignored = {}});
    for (std::size_t t = 0; t < thresholds; ++t) {
      double best = std::min(iou_thresholds[t], 1 - 1e-10);
      std::optional<std::size_t> match;
      for (std::size_t i = 0; i < objects.size(); ++i) {
        if (taken[i][t] && !objects[i]->crowd) continue;
        if (match && *match < counted && i >= counted) break;
        if (!(ious[i] >= best)) continue;
        best = ious[i], match = i;
      }
      if (match) taken[*match][t] = true;
      result.right[t] = match.has_value();
      result.ignored[t] = match ? *match >= counted : !range.contains(d.box.area());
    }
  }
  return judged;
}

// The precision at each recall, and the recall, of one category at one threshold.
struct Curve {
  std::array<double, recalls> precision{};
  double recall = 0;
};

Curve curve_of(const std::vector<const Judged*>& by_score, std::size_t threshold, std::int64_t objects) {
  std::vector<double> recall, precision;
  double right = 0, wrong = 0;
  for (const Judged* d : by_score) {
    if (!d->ignored[threshold]) ++(d->right[threshold] ? right : wrong);
    recall.push_back(right / static_cast<double>(objects));
    precision.push_back(right / (right + wrong + std::numeric_limits<double>::epsilon()));
  }
  for (std::size_t i = precision.size(); i-- > 1;) precision[i - 1] = std::max(precision[i - 1], precision[i]);
  Curve curve{.precision = {}, .recall = recall.empty() ? 0 : recall.back()};
  for (std::size_t r = 0; r < recalls; ++r) {
    const double wanted = r + 1 == recalls ? 1 : static_cast<double>(r) * 0.01;
    const auto at = std::ranges::lower_bound(recall, wanted) - recall.begin();
    if (at < std::ssize(recall)) curve.precision[r] = precision[static_cast<std::size_t>(at)];
  }
  return curve;
}

// A mean that is -1 without values.
class Mean {
 public:
  void add(double value) { sum_ += value, ++count_; }
  double value() const { return count_ ? sum_ / static_cast<double>(count_) : -1; }

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

// The means of COCO's numbers over categories and thresholds, by the range of areas or the number of detections.
struct Means {
  std::array<Mean, area_ranges.size()> ap, ar;
  std::array<Mean, most_detections.size()> ar_by_count;
  Mean ap_50, ap_75;
};

// The scenes of a category, by image.
using Category = std::map<std::int64_t, Scene>;

// Adds the numbers of a category for one range of areas, if the category has objects in this range.
void add(const Category& scenes, std::size_t range, Means& means) {
  std::vector<JudgedScene> judged;
  std::int64_t objects = 0;
  for (const auto& [image, scene] : scenes) objects += judged.emplace_back(judge(scene, area_ranges[range])).objects;
  if (objects == 0) return;
  const auto best_of_each = [&](std::size_t most) {
    std::vector<const Judged*> by_score;
    for (const JudgedScene& scene : judged)
      for (std::size_t i = 0; i < std::min(scene.detections.size(), most); ++i)
        by_score.push_back(&scene.detections[i]);
    std::ranges::stable_sort(by_score, std::greater(), &Judged::score);
    return by_score;
  };
  const std::vector<const Judged*> all = best_of_each(most_detections.back());
  std::array<double, thresholds> precision{};
  for (std::size_t t = 0; t < thresholds; ++t) {
    const Curve curve = curve_of(all, t, objects);
    precision[t] = std::accumulate(curve.precision.begin(), curve.precision.end(), 0.0) / recalls;
    means.ap[range].add(precision[t]);
    means.ar[range].add(curve.recall);
  }
  if (range > 0) return;
  means.ap_50.add(precision[0]), means.ap_75.add(precision[5]);
  for (std::size_t m = 0; m < most_detections.size(); ++m) {
    const std::vector<const Judged*> best = best_of_each(most_detections[m]);
    for (std::size_t t = 0; t < thresholds; ++t) means.ar_by_count[m].add(curve_of(best, t, objects).recall);
  }
}

}  // namespace

AveragePrecision average_precision(const Coco& truth, const std::vector<CocoDetection>& detections) {
  std::set<std::int64_t> images, categories;
  for (const CocoImage& image : truth.images) images.insert(image.id);
  for (const CocoCategory& category : truth.categories) categories.insert(category.id);
  std::map<std::int64_t, Category> scenes;  // by category, in the order of the ids
  for (const CocoAnnotation& object : truth.annotations)
    scenes[object.category][object.image].objects.push_back(object);
  for (const CocoDetection& d : detections) {
    check(images.contains(d.image) && categories.contains(d.category),
          "[average_precision] expected detections in the images and categories of the truth, got image {} and "
          "category {}",
          d.image, d.category);
    check(std::isfinite(d.score) && std::isfinite(d.box.x + d.box.y + d.box.width + d.box.height),
          "[average_precision] expected finite scores and boxes, got a score of {} and a box ({}, {}, {}, {}) in image "
          "{}",
          d.score, d.box.x, d.box.y, d.box.width, d.box.height, d.image);
    scenes[d.category][d.image].detections.push_back(d);
  }
  Means means;
  for (auto& [category, by_image] : scenes) {
    for (auto& [image, scene] : by_image) {
      std::ranges::stable_sort(scene.detections, std::greater(), &CocoDetection::score);
      if (scene.detections.size() > most_detections.back()) scene.detections.resize(most_detections.back());
    }
    for (std::size_t range = 0; range < area_ranges.size(); ++range) add(by_image, range, means);
  }
  return {.ap = means.ap[0].value(),
          .ap_50 = means.ap_50.value(),
          .ap_75 = means.ap_75.value(),
          .ap_small = means.ap[1].value(),
          .ap_medium = means.ap[2].value(),
          .ap_large = means.ap[3].value(),
          .ar_1 = means.ar_by_count[0].value(),
          .ar_10 = means.ar_by_count[1].value(),
          .ar_100 = means.ar_by_count[2].value(),
          .ar_small = means.ar[1].value(),
          .ar_medium = means.ar[2].value(),
          .ar_large = means.ar[3].value()};
}

}  // namespace plumb::vision
