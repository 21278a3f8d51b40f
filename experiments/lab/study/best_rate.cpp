#include "experiments/lab/study/best_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace plumb::lab {

void declare_best_lr(StudyDeclaration& study) {
  const AxisData* rates = study.axis("lr");
  if (study.next || !rates || !rates->values_of<double>()) return;
  study.cli.section("Axes");
  study.cli
      .option("--best-lr", &study.best_lr,
              fmt::format("The smallest third of the seeds (at least one) chooses a learning rate of {} for each "
                          "combination of the other axes; the other seeds train at that rate and are judged",
                          rates->option))
      .scope(Scope::study);
  study.cli.rule([&study, rates] {
    usage_check(!study.best_lr || rates->values_of<double>()->size() > 1,
                "--best-lr chooses among learning rates: give several, such as {} 1e-3,3e-3", rates->option);
  });
}

const std::vector<double>& rates_to_choose_from(const StudyDeclaration& study) {
  return *study.axis("lr")->values_of<double>();
}

std::vector<Point> next_rates(const StudyDeclaration& study, const Search& search) {
  const std::set<std::int64_t> choosing = choosing_seeds(study.options.seeds);
  const std::vector<double>& rates = rates_to_choose_from(study);
  std::vector<Point> points;
  if (search.round == 0) {
    for (const double rate : rates)
      for (const std::int64_t seed : choosing) points.push_back({{"lr", rate}, {"seed", seed}});
  } else if (search.round == 1) {
    std::map<double, Outcomes> by_rate;
    bool measured = false;
    for (const Record* r : search.so_far) {
      const double outcome = by_rate[r->point.get<double>("lr")].emplace_back(r->outcome("train_loss"));
      measured = measured || !std::isnan(outcome);
    }
    check(measured,
          "--best-lr chooses by train_loss, which no trial of {} measured: call Trial::train, or Trial::measure in the "
          "loop of the study",
          search.point.label());
    for (const std::int64_t seed : study.options.seeds)
      if (!choosing.contains(seed)) points.push_back({{"lr", best_rate(by_rate)}, {"seed", seed}});
  }
  return points;
}

std::vector<Point> trials_to_follow(const StudyDeclaration& study, const std::vector<Point>& named) {
  std::vector<Point> points;
  if (!study.best_lr) return points;
  const std::set<std::int64_t> choosing = choosing_seeds(study.options.seeds);
  const double lowest = std::ranges::min(rates_to_choose_from(study));
  for (Point point : named) {
    if (point.get<double>("lr") != lowest || point.get<std::int64_t>("seed") != *choosing.begin()) continue;
    for (const std::int64_t seed : study.options.seeds) {
      if (choosing.contains(seed)) continue;
      point.set("seed", seed);
      points.push_back(point);
    }
  }
  return points;
}

std::vector<Record> at_own_rates(const StudyResults& r) {
  std::vector<Record> records;
  for (const Record& record : r.records)
    if (!r.judging.choosing.contains(record.seed()))
      records.push_back({.point = record.point.without("lr"),
                         .status = record.status,
                         .steps = record.steps,
                         .seconds = record.seconds,
                         .values = record.values});
  return records;
}

std::vector<Record> that_chose(const StudyResults& r) {
  std::vector<Record> records;
  for (const Record& record : r.records)
    if (r.judging.choosing.contains(record.seed())) records.push_back(record);
  return records;
}

}  // namespace plumb::lab
