#include "experiments/lab/stats/claims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <set>
#include <utility>

#include "experiments/lab/record/csv.h"
#include "experiments/lab/stats/reference.h"
#include "experiments/lab/stats/summary.h"

namespace plumb::lab {

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

Comparison Comparison::by_at_least(double amount) const {
  plumb::check(amount > 0 && std::isfinite(amount),
               "[claim] expected by_at_least() of an amount above 0 for {}, got {}", value, amount);
  plumb::check(!margin && !constant, "[claim] expected by_at_least() of lower() or higher() for {}, got it of {}",
               value, constant ? "above() or below(): change their constant instead" : "a comparison with a margin");
  Comparison c = *this;
  c.margin = -amount;
  return c;
}

Comparison above(std::string value, double constant, Point place) {
  return {.value = std::move(value), .higher = true, .where = std::move(place), .constant = constant};
}
Comparison below(std::string value, double constant, Point place) {
  return {.value = std::move(value), .higher = false, .where = std::move(place), .constant = constant};
}

namespace {

constexpr double widest_margin = 2.5;  // in standard deviations of the placebo

// The trials of a study by series: the trials that differ only in their seeds.
class Trials {
 public:
  Trials(const std::vector<TrialResult>& trials, const Judging& how) : how_(how) {
    const std::vector<bool> trained = which_trained(trials, how);
    for (const TrialResult& t : trials) seeds_.insert(t.seed());
    for (std::size_t i = 0; i < trials.size(); ++i) {
      const Point point = point_of(trials[i]);
      auto series = std::ranges::find(series_, point, &Series::point);
      if (series == series_.end()) series = series_.insert(series_.end(), {point, section_of(trials[i]), {}});
      series->trials[trials[i].seed()] = {&trials[i], trained[i]};
    }
  }

  // The points of all series, without the seed.
  std::vector<Point> points() const {
    std::vector<Point> all;
    for (const Series& s : series_) all.push_back(s.point);
    return all;
  }
  bool has(const Point& point) const { return find(point) != nullptr; }
  // The learning rate of a series; empty without trials or a rate.
  std::optional<double> rate(const Point& point) const {
    const Series* const series = find(point);
    if (!series) return {};
    const double lr = series->trials.begin()->second.result->lr();
    for (const auto& [seed, trial] : series->trials)
      internal_check(trial.result->lr() == lr, "the trials of {} have the learning rates {} and {}", point.label(), lr,
                     trial.result->lr());
    return lr > 0 ? std::optional(lr) : how_.rate;
  }
  // The outcomes of a value by seed. Finite values have the sign `sign`.
  Outcomes outcomes(const Point& point, const std::string& value, double sign) const {
    const Series* const series = find(point);
    return series ? outcomes(*series, value, sign) : Outcomes(seeds_.size(), unknown);
  }
  // The variances of the section of a series.
  Variances variances(const Point& point, const std::string& value, double sign) const {
    const Series* const series = find(point);
    std::vector<Outcomes> section;
    for (const Series& s : series_)
      if (s.section == series->section) section.push_back(outcomes(s, value, sign));
    return Variances(section);
  }

 private:
  struct Trial {
    const TrialResult* result;
    bool trained;
  };
  struct Series {
    Point point;
    std::pair<std::int64_t, double> section;  // depth and learning rate
    std::map<std::uint64_t, Trial> trials;
  };

  // The series at a point, or null.
  const Series* find(const Point& point) const {
    const auto found = std::ranges::find(series_, point, &Series::point);
    return found == series_.end() ? nullptr : &*found;
  }
  Point point_of(const TrialResult& t) const {
    const Point point = t.point.without("seed");
    return how_.own_rates ? point.without("lr") : point;
  }
  std::pair<std::int64_t, double> section_of(const TrialResult& t) const {
    return {t.depth(), how_.own_rates ? 0 : t.lr()};
  }
  Outcomes outcomes(const Series& s, const std::string& value, double sign) const {
    Outcomes all;
    for (const std::uint64_t seed : seeds_) {
      const auto trial = s.trials.find(seed);
      if (trial == s.trials.end() || trial->second.result->status == Status::failed)
        all.push_back(unknown);
      else if (!trial->second.trained)
        all.push_back(std::numeric_limits<double>::infinity());
      else
        all.push_back(sign * trial->second.result->value(value).value_or(unknown));
    }
    return all;
  }

