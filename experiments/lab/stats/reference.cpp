#include "experiments/lab/stats/reference.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace plumb::lab {

bool is_accuracy(std::string_view value) { return value == "accuracy" || value.ends_with("_accuracy"); }

std::string describe_level(std::string_view value, double level) {
  return is_accuracy(value) ? fmt::format("{:.3g} %", 100 * level) : fmt::format("{:.4g}", level);
}

std::vector<Reference> chance_references(std::int64_t classes) {
  if (classes < 2) return {};
  const double loss = chance_loss(classes), accuracy = 1 / static_cast<double>(classes);
  std::vector<Reference> references;
  for (const char* value : {"train_loss", "val_loss"})
    references.push_back({value, loss, fmt::format("chance, ln {} = {:.3f}", classes, loss)});
  references.push_back({"val_accuracy", accuracy, fmt::format("chance, {:.3g} %", 100 * accuracy)});
  return references;
}

std::vector<Reference> references_of(const LinearModel& m) {
  return {{"train_loss", m.train_loss, linear_model_name},
          {"val_loss", m.val_loss, linear_model_name},
          {"val_accuracy", m.val_accuracy, linear_model_name}};
}

double chance_loss(std::int64_t classes) {
  return classes < 2 ? std::numeric_limits<double>::infinity() : std::log(static_cast<double>(classes));
}

}  // namespace plumb::lab
