// Models from files of weights: what a file says of its model, and how its weights become those of a model of another image size or other classes.
//
//   const nn::TensorFile file = nn::read_safetensors("cait_xxs24.safetensors");
//   const nn::ModelCard card = nn::card_of(file, "cait_xxs24.safetensors");
//   const auto model = nn::make_model(card);
//   nn::load_pretrained(*model, file, "cait_xxs24.safetensors");
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "nn/io/safetensors.h"
#include "nn/models/cait.h"
#include "nn/models/vit.h"

namespace plumb::nn {

// What a model is beside its weights: enough to make it again.
struct ModelCard {
  std::variant<ViTOptions, CaiTOptions> options;
  std::vector<double> mean = {}, std = {};    // of the pixels that it was trained on, scaled to 0..1, by channel; empty: not said
  std::vector<std::string> class_names = {};  // empty: not said

  std::int64_t image() const;
  std::int64_t patch() const;
  std::int64_t channels() const;
  std::int64_t classes() const;
};

// Of a model: a ViT or a CaiT; nothing of any other.
std::optional<ModelCard> card_of(const Module& model);
// The card as metadata of a file of its weights, and from there.
std::map<std::string, std::string> metadata_of(const ModelCard& card);
// Of a file: what its metadata says; or else of timm's VisionTransformer (pre-norm or LayerScale, class token, with or without a position, or mean;
// no register tokens, norms of q and k or before the blocks, distillation tokens) and Cait, by names and shapes.
// They do not tell a ViT's heads: `heads`, or, as timm's sizes have it, one for 64 channels. `path` stands in errors.
ModelCard card_of(const TensorFile& file, const std::string& path, std::optional<std::int64_t> heads = {});
std::unique_ptr<Classifier> make_model(const ModelCard& card);

// Position embeddings [1, prefix + a a, D] of a grid of a x a patches, as those of side x side: bicubic, antialiased, as timm's
// resample_abs_pos_embed; the first `prefix` tokens as they are. Throws where the others are no square.
Tensor resized_positions(const Tensor& positions, std::int64_t prefix, std::int64_t side);

// What need not be in the file.
struct Adaptation {
  bool new_head = false;   // a head of another number of classes stays as it was initialised
  bool new_gates = false;  // so do gates (LayerScale's and others') that the file knows nothing of
};
struct Adapted {
  std::vector<std::string> as_initialised;          // names of parameters
  std::optional<std::int64_t> positions_from = {};  // side of the grid that the file has, where that was another
};
// Puts a file's weights (timm's names or ours, told by the shape of the patch projection) into a ViT or CaiT; positions of another grid are resized.
// Throws, with what differs, and the model is as it was.
Adapted load_pretrained(Classifier& model, const TensorFile& file, const std::string& path, Adaptation adaptation = {});

}  // namespace plumb::nn
