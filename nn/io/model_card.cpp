// Makes model cards from models, writes model cards as JSON and as metadata, and makes models from model cards.
#include <cmath>
#include <exception>
#include <nlohmann/json.hpp>

#include "nn/io/model_card_parts.h"

namespace plumb::nn {
namespace {

using Json = nlohmann::ordered_json;

// Writes a whole number as an integer. Older versions supported only integer MLP ratios, and wrote and read integers.
Json number_of(double x) {
  return x == std::floor(x) && std::abs(x) < 0x1p53 ? Json(static_cast<std::int64_t>(x)) : Json(x);
}

// Returns the sizes, and everything else that decides the function of the network.
Json fields_of(const ModelCard& card) {
  Json json = std::visit(
      [](const auto& o) -> Json {
        return {{"model", ""},
                {"image", o.image},
                {"channels", o.channels},
                {"patch", o.patch},
                {"classes", o.classes},
                {"dim", o.dim},
                {"depth", o.depth},
                {"heads", o.heads},
                {"mlp_ratio", number_of(o.mlp_ratio)},
                {"norm_eps", o.norm_eps},
                {"gate", o.gate->text()},
                {"gelu", gelu_form},
                {"attention_scale", attention_scale}};
      },
      card.options);
  if (const auto* vit = std::get_if<ViTOptions>(&card.options)) {
    json["model"] = "vit";
    json["pool"] = vit->pool == Pool::token ? "token" : "mean";
    json["token_block"] = vit->token_block;
  } else {
    const auto& cait = std::get<CaiTOptions>(card.options);
    json["model"] = "cait";
    json["depth_token_only"] = cait.depth_token_only;
    json["talking_heads"] = cait.head_mix != HeadMix::none;
  }
  std::visit(
      [&](const auto& o) {  // DropPathForm::rescaled has no effect in evaluation
        if (o.drop_path.form == DropPathForm::original && o.drop_path.rate > 0)
          json["drop_path"] = {
              {"rate", o.drop_path.rate}, {"schedule", name(o.drop_path.schedule)}, {"form", name(o.drop_path.form)}};
      },
      card.options);
  return json;
}

}  // namespace

std::int64_t ModelCard::image() const {
  return std::visit([](const auto& o) { return o.image; }, options);
}
std::int64_t ModelCard::patch() const {
  return std::visit([](const auto& o) { return o.patch; }, options);
}
std::int64_t ModelCard::channels() const {
  return std::visit([](const auto& o) { return o.channels; }, options);
}
std::int64_t ModelCard::classes() const {
  return std::visit([](const auto& o) { return o.classes; }, options);
}

const Method& method_of(const ModelCard& card) {
  return std::visit([](const auto& o) -> const Method& { return *o.gate; }, card.options);
}

std::int64_t heads_of(const ModelCard& card) {
  return std::visit([](const auto& o) { return o.heads; }, card.options);
}

std::optional<ModelCard> card_of(const Module& model) {
  if (const auto* vit = dynamic_cast<const ViT*>(&model)) return ModelCard{.options = vit->options()};
  if (const auto* cait = dynamic_cast<const CaiT*>(&model)) return ModelCard{.options = cait->options()};
  return std::nullopt;
}

std::string json_of(const ModelCard& card) {
  Json json = fields_of(card);
  if (const auto* cait = std::get_if<CaiTOptions>(&card.options); cait && cait->init) json["init"] = *cait->init;
  json["mean"] = card.mean, json["std"] = card.std, json["class_names"] = card.class_names;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::map<std::string, std::string> metadata_of(const ModelCard& card) {
  const std::string text = json_of(card), gate = method_of(card).label();
  const char* const remedy =
      "register the method under a new name with its constants declared (nn::register_method, "
      "Method::constants), also in programs that read the file, or save the weights without a card "
      "(nn::metadata_without_card)";
  std::optional<double> gap;
  try {
    gap = logit_difference(card, card_from(text, "", "metadata"));
  } catch (const std::exception& e) {
    throw Error(
        fmt::format("[metadata_of] expected a model that a card can describe, got one with the method \"{}\": {}; {}",
                    gate, e.what(), remedy));
  }
  check(gap == 0.0,
        "[metadata_of] expected a model that a card can describe, got one that reads back as another network: its "
        "method \"{}\" differs from the method of this name in the table; {}",
        gate, remedy);
  return {{metadata_key, text}};
}

bool has_card(const TensorFile& file) { return file.metadata.contains(metadata_key); }

std::map<std::string, std::string> metadata_without_card(const std::string& reason) {
  return {{metadata_key, Json{{"no_card", reason}}.dump(-1, ' ', false, Json::error_handler_t::replace)}};
}

std::unique_ptr<Classifier> make_model(const ModelCard& card) {
  if (const auto* vit = std::get_if<ViTOptions>(&card.options)) return std::make_unique<ViT>(*vit);
  return std::make_unique<CaiT>(std::get<CaiTOptions>(card.options));
}

}  // namespace plumb::nn
