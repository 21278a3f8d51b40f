// Claims: expectations of a study about its trials, stated before they run ("eps = 1e-6 ends lower than eps = 0").
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/record/record.h"
#include "experiments/lab/stats/comparison.h"

namespace plumb::lab {

// Compares a measured value in the trials at point `a` with the trials at point `b`. Two trials form a pair if they
// agree on every axis that `a` and `b` do not name. The differences of all pairs of one seed are averaged, so that each
// seed counts once. `a` and `b` name the same axes.
struct Comparison {
  std::string value;
  bool higher;  // claims that the value at `a` is higher, not lower
  Point a = {}, b = {}, where = {};
  // Added to the value at `b` before the comparison (subtracted if `higher`). A margin above 0 claims "as good as": the
  // value at `a` is not worse by more than the margin. A margin below 0 claims "better by at least" (by_at_least).
  std::optional<double> margin = {};
  std::optional<double> constant = {};  // compared with instead of trials at `b`
  // Whether the comparison names a value on this axis.
  bool names(std::string_view axis) const { return a.find(axis) || where.find(axis); }
  // The comparison of lower() or higher(), with a difference of at least `amount` (in units of the value). The claim
  // agrees if the whole interval of the difference is beyond the amount, and disagrees if the whole interval falls
  // short of it. Throws Error if the amount is not above 0, or for a comparison with a margin or a constant.
  Comparison by_at_least(double amount) const;
  // The same comparison, restricted to trials at `place`.
  Comparison at(Point place) const {
    Comparison c = *this;
    c.where = std::move(place);
    return c;
  }
};
// Claims that the value at `a` is lower (higher) than at `b`.
Comparison lower(std::string value, Point a, Point b);
Comparison higher(std::string value, Point a, Point b);
// Claims that the value at `a` is at most `margin` higher (lower) than at `b`: `a` is better, or worse by an amount
// that does not matter. The margin is in units of the value. Throws Error if it is not above 0.
Comparison not_higher(std::string value, Point a, Point b, double margin);
Comparison not_lower(std::string value, Point a, Point b, double margin);

// Claims that the value in the trials at `place` is above (below) a constant.
Comparison above(std::string value, double constant, Point place);
Comparison below(std::string value, double constant, Point place);

// A comparison with its wording and the source of the claim, such as a paper.
struct Claim {
  std::string text, source;
  Comparison comparison;
};

// The result of a claim, and its name in files: "agree", "disagree" or "undecided".
enum class Verdict { agree, disagree, undecided };
std::string_view to_string(Verdict verdict);

// The verdict on a claim, and the differences it follows from. If a higher value is claimed, both differences are of
// the negated values.
struct ClaimResult {
  Verdict verdict = Verdict::undecided;
  Difference difference = {};  // of the value at `a` minus the value at `b`
  Difference judged = {};      // the same after the margin was added; it decides the verdict
  bool higher = false;
  std::optional<double> margin = {}, constant = {};
  std::string why() const;  // the reason in words: "lower by 0.21, 95 % interval 0.17 to 0.25, 5 pairs"
};
// Judges a comparison of these trials as a family of one (comparison.h), after the margin was added. The verdict agrees
// or disagrees if the order of the two sides is decided. A diverged trial is worse than any that did not diverge, even
// if a higher value is claimed.
ClaimResult judge(const Comparison& comparison, const std::vector<Record>& records);

// A claim with its result.
struct JudgedClaim {
  std::string text, source;
  ClaimResult result;
};
// The text of claims.csv: claim, source, verdict, difference, low, high, margin, n, needed. The claim is that the
// difference and its interval are below the margin (above it if a higher value is claimed). The margin is 0.1 for "not
// higher by 0.1", -0.05 for "lower by at least 0.05", and empty for 0.
std::string claims_csv(const std::vector<JudgedClaim>& claims);

}  // namespace plumb::lab
