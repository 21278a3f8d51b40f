// Simulated studies in which no method is better, and studies in which one is. The tables of docs/statistics.md are the
// tables of these simulations.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/atomic_file.h"
#include "core/random.h"
#include "experiments/lab/stats/comparison.h"
#include "experiments/lab/stats/rate_choice.h"
#include "experiments/lab/study/rate_search.h"
#include "tests/support/catch.h"
#include "tests/support/not_finite.h"

using namespace plumb;
using namespace plumb::lab;

namespace {

using Generator = std::mt19937_64;
using Arms = std::vector<Arm>;

// Sanitizers make the simulations slow. With a sanitizer, the tests run fewer of them, with wider bounds and without
// the tables.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int studies = 100;
constexpr double most_wrong = 0.15, slack = 0.15;
#else
constexpr int studies = 2000;
constexpr double most_wrong = 0.07, slack = 0;  // bound of wrong families; tolerance of the floors of power
#endif
constexpr bool whole = studies >= 2000;
constexpr std::size_t methods = 8, most_seeds = 48;

double normal_draw(Generator& g) { return std::normal_distribution<double>()(g); }
double student(Generator& g, double degrees) { return std::student_t_distribution<double>(degrees)(g); }
bool one_in_five(Generator& g) { return std::bernoulli_distribution(0.2)(g); }

// A kind of study in which no method is better than another, so that each verdict of order is wrong. If `one_arm_worse`
// is set, method 1 is worse than the others, and the verdict that method 1 is worse is right. `draw` makes the trials
// of `count` methods.
struct Scenario {
  const char* name;
  std::function<Arms(Generator&, std::size_t count, std::size_t seeds)> draw;
  double deviation = std::numbers::sqrt2;  // of the difference of two trials at one seed
  bool one_arm_worse = false;
};

// A setting without a search for rates. `cost` draws the cost of one trial of a method.
template <class Cost>
Scenario noise(const char* name, Cost cost, bool one_arm_worse = false) {
  return {.name = name,
          .draw =
              [cost](Generator& g, std::size_t count, std::size_t seeds) {
                Arms arms(count, Arm{.costs = Outcomes(seeds)});
                for (std::size_t m = 0; m < count; ++m)
                  for (double& y : arms[m].costs) y = cost(g, m);
                return arms;
              },
          .one_arm_worse = one_arm_worse};
}
// The same, if the cost does not depend on the method.
template <class Cost>
Scenario equal_noise(const char* name, Cost cost) {
  return noise(name, [cost](Generator& g, std::size_t) { return cost(g); });
}

const std::vector<Scenario> noises{
    equal_noise("normal", normal_draw),
    equal_noise("Student, 3 degrees", [](Generator& g) { return student(g, 3); }),
    equal_noise("Student, 2 degrees", [](Generator& g) { return student(g, 2); }),
    equal_noise("Cauchy", [](Generator& g) { return student(g, 1); }),
    equal_noise("lognormal", [](Generator& g) { return std::exp(normal_draw(g)); }),
    noise("normal, deviation x5 in half of the arms",
          [](Generator& g, std::size_t m) { return (m % 2 == 1 ? 5 : 1) * normal_draw(g); }),
    equal_noise("bimodal: 1 in 5 at +20 deviations",
                [](Generator& g) { return normal_draw(g) + (one_in_five(g) ? 20 : 0); }),
    equal_noise("1 trial in 5 fails", [](Generator& g) { return one_in_five(g) ? test::infinity : normal_draw(g); }),
    equal_noise("ties: a grid of 0.5 deviations", [](Generator& g) { return std::round(2 * normal_draw(g)) / 2; }),
    equal_noise("ties: a grid of 1 deviation", [](Generator& g) { return std::round(normal_draw(g)); }),
    equal_noise("ties: a grid of 2 deviations", [](Generator& g) { return 2 * std::round(normal_draw(g) / 2); }),
    noise(
        "one arm is bimodal",
        [](Generator& g, std::size_t m) { return normal_draw(g) + (m == 1 && one_in_five(g) ? 20 : 0); }, true),
    noise(
        "one arm fails 1 in 5",
        [](Generator& g, std::size_t m) { return m == 1 && one_in_five(g) ? test::infinity : normal_draw(g); }, true)};

// How the cost of a trial depends on its rate. The optimum is the rate 1.
struct Landscape {
  double curvature;               // cost per squared octave from the optimum
  double of_search, of_trial;     // deviations of a trial of the search and of a judged trial
  double cliff = test::infinity;  // trials fail at rates at least this many octaves above the optimum
  double cost(double octaves, double deviation, Generator& g) const {
    return octaves >= cliff ? test::infinity : curvature * octaves * octaves + deviation * normal_draw(g);
  }
};

// Each method has a search of its own, with one seed. All searches of a study begin at the same rate.
Scenario searched(const char* name, const Landscape& landscape) {
  return {.name = name,
          .draw =
              [landscape](Generator& g, std::size_t count, std::size_t seeds) {
                const double start = rate_at(1, std::uniform_real_distribution<double>(-1, 1)(g));
                Arms arms(count);
                for (Arm& arm : arms) {
                  TriedRates tried;
                  for (std::vector<double> next; !(next = next_rates(start, tried)).empty();)
                    for (const double rate : next)
                      tried[rate] = landscape.cost(std::log2(rate), landscape.of_search, g);
                  const double chosen = std::log2(choice_among(tried, {}).rate);
                  const auto train_at = [&](double octaves) {
                    Outcomes costs(seeds);
                    for (double& y : costs) y = landscape.cost(octaves, landscape.of_trial, g);
                    return costs;
                  };
                  arm.costs = train_at(chosen);
                  for (const int step : {-2, -1, 1, 2}) arm.neighbours[step] = train_at(chosen + step / 2.0);
                  arm.at_this_rate = false;
                }
                return arms;
              },
          .deviation = std::numbers::sqrt2 * landscape.of_trial};
}

// The constants are fitted to stored studies: losses with LayerScale, losses that depend little on the rate, accuracies
// with DropKey, and losses of pre-norm without a warm-up.
const std::vector<Scenario> landscapes{
    searched("search, as for LayerScale", {.08, .05, .035}), searched("search, flat", {.04, .06, .035}),
    searched("search, accuracy", {.01, .0025, .0035}), searched("search, steep with a cliff", {.3, .05, .035, .75})};

std::vector<Scenario> all_settings() {
  std::vector<Scenario> all = noises;
  all.insert(all.end(), landscapes.begin(), landscapes.end());
  return all;
}

Arm first_seeds(const Arm& arm, std::size_t seeds) {
  const auto cut = [&](const Outcomes& all) {
    return Outcomes(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(seeds));
  };
  Arm some{.costs = cut(arm.costs), .at_this_rate = arm.at_this_rate};
  for (const auto& [step, costs] : arm.neighbours) some.neighbours[step] = cut(costs);
  return some;
}

// Judges all methods against method 0, the control, by the first `seeds` seeds.
std::vector<Difference> judge_against_control(const Arms& arms, std::size_t seeds, std::optional<double> within = {}) {
  std::vector<Contrast> family;
  for (std::size_t m = 1; m < arms.size(); ++m)
    family.push_back(
        {.first = first_seeds(arms[m], seeds), .second = first_seeds(arms[0], seeds), .equal_within = within});
  return judge_family(family);
}

bool any_wrong(const std::vector<Difference>& family, bool one_arm_worse) {
  for (std::size_t i = 0; i < family.size(); ++i)
    if (family[i].better == Side::first || (family[i].better == Side::second && !(one_arm_worse && i == 0)))
      return true;
  return false;
}

// Makes the costs of an arm higher, at all rates.
void make_worse(Arm& arm, double by) {
  for (double& y : arm.costs) y += by;
  for (auto& [step, costs] : arm.neighbours)
    for (double& y : costs) y += by;
}

std::string percent(int found) { return fmt::format("{:.1f}", 100.0 * found / studies); }

void expect_on_page(const std::string& table) {
  if (!whole) return;
  const std::string page = read_file(test::source_dir() + "/docs/statistics.md");
  INFO("expected in docs/statistics.md:\n" << table);
  CHECK(page.find(table) != std::string::npos);
}

}  // namespace

