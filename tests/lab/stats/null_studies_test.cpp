// Simulated studies in which nothing differs, and studies in which one method is better. The tables of
// docs/statistics.md are the tables of these simulations.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "core/atomic_file.h"
#include "experiments/lab/stats/comparison.h"
#include "experiments/lab/stats/trained.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;

namespace {

using Order = Difference::Order;
using Training = Difference::Training;
using Generator = std::mt19937_64;
using Losses = std::vector<Outcomes>;
using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

// Sanitizers make the simulation slow, so that they run a twentieth of it, with wider bounds and without the tables.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int studies = 200;
constexpr double most_false = 0.12;
#else
constexpr int studies = 4000;
constexpr double most_false = 0.07;
#endif
constexpr bool whole = studies >= 4000;

double normal(Generator& g) { return std::normal_distribution<double>()(g); }
double uniform(Generator& g, double low, double high) { return std::uniform_real_distribution<double>(low, high)(g); }
bool bernoulli(Generator& g, double p) { return std::bernoulli_distribution(p)(g); }
double gamma(Generator& g, double shape) {  // mean 0, deviation 1
  return (std::gamma_distribution<double>(shape)(g) - shape) / std::sqrt(shape);
}
double log_uniform(Generator& g, double low, double high) {
  return std::exp(uniform(g, std::log(low), std::log(high)));
}

// A family of studies whose methods have equal means. `draw` fills one method; `shared` has a value for each seed.
struct Noise {
  const char* name;
  std::function<double(Generator&)> shared;
  std::function<void(Generator&, std::size_t method, const Outcomes& shared, Outcomes& out)> draw;
};

double none(Generator&) { return 0; }
// Noise whose draws do not depend on the method.
template <class F>
auto each(F draw) {
  return [draw](Generator& g, std::size_t, const Outcomes& shared, Outcomes& out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = shared[i] + draw(g);
  };
}

const Noise null_families[] = {
    {"normal", normal, each(normal)},
    {"Student, 3 degrees", normal, each([](Generator& g) { return std::student_t_distribution<double>(3)(g); })},
    {"normal, size 1 to 100 by method", normal,
     [](Generator& g, std::size_t, const Outcomes& shared, Outcomes& out) {
       const double size = log_uniform(g, 1, 100);
       for (std::size_t i = 0; i < out.size(); ++i) out[i] = shared[i] + size * normal(g);
     }},
    {"lognormal", none, each([](Generator& g) { return std::exp(normal(g)); })},
    {"lognormal, size 0.1 to 2 by method", none,
     [](Generator& g, std::size_t, const Outcomes&, Outcomes& out) {
       const double size = log_uniform(g, 0.1, 2);
       for (double& y : out) y = std::exp(size * normal(g) - size * size / 2);
     }},
    {"one bad seed in ten, loading by method", [](Generator& g) { return bernoulli(g, 0.1) ? 8.1 : -0.9; },
     [](Generator& g, std::size_t, const Outcomes& shared, Outcomes& out) {
       const double loading = uniform(g, 0, 2);
       for (std::size_t i = 0; i < out.size(); ++i) out[i] = loading * shared[i] + normal(g);
     }},
    {"half of the methods gamma-skewed", none,
     [](Generator& g, std::size_t method, const Outcomes&, Outcomes& out) {
       for (double& y : out) y = method % 2 == 1 ? gamma(g, 0.4) : 0.1 * normal(g);
     }},
    {"ties: losses of two digits", none,
     each([](Generator& g) { return std::round(100 * (0.05 + 0.01 * normal(g))) / 100; })},
    {"chance: two methods vary, the others hardly", none,
     [](Generator& g, std::size_t method, const Outcomes&, Outcomes& out) {
       for (double& y : out) y = (method < 2 ? 0.3 : 0.001) * normal(g);
     }},
    {"exponential delays, size 0.3 to 3 by method", none,
     [](Generator& g, std::size_t, const Outcomes&, Outcomes& out) {
       const double size = log_uniform(g, 0.3, 3);
       for (double& y : out) y = size * (std::exponential_distribution<double>()(g) - 1);
     }},
    {"Laplace, size by seed", [](Generator& g) { return log_uniform(g, 0.1, 10); },
     [](Generator& g, std::size_t, const Outcomes& shared, Outcomes& out) {
       for (std::size_t i = 0; i < out.size(); ++i)
         out[i] = shared[i] * std::exponential_distribution<double>()(g) * (bernoulli(g, 0.5) ? 1 : -1);
     }}};

Losses study(Generator& g, const Noise& noise, std::size_t methods, std::size_t seeds) {
  Outcomes shared(seeds);
  for (double& s : shared) s = noise.shared(g);
  Losses all(methods, Outcomes(seeds));
  for (std::size_t m = 0; m < methods; ++m) noise.draw(g, m, shared, all[m]);
  return all;
}

// The losses of studies pass the rule that decides which trials trained, as the losses of real studies do.
Losses judged(const Losses& losses) { return with_failures(losses, std::numeric_limits<double>::infinity()); }

bool any_decided(const std::vector<Difference>& all) {
  return std::ranges::any_of(all, [](const Difference& d) { return is_decided(d); });
}

std::string percent(int found) { return fmt::format("{:.1f}", 100.0 * found / studies); }

// The shares for 3, 4 and 6 seeds in one cell of a table: "0.0 / 0.8 / 2.3".
struct Shares {
  int found[3] = {};
  std::string text() const {
    return fmt::format("{} / {} / {}", percent(found[0]), percent(found[1]), percent(found[2]));
  }
};
constexpr std::size_t seeds_of[] = {3, 4, 6};

struct Family {
  const char* name;
  std::size_t methods;
  Pairs pairs;
};
const Family families[] = {{"claim, 2 methods", 2, {{1, 0}}},
                           {"claim, 4", 4, {{1, 0}}},
                           {"claim, 8", 8, {{1, 0}}},
                           {"control, 4", 4, against_first(4)},
                           {"control, 8", 8, against_first(8)},
                           {"control, 20", 20, against_first(20)},
                           {"all pairs, 4", 4, all_pairs(4)},
                           {"all pairs, 8", 8, all_pairs(8)},
                           {"four claims, 8", 8, {{1, 0}, {3, 2}, {5, 4}, {7, 6}}}};

void expect_on_page(const std::string& table) {
  if (!whole) return;
  const std::string page = read_file(test::source_dir() + "/docs/statistics.md");
  INFO("expected in docs/statistics.md:\n" << table);
  CHECK(page.find(table) != std::string::npos);
}

}  // namespace

