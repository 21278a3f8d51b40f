// Functions that the source files of pretrained.h share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nn/io/pretrained.h"

namespace plumb::nn {

// The key of Plumb's card in the metadata of a file.
inline constexpr const char* metadata_key = "plumb";
// The only GELU form and attention scale that these models have.
inline constexpr const char *gelu_form = "erf", *attention_scale = "head_dim^-1/2";

// The method and the number of heads of a card's model.
const Method& method_of(const ModelCard& card);
std::int64_t heads_of(const ModelCard& card);
// The end of an error about a method that is not in the table: for a CaiT, a custom attention is another possible
// cause.
const char* or_attention(const ModelCard& card);

// The card in a file's metadata, given as text. `supplied` is the argument `method` of card_of(). Errors of the whole
// metadata begin with `path`; errors of single values do not.
ModelCard card_from(const std::string& text, const std::string& supplied, const std::string& path);
// The card of weights with timm's names, derived from names and shapes.
ModelCard card_of_timm(const NamedTensors& tensors, const std::string& path, std::optional<std::int64_t> heads);

// The largest difference of the logits of two networks with the same weights, relative to the largest logit. It is
// computed on small images and at a small width. Returns no value if the networks have different parameters. Parameters
// that only `b` has must be in `added`, under our names, and get the values given there. Throws Error if a logit is
// finite in neither network.
std::optional<double> logit_difference(const ModelCard& a, const ModelCard& b, const NamedTensors& added = {});

// A parameter of a gate that the file lacks.
struct NewGate {
  std::string name;  // name in the file
  Parameter parameter;
  Tensor start = {};  // its value after loading
};

// The answer of compare_functions(): whether the functions are the same (no value: not known), and reasons if they are
// not or if it is not known.
struct FunctionComparison {
  std::optional<bool> same;
  std::vector<std::string> reasons;
};
// Compares the function of a model that `here` describes, after loading, with the function of the file's network. Head
// and positions are not compared.
FunctionComparison compare_functions(const ModelCard& here, const TensorFile& file, const std::string& path,
                                     const std::vector<NewGate>& new_gates, const std::string& method);

}  // namespace plumb::nn
