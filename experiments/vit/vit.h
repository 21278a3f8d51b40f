// The study of bin/vit. cait.cpp has the parts about a CaiT: its options, and the published presets with the source of
// each constant.
#pragma once

#include <string>
#include <vector>

#include "experiments/vision/programs/pretrained_weights.h"
#include "experiments/vision/study.h"
#include "nn/gates/method_text.h"
#include "nn/models/cait.h"

namespace plumb::vision {

// The members that are not functions are the values of the options. The model of the network is network().model.
struct VitStudy : Study {
  VitStudy();
  void train(Trial& trial);

  bool is_cait() { return network().model == NetworkModel::cait; }
  // Whether the residual method is LayerScale.
  bool has_layerscale() const { return nn::method_text(gate).name == "layerscale"; }
  // Throws UsageError if the user gives an option or a preset of the other model.
  void check_model();
  // Takes the sizes and the residual method of the network from the file of --weights, and for values that the file
  // lacks those of the command line. If the method in the file is pre and --gate is layerscale, a network that is
  // trained further gets LayerScale.
  void take_sizes();
  // Declares the options of a CaiT, the presets of all published CaiTs, and the listings of these presets. With --model
  // cait, the defaults of all options are those of the preset cait-paper-xxs24.
  void declare_cait();
  // Sets the values that the published recipe computes from the size of the network and the length of the training.
  void derive_cait();

  std::string gate = "pre";
  std::int64_t depth = 12, depth_token_only = 2;
  double init = 1e-4, mlp_ratio = 4, norm_eps = 1e-6;
  nn::HeadMix talking_heads = nn::HeadMix::cait;
  bool init_is_of_gate = false, checkpoint = false;
  std::vector<std::string> compared;  // the two presets of --preset-diff
  PretrainedWeights weights;
};

}  // namespace plumb::vision
