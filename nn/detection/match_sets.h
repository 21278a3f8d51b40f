// Matches the predictions of a detector with the objects of its images.
#pragma once

#include <string>
#include <vector>

#include "nn/detection/assignment.h"
#include "nn/detection/boxes.h"
#include "nn/detection/detections.h"

namespace plumb::nn {

// The pairs of each layer and image, (query, index of the target), sorted by query. The pairs of image b in layer l are
// at pairs[l][b].
struct SetMatches {
  std::vector<std::vector<std::vector<RowColumn>>> pairs;
  // If a cost is not finite, the name of its term: "classes", "l1" or "giou". There are then no pairs.
  std::string not_finite = {};
};

// Matches the predictions of each layer and image with the targets of the image, as set_loss() describes. Waits for the
// predictions. Throws the errors of set_loss().
SetMatches match_sets(const Detections& predicted, const Targets& targets, const SetLossOptions& options = {});

}  // namespace plumb::nn
