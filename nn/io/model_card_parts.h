// Functions that the source files of pretrained.h share.
#pragma once

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "nn/io/pretrained.h"

namespace plumb::nn {

// The key of Plumb's model card in the metadata of a file.
inline constexpr const char* metadata_key = "plumb";

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

// The visitor of fields() that reads a card from a JSON object. The functions throw Error and the exceptions of Json.
template <class Json>
class CardReader {
 public:
  // `gate_from` makes a gate from its text. `object` is "it" or "PATH: its metadata", for the message of finish().
  CardReader(Json json, std::string object, std::function<MethodChoice(const std::string&)> method_from)
      : json_(std::move(json)), object_(std::move(object)), method_from_(std::move(method_from)) {}

  void kind(const char* model) {
    const std::string given = take("model");
    check(given == model, "expected a model {}, got {}", model, given);
  }
  void size(const char* key, std::int64_t& value) { value = size_from(take(key), key); }
  void size(const char* key, std::vector<std::int64_t>& values) {
    values.clear();
    for (const Json& value : take(key).template get<std::vector<Json>>()) values.push_back(size_from(value, key));
  }
  void ratio(const char* key, double& value) { value = take(key); }
  // Older versions did not write these texts, and supported only the present ones.
  void fixed(const char* key, const std::string& ours) {
    const std::string given = json_.contains(key) ? take(key).template get<std::string>() : ours;
    check(given == ours, "expected {} {}, got {}", key, ours, given);
  }
  template <class T>
  void operator()(const char* key, T& value) {
    value = take(key).template get<T>();
  }
  template <NamedEnum E>
  void operator()(const char* key, E& value) {
    const std::string given = take(key);
    const std::vector<E> all = enum_values<E>();
    const auto found = std::ranges::find(all, given, [](E e) { return std::string(enum_name(e)); });
    check(found != all.end(), "expected a {} {}, got {}", key, fmt::join(names_of(E()), " or "), given);
    value = *found;
  }
  void operator()(const char* key, std::int64_t& value) { value = whole_number(take(key), key); }
  void operator()(const char* key, MethodChoice& value) { value = method_from_(take(key)); }
  void operator()(const char* key, HeadMix& value) {
    value = take(key).template get<bool>() ? HeadMix::cait : HeadMix::none;
  }
  void operator()(const char* key, std::optional<double>& value) {
    if (json_.contains(key)) value = take(key).template get<double>();
  }
  void operator()(const char* key, DropPathOptions& value) {
    if (!json_.contains(key)) return;
    CardReader inside(take(key), object_, nullptr);
    inside("rate", value.rate);
    value.schedule = enum_named<Schedule>("schedule", inside.take("schedule"));
    value.form = enum_named<DropPathForm>("drop_path", inside.take("form"));
    inside.finish();
  }

  // Throws Error if the object has further keys.
  void finish() const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : json_.items())
      keys.push_back(Json(key).dump(-1, ' ', false, Json::error_handler_t::replace));
    check(
        keys.empty(),
        "{} has keys that this version does not know and that may decide what the network computes: {}; read the file "
        "with the version that wrote it, or a later one",
        object_, fmt::join(keys, ", "));
  }

 private:
  Json take(const char* key) {
    Json value = json_.at(key);
    json_.erase(key);
    return value;
  }
  static std::int64_t size_from(const Json& value, const char* key) {
    const std::int64_t size = whole_number(value, key);
    check(0 < size && size <= largest_in_card, "expected sizes from 1 to {}, got {}", largest_in_card, size);
    return size;
  }

  Json json_;
  std::string object_;
  std::function<MethodChoice(const std::string&)> method_from_;
};

// The fields of a card about the data, after those of the options.
template <class Card, class Visitor>
void data_fields(Visitor& visit, Card& card) {
  visit("mean", card.mean);
  visit("std", card.std);
  visit("class_names", card.class_names);
}
// Throws Error for values of these fields that do not fit a model with these numbers of channels and classes.
void check_data(const std::vector<double>& mean, const std::vector<double>& std,
                const std::vector<std::string>& class_names, std::int64_t channels, std::int64_t classes);

// Throws Error unless `tensors` has a tensor of this name with as many elements as the product of `extents`, which are
// above 0. The message begins with `what`.
void check_holds(const NamedTensors& tensors, const std::string& name, std::initializer_list<std::int64_t> extents,
                 const std::string& what = "");
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
// `adaptation` does not give the property, the functions never count as the same.
FunctionComparison compare_functions(const ModelCard& here, const TensorFile& file, const std::string& path,
                                     const std::vector<NewGate>& new_gates, const Adaptation& adaptation);

}  // namespace plumb::nn
