#include "experiments/lab/study/until_decided.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "experiments/lab/stats/bets.h"
#include "experiments/lab/stats/conditions.h"
#include "experiments/lab/study/combinations.h"
#include "experiments/lab/study/rate_search.h"

namespace plumb::lab {
namespace {

constexpr std::int64_t least_seeds = 6;  // before a prediction ends a comparison
constexpr std::int64_t patience = 3;     // further seeds after which a better neighbour ends a comparison

// The number of seeds at which predicted_bets() is reached, if `seeds` seeds have given `bets` bets.
double predicted_seeds(std::int64_t wins, std::int64_t bets, std::int64_t seeds, double needs) {
  if (bets == 0) return INFINITY;
  return predicted_bets(wins, bets, needs) * static_cast<double>(seeds) / static_cast<double>(bets);
}

// The predicted seeds until a verdict of equality. A seed at which both sides failed is no bet.
double seeds_until_equal(const Difference& d) {
  if (!d.within || std::isnan(d.equality_needs)) return INFINITY;
  const auto count = [&](auto wins) {
    return static_cast<std::int64_t>(std::ranges::count_if(d.duel.differences, wins));
  };
  const std::int64_t only_first = d.duel.failed_first - d.duel.failed_both,
                     only_second = d.duel.failed_second - d.duel.failed_both,
                     below = count([&](double x) { return x < *d.within; }) + only_second,
                     above = count([&](double x) { return x > -*d.within; }) + only_first,
                     bets = std::ssize(d.duel.differences) + only_first + only_second;
  return predicted_seeds(std::min(below, above), bets, d.duel.seeds, d.equality_needs);
}

// Whether the chosen rates decide, but the side that loses there is as good at one of its neighbouring rates.
bool has_better_neighbour(const Difference& d) {
  return d.lost != Side::none && d.neighbours == AtNeighbours::no && d.least_losses >= d.least_wins;
}

Pursued pursued_from(const Difference& d, bool is_decided) {
  Pursued p{.name = {}, .seeds = d.duel.seeds};
  p.order = d.obstacle.empty() ? predicted_seeds(d.least_wins, d.least_wins + d.least_losses, d.duel.seeds, d.needs)
                               : INFINITY;
  p.equality = seeds_until_equal(d);
  const bool by_order = p.order <= p.equality;
  p.evidence = by_order ? d.at_all_rates : d.equality, p.needs = by_order ? d.needs : d.equality_needs;
  // At least one seed more.
  for (double* predicted : {&p.order, &p.equality}) *predicted = std::max(*predicted, static_cast<double>(p.seeds + 1));
  if (is_decided)
    p.state = Progression::decided;
  else if (!d.obstacle.empty() && d.obstacle != below_resolution)
    p.state = Progression::cannot_be_judged;
  else if (p.seeds >= horizon || (p.seeds >= least_seeds && p.least() > horizon && !has_better_neighbour(d)))
    p.state = Progression::needs_more;
  return p;
}

// The results as they were when each arm had at most this number of seeds.
StudyResults at_seeds(StudyResults r, std::int64_t seeds, const std::vector<Claim>& claims) {
  std::set<std::uint64_t> all(r.judging.seeds.begin(), r.judging.seeds.end());
  std::vector<std::uint64_t> first(all.begin(), all.end());
  first.resize(std::min(first.size(), static_cast<std::size_t>(seeds)));
  const auto is_later = [&](const Record& e) {
    return std::ranges::find(first, static_cast<std::uint64_t>(e.seed())) == first.end();
  };
  std::erase_if(r.records, is_later), std::erase_if(r.neighbours, is_later);
  std::vector<Point> named;
  for (const Record& e : r.records) named.push_back(e.point);
  judge_all(r, claims, named);
  return r;
}

struct Judged {
  Pursued pursued;
  const Difference* difference;
};

std::vector<Judged> judged_of(const StudyResults& r) {
  std::vector<Judged> all;
  for (const JudgedClaim& claim : r.claims)
    for (const ClaimResult& result : claim.results) {
      Pursued p = pursued_from(result.difference, result.verdict != Verdict::undecided);
      p.name = result.at.entries().empty() ? claim.text : fmt::format("{} ({})", claim.text, result.at.label());
      p.first = result.cell_first, p.rate_first = result.rate_first;
      if (!result.constant) p.second = result.cell_second, p.rate_second = result.rate_second;
      all.push_back({std::move(p), &result.difference});
    }
  if (!r.claims.empty()) return all;
  for (const Condition& condition : r.conditions)
    for (const auto& [first, second, d] : condition.against_control) {
      Pursued p = pursued_from(d, d.better != Side::none || d.equal);
      const Standing &a = condition.standings[first], &b = condition.standings[second];
      p.name = fmt::format("{} against {}{}{}", a.method, b.method,
                           condition.depth > 0 ? fmt::format(" at depth {}", condition.depth) : "",
                           condition.rate ? fmt::format(" at lr {:g}", *condition.rate) : "");
      p.first = a.cell, p.second = b.cell, p.rate_first = p.rate_second = condition.rate;
      all.push_back({std::move(p), &d});
    }
  return all;
}

}  // namespace

std::vector<Pursued> pursued(const StudyResults& r, const std::vector<Claim>& claims) {
  std::map<std::int64_t, StudyResults> earlier;  // by number of seeds
  std::vector<Pursued> all;
  for (const auto& [p, d] : judged_of(r)) {
    Pursued& here = all.emplace_back(p);
    const std::int64_t before = p.seeds - patience;
    if (here.state != Progression::open || !has_better_neighbour(*d) || before <= 0) continue;
    if (!earlier.contains(before)) earlier.emplace(before, at_seeds(r, before, claims));
    for (const auto& [former, difference] : judged_of(earlier.at(before)))
      if (former.name == here.name && former.first == here.first && former.second == here.second &&
          former.rate_first == here.rate_first && has_better_neighbour(*difference))
        here.state = Progression::rate_of_winner;
  }
  return all;
}

std::vector<Point> next_seeds(const StudyDeclaration& study, const StudyResults& r,
                              const std::vector<Pursued>& comparisons) {
  std::vector<std::int64_t> seeds = judged_seeds(study);
  std::ranges::sort(seeds);
  const auto* const elsewhere = std::get_if<ChosenRates>(&study.rates);  // their seeds chose the rates
  for (std::int64_t next = std::ranges::max(study.options.seeds);
       std::ssize(seeds) < horizon && next < std::numeric_limits<std::int64_t>::max();)
    if (++next; !elsewhere || std::ranges::find(elsewhere->seeds, next) == elsewhere->seeds.end())
      seeds.push_back(next);
  std::vector<Point> arms;  // the points of all trials without their seeds, in order of first appearance
  std::map<std::string, std::int64_t> trials;
  for (const Record& e : r.records) {
    const Point arm = e.point.without("seed");
    if (trials[arm.label()]++ == 0) arms.push_back(arm);
  }
  std::map<std::string, std::pair<Point, std::int64_t>> beside;  // the neighbours with their trials without an error
  for (const Record& n : r.neighbours) {
    const Point point = n.point.without("seed");
    beside.try_emplace(point.label(), point, 0).first->second.second += n.status != Status::failed;
  }
  const auto is_side = [](const Point& arm, const Point& cell, const std::optional<double>& rate) {
    return cell_of(arm) == cell && (!rate || !arm.find("lr") || arm.get<double>("lr") == *rate);
  };
  // A neighbour that lacks a trial, because it ended in an error, would lack all further seeds.
  const auto is_complete = [&](const Point& cell, std::int64_t seeds_of_both) {
    return std::ranges::none_of(beside, [&](const auto& named) {
      const auto& [point, count] = named.second;
      return cell_of(point) == cell && count < seeds_of_both;
    });
  };
  const auto is_wanted = [&](const Point& arm) {
    return std::ranges::any_of(comparisons, [&](const Pursued& p) {
      return p.state == Progression::open && trials.at(arm.label()) == p.seeds &&
             (is_side(arm, p.first, p.rate_first) || (p.second && is_side(arm, *p.second, p.rate_second))) &&
             is_complete(p.first, p.seeds) && (!p.second || is_complete(*p.second, p.seeds));
    });
  };
  std::vector<Point> points;
  for (const Point& arm : arms) {
    const std::int64_t count = trials.at(arm.label());
    if (count >= std::min(horizon, std::ssize(seeds)) || !is_wanted(arm)) continue;
    const Point next{{"seed", seeds[static_cast<std::size_t>(count)]}};
    const RateChoice* choice = study.has_own_rates() ? choice_for(r.judging.rates, cell_of(arm)) : nullptr;
    points.push_back(joined(choice ? joined(cell_of(arm), {{"lr", choice->rate}}) : arm, next));
    for (const auto& [label, named] : beside)
      if (cell_of(named.first) == cell_of(arm)) points.push_back(joined(named.first, next));
  }
  return points;
}

std::vector<Point> trials_at_most(const StudyDeclaration& study) {
  std::vector<Point> all;
  if (!study.options.until_decided) return all;
  const bool own = study.has_own_rates();
  const std::int64_t seeds = std::max<std::int64_t>(horizon, std::ssize(judged_seeds(study)));
  const std::vector<Point> arms = own ? cells_of(study) : combinations_of(study);
  for (std::int64_t i = 0; i < seeds * (own ? 5 : 1); ++i)
    for (const Point& arm : arms) all.push_back(joined(arm, {{"seed", i}}));
  return all;
}

namespace {

std::string predicted_words(const Pursued& p) {
  return std::isinf(p.least()) ? "more than can be said" : fmt::format("{:.0f}", std::ceil(p.least()));
}

}  // namespace

std::string progress_of(const std::vector<Pursued>& comparisons) {
  if (comparisons.empty())
    return "nothing to decide: no claim is about these trials, and the control is not among them or has none beside it";
  const Pursued* nearest = nullptr;
  std::int64_t open = 0;
  for (const Pursued& p : comparisons)
    if (p.state == Progression::open && ++open && (!nearest || p.least() < nearest->least())) nearest = &p;
  if (!nearest) return fmt::format("no comparison of {} is open", comparisons.size());
  return fmt::format("{} of {} comparisons open; nearest: {}, {} seeds, E = {:.3g} of {:.3g}, predicted seeds: {}",
                     open, comparisons.size(), nearest->name, nearest->seeds, nearest->evidence, nearest->needs,
                     predicted_words(*nearest));
}

Section section_of(const std::vector<Pursued>& comparisons) {
  using enum TextTable::Align;
  Section section{
      .title = "Comparisons until decided",
      .caption = fmt::format(
          "Each round trains the next seed of the arms of open comparisons, up to {} seeds. E: evidence for "
          "the side that leads; needs: the evidence of a verdict. predicted: the number of seeds until a "
          "verdict of order or of equality, at the present share of wins.",
          horizon)};
  for (const char* title : {"comparison", "state"}) section.table.column(title, left);
  for (const char* title : {"seeds", "E", "needs", "predicted"}) section.table.column(title, right);
  for (const Pursued& p : comparisons) {
    const bool is_final = p.state == Progression::decided || p.state == Progression::cannot_be_judged;
    const std::string predicted = is_final ? "–" : predicted_words(p);
    section.table.row({p.name, enum_name(p.state), std::to_string(p.seeds), fmt::format("{:.3g}", p.evidence),
                       fmt::format("{:.3g}", p.needs), predicted});
  }
  return section;
}

}  // namespace plumb::lab