TEST_CASE("in null studies at most 7 of 100 families have a false verdict", "[statistics]") {
  std::string table = "| noise |", rule = "| --- |";
  for (const Family& family : families) table += fmt::format(" {} |", family.name), rule += " ---: |";
  table += "\n" + rule + "\n";
  for (const Noise& noise : null_families) {
    std::vector<Shares> shares(std::size(families));
    for (int at = 0; at < 3; ++at) {
      Generator g(1);
      for (int i = 0; i < studies; ++i) {
        Losses drawn;
        for (std::size_t k = 0; k < std::size(families); ++k) {
          const Family& family = families[k];
          if (const Losses* same = family.methods == drawn.size() ? &drawn : nullptr; !same)
            drawn = judged(study(g, noise, family.methods, seeds_of[at]));
          shares[k].found[at] += any_decided(compare(drawn, family.pairs));
        }
      }
    }
    table += fmt::format("| {} |", noise.name);
    for (std::size_t k = 0; k < std::size(families); ++k) {
      table += fmt::format(" {} |", shares[k].text());
      INFO(noise.name << ", " << families[k].name << ": " << shares[k].text());
      CHECK(std::ranges::max(shares[k].found) <= most_false * studies);
    }
    table += "\n";
  }
  expect_on_page(table);
}

// The method is worse by exactly the margin, so that "as good as, within the margin" is wrong.
TEST_CASE("at the edge of a margin at most 7 of 100 studies say as good as", "[statistics]") {
  std::string table = "| noise | 2 methods | 4 methods | 8 methods |\n| --- | ---: | ---: | ---: |\n";
  for (const Noise& noise : null_families) {
    table += fmt::format("| {} |", noise.name);
    for (const std::size_t methods : {2u, 4u, 8u}) {
      Generator g(2);
      int found = 0;
      for (int i = 0; i < studies; ++i) {
        const Losses s = judged(study(g, noise, methods, 6));
        Contrast c{.first = s[1], .second = s[0], .section = Variances(s), .margin = 1};
        for (double& y : c.first) y += c.margin;
        found += judge_family({c})[0].order == Order::lower;
      }
      table += fmt::format(" {} |", percent(found));
      INFO(noise.name << ", " << methods << " methods: " << percent(found));
      CHECK(found <= most_false * studies);
    }
    table += "\n";
  }
  expect_on_page(table);
}

