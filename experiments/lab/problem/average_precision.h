// Average precision of object detection, as COCO counts it (Lin et al. 2014; pycocotools, COCOeval for boxes).
#pragma once

#include "experiments/lab/data/coco.h"

namespace plumb::lab {

// The twelve numbers of COCOeval.summarize(), each in [0, 1]. A number is -1 if no object counts for it, such as
// ap_large without objects of at least 96 x 96 pixels.
struct AveragePrecision {
  double ap = -1;                                       // mean over the IoU thresholds 0.50, 0.55, .. 0.95
  double ap_50 = -1, ap_75 = -1;                        // at the thresholds 0.50 and 0.75
  double ap_small = -1, ap_medium = -1, ap_large = -1;  // of objects below 32^2 pixels, up to 96^2, and above
  double ar_1 = -1, ar_10 = -1, ar_100 = -1;            // recall with at most 1, 10 and 100 detections in an image
  double ar_small = -1, ar_medium = -1, ar_large = -1;  // recall with 100 detections, by the area of the object
};

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

}  // namespace plumb::lab
