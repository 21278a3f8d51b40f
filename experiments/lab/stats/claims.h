// What a study expects of its trials, stated before they run: "eps = 1e-6 ends lower than eps = 0".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/record/record.h"
#include "experiments/lab/stats/comparison.h"

namespace plumb::lab {

// Of a value that trials measure: whether it is lower (or higher) in the trials at `a` than in those at `b`, seed by
// seed: pairs of trials that agree in every axis that neither point names, and the mean over such pairs of one seed.
// Both points name the same axes.
struct Comparison {
  std::string value;
  bool higher;  // not lower
  Point a = {}, b = {}, where = {};
  // Added to the value at `b` before the two are compared, or subtracted where higher is claimed. Above 0: "as good
  // as", at `a` it is not worse by more than this. Below 0: "better by at least", by_at_least().
  std::optional<double> margin = {};
  std::optional<double> constant = {};  // in place of trials at `b`
  bool names(std::string_view axis) const { return a.find(axis) || where.find(axis); }
  // Makes lower() and higher() claim a difference of at least `amount`, above 0 and in units of the value. The claim
  // agrees if the whole interval of the difference is beyond the amount, and disagrees if the whole interval falls
  // short of it.
  Comparison by_at_least(double amount) const;
  Comparison at(Point place) const {
    Comparison c = *this;
    c.where = std::move(place);
    return c;
  }
};
Comparison lower(std::string value, Point a, Point b);
Comparison higher(std::string value, Point a, Point b);
// That it makes no difference that matters, or a good one: at `a` the value is at most `margin` higher (lower) than at
// `b`. `margin` above 0, in units of the value: stated with the claim, before anything runs.
Comparison not_higher(std::string value, Point a, Point b, double margin);
Comparison not_lower(std::string value, Point a, Point b, double margin);

// That the trials at `place` have more (less) of it than that.
Comparison above(std::string value, double constant, Point place);
Comparison below(std::string value, double constant, Point place);

struct Claim {
  std::string text, source;
  Comparison comparison;
};

enum class Verdict { agree, disagree, undecided };
std::string_view to_string(Verdict verdict);

struct ClaimResult {
  Verdict verdict = Verdict::undecided;
  Difference difference = {};  // of the first than the second; of the negated values where higher is claimed
  Difference judged = {};      // the same, but with the margin added to the second: what the verdict is by
  bool higher = false;
  std::optional<double> margin = {}, constant = {};
  std::string why() const;  // "lower by 0.21, 95 % interval 0.17 to 0.25, 5 pairs"
};
// Agree or disagree where the pairs are apart as one comparison alone (comparison.h); a trial that diverged is worse
// than any that did not, whichever way is claimed. With a margin, the second is given it first.
ClaimResult judge(const Comparison& comparison, const std::vector<Record>& records);

struct JudgedClaim {
  std::string text, source;
  ClaimResult result;
};
// claims.csv: claim, source, verdict, difference, low, high, margin, n, needed. The difference and its interval are
// claimed to be below the margin (above it, where higher is claimed): 0.1 for "not higher by 0.1", -0.05 for "lower by
// at least 0.05"; empty: 0.
std::string claims_csv(const std::vector<JudgedClaim>& claims);

}  // namespace plumb::lab
