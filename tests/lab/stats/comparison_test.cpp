#include "experiments/lab/stats/comparison.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "core/atomic_file.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::test;

namespace {

using Order = Difference::Order;
using Noise = std::function<double(std::mt19937_64&)>;

const double inf = std::numeric_limits<double>::infinity(), missing = std::numeric_limits<double>::quiet_NaN();

double normal(std::mt19937_64& g) { return std::normal_distribution<double>()(g); }
double student_3(std::mt19937_64& g) { return std::student_t_distribution<double>(3)(g); }
// Losses of trainings that either work or fail.
double bimodal(std::mt19937_64& g) { return (std::bernoulli_distribution(0.5)(g) ? 2.3 : 0.3) + 0.02 * normal(g); }
double seldom(std::mt19937_64& g) { return (std::bernoulli_distribution(0.2)(g) ? 2.3 : 0.3) + 0.02 * normal(g); }

// Noise in which one value in ten is infinite, as after a divergence.
Noise diverging(const Noise& noise) {
  return [noise](std::mt19937_64& g) { return std::bernoulli_distribution(0.1)(g) ? inf : noise(g); };
}

// Series that differ only in their noise. All series share a random part for each seed. `spread` is the ratio of the
// largest and the smallest scale of the noise.
std::vector<Outcomes> study(std::mt19937_64& g, const Noise& noise, std::size_t methods, std::size_t seeds,
                            double spread = 1) {
  Outcomes common(seeds);
  for (double& c : common) c = normal(g);
  std::vector<Outcomes> series(methods, common);
  for (Outcomes& s : series) {
    const double size = std::pow(spread, std::uniform_real_distribution<double>()(g));
    for (double& y : s) y += size * noise(g);
  }
  return series;
}

bool any_apart(const std::vector<Difference>& differences) {
  return std::ranges::any_of(differences, [](const Difference& d) { return d.order != Order::undecided; });
}

struct Family {
  const char* name;
  std::function<std::vector<Difference>(const std::vector<Outcomes>&)> judge;
};
const Family families[] = {
    {"a planned claim",
     [](const std::vector<Outcomes>& s) {
       return compare({s[0], s[1]}, {{0, 1}});
     }},
    {"against the control", [](const std::vector<Outcomes>& s) { return compare(s, against_first(s.size())); }},
    {"all pairs", [](const std::vector<Outcomes>& s) { return compare(s, all_pairs(s.size())); }}};

double share_of_false(const Family& family, const Noise& noise, std::size_t methods, std::size_t seeds, double spread,
                      unsigned simulation) {
  std::mt19937_64 g(simulation);
  int found = 0;
  for (int i = 0; i < 1000; ++i) found += any_apart(family.judge(study(g, noise, methods, seeds, spread)));
  return found / 1000.0;
}

}  // namespace

TEST_CASE("differences of pairs have an interval and an order") {
  // Differences -1, -2, -3: mean -2, deviation 1, t(0.975, 2) = 4.3027.
  const Outcomes a{1, 2, 3}, b{2, 4, 6};
  const Difference d = compare({a, b}, {{0, 1}}).at(0);
  CHECK(d.order == Order::undecided);
  CHECK(d.n == 3);
  CHECK(d.mean == Approx(-2));
  CHECK(d.low == Approx(-2 - 4.302653 / std::sqrt(3)).epsilon(1e-6));
  CHECK(d.high == Approx(-2 + 4.302653 / std::sqrt(3)).epsilon(1e-6));
  CHECK(pairs_needed(d) == 4);  // 2 > t(0.975, 3) / 2 = 1.59
  // Two pairs decide nothing, even if their differences are almost equal.
  const Difference two = compare({{1, 2}, {2, 3.0001}}, {{0, 1}}).at(0);
  CHECK((two.order == Order::undecided && std::isinf(two.low) && pairs_needed(two) == 3));
  const Difference more = compare({{1, 2, 3, 4}, {2, 4, 6, 6}}, {{0, 1}}).at(0);  // the differences are -1, -2, -3, -2
  CHECK(more.order == Order::lower);
  CHECK(compare({{2, 4, 6, 6}, {1, 2, 3, 4}}, {{0, 1}}).at(0).order == Order::higher);
  // A part that both trials of a seed share does not widen the interval.
  CHECK(compare({{1, 102, 3, 1004}, {2, 104, 6, 1006}}, {{0, 1}}).at(0).high == Approx(more.high));
  // Missing trials form no pairs, and one pair has no finite interval.
  CHECK(compare({{1, missing, 3, missing}, {2, 4, missing, missing}}, {{0, 1}}).at(0).n == 1);
  CHECK(std::isinf(compare({{1}, {2}}, {{0, 1}}).at(0).low));
  // If the differences have no variance, nothing is decided.
  CHECK(compare({{1, 2, 3}, {2, 3, 4}}, {{0, 1}}).at(0).order == Order::undecided);
  // If all outcomes are equal, no number of pairs would decide.
  const Difference same = compare({{1, 2, 3}, {1, 2, 3}}, {{0, 1}}).at(0);
  CHECK((same.order == Order::undecided && pairs_needed(same) == 0));
  CHECK_THAT(error_of([] {
               compare({{1, 2}, {1}}, {{0, 1}});
             }),
             contains("[compare] expected outcomes at the same seeds, got 2 and 1"));
}

