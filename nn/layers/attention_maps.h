// Records the attention probabilities of a model during its forward passes.
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
  std::string path;  // the path of the layer in the model, such as "blocks.3.attn"
  // The attention probabilities [B, heads, queries, keys], without a graph and without drops (dropout, DropKey). Class
  // attention has one query.
  Tensor probabilities;
};

// Records the maps of every AttentionBranch and ClassAttention of a model, as long as the AttentionMaps object lives.
// all() holds the most recent map of each layer, in the order in which the layers run. Each map is computed in addition
// to the computation of the layer, so a forward pass takes longer.
class AttentionMaps {
 public:
  explicit AttentionMaps(Module& model);
  AttentionMaps(const AttentionMaps&) = delete;
  AttentionMaps& operator=(const AttentionMaps&) = delete;

  const std::vector<AttentionMap>& all() const { return maps_; }

 private:
  void keep(const std::string& path, const Tensor& probabilities);

  std::vector<AttentionMap> maps_;
  std::vector<Handle> handles_;
};

// Returns the attention rollout (Abnar and Zuidema 2020), [B, queries, keys]: the share of each key of the first layer
// in each query of the last layer. The rollout is the product over layers of (A + I) / 2, where A is the mean of the
// probabilities over the heads. If the last map has one query (class attention), the keys of this map are the class
// token and the keys of the other maps. In this case the class token is left out, and the other keys are scaled to sum
// to 1. Throws Error if `maps` is empty, or if the sizes of the maps do not match.
Tensor rollout(const std::vector<AttentionMap>& maps);

}  // namespace plumb::nn
