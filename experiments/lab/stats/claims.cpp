#include "experiments/lab/stats/claims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "experiments/lab/record/csv.h"
#include "experiments/lab/stats/conditions.h"

namespace plumb::lab {

Comparison Comparison::at(Point place) const {
  for (const Point* side : {&a, &b})
    for (const auto& [axis, wanted] : place.entries()) {
      const AxisValue* own = side->find(axis);
      check(!own || same(*own, wanted),
            "[claim] expected a place at which both sides have trials, got {} for the side {}", place.label(),
            side->label());
    }
  Comparison c = *this;
  c.where = std::move(place);
  return c;
}

Comparison lower(std::string value, Point a, Point b) { return {std::move(value), false, std::move(a), std::move(b)}; }
Comparison higher(std::string value, Point a, Point b) { return {std::move(value), true, std::move(a), std::move(b)}; }
Comparison not_higher(std::string value, Point a, Point b, double margin) {
  plumb::check(margin > 0 && std::isfinite(margin), "[claim] expected a margin above 0 for {}, got {}", value, margin);
  return {.value = std::move(value), .higher = false, .a = std::move(a), .b = std::move(b), .margin = margin};
}
Comparison not_lower(std::string value, Point a, Point b, double margin) {
  Comparison c = not_higher(std::move(value), std::move(a), std::move(b), margin);
  c.higher = true;
  return c;
}

namespace {

void check_amount(const Comparison& c, const char* name, double amount) {
  plumb::check(amount > 0 && std::isfinite(amount), "[claim] expected {}() of an amount above 0 for {}, got {}", name,
               c.value, amount);
  plumb::check(
      !c.margin && !c.constant && !c.within, "[claim] expected {}() of lower() or higher() for {}, got it of {}", name,
      c.value,
      c.constant ? "above() or below(): change their constant instead" : "a comparison with a margin or an equality");
}

}  // namespace

Comparison Comparison::by_at_least(double amount) const {
  check_amount(*this, "by_at_least", amount);
  Comparison c = *this;
  c.margin = -amount;
  return c;
}

Comparison Comparison::equal_within(double d) const {
  check_amount(*this, "equal_within", d);
  Comparison c = *this;
  c.within = d;
  return c;
}

Comparison above(std::string value, double constant, Point place) {
  return {.value = std::move(value), .higher = true, .where = std::move(place), .constant = constant};
}
Comparison below(std::string value, double constant, Point place) {
  return {.value = std::move(value), .higher = false, .where = std::move(place), .constant = constant};
}

std::string Claim::name() const {
  const Comparison& c = comparison;
  std::string name = text;
  for (const auto& [what, number] :
       {std::pair("margin", c.margin), {"constant", c.constant}, {"equal within", c.within}})
    if (number) name += fmt::format(" [{} {:g}]", what, *number);
  return name + (c.before_training ? " [at init]" : "") + (is_primary ? " [primary]" : "");
}

namespace {

constexpr double weight_of_primaries = 0.8;

// The group at a point without learning rate and seed of trials with own rates, and otherwise with the rate.
const TrialGroup* group_at(const std::vector<TrialGroup>& groups, const Point& place, const Judging& how) {
  const auto found = std::ranges::find_if(
      groups, [&](const TrialGroup& g) { return (how.own_rates ? cell_of(g.point) : g.point) == place; });
  return found == groups.end() ? nullptr : &*found;
}

std::optional<double> rate_of(const TrialGroup& group, const Judging& how) {
  return group.lr() > 0 ? std::optional(group.lr()) : how.rate;
}

// The contrast of a claim between two groups, of which the second is null for a constant.
Contrast contrast_of(const Comparison& c, const TrialGroup& first, const TrialGroup* second, const Judging& how) {
  Contrast contrast = contrast_of(first, second, c.value, how, c.constant.value_or(0), !c.before_training);
  if (c.within) contrast.equal_within = c.within;
  if (!c.margin) return contrast;
  // The margin helps the second side of the claim. Costs have the direction of the measure, which the claim may not
  // have.
  const bool same = c.higher == (better_of(how.measures, c.value) == Better::higher);
  contrast.margin = same ? *c.margin : -*c.margin, contrast.tie = same ? Tie::loss : Tie::win;
  contrast.equal_within.reset(), contrast.resolution = 0;
  return contrast;
}

// The median differences of the measures of validation other than `value` at the seeds of the pair.
std::vector<std::pair<std::string, Median>> others_of(const std::string& value, const TrialGroup& first,
                                                      const TrialGroup& second, const Judging& how) {
  std::vector<std::pair<std::string, Median>> others;
  for (const Measure& m : how.measures) {
    if (m.name == value || !m.name.starts_with("val_")) continue;
    const Contrast c = contrast_of(first, &second, m.name, how);
    if (const Median median = median_of(duel(c.first.costs, c.second.costs).differences); median.n > 0)
      others.emplace_back(m.name, m.better == Better::higher ? negated(median) : median);
  }
  return others;
}

Verdict verdict_on(const Difference& d) {
  if (d.better != Side::none) return d.better == Side::first ? Verdict::agree : Verdict::disagree;
  return d.equal ? Verdict::equal : Verdict::undecided;
}

Verdict verdict_on(const std::vector<ClaimResult>& results) {
  const auto any = [&](Verdict v) { return std::ranges::find(results, v, &ClaimResult::verdict) != results.end(); };
  if (any(Verdict::agree) && any(Verdict::disagree)) return Verdict::depends;
  for (const Verdict v : {Verdict::agree, Verdict::disagree})
    if (any(v)) return v;
  return any(Verdict::equal) && !any(Verdict::undecided) ? Verdict::equal : Verdict::undecided;
}

}  // namespace

std::vector<JudgedClaim> judge_claims(const std::vector<Claim>& claims, const std::vector<TrialGroup>& groups,
                                      const Judging& how) {
  const auto is_late = [&](const Claim& claim) {  // older folders have the texts only
    const std::string name = how.old_trials ? claim.text : claim.name();
    return how.planned_claims && std::ranges::find(*how.planned_claims, name) == how.planned_claims->end();
  };
  const auto count = [&](bool late, bool primary) {
    return static_cast<double>(std::ranges::count_if(
        claims, [&](const Claim& claim) { return is_late(claim) == late && claim.is_primary == primary; }));
  };
  std::vector<JudgedClaim> judged;
  std::vector<Contrast> planned, later;  // claims that were added later do not change the verdicts on planned claims
  for (const Claim& claim : claims) {
    const Comparison& c = claim.comparison;
    JudgedClaim& j = judged.emplace_back(
        JudgedClaim{.text = claim.text, .source = claim.source, .measure = c.value, .is_primary = claim.is_primary});
    j.post_hoc = is_late(claim);
    std::vector<Contrast>& family = j.post_hoc ? later : planned;
    const std::size_t before = family.size();
    for (const TrialGroup& first : groups) {
      const Point place = how.own_rates ? cell_of(first.point) : first.point;
      if (!place.contains(c.a) || !place.contains(c.where)) continue;
      Point other = place, at = place;
      for (const auto& [axis, value] : c.b.entries()) other.set(axis, value), at = at.without(axis);
      for (const auto& [axis, value] : c.where.entries()) at = at.without(axis);
      const TrialGroup* second = c.constant ? nullptr : group_at(groups, other, how);
      if (!second && !c.constant) continue;
      family.push_back(contrast_of(c, first, second, how));
      ClaimResult& r = j.results.emplace_back();
      r.at = at, r.cell_first = cell_of(first.point), r.rate_first = rate_of(first, how);
      r.higher = c.higher, r.margin = c.margin, r.constant = c.constant;
      if (!second) continue;
      r.cell_second = cell_of(second->point), r.rate_second = rate_of(*second, how);
      if (is_about_training(how.measures, c.value)) r.others = others_of(c.value, first, *second, how);
    }
    const double weight =
        count(j.post_hoc, true) == 0
            ? 1
            : (claim.is_primary ? weight_of_primaries : 1 - weight_of_primaries) / count(j.post_hoc, claim.is_primary);
    for (std::size_t i = before; i < family.size(); ++i)
      family[i].weight = weight / static_cast<double>(family.size() - before);
  }
  const std::vector<Difference> of_planned = judge_family(planned), of_later = judge_family(later);
  auto next_planned = of_planned.begin(), next_later = of_later.begin();
  for (JudgedClaim& j : judged) {
    for (ClaimResult& r : j.results) {
      const Difference& d = j.post_hoc ? *next_later++ : *next_planned++;
      r.difference = r.higher == (better_of(how.measures, j.measure) == Better::higher) ? d : negated(d);
      r.verdict = verdict_on(r.difference);
    }
    j.verdict = verdict_on(j.results);
  }
  return judged;
}

std::string ClaimResult::why() const {
  std::string text = describe(difference, higher ? -1 : 1);
  if (constant) text += fmt::format("; compared with {:.3g}", *constant);
  if (margin)
    text += *margin > 0 ? fmt::format("; margin {:.3g} {}", *margin, higher ? "lower" : "higher")
                        : fmt::format("; claimed at least {:.3g} {}", -*margin, higher ? "higher" : "lower");
  for (const auto& [name, median] : others) text += fmt::format("; {} {}", name, effect_words(median, 1));
  return text;
}

std::string ClaimResult::at_rates() const {
  if (!rate_first) return "";
  const bool both = rate_second && *rate_second != *rate_first;
  return fmt::format("at lr {}", *rate_first) + (both ? fmt::format(" against lr {}", *rate_second) : "");
}

std::string JudgedClaim::verdict_words() const {
  std::string words(enum_name(verdict));
  if (verdict == Verdict::equal) words = fmt::format("equal within {:g}", *results.front().difference.within);
  if (verdict == Verdict::depends) {
    // The axes on which places with opposite verdicts differ.
    std::vector<std::string> axes;
    for (const ClaimResult& a : results)
      for (const ClaimResult& b : results)
        if (a.verdict == Verdict::agree && b.verdict == Verdict::disagree)
          for (const auto& [axis, value] : a.at.entries())
            if (!same(value, *b.at.find(axis)) && std::ranges::find(axes, axis) == axes.end()) axes.push_back(axis);
    words = fmt::format("depends on {}", fmt::join(axes, ", "));
  }
  if (verdict == Verdict::undecided && !results.empty() && std::ranges::all_of(results, [](const ClaimResult& r) {
        return r.difference.obstacle.starts_with("old trials") || r.difference.obstacle.starts_with("cannot");
      }))
    words = results.front().difference.obstacle.substr(0, results.front().difference.obstacle.find(':'));
  return post_hoc ? words + " (post hoc)" : words;
}

std::string JudgedClaim::why() const {
  if (results.empty()) return "no pairs";
  const auto with_rates = [](const ClaimResult& r) {
    const std::string rates = r.at_rates();
    return r.why() + (rates.empty() ? "" : "; " + rates);
  };
  if (results.size() == 1) return with_rates(results.front());
  std::string reasons;
  for (const ClaimResult& r : results)
    reasons += fmt::format("{}{}: {}, {}", reasons.empty() ? "" : "; ", r.at.label(), enum_name(r.verdict),
                           r.at.find("lr") ? r.why() : with_rates(r));
  return reasons;
}

std::string about_claims(const std::vector<JudgedClaim>& claims, const Judging& how) {
  std::size_t comparisons = 0;
  bool later = false;
  for (const JudgedClaim& c : claims) comparisons += c.post_hoc ? 0 : c.results.size(), later = later || c.post_hoc;
  if (comparisons == 0 && !later) return "";
  if (how.old_trials)
    return "These trials are older than the rule of judging, so they have wins, losses and evidence E, and no "
           "verdicts.";
  return fmt::format(
             "{} comparison{} of claims {} one family. If nothing differs, the chance of any wrong verdict of order is "
             "at most {:g} %, whenever the study stops. E is the evidence.",
             comparisons, comparisons == 1 ? "" : "s", comparisons == 1 ? "is" : "are", 100 * order_level) +
         (later ? " Claims that were added later (post hoc) are a family of their own." : "");
}

std::string claims_csv(const std::vector<JudgedClaim>& claims) {
  std::vector<std::string> header{"claim", "source", "verdict"}, others;
  for (const JudgedClaim& claim : claims)
    for (const ClaimResult& r : claim.results)
      for (const auto& [name, median] : r.others)
        if (std::ranges::find(others, name) == others.end()) others.push_back(name);
  std::ranges::copy(difference_columns, std::back_inserter(header));
  header.insert(header.end(), {"measure", "margin", "at", "overall", "post_hoc", "lr_first", "lr_second"});
  header.insert(header.end(), others.begin(), others.end());
  CsvTable table(header);
  const std::vector<ClaimResult> no_pairs(1);
  for (const JudgedClaim& claim : claims)
    for (const ClaimResult& r : claim.results.empty() ? no_pairs : claim.results) {
      table.cell(std::string_view(claim.text)).cell(std::string_view(claim.source));
      table.cell(std::string_view(enum_name(r.verdict)));
      add_cells(table, r.difference, r.higher ? -1 : 1);
      table.cell(std::string_view(claim.measure)).cell((r.higher ? -1 : 1) * r.margin.value_or(unknown));
      table.cell(std::string_view(r.at.label())).cell(std::string_view(enum_name(claim.verdict)));
      table.cell(std::string_view(claim.post_hoc ? "yes" : "no"));
      table.cell(r.rate_first.value_or(unknown)).cell(r.rate_second.value_or(unknown));
      for (const std::string& name : others) {
        const auto other = std::ranges::find(r.others, name, &std::pair<std::string, Median>::first);
        table.cell(other == r.others.end() ? unknown : other->second.value);
      }
      table.end_row();
    }
  return table.text();
}

}  // namespace plumb::lab
