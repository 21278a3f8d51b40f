// Pictures of the attention of a network, drawn over the image.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/lab/plot/section.h"
#include "experiments/lab/train/trial.h"
#include "experiments/vision/data/image_ops.h"
#include "nn/layers/attention_maps.h"
#include "nn/models/classifier.h"

namespace plumb::vision {

// One non-negative weight for each patch of an image: `side` x `side` values, row by row.
struct PatchWeights {
  std::int64_t side = 0;
  std::vector<double> values = {};
};

// The attention to the patches in the prediction of the class, for image `sample` of the batch. For a CaiT, the result
// is the last class attention, averaged over heads. For a ViT with a class token, the result is the row of the class
// token in the last block, averaged over heads. For a ViT without a class token, the result is the mean over all
// queries and heads of the last block. Throws Error if `maps` is empty.
PatchWeights attention_of_class(const std::vector<nn::AttentionMap>& maps, std::int64_t sample);
// The attention of each head of one map. If the map has no class query, `query` selects a patch (counted row by row),
// and the result is the attention of this patch. A `query` of -1 selects the class token, or the mean over all patches
// if the network has no class token. Throws Error if the patch does not exist.
std::vector<PatchWeights> attention_by_head(const nn::AttentionMap& map, std::int64_t sample, std::int64_t query = -1);
// The attention rollout (nn::rollout) to the class token, or else the mean over all patches. The smallest weight is
// subtracted, because the skip connections give all patches an equal share.
PatchWeights rolled_out(const std::vector<nn::AttentionMap>& maps, std::int64_t sample);

// The image in red, green and blue, enlarged by a whole factor. The factor is the smallest for which height and width
// are at least `side` pixels.
Pixels for_people(const Pixels& image, std::int64_t side = 192);
// The darkened image, with the weights as colours from black through red to yellow. Weights are interpolated between
// the centres of patches, and the largest weight is yellow. Throws Error unless the image has 3 channels.
Pixels heat(const Pixels& image, const PatchWeights& weights);
// Arranges pictures of one size in rows of `in_a_row` pictures (0: one row), separated by `gap` white pixels. Throws
// Error if there is no picture or if the sizes differ.
Pixels beside(const std::vector<Pixels>& pictures, std::int64_t in_a_row = 0, std::int64_t gap = 2);

// Pictures for reports: a picture with a title, and the pictures that a trial attaches under a name. pictures.h shows
// the pictures. Only the trials of the first seed draw pictures, because pictures of other seeds look alike.
bool is_of_first_seed(const lab::Trial& trial);
std::string base64_png(const Pixels& picture);  // the PNG file of a picture in base64
Picture titled(const std::string& title, const Pixels& picture);
void attach_picture(lab::Trial& trial, const std::string& name, const Pixels& picture);

// Attaches a picture to the trial if the trial has the first seed. The picture shows the attention of the class and the
// attention rollout of the trained model, for 4 validation images that few_of() (data/split.h) draws by class.
void attach_attention(lab::Trial& trial, nn::Classifier& model);

}  // namespace plumb::vision
