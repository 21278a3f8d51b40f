#include "experiments/lab/record/model_facts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;

std::string json_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string model_facts(const nn::Module& model) {
  const std::string card = model.card();
  Json facts = card.empty() ? Json{{"model", *model.path()}} : Json::parse(card);
  facts["parameters"] = model.parameter_count();
  return json_text(facts);
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
