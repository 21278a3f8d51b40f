#include "experiments/common/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "experiments/common/record.h"

namespace plumb::lab {
namespace {

using Order = Difference::Order;
constexpr double infinity = std::numeric_limits<double>::infinity();

// "a", "a and b", "a, b and c", and a count for what is beyond six.
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 6;
  std::vector<std::string> shown(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most)));
  if (names.size() > most) shown.push_back(fmt::format("{} more", names.size() - most));
  std::string text = shown.front();
  for (std::size_t i = 1; i < shown.size(); ++i) text += (i + 1 == shown.size() ? " and " : ", ") + shown[i];
  return text;
}

double outcome_of(const ArmResult& a) {
  if (a.status == Status::diverged) return infinity;
  return a.status == Status::ok && a.train_loss ? *a.train_loss : unknown;
}

// Of one method at one depth: outcomes by rate, then by seed.
using ByRate = std::map<double, Outcomes>;

// Where an arm with a diverged seed ranks below any without.
std::pair<std::int64_t, double> rank_without(const Outcomes& losses, std::size_t left_out) {
  std::int64_t diverged = 0;
  std::vector<double> finite;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (i == left_out || std::isnan(losses[i])) continue;
    if (std::isinf(losses[i]))
      ++diverged;
    else
      finite.push_back(losses[i]);
  }
  return {diverged, finite.empty() ? infinity : summarize(finite).mean};
}

// At each seed the rate that is best on the others; on itself where there are no others.
Outcomes best_rates(const ByRate& by_rate, std::set<double>& rates) {
  const std::size_t seeds = by_rate.begin()->second.size();
  Outcomes chosen(seeds, unknown);
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    const auto best = std::ranges::min_element(by_rate, {}, [&](const auto& rate) { return rank_without(rate.second, seeds > 1 ? seed : seeds); });
    chosen[seed] = best->second[seed];
    if (!std::isnan(chosen[seed])) rates.insert(best->first);
  }
  return chosen;
}

Standing standing_of(const std::string& method, Outcomes losses, const Judging& how) {
  Standing s{.method = method, .losses = std::move(losses)};
  std::vector<double> finite;
  for (const double loss : s.losses) {
    s.seeds += !std::isnan(loss), s.diverged += std::isinf(loss);
    if (std::isfinite(loss)) finite.push_back(loss);
  }
  s.loss = summarize(finite);
  s.near_chance = near_chance(s.loss, how.classes);
  return s;
}

std::string loss_of(const Standing& s) {
  if (s.loss.half_width) return fmt::format("{:.3f} ± {:.3f} (n = {})", s.loss.mean, *s.loss.half_width, s.loss.n);
  return fmt::format("{:.3f} (n = {})", s.loss.mean, s.loss.n);
}

// "no verdict on post (5 seeds would decide)"
std::string undecided(const std::string& method, const Difference& d) {
  const std::int64_t needed = pairs_needed(d);
  return needed > 0 ? fmt::format("{} ({} seeds would decide)", method, needed) : method;
}

// What is apart from the control, in words; empty where nothing can be said.
std::string against_control(const Place& place) {
  std::vector<std::string> lower, higher, none;
  for (std::size_t i = 1; i < place.standings.size(); ++i) {
    const Difference& d = place.against_control[i - 1];
    if (d.n == 0) continue;
    const std::string& method = place.standings[i].method;
    if (d.order == Order::undecided)
      none.push_back(undecided(method, d));
    else
      (d.order == Order::lower ? lower : higher).push_back(method);
  }
  std::vector<std::string> parts;
  if (!lower.empty()) parts.push_back(fmt::format("{} {} lower", listed(lower), lower.size() == 1 ? "is" : "are"));
  if (!higher.empty()) parts.push_back(fmt::format("{} {} higher", listed(higher), higher.size() == 1 ? "is" : "are"));
  if (!none.empty()) parts.push_back("no verdict on " + listed(none));
  if (parts.empty()) return "";
  return fmt::format(" Against {}: {}.", place.standings.front().method, fmt::join(parts, "; "));
}

