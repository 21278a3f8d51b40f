// A module's parameters in a safetensors file, under our names or those of another library.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "nn/module.h"
#include "nn/named_tensors.h"

namespace plumb::nn {

// One rule of a key map. `ours` and `theirs` are full names in which each * stands for one segment, the same on both
// sides: "blocks.*.gate1.gamma" <-> "blocks.*.ls1.gamma". `shape`, if there, gives their shape for ours (the same
// elements, in the same order).
struct KeyRule {
  std::string ours, theirs;
  std::function<Shape(const Shape& ours)> shape = nullptr;
};
// The first rule that matches counts; a name that none matches is the same on both sides.
using KeyMap = std::vector<KeyRule>;

// The name of one of our parameters on the other side.
std::string name_under(const KeyMap& map, const std::string& ours);

// timm's VisionTransformer, pre-norm or with LayerScale. The patch projection [dim, C p p] is a convolution's [dim, C,
// p, p] there. Both throw unless C is above 0.
KeyMap timm_vit(std::int64_t channels = 3);
// timm's Cait (and the official one, whose names it keeps).
KeyMap timm_cait(std::int64_t channels = 3);

// The module's parameters under the names and shapes that the map gives them, sharing their buffers: saved, they are
// the weights; assigned to, they change the module. Throws if two parameters get one name, or a rule has not as many *
// on both sides.
NamedTensors weights(const Module& module, const KeyMap& map = {});

// Throws as write_safetensors does.
void save_weights(const Module& module, const std::filesystem::path& path, const KeyMap& map = {},
                  const std::map<std::string, std::string>& metadata = {});

// Throws as read_safetensors and assign do (names are the file's); the module is unchanged then. Values are cast
// between f32 and f64.
Leftovers load_weights(Module& module, const std::filesystem::path& path, const KeyMap& map = {},
                       Strictness strictness = {});

}  // namespace plumb::nn
