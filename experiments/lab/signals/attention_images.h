// What a network attends to, over the image.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/lab/data/image_ops.h"
#include "experiments/lab/plot/section.h"
#include "experiments/lab/train/trial.h"
#include "nn/attention_maps.h"
#include "nn/models/classifier.h"

namespace plumb::lab {

// How much of each patch goes somewhere: `side` x `side` weights from 0 on, row by row.
struct PatchWeights {
  std::int64_t side = 0;
  std::vector<double> values = {};
};

// What the class is read from, for image `sample` of the passes: CaiT's last class attention, its mean over heads; of a
// ViT with a class token the row of that token in the last block; without one the mean over all queries there.
PatchWeights attention_of_class(const std::vector<nn::AttentionMap>& maps, std::int64_t sample);
// The same for each head of one map; of a grid of patches, what `query` (a patch, counted row by row) attends to, or
// the mean over all if below 0.
std::vector<PatchWeights> attention_by_head(const nn::AttentionMap& map, std::int64_t sample, std::int64_t query = -1);
// nn::rollout of the maps, to the class token or the mean over all patches, above its least value: what goes past the
// layers makes all patches alike.
PatchWeights rolled_out(const std::vector<nn::AttentionMap>& maps, std::int64_t sample);

// In red, green and blue, each pixel so many times as large as makes the image at least `side` high and wide.
Pixels for_people(const Pixels& image, std::int64_t side = 192);
// The image, dark, with the weights over it from black through red to yellow, interpolated between the patches'
// centres; the largest is yellow.
Pixels heat(const Pixels& image, const PatchWeights& weights);
// Pictures of one size in rows of so many, white pixels apart; 0: all in one row.
Pixels beside(const std::vector<Pixels>& pictures, std::int64_t in_a_row = 0, std::int64_t gap = 2);

// For reports: a picture with a title, and pictures that a trial attaches under a name (report/pictures.h shows them).
// Those of the first seed alone are drawn, as others look alike.
bool is_of_first_seed(const Trial& trial);
Picture titled(const std::string& title, const Pixels& picture);
void attach_picture(Trial& trial, const std::string& name, const Pixels& picture);

// Draws, for the first validation images, what the class attends to in a trained model and what is rolled out through
// all its blocks, and attaches it to the trial.
void attach_attention(Trial& trial, nn::Classifier& model);

}  // namespace plumb::lab