// Which others the best is not separated from, where there is no control.
std::string against_best(const Place& place, std::size_t best) {
  std::vector<std::string> none;
  std::size_t k = 0, compared = 0;
  for (const auto& [a, b] : all_pairs(place.standings.size())) {
    const Difference& d = place.pairs[k++];
    if ((a != best && b != best) || d.n == 0) continue;
    ++compared;
    if (d.order == Order::undecided) none.push_back(undecided(place.standings[a == best ? b : a].method, d));
  }
  if (!none.empty()) return "; no verdict between it and " + listed(none);
  return compared > 0 ? ", apart from all others" : "";
}

}  // namespace

double chance_loss(std::int64_t classes) { return classes < 2 ? infinity : std::log(static_cast<double>(classes)); }

bool near_chance(const Summary& training_loss, std::int64_t classes) {
  return training_loss.n > 0 && training_loss.mean >= near_chance_share * chance_loss(classes);
}

std::vector<Place> places(const std::vector<ArmResult>& arms, const Judging& how) {
  std::vector<std::string> methods;
  std::set<std::int64_t> depths;
  std::set<double> rates;
  std::set<std::uint64_t> seeds;
  for (const ArmResult& a : arms) {
    if (std::ranges::find(methods, a.gate) == methods.end()) methods.push_back(a.gate);
    depths.insert(a.depth), rates.insert(a.lr), seeds.insert(a.seed);
  }
  if (const auto control = std::ranges::find(methods, how.control); control != methods.end()) std::rotate(methods.begin(), control, control + 1);

  std::map<std::pair<std::int64_t, std::string>, ByRate> table;
  for (const ArmResult& a : arms) {
    Outcomes& losses = table[{a.depth, a.gate}].try_emplace(a.lr, Outcomes(seeds.size(), unknown)).first->second;
    losses[static_cast<std::size_t>(std::distance(seeds.begin(), seeds.find(a.seed)))] = outcome_of(a);
  }

  std::vector<Place> found;
  std::map<std::pair<std::string, double>, bool> trained_when_shallow;  // by method and rate
  for (const std::int64_t depth : depths)
    for (const double rate : how.best_rate ? std::set<double>{0} : rates) {
      Place place{.depth = depth, .shallowest = *depths.begin()};
      if (!how.best_rate && rates.size() > 1) place.rate = rate;
      for (const std::string& method : methods) {
        const auto cell = table.find({depth, method});
        if (cell == table.end()) continue;
        std::set<double> used;
        const auto at_rate = cell->second.find(rate);
        if (!how.best_rate && at_rate == cell->second.end()) continue;
        Standing s = standing_of(method, how.best_rate ? best_rates(cell->second, used) : at_rate->second, how);
        s.rates = {used.begin(), used.end()};
        const auto [shallow, is_first] = trained_when_shallow.try_emplace({method, rate}, s.loss.n > 0 && !s.near_chance);
        s.untested = s.near_chance && !shallow->second;
        place.standings.push_back(std::move(s));
      }
      if (place.standings.empty()) continue;
      std::vector<Outcomes> series;
      for (const Standing& s : place.standings) series.push_back(s.losses);
      place.has_control = place.standings.front().method == how.control;
      if (place.has_control) place.against_control = compare(series, against_first(series.size()));
      place.pairs = compare(series, all_pairs(series.size()));
      found.push_back(std::move(place));
    }
  return found;
}

