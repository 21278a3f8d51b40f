// Pictures of the objects that a detector finds.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/train/trial.h"
#include "experiments/vision/data/image_ops.h"
#include "experiments/vision/problem/detection_problem.h"

namespace plumb::vision {

// The name of the class `label`, or "class 3" if the classes have no names.
std::string class_name(const std::vector<std::string>& class_names, std::int64_t label);

// The picture as an SVG file with a box around each object, in the colour of its class, and the name of the class with
// the score. Images with a longer side below 480 pixels are enlarged, and those above 1280 pixels reduced.
// `class_names` may be empty (class_name).
std::string objects_svg(const Pixels& image, const std::vector<FoundObject>& objects,
                        const std::vector<std::string>& class_names);

// Attaches two pictures to the trial of a DetectionProblem if the trial has the first seed: "boxes", the objects that
// the network finds in the first four validation images with a score of at least one half, and "queries", the
// cross-attention of the first four queries to the first image, as means over the heads of the last block. "queries" is
// left out if the feature map of the image is not square. If a picture cannot be made, the trial gets a note.
void attach_objects(lab::Trial& trial, nn::Detr& model);

}  // namespace plumb::vision
