#include "experiments/lab/record/model_facts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nn/io/detr_card.h"
#include "nn/io/pretrained.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;

std::string json_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The facts of a card about the model. Those about the data are left out.
template <class Card>
Json facts_of(const Card& card) {
  Json facts = Json::parse(nn::json_of(card));
  for (const char* of_images : {"mean", "std", "class_names", "image_side", "largest_image"}) facts.erase(of_images);
  return facts;
}

}  // namespace

std::string model_facts(const nn::Module& model) {
  const std::optional<nn::ModelCard> card = nn::card_of(model);
  const auto* const detr = dynamic_cast<const nn::Detr*>(&model);
  Json facts = card   ? facts_of(*card)
               : detr ? facts_of(nn::DetrCard{.options = detr->options()})
                      : Json{{"model", *model.path()}};
  facts["parameters"] = model.parameter_count();
  return json_text(facts);
}

std::string model_facts(const nn::ViTOptions& options) {
  return json_text(facts_of(nn::ModelCard{.options = options}));
}

std::string describe_models(const std::vector<Record>& records) {
  constexpr std::size_t most = 4;
  std::vector<std::pair<std::string, std::vector<std::string>>> found;  // names and values, in order of appearance
  for (const Record& record : records) {
    if (record.model.empty()) continue;
    const Json facts = Json::parse(record.model);
    for (const auto& [name, value] : facts.items()) {
      auto entry = std::ranges::find(found, name, &std::pair<std::string, std::vector<std::string>>::first);
      if (entry == found.end()) entry = found.insert(found.end(), {name, {}});
      const std::string text = value.is_string() ? value.get<std::string>() : json_text(value);
      if (std::ranges::find(entry->second, text) == entry->second.end()) entry->second.push_back(text);
    }
  }
  std::vector<std::string> parts;
  for (const auto& [name, values] : found)
    parts.push_back((name == "model" ? "" : name + " ") +
                    (values.size() > most ? "varied" : fmt::format("{}", fmt::join(values, " or "))));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace plumb::lab
