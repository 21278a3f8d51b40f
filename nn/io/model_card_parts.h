// What the sources of pretrained.h share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nn/io/pretrained.h"

namespace plumb::nn {

inline constexpr const char* metadata_key = "plumb";
// The only ones that these models have.
inline constexpr const char *gelu_form = "erf", *attention_scale = "head_dim^-1/2";

const Method& method_of(const ModelCard& card);
std::int64_t heads_of(const ModelCard& card);
// The end of an error on a method that the table does not have: an attention of one's own is another possible cause.
const char* or_attention(const ModelCard& card);

// The card that a file's metadata holds, as text. `supplied`: card_of()'s `method`. Errors of the metadata begin with
// `path`; those of single values do not.
ModelCard card_from(const std::string& text, const std::string& supplied, const std::string& path);
// The card of weights with timm's names, from their shapes.
ModelCard card_of_timm(const NamedTensors& tensors, const std::string& path, std::optional<std::int64_t> heads);

// Largest difference of the logits of two networks with the same weights, to the largest logit, on small images and at
// a small width. If they do not have the same parameters, there is no value. The parameters of `b` alone must be among
// `added`, by our names, and have these values. Throws if a logit is finite in neither network.
std::optional<double> logit_difference(const ModelCard& a, const ModelCard& b, const NamedTensors& added = {});

// A gate's parameter that the file does not have.
struct NewGate {
  std::string name;  // in the file
  Parameter parameter;
  Tensor start = {};  // its value after loading
};

struct FunctionComparison {
  std::optional<bool> same;
  std::vector<std::string> reasons;
};
// Whether a model that `here` describes, once loaded, computes what the file's network computed, except for its head
// and its positions.
FunctionComparison compare_functions(const ModelCard& here, const TensorFile& file, const std::string& path,
                                     const std::vector<NewGate>& new_gates, const std::string& method);

}  // namespace plumb::nn