// Four seeds are planned. The user adds three seeds after each look, until a verdict is decided or there are ten seeds.
TEST_CASE("in resumed null studies at most 7 of 100 are ever decided", "[statistics]") {
  std::string table =
      "| noise | claim, 4 methods | control, 4 | claim, 8 | control, 8 |\n| --- | ---: | ---: | ---: | ---: |\n";
  for (const Noise& noise : null_families) {
    table += fmt::format("| {} |", noise.name);
    for (const std::size_t methods : {4u, 8u})
      for (const Pairs& pairs : {Pairs{{1, 0}}, against_first(methods)}) {
        Generator g(3);
        int found = 0;
        for (int i = 0; i < studies; ++i) {
          const Losses all = study(g, noise, methods, 10);
          bool decided = false;
          for (std::size_t seeds = 4, look = 1; seeds <= 10 && !decided; seeds += 3, ++look) {
            Losses so_far;
            for (const Outcomes& s : all)
              so_far.emplace_back(s.begin(), s.begin() + static_cast<std::ptrdiff_t>(seeds));
            decided = any_decided(compare(judged(so_far), pairs, level_of_look(static_cast<std::int64_t>(look))));
          }
          found += decided;
        }
        table += fmt::format(" {} |", percent(found));
        INFO(noise.name << ", " << methods << " methods, " << pairs.size() << " pairs: " << percent(found));
        CHECK(found <= most_false * studies);
      }
    table += "\n";
  }
  expect_on_page(table);
}

TEST_CASE("a method that is better is found at least as often as the floors say", "[statistics]") {
  std::string table = "| difference | family | 3 / 4 / 6 seeds | 10 seeds |\n| ---: | --- | ---: | ---: |\n";
  const auto share_of = [](const Family& family, std::size_t seeds, double difference) {
    Generator g(4);
    int found = 0;
    for (int i = 0; i < studies; ++i) {
      Losses s = study(g, null_families[0], family.methods, seeds);
      for (double& y : s[1]) y -= difference;
      const Order order = compare(judged(s), family.pairs)[0].order;
      found += order == (family.pairs[0].first == 1 ? Order::lower : Order::higher);
    }
    return found;
  };
  for (const double difference : {1.0, 2.0, 3.0, 5.0})
    for (const Family& family : families) {
      Shares shares;
      for (int at = 0; at < 3; ++at) shares.found[at] = share_of(family, seeds_of[at], difference);
      table += fmt::format("| {:g} | {} | {} | {} |\n", difference, family.name, shares.text(),
                           percent(share_of(family, 10, difference)));
      if (!whole) continue;
      const std::string name = family.name;
      const double floor = name == "claim, 4" || name == "claim, 8" ? difference == 2   ? 0.6
                                                                      : difference == 3 ? 0.9
                                                                                        : 0
                           : name == "control, 8"                   ? difference == 2   ? 0.3
                                                                      : difference == 3 ? 0.8
                                                                                        : 0
                                                                    : 0;
      INFO(name << " at " << difference << " deviations: " << shares.text());
      CHECK(shares.found[2] >= floor * studies);
    }
  expect_on_page(table);
}

// One method fails one seed in five, and otherwise ends lower, so that the means over all seeds are equal.
TEST_CASE("a method that fails one seed in five is found where both train and by how often it trains", "[statistics]") {
  const Noise seldom{"one in five", none, [](Generator& g, std::size_t method, const Outcomes&, Outcomes& out) {
                       for (double& y : out) y = (method != 1 ? 0.7 : bernoulli(g, 0.2) ? 2.3 : 0.3) + 0.02 * normal(g);
                     }};
  std::string table =
      "| methods | seeds | lower where both train | trains less often |\n| ---: | ---: | ---: | ---: |\n";
  for (const std::size_t methods : {4u, 8u})
    for (const std::size_t seeds : {3u, 4u, 6u, 10u, 40u, 60u}) {
      Generator g(5);
      int lower = 0, seldom_trains = 0, wrong = 0;
      for (int i = 0; i < studies; ++i) {
        const std::vector<Difference> found = compare(judged(study(g, seldom, methods, seeds)), against_first(methods));
        lower += found[0].order == Order::lower, seldom_trains += found[0].training == Training::less_often;
        wrong += found[0].order == Order::higher || found[0].training == Training::more_often ||
                 std::any_of(found.begin() + 1, found.end(), [](const Difference& d) { return is_decided(d); });
      }
      table += fmt::format("| {} | {} | {} | {} |\n", methods, seeds, percent(lower), percent(seldom_trains));
      INFO(methods << " methods, " << seeds << " seeds: lower " << percent(lower) << ", seldom "
                   << percent(seldom_trains) << ", wrong " << percent(wrong));
      CHECK(wrong <= most_false * studies);
      if (!whole) continue;
      if (seeds == 6) CHECK(lower >= 0.8 * studies);
      if (seeds == 60) CHECK(seldom_trains >= 0.8 * studies);
    }
  expect_on_page(table);
}