std::string sentence(const Place& place, const Judging& how) {
  const auto names = [](const std::vector<const Standing*>& some) {
    std::vector<std::string> all;
    for (const Standing* s : some) all.push_back(s->method);
    return listed(all);
  };
  std::vector<const Standing*> trained, chance, untested, diverged, unfinished;
  std::vector<std::string> partly;
  for (const Standing& s : place.standings) {
    (s.untested ? untested : s.near_chance ? chance : s.loss.n > 0 ? trained : s.diverged > 0 ? diverged : unfinished).push_back(&s);
    if (s.loss.n > 0 && s.diverged > 0) partly.push_back(fmt::format("{} diverged in {} of {} seeds", s.method, s.diverged, s.seeds));
  }
  std::string text = place.depth > 0 ? fmt::format("At depth {}", place.depth) : "Of all arms";
  if (place.rate) text += fmt::format(" and lr {}", *place.rate);
  text += ",";
  std::string against;
  if (trained.empty()) {
    text += " no method trained";
  } else {
    // One with a diverged seed ranks below any without.
    const auto best = *std::ranges::min_element(trained, {}, [](const Standing* s) { return std::pair(s->diverged, s->loss.mean); });
    text += fmt::format(" {} {}", best->method, trained.size() == 1 ? "reached a training loss of " : "reached the lowest training loss, ") +
            loss_of(*best);
    if (!best->rates.empty()) text += fmt::format(" at lr {}", fmt::join(best->rates, ", "));
    if (place.standings.size() > 1) {
      if (!best->loss.half_width)
        text += "; one seed gives no interval to rank by";
      else if (place.has_control)
        against = against_control(place);
      else
        text += against_best(place, static_cast<std::size_t>(best - place.standings.data()));
    }
  }
  std::vector<std::string> rest;
  const std::string at_chance = fmt::format("stayed near chance (ln {} = {:.3f})", how.classes, chance_loss(how.classes));
  if (!chance.empty()) rest.push_back(fmt::format("{} {}, and trained at a smaller depth", names(chance), at_chance));
  if (!untested.empty() && place.depth > place.shallowest)
    rest.push_back(fmt::format("{} {}, and did not train at depth {} either, so that nothing follows about depth", names(untested), at_chance,
                               place.shallowest));
  else if (!untested.empty())
    rest.push_back(names(untested) + " " + at_chance);
  if (!diverged.empty()) rest.push_back(names(diverged) + " diverged");
  if (!partly.empty()) rest.push_back(listed(partly));
  if (!unfinished.empty()) rest.push_back(names(unfinished) + " ended without a training loss");
  for (std::size_t i = 0; i < rest.size(); ++i) text += (i == 0 && trained.empty() ? ": " : "; ") + rest[i];
  return text + "." + against;
}

std::string comparisons_csv(const std::vector<Place>& places) {
  CsvTable table({"depth", "lr", "family", "first", "second", "order", "difference", "low", "high", "level", "pairs", "better", "worse",
                  "diverged_first", "diverged_second", "needed"});
  const auto row = [&](const Place& place, std::string_view family, std::size_t a, std::size_t b, const Difference& d) {
    constexpr std::string_view orders[] = {"undecided", "lower", "higher"};
    table.cell(place.depth).cell(place.rate.value_or(unknown)).cell(family);
    table.cell(std::string_view(place.standings[a].method)).cell(std::string_view(place.standings[b].method));
    table.cell(orders[static_cast<int>(d.order)]).cell(d.mean).cell(d.low).cell(d.high).cell(d.level).cell(d.n);
    table.cell(d.better).cell(d.worse).cell(d.diverged_first).cell(d.diverged_second).cell(d.order == Order::undecided ? pairs_needed(d) : d.n);
    table.end_row();
  };
  for (const Place& place : places) {
    for (std::size_t i = 1; i < place.standings.size() && place.has_control; ++i) row(place, "control", i, 0, place.against_control[i - 1]);
    std::size_t k = 0;
    for (const auto& [a, b] : all_pairs(place.standings.size())) row(place, "pairs", a, b, place.pairs[k++]);
  }
  return table.text();
}

}  // namespace plumb::lab
