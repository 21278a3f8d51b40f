// The settings of bin/vit that are not options of every study.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "experiments/vision/programs/pretrained_weights.h"
#include "experiments/vision/study.h"
#include "nn/gates/method_text.h"

namespace plumb::vision {

// The values of the options. The model of the network is Study::network().model.
struct VitSettings {
  std::string gate = "pre";
  std::int64_t depth = 12, depth_token_only = 2;
  double init = 1e-4, mlp_ratio = 4, norm_eps = 1e-6;
  nn::HeadMix talking_heads = nn::HeadMix::cait;
  bool init_is_of_gate = false, checkpoint = false;
  std::vector<std::string> compared;  // the two presets of --preset-diff
  PretrainedWeights weights;

  // Whether the residual method is LayerScale.
  bool has_layerscale() const { return nn::method_text(gate).name == "layerscale"; }
};

}  // namespace plumb::vision
