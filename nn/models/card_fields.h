// The fields of models' options in model cards: one list for each model, in the order of the card's text. A visitor
// writes or reads a field by its type.
#pragma once

#include <cmath>
#include <concepts>
#include <optional>
#include <string>

#include "core/enum_names.h"
#include "nn/blocks/stack.h"
#include "nn/layers/attention.h"

namespace plumb::nn {

struct ViTOptions;
struct CaiTOptions;
struct DetrOptions;

// The GELU form and the attention scale of all models with model cards.
inline constexpr const char *gelu_form = "erf", *attention_scale = "head_dim^-1/2";

template <class T, class Options>
concept OptionsOf = std::same_as<std::remove_const_t<T>, Options>;

// Calls `visit` for each field of the options with its key: visit.size() for sizes, which are at least 1, visit.ratio()
// for numbers that are written as integers if they are whole, as in all versions, visit.fixed() for texts that are the
// same for all models, and visit() for all other fields. The fields of training (drops of attention, recipe, seed) are
// not in a card.
template <class Options, class Visitor>
void classifier_fields(Visitor& visit, Options& o) {
  visit.size("image", o.image);
  visit.size("channels", o.channels);
  visit.size("patch", o.patch);
  visit.size("classes", o.classes);
  visit.size("dim", o.dim);
  visit.size("depth", o.depth);
  visit.size("heads", o.heads);
  visit.ratio("mlp_ratio", o.mlp_ratio);
  visit("norm_eps", o.norm_eps);
  visit("gate", o.method);
  visit.fixed("gelu", gelu_form);
  visit.fixed("attention_scale", attention_scale);
}
template <OptionsOf<ViTOptions> Options, class Visitor>
void fields(Visitor& visit, Options& o) {
  visit.kind("vit");
  classifier_fields(visit, o);
  visit("pool", o.pool);
  visit("token_block", o.token_block);
  visit("drop_path", o.drop_path);
}
template <OptionsOf<CaiTOptions> Options, class Visitor>
void fields(Visitor& visit, Options& o) {
  visit.kind("cait");
  classifier_fields(visit, o);
  visit("depth_token_only", o.depth_token_only);
  visit("talking_heads", o.head_mix);
  visit("drop_path", o.drop_path);
  visit("init", o.init);
}
template <OptionsOf<DetrOptions> Options, class Visitor>
void fields(Visitor& visit, Options& o) {
  visit.kind("detr");
  visit.size("channels", o.channels);
  visit.size("classes", o.classes);
  visit.size("backbone", o.backbone);
  visit.size("dim", o.dim);
  visit.size("heads", o.heads);
  visit.size("encoder", o.encoder);
  visit.size("decoder", o.decoder);
  visit.size("hidden", o.hidden);
  visit.size("queries", o.queries);
  visit("gate", o.method);
}

// The visitor that writes fields to a JSON object. Json is nlohmann::ordered_json, whose header no header of Plumb
// includes.
template <class Json>
struct CardWriter {
  Json json = {};

  void kind(const char* model) { json["model"] = model; }
  void size(const char* key, const auto& value) { json[key] = value; }
  void ratio(const char* key, double x) {
    const bool whole = x == std::floor(x) && std::abs(x) < 0x1p53;
    json[key] = whole ? Json(static_cast<std::int64_t>(x)) : Json(x);
  }
  void fixed(const char* key, const char* text) { json[key] = text; }
  void operator()(const char* key, const auto& value) { json[key] = value; }
  void operator()(const char* key, const NamedEnum auto& value) { json[key] = enum_name(value); }
  void operator()(const char* key, const MethodChoice& method) { json[key] = method->text(); }
  void operator()(const char* key, const HeadMix& mix) { json[key] = mix != HeadMix::none; }
  void operator()(const char* key, const std::optional<double>& value) {
    if (value) json[key] = *value;
  }
  void operator()(const char* key, const DropPathOptions& drop) {  // DropPathForm::rescaled has no effect in evaluation
    if (drop.form == DropPathForm::original && drop.rate > 0)
      json[key] = {{"rate", drop.rate}, {"schedule", enum_name(drop.schedule)}, {"form", enum_name(drop.form)}};
  }
  std::string text() const { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }
};

// Returns the fields of options as a JSON object: Module::card() of a model with these options.
template <class Json, class Options>
std::string card_text(const Options& options) {
  CardWriter<Json> writer;
  fields(writer, options);
  return writer.text();
}

}  // namespace plumb::nn
