// Makes model cards from models, writes model cards as JSON and as metadata, and makes models from model cards.
#include <exception>
#include <nlohmann/json.hpp>

#include "nn/io/model_card_parts.h"
#include "nn/models/card_fields.h"

namespace plumb::nn {
namespace {

using Json = nlohmann::ordered_json;

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
  return std::visit([](const auto& o) -> const Method& { return *o.method; }, card.options);
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
  CardWriter<Json> writer;
  std::visit([&](const auto& o) { fields(writer, o); }, card.options);
  data_fields(writer, card);
  return writer.text();
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
