#include "nn/io/detr_card.h"

#include <exception>
#include <nlohmann/json.hpp>

#include "autograd/ops.h"
#include "core/json_text.h"
#include "nn/io/model_card_parts.h"
#include "nn/io/weights.h"
#include "nn/models/card_fields.h"

namespace plumb::nn {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t largest_side = 4096;  // the limit of the side to which images are resized, in pixels

template <class Card, class Visitor>
void card_fields(Visitor& visit, Card& card) {
  fields(visit, card.options);
  data_fields(visit, card);
  visit("image_side", card.image_side);
  visit("largest_image", card.largest_image);
}

DetrCard card_from_json(const Json& json) {
  DetrCard card;
  CardReader<Json> reader(json, "it", [](const std::string& method) { return MethodChoice(method); });
  card_fields(reader, card);
  reader.finish();
  const DetrOptions& o = card.options;
  check(!o.backbone.empty() && o.backbone.size() <= 16, "expected 1 to 16 convolutions, got {}", o.backbone.size());
  check(o.dim % o.heads == 0, "expected a width of whole heads, got {}/{}", o.dim, o.heads);
  for (const auto& [side, most] : {std::pair(card.image_side, largest_side), {card.largest_image, largest_in_card}})
    check(0 <= side && side <= most, "expected sides of images from 0 to {}, got {}", most, side);
  check_data(card.mean, card.std, card.class_names, o.channels, o.classes);
  return card;
}

// The names of the parameters in a file: those of facebookresearch/detr, or Plumb's.
KeyMap names_in(const NamedTensors& tensors) { return tensors.contains("query_embed") ? KeyMap() : facebook_names(); }

// Makes a network of this width with small sizes, except for the depths and the options that decide the function.
std::unique_ptr<Detr> small_detr(DetrOptions o, std::int64_t dim) {
  o.dim = dim, o.hidden = 8, o.queries = 2, o.backbone = {4};
  o.encoder_attention = o.decoder_attention = o.cross_attention = {}, o.dropout = 0;
  auto model = std::make_unique<Detr>(o);
  model->eval();
  return model;
}

// Checks that a file has weights of the sizes in the card, and each block of the card, before a network of these sizes
// is made.
void check_fits(const DetrOptions& o, const NamedTensors& tensors) {
  const KeyMap names = names_in(tensors);
  const auto has = [&](const std::string& ours, std::initializer_list<std::int64_t> extents) {
    check_holds(tensors, name_under(names, ours), extents);
  };
  std::int64_t in = o.channels;
  for (std::size_t i = 0; i < o.backbone.size(); ++i) {
    has(fmt::format("backbone.conv.{}.weight", i), {o.backbone[i], in, 9});
    in = o.backbone[i];
  }
  has("query_embed", {o.queries, o.dim});
  has("class_embed.weight", {o.classes + 1, o.dim});
  for (const auto& [stack, blocks, attentions] : {std::tuple("encoder", o.encoder, std::vector{"attn"}),
                                                  std::tuple("decoder", o.decoder, std::vector{"attn", "cross"})})
    for (std::int64_t i = 0; i < blocks; ++i) {
      const std::string block = fmt::format("{}.blocks.{}.", stack, i);
      for (const char* attention : attentions) has(block + attention + ".qkv.weight", {3, o.dim, o.dim});
      has(block + "mlp.fc1.weight", {o.hidden, o.dim});
    }
  DetrOptions one = o;
  one.encoder = one.decoder = 1;
  const DefaultsScope host({.dtype = DType::f32, .device = Device::cpu});
  const auto parameters_at = [&](std::int64_t dim) {
    return std::max(o.encoder, o.decoder) * small_detr(one, dim)->parameter_count();
  };
  std::int64_t parameters = 0;
  try {
    parameters = parameters_at(std::min(4 * o.heads, o.dim));
  } catch (const std::exception&) {  // a custom gate may need the full width
    parameters = parameters_at(o.dim);
  }
  check_parameters(parameters, tensors);
}

}  // namespace

std::string json_of(const DetrCard& card) {
  CardWriter<Json> writer;
  card_fields(writer, card);
  return writer.text();
}

std::map<std::string, std::string> metadata_of(const DetrCard& card) {
  const std::string text = json_of(card);
  // A small network shows another method as well as a large one. Depths stay, because a method may depend on them.
  const auto difference_at = [&](std::int64_t dim) {
    const DefaultsScope f64({.dtype = DType::f64, .device = Device::cpu});
    const auto here = small_detr(card.options, dim), there = small_detr(card_from_json(Json::parse(text)).options, dim);
    return output_difference(*here, *there, random_normal({1, card.options.channels, 6, 4}, 1, "images"));
  };
  std::optional<double> gap;
  std::string why = "the method of this name in the table computes another function";
  try {
    try {
      gap = difference_at(4 * card.options.heads);
    } catch (const Error&) {
      gap = difference_at(card.options.dim);  // a custom gate may need the full width
    }
  } catch (const std::exception& e) {
    why = e.what();
  }
  check(gap == 0.0,
        "[metadata_of] expected a Detr that a card can describe, got one with the method \"{}\": {}; register the "
        "method under a new name with its constants declared (nn::register_method, Method::constants)",
        card.options.method->label(), why);
  return {{metadata_key, text}};
}

DetrCard detr_card_of(const TensorFile& file, const std::string& path) {
  const auto written = file.metadata.find(metadata_key);
  check(written != file.metadata.end(),
        "{}: expected weights with Plumb's description of a Detr (nn::metadata_of), got a file without it", path);
  try {
    const Json json = Json::parse(shallow_json(written->second, metadata_key));
    check(
        !json.contains("no_card"),
        "these weights are of a model that a card cannot describe: {}; load them with nn::load_weights in the program "
        "that makes the model",
        json.value("no_card", ""));
    DetrCard card = card_from_json(json);
    check_fits(card.options, file.tensors);
    return card;
  } catch (const Json::exception& e) {
    throw Error(fmt::format("{}: its metadata \"{}\" is not in Plumb's format: {}", path, metadata_key, e.what()));
  } catch (const Error& e) {
    throw Error(fmt::format("{}: cannot be read as a Detr: {}", path, e.what()));
  }
}

std::pair<DetrCard, std::unique_ptr<Detr>> load_detr(const std::filesystem::path& path) {
  std::pair<DetrCard, std::unique_ptr<Detr>> loaded;
  auto& [card, model] = loaded;
  NamedTensors tensors;
  {
    const DefaultsScope host({.dtype = DType::f32, .device = Device::cpu});
    TensorFile file = read_safetensors(path);
    card = detr_card_of(file, path.string());
    tensors = std::move(file.tensors);
  }
  try {
    model = std::make_unique<Detr>(card.options);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: cannot be read as a Detr: {}", path.string(), e.what()));
  }
  load_weights(*model, path, names_in(tensors));
  model->eval();
  return loaded;
}

}  // namespace plumb::nn
