// What attention looks at, recorded while a model runs.
//
//   nn::AttentionMaps maps(model);
//   model(images);
//   const Tensor first = maps.all().front().probabilities;  // [B, heads, queries, keys]
#pragma once

#include <string>
#include <vector>

#include "nn/layers/attention.h"

namespace plumb::nn {

struct AttentionMap {
  std::string path;      // of the layer in the model
  Tensor probabilities;  // [B, heads, queries, keys], without a graph and with nothing dropped; class attention has one
                         // query
};

// Records every SelfAttention and ClassAttention of a model while it lives: the last forward pass of each, in the order
// of the passes. Each map is computed once more beside what the layer computes, so a pass takes longer.
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

// How much of each key of the first layer reaches each query of the last (Abnar and Zuidema 2020, attention rollout):
// the product over layers of (A + I) / 2, where A is the mean over the heads: [B, queries, keys]. A last map of one
// query (class attention) is over the class token and the keys of the others: its first key, the token itself, is left
// out and the rest made to sum to 1. Throws where there is no map, or two of other sizes.
Tensor rollout(const std::vector<AttentionMap>& maps);

}  // namespace plumb::nn
