// The command-line options of the networks of bin/detr.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/vision/data/lab.h"
#include "nn/gates/method.h"
#include "nn/models/detr.h"

namespace plumb::lab {
class Cli;
}

namespace plumb::vision {

// The sizes and drops of a DETR that all trials share. The defaults are those of a network for images of 64 x 64
// pixels.
struct DetrNetwork {
  std::vector<std::int64_t> backbone{16, 32, 64};
  std::int64_t dim = 64, heads = 4, encoder = 2, decoder = 2, hidden = 128, queries = 10;
  double dropout = 0, backbone_rate = 1;

  // Declares the options in the section Model.
  void declare(Cli& cli);
  // Returns the options of a network for images with three channels.
  nn::DetrOptions options(std::int64_t classes, const nn::MethodChoice& gate, std::uint64_t seed) const;
};

}  // namespace plumb::vision
