#include "nn/io/detr_card.h"

#include <cmath>
#include <exception>
#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "autograd/autograd.h"
#include "nn/io/model_card_parts.h"

namespace plumb::nn {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t largest = 1 << 20;

Json fields_of(const DetrOptions& o) {
  return {{"model", "detr"},    {"channels", o.channels}, {"classes", o.classes},  {"backbone", o.backbone},
          {"dim", o.dim},       {"heads", o.heads},       {"encoder", o.encoder},  {"decoder", o.decoder},
          {"hidden", o.hidden}, {"queries", o.queries},   {"gate", o.gate->text()}};
}

DetrCard card_from_json(Json json) {
  const auto take = [&](const char* key) {
    Json value = json.at(key);
    json.erase(key);
    return value;
  };
  DetrCard card;
  DetrOptions& o = card.options;
  const std::string model = take("model");
  check(model == "detr", "expected a model detr, got {}", model);
  o.channels = take("channels"), o.classes = take("classes"), o.dim = take("dim"), o.heads = take("heads");
  o.encoder = take("encoder"), o.decoder = take("decoder"), o.hidden = take("hidden"), o.queries = take("queries");
  o.backbone = take("backbone").get<std::vector<std::int64_t>>();
  o.gate = GateChoice(take("gate").get<std::string>());
  card.mean = take("mean").get<std::vector<double>>(), card.std = take("std").get<std::vector<double>>();
  card.class_names = take("class_names").get<std::vector<std::string>>();
  card.image_side = take("image_side"), card.largest_image = take("largest_image");
  check(json.empty(),
        "it has keys that this version does not know and that may decide what the network computes, such as \"{}\"; "
        "read the file with the version that wrote it, or a later one",
        json.empty() ? "" : json.begin().key());

  std::vector<std::int64_t> sizes{o.channels, o.classes, o.dim, o.heads, o.encoder, o.decoder, o.hidden, o.queries};
  sizes.insert(sizes.end(), o.backbone.begin(), o.backbone.end());
  for (const std::int64_t size : sizes)
    check(0 < size && size <= largest, "expected sizes from 1 to {}, got {}", largest, size);
  check(!o.backbone.empty() && o.backbone.size() <= 16, "expected 1 to 16 convolutions, got {}", o.backbone.size());
  check(o.dim % o.heads == 0, "expected a width of whole heads, got {}/{}", o.dim, o.heads);
  for (const std::int64_t side : {card.image_side, card.largest_image})
    check(0 <= side && side <= largest, "expected sides of images from 0 to {}, got {}", largest, side);
  for (const auto* values : {&card.mean, &card.std})
    check(values->empty() || std::ssize(*values) == o.channels, "expected numbers for each of {} channels, got {}",
          o.channels, values->size());
  check(card.mean.empty() == card.std.empty(), "expected both a mean and a standard deviation, or neither");
  for (const double m : card.mean) check(std::isfinite(m), "expected finite means, got {}", m);
  for (const double s : card.std) check(std::isfinite(s) && s > 0, "expected standard deviations above 0, got {}", s);
  check(card.class_names.empty() || std::ssize(card.class_names) == o.classes, "expected names of {} classes, got {}",
        o.classes, card.class_names.size());
  return card;
}

// The names of the parameters in a file: those of facebookresearch/detr, or Plumb's.
KeyMap names_in(const NamedTensors& tensors) {
  return tensors.contains("query_embed") ? KeyMap() : Detr::facebook_names();
}

// Checks that a file has weights of the sizes in the card, before a network of these sizes is made.
void check_fits(const DetrOptions& o, const NamedTensors& tensors) {
  const KeyMap names = names_in(tensors);
  const auto has = [&](const std::string& ours, std::int64_t elements) {
    const std::string name = name_under(names, ours);
    const auto found = tensors.find(name);
    check(found != tensors.end() && found->second.numel() == elements, "expected \"{}\" with {} elements, got {}", name,
          elements, found == tensors.end() ? "none" : to_string(found->second.shape()));
  };
  std::int64_t in = o.channels;
  for (std::size_t i = 0; i < o.backbone.size(); ++i) {
    has(fmt::format("backbone.conv.{}.weight", i), o.backbone[i] * in * 9);
    in = o.backbone[i];
  }
  has("query_embed", o.queries * o.dim);
  has("class_embed.weight", (o.classes + 1) * o.dim);
  for (const auto& [stack, blocks] : {std::pair("encoder", o.encoder), std::pair("decoder", o.decoder)})
    has(fmt::format("{}.blocks.{}.mlp.fc1.weight", stack, blocks - 1), o.hidden * o.dim);
}

}  // namespace

std::string json_of(const DetrCard& card) {
  Json json = fields_of(card.options);
  json["mean"] = card.mean, json["std"] = card.std, json["class_names"] = card.class_names;
  json["image_side"] = card.image_side, json["largest_image"] = card.largest_image;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::map<std::string, std::string> metadata_of(const DetrCard& card) {
  const std::string text = json_of(card);
  const auto small = [](DetrOptions o, std::int64_t dim) {
    // A small network shows another method as well as a large one. Depths stay, because a method may depend on them.
    o.dim = dim, o.hidden = 8, o.queries = 2, o.backbone = {4};
    o.encoder_attention = o.decoder_attention = o.cross_attention = {}, o.dropout = 0;
    auto model = std::make_unique<Detr>(o);
    model->eval();
    return model;
  };
  const auto difference_at = [&](std::int64_t dim) {
    const DefaultsScope f64({.dtype = DType::f64, .device = Device::cpu});
    const auto here = small(card.options, dim), there = small(card_from_json(Json::parse(text)).options, dim);
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
        card.options.gate->label(), why);
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

LoadedDetr load_detr(const std::filesystem::path& path) {
  LoadedDetr loaded;
  NamedTensors tensors;
  {
    const DefaultsScope host({.dtype = DType::f32, .device = Device::cpu});
    TensorFile file = read_safetensors(path);
    loaded.card = detr_card_of(file, path.string());
    tensors = std::move(file.tensors);
  }
  try {
    loaded.model = std::make_unique<Detr>(loaded.card.options);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: cannot be read as a Detr: {}", path.string(), e.what()));
  }
  load_weights(*loaded.model, path, names_in(tensors));
  loaded.model->eval();
  return loaded;
}

}  // namespace plumb::nn