TEST_CASE("a difference in words") {
  CHECK(describe(compare({{1, 2, 3}, {2, 4, 6}}, {{0, 1}}).at(0)) ==
        "lower by 2, 95 % interval -0.484 to 4.48, 3 pairs");
  CHECK(describe(compare({{1}, {2}}, {{0, 1}}).at(0)) == "lower by 1 in one pair");
  CHECK(describe(compare({{missing}, {2}}, {{0, 1}}).at(0)) == "no pairs");
  CHECK(describe(compare({{1, 1, 1, 1, 1, 1}, {inf, inf, 2, 2, inf, 2}}, {{0, 1}}).at(0)) ==
        "better in 6 of 6 pairs, worse in 0; the first diverged in 0, the second in 3");
}

TEST_CASE("a series that diverges is worse by the exact sign test") {
  const Outcomes good{1, 1, 1, 1, 1, 1}, diverged{inf, inf, 2, 2, inf, 2};
  const Difference six = compare({good, diverged}, {{0, 1}}).at(0);  // the first is better in 6 of 6 pairs: p = 2 / 64
  CHECK(six.order == Order::lower);
  CHECK((six.better == 6 && six.worse == 0 && six.diverged_first == 0 && six.diverged_second == 3));
  const Difference five = compare({{1, 1, 1, 1, 1}, {inf, inf, 2, 2, inf}}, {{0, 1}}).at(0);  // p = 2 / 32
  CHECK(five.order == Order::undecided);
  CHECK(pairs_needed(five) == 6);
  // Both trials of the first seed diverged, which is a tie.
  CHECK(compare({{inf, 1, 1}, {inf, inf, 2}}, {{0, 1}}).at(0).better == 2);
  // In a family of five pairs in which the other four pairs are ties, six seeds are too few. Eight seeds are enough: 2
  // / 2^8 < 0.05 / 5.
  std::vector<Outcomes> series{good};
  for (int i = 0; i < 5; ++i) series.push_back(i == 0 ? diverged : good);
  const Difference in_family = compare(series, against_first(series.size())).at(0);
  CHECK(in_family.order == Order::undecided);
  CHECK(pairs_needed(in_family) == 8);
}

TEST_CASE("Holm's procedure relaxes the level pair by pair and an interval contains 0 only if its pair is undecided") {
  std::mt19937_64 g(5);
  for (int i = 0; i < 300; ++i) {
    std::vector<Outcomes> series = study(g, normal, 6, 5);
    for (std::size_t m = 1; m < 4; ++m)
      for (double& y : series[m]) y += 4.0 * static_cast<double>(m);
    const std::vector<Difference> found = compare(series, against_first(6));
    std::vector<double> levels;
    for (const Difference& d : found) {
      CHECK((d.low > 0 || d.high < 0) == (d.order != Order::undecided));
      levels.push_back(d.level);
    }
    std::ranges::sort(levels);
    CHECK(levels.front() == Approx(0.05 / 5));
    CHECK(levels.back() <= 0.05);
    if (any_apart(found)) CHECK(levels[1] == Approx(0.05 / 4));
  }
}

TEST_CASE("without a true difference at most 7 of 100 studies decide any pair") {
  const unsigned simulation = GENERATE(0u, 1u, 2u);
  const auto [noise, name, spread] =
      GENERATE(table<Noise, const char*, double>({{normal, "normal", 1},
                                                  {student_3, "Student, 3 degrees", 1},
                                                  {bimodal, "bimodal", 1},
                                                  {seldom, "bimodal, one in five", 1},
                                                  {normal, "normal of unequal size", 100},
                                                  {diverging(normal), "normal, one in ten diverges", 1},
                                                  {diverging(bimodal), "bimodal, one in ten diverges", 1}}));
  for (const Family& family : families)
    for (const std::size_t methods : {2u, 6u, 12u, 31u})
      for (const std::size_t seeds : {3u, 5u, 10u}) {
        INFO(family.name << ", " << name << ", " << methods << " methods, " << seeds << " seeds, simulation "
                         << simulation);
        CHECK(share_of_false(family, noise, methods, seeds, spread, simulation) <= 0.07);
      }
}