  const Judging& how_;
  std::set<std::uint64_t> seeds_;
  std::vector<Series> series_;
};

// The standard deviation of the difference between two trials of the control: ClaimResult::placebo.
std::optional<double> placebo_of(const Outcomes& control) {
  const std::optional<double> deviation = summarize(control).deviation;
  return deviation ? std::optional(std::numbers::sqrt2 * *deviation) : std::nullopt;
}

// Whether the claim is about how well a network trains: a trial that did not train then speaks against its side.
bool is_about_training(const Comparison& c, const std::vector<Measure>& measures) {
  return !c.constant && (c.value.ends_with("loss") || c.value.starts_with("steps_to") ||
                         find_measure(measures, c.value) || unit_of(measures, c.value) == Unit::fraction);
}

Verdict verdict_on(const Difference& d, bool has_margin) {
  using Order = Difference::Order;
  using Training = Difference::Training;
  if (d.order != Order::undecided) return d.order == Order::lower ? Verdict::agree : Verdict::disagree;
  if (d.training == Training::less_often) return Verdict::disagree;
  return d.training == Training::more_often && !has_margin ? Verdict::agree : Verdict::undecided;
}

// The difference without the margin that was added to the second series.
Difference without_margin(Difference d, double margin) {
  d.mean += margin, d.low += margin, d.high += margin;
  return d;
}

}  // namespace

std::vector<JudgedClaim> judge_claims(const std::vector<Claim>& claims, const std::vector<TrialResult>& trials,
                                      const Judging& how) {
  const Trials all(trials, how);
  std::vector<JudgedClaim> judged;
  std::vector<Contrast> planned, later;  // claims that were added later do not change the verdicts on planned claims
  for (const auto& [text, source, c] : claims) {
    JudgedClaim& claim = judged.emplace_back(JudgedClaim{.text = text, .source = source, .measure = c.value});
    claim.post_hoc = how.planned_claims && std::ranges::find(*how.planned_claims, text) == how.planned_claims->end();
    const double sign = c.higher ? -1 : 1;
    for (const Point& first : all.points()) {
      if (!first.contains(c.a) || !first.contains(c.where)) continue;
      Point second = first, at = first;
      for (const auto& [axis, value] : c.b.entries()) second.set(axis, value), at = at.without(axis);
      for (const auto& [axis, value] : c.where.entries()) at = at.without(axis);
      if (!c.constant && !all.has(second)) continue;
      Contrast contrast{.first = all.outcomes(first, c.value, sign),
                        .margin = c.margin.value_or(0),
                        .training = is_about_training(c, how.measures)};
      if (c.constant) {
        contrast.second.assign(contrast.first.size(), sign * *c.constant), contrast.constant = true;
      } else {
        contrast.second = all.outcomes(second, c.value, sign);
        contrast.section = all.variances(first, c.value, sign);
      }
      const Measure* measure = find_measure(how.measures, c.value);
      if (measure && !c.margin) contrast.resolution = measure->resolution;
      contrast.losses = measure && measure->better == Better::higher ? 0 : c.higher ? -1 : 1;
      claim.results.push_back({.at = at,
                               .higher = c.higher,
                               .margin = c.margin,
                               .constant = c.constant,
                               .rate_first = all.rate(first),
                               .rate_second = c.constant ? std::nullopt : all.rate(second)});
      (claim.post_hoc ? later : planned).push_back(std::move(contrast));
    }
  }
  const double level = level_of_look(how.look);
  const std::vector<Difference> of_planned = judge_family(planned, level), of_later = judge_family(later, level);
  std::size_t next_planned = 0, next_later = 0;
  for (JudgedClaim& claim : judged) {
    for (ClaimResult& result : claim.results) {
      const std::size_t at = claim.post_hoc ? next_later++ : next_planned++;
      result.judged = (claim.post_hoc ? of_later : of_planned)[at];
      const double margin = result.margin.value_or(0);
      if (margin > 0) result.placebo = placebo_of((claim.post_hoc ? later : planned)[at].second);
      if (result.placebo && margin > widest_margin * *result.placebo) {
        result.judged.order = Difference::Order::undecided;
        result.judged.doubt = Difference::Doubt::too_wide;
      }
      result.difference = without_margin(result.judged, margin);
      result.verdict = verdict_on(result.judged, margin > 0);
    }
    const auto any = [&](Verdict v) {
      return std::ranges::find(claim.results, v, &ClaimResult::verdict) != claim.results.end();
    };
    claim.verdict = any(Verdict::agree) && any(Verdict::disagree) ? Verdict::depends
                    : any(Verdict::agree)                         ? Verdict::agree
                    : any(Verdict::disagree)                      ? Verdict::disagree
                                                                  : Verdict::undecided;
  }
  return judged;
}

std::string ClaimResult::why() const {
  const Difference d = higher ? negated(difference) : difference;
  const std::string placebo_words =
      placebo ? fmt::format(" (placebo: two draws of the control differ by about {:.2g})", *placebo) : "";
  const std::int64_t needed =
      verdict == Verdict::undecided && judged.doubt == Difference::Doubt::none ? pairs_needed(judged) : 0;
  return describe(d) + (constant ? fmt::format("; compared with {:.3g}", *constant) : "") +
         (!margin       ? ""
          : *margin > 0 ? fmt::format("; margin {:.3g} {}{}", *margin, higher ? "lower" : "higher", placebo_words)
                        : fmt::format("; claimed at least {:.3g} {}", -*margin, higher ? "higher" : "lower")) +
         (needed > 0 ? fmt::format("; about {} pairs would decide", needed) : "");
}

std::string ClaimResult::at_rates() const {
  if (!rate_first) return "";
  const bool both = rate_second && *rate_second != *rate_first;
  return fmt::format("at lr {}", *rate_first) + (both ? fmt::format(" against lr {}", *rate_second) : "");
}

std::string JudgedClaim::verdict_words() const {
  std::string words(enum_name(verdict));
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
  double expected = 0;
  bool later = false;
  for (const JudgedClaim& c : claims) {
    later = later || c.post_hoc;
    for (const ClaimResult& r : c.results) ++comparisons, expected += r.judged.level;
  }
  if (comparisons == 0) return "";
  std::string text = fmt::format(
      "{} comparison{} of claims {} one family. If nothing differs, the chance of any wrong verdict is at most about "
      "{:.3g} %, and {:.2g} wrong verdicts on losses are expected.",
      comparisons, comparisons == 1 ? "" : "s", comparisons == 1 ? "is" : "are", 100 * level_of_look(how.look),
      expected);
  if (how.look > 1)
    text += fmt::format(" This is look {}: seeds were added after {} earlier look{}, so the level is lower.", how.look,
                        how.look - 1, how.look == 2 ? "" : "s");
  if (later) text += " Claims that were added later (post hoc) are a family of their own.";
  return text;
}

std::string claims_csv(const std::vector<JudgedClaim>& claims) {
  CsvTable table({"claim", "source", "verdict", "difference", "low", "high", "margin", "n", "needed", "at", "overall",
                  "post_hoc", "level", "trained_first", "trained_second", "lr_first", "lr_second"});
  for (const JudgedClaim& claim : claims)
    for (const ClaimResult& result :
         claim.results.empty()
             ? std::vector{ClaimResult{.difference = {.mean = unknown, .low = unknown, .high = unknown}}}
             : claim.results) {
      const Difference& d = result.difference;
      const double sign = result.higher ? -1 : 1;
      const std::int64_t needed = result.verdict == Verdict::undecided ? pairs_needed(result.judged) : d.n;
      table.cell(std::string_view(claim.text))
          .cell(std::string_view(claim.source))
          .cell(std::string_view(enum_name(result.verdict)));
      table.cell(sign * d.mean).cell(result.higher ? -d.high : d.low).cell(result.higher ? -d.low : d.high);
      table.cell(sign * result.margin.value_or(unknown)).cell(d.n);
      table.cell(needed > 0 ? static_cast<double>(needed) : unknown);
      table.cell(std::string_view(result.at.label())).cell(std::string_view(enum_name(claim.verdict)));
      table.cell(std::string_view(claim.post_hoc ? "yes" : "no")).cell(d.level);
      table.cell(d.trained_first).cell(d.trained_second);
      table.cell(result.rate_first.value_or(unknown)).cell(result.rate_second.value_or(unknown)).end_row();
    }
  return table.text();
}

}  // namespace plumb::lab