// The evidence of a comparison at a fixed set of rates never falls, so a family that is wrong after any number of seeds
// up to 48 is wrong after 48. If the median at a neighbour becomes better, a further rate counts, and a verdict can
// disappear. Therefore searched studies are judged every six seeds, and a family counts from its first wrong verdict.
TEST_CASE("in null studies at most 7 of 100 families ever have a wrong verdict", "[statistics]") {
  std::string table = "| noise | 6 seeds | 12 | 24 | 48 |\n| --- | ---: | ---: | ---: | ---: |\n";
  for (const Scenario& setting : all_settings()) {
    Generator g(1);
    std::map<std::size_t, int> wrong{{6, 0}, {12, 0}, {24, 0}, {48, 0}};
    for (int i = 0; i < studies; ++i) {
      const Arms arms = setting.draw(g, methods, most_seeds);
      bool ever = false;
      for (std::size_t seeds = 6; seeds <= most_seeds; seeds += 6) {
        if (!ever && (wrong.contains(seeds) || !arms[0].at_this_rate))
          ever = any_wrong(judge_against_control(arms, seeds), setting.one_arm_worse);
        if (wrong.contains(seeds)) wrong[seeds] += ever;
      }
    }
    table += fmt::format("| {} |", setting.name);
    for (const auto& [seeds, count] : wrong) {
      table += fmt::format(" {} |", percent(count));
      INFO(setting.name << ", " << seeds << " seeds: " << percent(count));
      CHECK(count <= most_wrong * studies);
    }
    table += "\n";
  }
  expect_on_page(table);
}

