// Functions that the source files of pretrained.h share.
#pragma once

#include <initializer_list>
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

// The limits of every size in a card, and of the elements of a network's parameters for each element in its file.
inline constexpr std::int64_t largest_in_card = 1 << 20, most_parameters_per_element = 16;

// Returns an integer of a card. Throws Error with `key` for any other value. Json is nlohmann::ordered_json, whose
// header no header of Plumb includes.
template <class Json>
std::int64_t whole_number(const Json& value, const char* key) {
  check(value.is_number_integer(), "expected a whole number as {}, got {}", key,
        value.dump(-1, ' ', false, Json::error_handler_t::replace));
  return value.template get<std::int64_t>();
}
// Throws Error unless `tensors` has a tensor of this name with as many elements as the product of `extents`, which are
// above 0. The message begins with `what`.
void check_holds(const NamedTensors& tensors, const std::string& name, std::initializer_list<std::int64_t> extents,
                 const std::string& what = "");
// Throws Error if a name has a control character.
void check_names(const std::vector<std::string>& class_names);
// Throws Error if a network with this number of parameters is far larger than the file. The message begins with `what`.
void check_parameters(std::int64_t parameters, const NamedTensors& tensors, const std::string& what = "");
// Makes a small network for images of 2 x 2 patches, with at most `head` channels per head. The depth, the number of
// heads and all options that decide the function are those of the card. The network is in evaluation mode.
std::unique_ptr<Classifier> small_model(ModelCard card, std::int64_t head);

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
// and positions are not compared. If a file without a card does not state a property that decides the function, and
// `adaptation.given` does not name the property, the functions never count as the same.
FunctionComparison compare_functions(const ModelCard& here, const TensorFile& file, const std::string& path,
                                     const std::vector<NewGate>& new_gates, const Adaptation& adaptation);

}  // namespace plumb::nn
