// Records the attention probabilities of a model while it runs.
//
//   nn::AttentionMaps maps(model);
//   model(images);
//   const Tensor first = maps.all().front().probabilities;  // [B, heads, queries, keys]
#pragma once

#include <string>
#include <vector>

#include "nn/layers/attention.h"

namespace plumb::nn {

// The attention of one layer in one forward pass.
struct AttentionMap {
  std::string path;  // of the layer in the model, such as "blocks.3.attn"
  // [B, heads, queries, keys], without a graph and as if nothing were dropped. Class attention has one query.
  Tensor probabilities;
};

// Records the maps of every SelfAttention and ClassAttention of a model while it lives. all() holds the last map of
// each layer, in the order of the passes. Each map is computed in addition to the layer's own computation, so a forward
// pass takes longer.
class AttentionMaps {
 public:
  explicit AttentionMaps(Module& model);
  AttentionMaps(const AttentionMaps&) = delete;
  AttentionMaps& operator=(const AttentionMaps&) = delete;

  // The maps that were recorded.
  const std::vector<AttentionMap>& all() const { return maps_; }

 private:
  void keep(const std::string& path, const Tensor& probabilities);

  std::vector<AttentionMap> maps_;
  std::vector<Handle> handles_;
};

// Attention rollout (Abnar and Zuidema 2020): how much of each key of the first layer reaches each query of the last
// layer, [B, queries, keys]. It is the product over layers of (A + I) / 2, where A is the mean of the probabilities
// over the heads. If the last map has one query (class attention), its keys are the class token and the keys of the
// other maps: the class token is left out, and the other keys are scaled to sum to 1. Throws Error if there is no map,
// or if the sizes of the maps do not fit.
Tensor rollout(const std::vector<AttentionMap>& maps);

}  // namespace plumb::nn