// Without the neighbouring rates, the luck of the search becomes a property of the method. This test shows that the
// simulations can find a rule that is wrong too often.
TEST_CASE("identical methods with searches of their own differ too often if no neighbouring rates count",
          "[statistics]") {
  for (const Scenario& setting : landscapes) {
    Generator g(1);
    int wrong = 0;
    for (int i = 0; i < studies; ++i) {
      Arms arms = setting.draw(g, methods, 24);
      for (Arm& arm : arms) arm.at_this_rate = true;
      wrong += any_wrong(judge_against_control(arms, 24), false);
    }
    INFO(setting.name << ": " << percent(wrong));
    if (whole) CHECK(wrong > most_wrong * studies);
  }
}

// The first method is worse by exactly the margin, so that "equal within the margin" and "not higher by the margin" are
// wrong. No neighbouring rate counts for an equality. Therefore the luck of the searches makes an equality of searched
// methods wrong more often.
TEST_CASE("at the edge of a margin at most 7 of 100 studies say equal or not higher", "[statistics]") {
  for (const Scenario& setting : all_settings()) {
    Generator g(2);
    bool searches = false;
    int equal = 0, not_higher = 0;
    for (int i = 0; i < studies; ++i) {
      Arms arms = setting.draw(g, 2, most_seeds);
      // On a grid, many differences are exactly the margin. The margins of the landscapes are 1.5 deviations.
      searches = !arms[0].at_this_rate;
      const double margin = searches ? 1.5 * setting.deviation : 2;
      make_worse(arms[1], margin);
      equal += judge_against_control(arms, most_seeds, margin)[0].equal;
      not_higher +=
          judge_family({{.first = arms[1], .second = arms[0], .margin = margin, .tie = Tie::loss}})[0].better ==
          Side::first;
    }
    INFO(setting.name << ": equal " << percent(equal) << ", not higher " << percent(not_higher));
    CHECK(equal <= (searches ? 2 : 1) * most_wrong * studies);
    CHECK(not_higher <= most_wrong * studies);
  }
}

namespace {

// A row of the table of power: method 1 is better than the others by `difference` deviations. With a difference of 0,
// the right verdict is "equal within 1.5 deviations".
struct Case {
  double difference;
  const Scenario* setting;
  std::size_t count;  // number of methods, including the control
  std::size_t seeds_of_floor = 0;
  double floor = 0;  // the least share of right verdicts with these seeds
};

}  // namespace

TEST_CASE("a difference and an equality are found at least as often as the floors say", "[statistics]") {
  const Scenario &normal = noises[0], &layerscale = landscapes[0];
  std::vector<Case> cases{{1, &normal, 2}};
  for (const Scenario& landscape : landscapes) cases.push_back({1, &landscape, 2, 42, .75});
  for (const Case& more : {Case{1, &normal, methods}, Case{2, &normal, 2}, Case{2, &normal, methods, 12, .8},
                           Case{2, &layerscale, methods}, Case{3, &normal, methods}, Case{0, &normal, 2, 24, .8},
                           Case{0, &layerscale, 2}, Case{0, &normal, methods}})
    cases.push_back(more);
  std::string table =
      "| difference | comparisons | noise | 6 seeds | 12 | 24 | 42 |\n| ---: | ---: | --- | ---: | ---: | ---: | ---: "
      "|\n";
  for (const Case& c : cases) {
    Generator g(3);
    std::map<std::size_t, int> found{{6, 0}, {12, 0}, {24, 0}, {42, 0}};
    for (int i = 0; i < studies; ++i) {
      Arms arms = c.setting->draw(g, c.count, 42);
      make_worse(arms[1], -c.difference * c.setting->deviation);
      for (auto& [seeds, count] : found) {
        const Difference d = judge_against_control(arms, seeds, 1.5 * c.setting->deviation)[0];
        count += c.difference == 0 ? d.equal : d.better == Side::first;
      }
    }
    table += fmt::format("| {} | {} | {} |", c.difference == 0 ? "equal" : fmt::format("{:g}", c.difference),
                         c.count - 1, c.setting->name);
    for (const auto& [seeds, count] : found) {
      table += fmt::format(" {} |", percent(count));
      INFO(c.difference << " deviations, " << c.setting->name << ", " << c.count << " methods, " << seeds
                        << " seeds: " << percent(count));
      if (seeds == c.seeds_of_floor) CHECK(count >= (c.floor - slack) * studies);
    }
    table += "\n";
  }
  expect_on_page(table);
}
