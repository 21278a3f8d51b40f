// Files with the weights of a Detr and a description of the network, so that a program can make the network again.
//
//   nn::save_weights(model, "shapes.safetensors", nn::facebook_names(), nn::metadata_of(card));
//   const auto [card, model] = nn::load_detr("shapes.safetensors");
//   const nn::Detections found = model->detect(images);
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/io/safetensors.h"
#include "nn/models/detr.h"

namespace plumb::nn {

// The description of a Detr without its weights.
struct DetrCard {
  DetrOptions options;  // a file does not contain drops, backbone_rate, recipe and seed, which matter in training only
  // Mean and standard deviation, for each channel, of the pixels of the training images, scaled to 0..1. Empty if not
  // known.
  std::vector<double> mean = {}, std = {};
  std::vector<std::string> class_names = {};  // empty if not known
  // The longer side in pixels to which the training resized each image. 0: images kept their sizes.
  std::int64_t image_side = 0;
  std::int64_t largest_image = 0;  // the longest side of all training images as the network saw them; 0 if not known
};

// Returns the card as a JSON object, for logs and records.
std::string json_of(const DetrCard& card);
// Returns the card as metadata for a file of the weights. Throws Error if the network cannot be made again from the
// card, because its method is not in the table or was changed by hand. To detect this, the metadata is read back, and
// two small networks with the same weights must compute the same function, bit for bit (as metadata_of() in
// pretrained.h).
std::map<std::string, std::string> metadata_of(const DetrCard& card);
// Returns the card of a file. `path` begins the error messages. Throws Error if the file has no metadata of a Detr, has
// keys that this version does not know, or has other sizes than its weights.
DetrCard detr_card_of(const TensorFile& file, const std::string& path);

// Reads the card and the network, in evaluation mode, of a file that save_weights() wrote with the metadata of a card,
// under Plumb's names or facebook_names(). Throws the errors of read_safetensors(), detr_card_of() and assign().
std::pair<DetrCard, std::unique_ptr<Detr>> load_detr(const std::filesystem::path& path);

}  // namespace plumb::nn