TEST_CASE("series at chance that hardly vary do not make pairs of other series decided") {
  const std::size_t seeds = GENERATE(3u, 5u), at_chance = GENERATE(6u, 12u);
  std::mt19937_64 g(0);
  int control = 0, pairs = 0;
  for (int i = 0; i < 1000; ++i) {
    std::vector<Outcomes> series = study(g, bimodal, 6, seeds);
    for (std::size_t k = 0; k < at_chance; ++k) {
      series.push_back(Outcomes(seeds, 2.303));
      for (double& y : series.back()) y += 0.001 * normal(g);
    }
    const auto any_of_six = [&](std::vector<std::pair<std::size_t, std::size_t>> family) {
      const std::vector<Difference> found = compare(series, family);
      for (std::size_t k = 0; k < family.size(); ++k)
        if (family[k].first < 6 && family[k].second < 6 && found[k].order != Order::undecided) return true;
      return false;
    };
    control += any_of_six(against_first(series.size()));
    pairs += any_of_six(all_pairs(series.size()));
  }
  INFO(seeds << " seeds, " << at_chance << " at chance");
  CHECK(control <= 70);
  CHECK(pairs <= 70);
}

TEST_CASE("a method that sometimes diverges neither widens the intervals of the others nor makes their pairs decided") {
  const std::size_t seeds = GENERATE(3u, 5u, 10u);
  const Noise noise = GENERATE(Noise(normal), Noise(bimodal), Noise(student_3));
  std::mt19937_64 g(0);
  int control = 0, pairs = 0;
  for (int i = 0; i < 1000; ++i) {
    std::vector<Outcomes> series = study(g, noise, 6, seeds);
    for (double& y : series.back())
      y = std::bernoulli_distribution(0.5)(g) ? inf : 10 * normal(g);  // a finite loss may have any size
    for (const bool all : {false, true}) {
      const auto family = all ? all_pairs(6) : against_first(6);
      const std::vector<Difference> found = compare(series, family);
      bool any = false;
      for (std::size_t k = 0; k < family.size(); ++k)
        any = any || (family[k].first != 5 && family[k].second != 5 && found[k].order != Order::undecided);
      (all ? pairs : control) += any;
    }
  }
  INFO(seeds << " seeds");
  CHECK(control <= 70);
  CHECK(pairs <= 70);

  std::vector<Outcomes> apart = study(g, normal, 5, 5);
  for (double& y : apart[1]) y -= 20;
  CHECK(compare(apart, {{1, 0}})[0].order == Order::lower);
  const double width = compare(apart, against_first(5))[0].high;
  apart.push_back({inf, 100, inf, -100, inf});
  const std::vector<Difference> beside = compare(apart, against_first(6));
  CHECK(beside[0].order == Order::lower);
  CHECK(beside[0].high - width < 2);  // the interval is wider only because the family is larger
}

// The table of power. One of the methods is better than the other methods by a number of standard deviations of a
// single training. A cell is the share of simulated studies that find the better method.
TEST_CASE("the tables of docs/statistics.md are those of simulated studies", "[statistics]") {
  std::string text =
      "| noise | family | methods | 3 seeds | 5 seeds | 10 seeds |\n| --- | --- | ---: | ---: | ---: | ---: |\n";
  for (const auto& [name, noise, spread] : {std::tuple<const char*, Noise, double>{"normal", normal, 1},
                                            {"Student, 3 degrees", student_3, 1},
                                            {"bimodal", bimodal, 1},
                                            {"bimodal, one in five", seldom, 1},
                                            {"normal, sizes 1 to 100", normal, 100}})
    for (const Family& family : families)
      for (const std::size_t methods : {2u, 6u, 12u, 31u}) {
        if (&family == &families[0] && methods > 2) continue;
        text += fmt::format("| {} | {} | {} |", name, family.name, methods);
        for (const std::size_t seeds : {3u, 5u, 10u})
          text += fmt::format(" {:.1f} % |", 100 * share_of_false(family, noise, methods, seeds, spread, 0));
        text += "\n";
      }
  std::string power =
      "| difference | family | methods | 3 seeds | 5 seeds | 10 seeds |\n| ---: | --- | ---: | ---: | ---: | ---: |\n";
  for (const double difference : {1.0, 2.0, 5.0})
    for (const Family& family : families)
      for (const std::size_t methods : {2u, 6u, 12u, 31u}) {
        if (&family == &families[0] && methods > 2) continue;
        power += fmt::format("| {:g} | {} | {} |", difference, family.name, methods);
        for (const std::size_t seeds : {3u, 5u, 10u}) {
          std::mt19937_64 g(0);
          int found = 0;
          for (int i = 0; i < 300; ++i) {
            std::vector<Outcomes> series = study(g, normal, methods, seeds);
            for (double& y : series[1]) y -= difference;
            // The pair of the control (series 0) and the better method (series 1), in the same order as in the family.
            const Difference d = family.judge(series).at(0);
            found += d.order == (&family == &families[1] ? Order::lower : Order::higher);
          }
          power += fmt::format(" {:.0f} % |", found / 3.0);
        }
        power += "\n";
      }
  const std::string page = read_file(std::string(PLUMB_SOURCE_DIR) + "/docs/statistics.md");
  INFO("expected on the page:\n" << text << "\n" << power);
  CHECK(page.find(text) != std::string::npos);
  CHECK(page.find(power) != std::string::npos);
}
