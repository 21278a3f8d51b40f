// Saves and loads the parameters of a module as a safetensors file, with Plumb's names or the names of another library.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "nn/io/named_tensors.h"
#include "nn/module.h"

namespace plumb::nn {

// One rule of a key map: `ours` is a full name in Plumb, `theirs` the full name in the other library. Each * stands for
// one segment, which is the same in both names: "blocks.*.gate1.gamma" <-> "blocks.*.ls1.gamma". If `shape` is set, it
// maps the shape in Plumb to the shape in the other library; the elements and their order do not change.
struct KeyRule {
  std::string ours, theirs;
  std::function<Shape(const Shape& ours)> shape = nullptr;
};
// Rules that translate between Plumb's names and the names of another library. The first rule that matches applies. If
// no rule matches a name, the name is the same in both libraries.
using KeyMap = std::vector<KeyRule>;

// Returns the other library's name of a parameter whose name in Plumb is `ours`.
std::string name_under(const KeyMap& map, const std::string& ours);

// Returns the key map of timm's VisionTransformer, with pre-norm or LayerScale. Plumb's patch projection [dim, C p p]
// is the weight [dim, C, p, p] of a convolution in timm, where C is `channels`. timm_vit() and timm_cait() throw Error
// for fewer than one channel.
KeyMap timm_vit(std::int64_t channels = 3);
// Returns the key map of timm's Cait. The authors' CaiT has the same names.
KeyMap timm_cait(std::int64_t channels = 3);
// Returns the key map of facebookresearch/detr. The backbone keeps Plumb's names.
KeyMap facebook_names();

// Returns the parameters of a module under the names and shapes of the map. The tensors share the buffers of the
// parameters, so a change of the tensors changes the module. Throws Error if two parameters get the same name, or if
// the names of a rule have different numbers of *.
NamedTensors weights(const Module& module, const KeyMap& map = {});

// Writes weights(module, map) to a file. Throws the errors of write_safetensors().
void save_weights(const Module& module, const std::filesystem::path& path, const KeyMap& map = {},
                  const std::map<std::string, std::string>& metadata = {});

// Reads a file into a module, with a cast between f32 and f64 if necessary, and returns the names that are only in the
// module or only in the file. Tensors that read_safetensors() skips count as only in the file, and are accepted, unless
// the module has a parameter of that name. Throws the errors of read_safetensors() and assign(), with names as in the
// file. After an exception, the module is unchanged.
Leftovers load_weights(Module& module, const std::filesystem::path& path, const KeyMap& map = {},
                       Strictness strictness = {});

}  // namespace plumb::nn
