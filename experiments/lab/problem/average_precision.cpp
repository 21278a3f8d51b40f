#include "experiments/lab/problem/average_precision.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "core/error.h"

namespace plumb::lab {
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
  const CocoBox& b = object.box;
  const double w = std::min(detection.x + detection.width, b.x + b.width) - std::max(detection.x, b.x),
               h = std::min(detection.y + detection.height, b.y + b.height) - std::max(detection.y, b.y);
  if (!(w > 0 && h > 0)) return 0;
  return w * h / (object.crowd ? detection.area() : detection.area() + b.area() - w * h);
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

}  // namespace

AveragePrecision average_precision(const Coco& truth, const std::vector<CocoDetection>& detections) {
  std::set<std::int64_t> images, categories;
  for (const CocoImage& image : truth.images) images.insert(image.id);
  for (const CocoCategory& category : truth.categories) categories.insert(category.id);
  std::map<std::int64_t, std::map<std::int64_t, Scene>> scenes;  // by category and image, in the order of the ids
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
  std::array<Mean, area_ranges.size()> ap, ar;
  std::array<Mean, most_detections.size()> ar_by_count;
  Mean ap_50, ap_75;
  for (auto& [category, by_image] : scenes) {
    for (auto& [image, scene] : by_image) {
      std::ranges::stable_sort(scene.detections, std::greater(), &CocoDetection::score);
      if (scene.detections.size() > most_detections.back()) scene.detections.resize(most_detections.back());
    }
    for (std::size_t a = 0; a < area_ranges.size(); ++a) {
      std::vector<JudgedScene> judged;
      std::int64_t objects = 0;
      for (const auto& [image, scene] : by_image) objects += judged.emplace_back(judge(scene, area_ranges[a])).objects;
      if (objects == 0) continue;
      for (std::size_t m = 0; m < most_detections.size(); ++m) {
        const bool all = m + 1 == most_detections.size();
        if (a > 0 && !all) continue;
        std::vector<const Judged*> by_score;
        for (const JudgedScene& scene : judged)
          for (std::size_t i = 0; i < std::min(scene.detections.size(), most_detections[m]); ++i)
            by_score.push_back(&scene.detections[i]);
        std::ranges::stable_sort(by_score, std::greater(), &Judged::score);
        for (std::size_t t = 0; t < thresholds; ++t) {
          const Curve curve = curve_of(by_score, t, objects);
          if (a == 0) ar_by_count[m].add(curve.recall);
          if (!all) continue;
          ar[a].add(curve.recall);
          const double mean = std::accumulate(curve.precision.begin(), curve.precision.end(), 0.0) / recalls;
          ap[a].add(mean);
          if (a == 0 && t == 0) ap_50.add(mean);
          if (a == 0 && t == 5) ap_75.add(mean);
        }
      }
    }
  }
  return {.ap = ap[0].value(),
          .ap_50 = ap_50.value(),
          .ap_75 = ap_75.value(),
          .ap_small = ap[1].value(),
          .ap_medium = ap[2].value(),
          .ap_large = ap[3].value(),
          .ar_1 = ar_by_count[0].value(),
          .ar_10 = ar_by_count[1].value(),
          .ar_100 = ar_by_count[2].value(),
          .ar_small = ar[1].value(),
          .ar_medium = ar[2].value(),
          .ar_large = ar[3].value()};
}

}  // namespace plumb::lab
