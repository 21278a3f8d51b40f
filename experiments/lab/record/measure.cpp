#include "experiments/lab/record/measure.h"

#include <algorithm>

#include "experiments/lab/record/chance.h"

namespace plumb::lab {
namespace {

constexpr double images_resolved = 2;  // differences of fewer images of an evaluation decide nothing

}  // namespace

const Measure* find_measure(const std::vector<Measure>& measures, std::string_view name) {
  const auto found = std::ranges::find(measures, name, &Measure::name);
  return found == measures.end() ? nullptr : &*found;
}

Unit unit_of(const std::vector<Measure>& measures, std::string_view name) {
  if (const Measure* measure = find_measure(measures, name)) return measure->unit;
  return name.ends_with("accuracy") ? Unit::fraction : Unit::plain;
}

bool is_about_training(const std::vector<Measure>& measures, std::string_view name) {
  return name.ends_with("loss") || name.starts_with("steps_to") || find_measure(measures, name) ||
         unit_of(measures, name) == Unit::fraction;
}

Better better_of(const std::vector<Measure>& measures, std::string_view name) {
  if (const Measure* measure = find_measure(measures, name)) return measure->better;
  return unit_of(measures, name) == Unit::fraction ? Better::higher : Better::lower;
}

std::optional<double> equal_within(const std::vector<Measure>& measures, std::string_view name) {
  if (const Measure* measure = find_measure(measures, name); measure && measure->equal_within)
    return measure->equal_within;
  if (name.ends_with("loss")) return 0.05;
  return name.ends_with("accuracy") ? std::optional(0.01) : std::nullopt;
}

bool is_time(std::string_view name) { return name == "seconds" || name.ends_with("_per_second"); }

const Measure* score_of(const std::vector<Measure>& measures) {
  const auto found = std::ranges::find(measures, Better::higher, &Measure::better);
  return found == measures.end() ? nullptr : &*found;
}

std::vector<Measure> measures_of_classification(std::int64_t classes, std::int64_t validation_images) {
  const Chance loss = chance_of_classes(classes);
  const std::optional<double> nats = loss.known() ? std::optional(loss.loss) : std::nullopt,
                              share = loss.known() ? std::optional(1 / static_cast<double>(classes)) : std::nullopt;
  return {{.name = "train_loss", .title = "train loss", .chance = nats, .chance_text = loss.text},
          {.name = "val_loss", .title = "val loss", .chance = nats, .chance_text = loss.text},
          {.name = "val_accuracy",
           .title = "val accuracy",
           .better = Better::higher,
           .unit = Unit::fraction,
           .chance = share,
           .resolution = validation_images > 0 ? images_resolved / static_cast<double>(validation_images) : 0}};
}

}  // namespace plumb::lab
