// Functions that the source files of pretrained.h share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nn/io/pretrained.h"

namespace plumb::nn {

// The key of Plumb's model card in the metadata of a file.
inline constexpr const char* metadata_key = "plumb";
// The GELU form and the attention scale of all models with model cards.
inline constexpr const char *gelu_form = "erf", *attention_scale = "head_dim^-1/2";

// Return the method and the number of heads of the model that a card describes.
const Method& method_of(const ModelCard& card);
std::int64_t heads_of(const ModelCard& card);
// Returns the end of an error about a method that is not in the table. For a CaiT, this text names a custom attention
// as another possible cause.
const char* or_attention(const ModelCard& card);

// Returns the card from `text`, the metadata of a file. `supplied` is the argument `method` of card_of(). Errors about
// the whole metadata begin with `path`; errors about single values do not.
ModelCard card_from(const std::string& text, const std::string& supplied, const std::string& path);
// Returns the card of weights with timm's names, derived from names and shapes.
ModelCard card_of_timm(const NamedTensors& tensors, const std::string& path, std::optional<std::int64_t> heads);

// Returns the largest difference between the logits of two networks with the same weights, relative to the largest
// logit. The networks have a small width and read small images. Returns no value if the networks have different
// parameters. Parameters that only `b` has must be in `added`, under Plumb's names, and get their values from `added`.
// Throws Error if a logit is finite in neither network.
std::optional<double> logit_difference(const ModelCard& a, const ModelCard& b, const NamedTensors& added = {});

// Returns the largest difference between the outputs of two networks with the same weights, relative to the largest
// output. The networks must be in evaluation mode. The function moves the weights of `first` away from their initial
// values, copies them to `second`, and compares at several training steps if a gate counts steps. `added` and the
// result are as for logit_difference(). Throws Error if an output is finite in neither network.
std::optional<double> output_difference(const Layer& first, const Layer& second, const Tensor& images,
                                        const NamedTensors& added = {});

// A parameter of a gate that the file lacks.
struct NewGate {
  std::string name;  // the parameter's name in the naming scheme of the file
  Parameter parameter;
  Tensor start = {};  // the parameter's value after loading
};

// The result of compare_functions(): whether the functions are the same (no value means not known), and reasons unless
// the functions are the same.
struct FunctionComparison {
  std::optional<bool> same;
  std::vector<std::string> reasons;
};
// Compares the function of a model that `here` describes, after loading, with the function of the file's network. Head
// and positions are not compared.
FunctionComparison compare_functions(const ModelCard& here, const TensorFile& file, const std::string& path,
                                     const std::vector<NewGate>& new_gates, const std::string& method);

}  // namespace plumb::nn
