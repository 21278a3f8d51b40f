// The parameters of a module in a safetensors file, under our names or those of another library.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "nn/module.h"
#include "nn/named_tensors.h"

namespace plumb::nn {

// One rule of a key map. `ours` and `theirs` are full names. Each * stands for one segment, which is the same on both
// sides: "blocks.*.gate1.gamma" <-> "blocks.*.ls1.gamma". `shape`, if set, maps our shape to theirs; the elements and
// their order do not change.
struct KeyRule {
  std::string ours, theirs;
  std::function<Shape(const Shape& ours)> shape = nullptr;
};
// Rules that translate between our names and those of another library. The first rule that matches applies. A name that
// no rule matches is the same on both sides.
using KeyMap = std::vector<KeyRule>;

// Returns the other library's name for one of our parameters.
std::string name_under(const KeyMap& map, const std::string& ours);

// The key map of timm's VisionTransformer, with pre-norm or LayerScale. Our patch projection [dim, C p p] is that of a
// convolution there, [dim, C, p, p], where C is `channels`. Both maps throw Error unless C is above 0.
KeyMap timm_vit(std::int64_t channels = 3);
// The key map of timm's Cait, and of the authors' CaiT, which has the same names.
KeyMap timm_cait(std::int64_t channels = 3);

// Returns the parameters of a module under the names and shapes of the map. The tensors share the buffers of the
// parameters, so assigning to them changes the module. Throws Error if two parameters get the same name, or if a rule
// has different numbers of * on its sides.
NamedTensors weights(const Module& module, const KeyMap& map = {});

// Writes weights(module, map) to a file. Throws Error as write_safetensors() does.
void save_weights(const Module& module, const std::filesystem::path& path, const KeyMap& map = {},
                  const std::map<std::string, std::string>& metadata = {});

// Reads a file into a module, with a cast between f32 and f64 if necessary, and returns the names that are on one side
// only. Throws Error as read_safetensors() and assign() do, with the names of the file; the module is then unchanged.
Leftovers load_weights(Module& module, const std::filesystem::path& path, const KeyMap& map = {},
                       Strictness strictness = {});

}  // namespace plumb::nn
