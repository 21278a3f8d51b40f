// Average precision of object detection, as COCO counts it (Lin et al. 2014; pycocotools, COCOeval for boxes).
#pragma once

#include <array>

#include "experiments/vision/data/coco.h"

namespace plumb::vision {

// The twelve numbers of COCOeval.summarize(), each in [0, 1]. A number is -1 if no object counts for it, such as
// ap_large without objects of at least 96 x 96 pixels.
struct AveragePrecision {
  double ap = -1;                                       // mean over the IoU thresholds 0.50, 0.55, .. 0.95
  double ap_50 = -1, ap_75 = -1;                        // at the thresholds 0.50 and 0.75
  double ap_small = -1, ap_medium = -1, ap_large = -1;  // of objects below 32^2 pixels, up to 96^2, and above
  double ar_1 = -1, ar_10 = -1, ar_100 = -1;            // recall with at most 1, 10 and 100 detections in an image
  double ar_small = -1, ar_medium = -1, ar_large = -1;  // recall with 100 detections, by the area of the object
};

// A number of AveragePrecision with its name and its title in tables.
struct ApNumber {
  double AveragePrecision::*value;
  const char *name, *title;
};
// All numbers, in the order of COCOeval.summarize().
inline constexpr std::array<ApNumber, 12> ap_numbers{{{&AveragePrecision::ap, "ap", "AP"},
                                                      {&AveragePrecision::ap_50, "ap_50", "AP 50"},
                                                      {&AveragePrecision::ap_75, "ap_75", "AP 75"},
                                                      {&AveragePrecision::ap_small, "ap_small", "AP small"},
                                                      {&AveragePrecision::ap_medium, "ap_medium", "AP medium"},
                                                      {&AveragePrecision::ap_large, "ap_large", "AP large"},
                                                      {&AveragePrecision::ar_1, "ar_1", "AR 1"},
                                                      {&AveragePrecision::ar_10, "ar_10", "AR 10"},
                                                      {&AveragePrecision::ar_100, "ar_100", "AR"},
                                                      {&AveragePrecision::ar_small, "ar_small", "AR small"},
                                                      {&AveragePrecision::ar_medium, "ar_medium", "AR medium"},
                                                      {&AveragePrecision::ar_large, "ar_large", "AR large"}}};

// Returns the average precision of detections in the images of `truth`, a mean over the categories of `truth` that have
// objects. The rules are those of pycocotools:
// - Detections of an image and a category take objects in the order of their scores, each the free object with the
//   largest IoU of at least the threshold. At most 100 detections of an image and category count.
// - A crowd, and an object outside the range of areas, is ignored: a detection that takes it counts neither as right
//   nor as wrong. A crowd may be taken many times, and its IoU is the share of the detection inside its box.
// - An annotation with the id 0 counts like any other; pycocotools counts a detection that takes it as wrong.
// - Precision is read at the recalls 0, 0.01, .. 1, after it was made monotone.
// Throws Error if a detection names an image or category that `truth` does not have, or has a score or a box that is
// not finite.
AveragePrecision average_precision(const Coco& truth, const std::vector<CocoDetection>& detections);

}  // namespace plumb::vision
