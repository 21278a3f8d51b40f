// Pictures of the objects that a detector finds.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/data/image_ops.h"
#include "experiments/lab/problem/detection_problem.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

// The picture as an SVG file with a box around each object, in the colour of its class, and the name of the class with
// the score. Small images are enlarged. `class_names` may be empty: the text then has the number of the class.
std::string objects_svg(const Pixels& image, const std::vector<FoundObject>& objects,
                        const std::vector<std::string>& class_names);

// Attaches two pictures to the trial if the trial has the first seed and a DetectionProblem: "boxes", the objects that
// the network finds in the first four validation images with a score of at least one half, and "queries", the
// cross-attention of the first four queries to the first image, as means over the heads of the last block.
void attach_objects(Trial& trial, nn::Detr& model);

}  // namespace plumb::lab
