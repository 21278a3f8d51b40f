// Claims: expectations of a study about its trials. Claims are stated before the trials run, such as "eps = 1e-6 ends
// lower than eps = 0".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/record/record.h"
#include "experiments/lab/stats/comparison.h"
#include "experiments/lab/stats/verdict.h"

namespace plumb::lab {

// Compares the measured value `value` in the trials at point `a` with the same value in the trials at point `b`. Two
// trials form a pair if the two trials agree on every axis that `a` and `b` do not name. If the study has several
// values on an axis that the comparison does not name, the comparison is judged at each of them; nothing is averaged.
// `a` and `b` name the same axes.
struct Comparison {
  std::string value;
  bool higher;  // true claims that the value at `a` is higher; false claims that it is lower
  Point a = {}, b = {}, where = {};
  // The margin is added to the value at `b` before the comparison (subtracted if `higher`). A margin above 0 claims "as
  // good as": the value at `a` is not worse by more than the margin. A margin below 0 claims "better by at least"
  // (by_at_least).
  std::optional<double> margin = {};
  std::optional<double> constant = {};  // the value at `a` is compared with this constant, not with trials at `b`
  // Whether the comparison names a value on this axis.
  bool names(std::string_view axis) const { return a.find(axis) || where.find(axis); }
  // Returns this comparison with a difference of at least `amount` (in units of the value). The comparison must come
  // from lower() or higher(). The claim agrees if the whole interval of the difference is beyond the amount. The claim
  // disagrees if the whole interval falls short of the amount. Throws Error if the amount is not above 0, or if the
  // comparison has a margin or a constant.
  Comparison by_at_least(double amount) const;
  // Returns this comparison, restricted to trials at `place`.
  Comparison at(Point place) const {
    Comparison c = *this;
    c.where = std::move(place);
    return c;
  }
};
// lower() claims that the value at `a` is lower than at `b`; higher() claims that the value is higher.
Comparison lower(std::string value, Point a, Point b);
Comparison higher(std::string value, Point a, Point b);
// not_higher() claims that the value at `a` is at most `margin` higher than at `b`; not_lower() claims that the value
// is at most `margin` lower. So `a` is better, or `a` is worse by an amount that does not matter. The margin is in
// units of the value. Throws Error if the margin is not above 0.
Comparison not_higher(std::string value, Point a, Point b, double margin);
Comparison not_lower(std::string value, Point a, Point b, double margin);

// above() claims that the value in the trials at `place` is above a constant; below() claims that the value is below.
Comparison above(std::string value, double constant, Point place);
Comparison below(std::string value, double constant, Point place);

// A comparison with its wording and the source of the claim, such as a paper.
struct Claim {
  std::string text, source;
  Comparison comparison;
};

// The result of a claim, and its name in files: "agree", "disagree", "undecided" or "depends". A claim depends on an
// axis that it does not name if it agrees at one value and disagrees at another.
enum class Verdict { agree, disagree, undecided, depends };
constexpr auto names_of(Verdict) { return std::array{"agree", "disagree", "undecided", "depends"}; }

// The verdict on a comparison at one place, and the differences that decide the verdict. If a higher value is claimed,
// both differences are of the negated values.
struct ClaimResult {
  Point at = {};  // the values on the axes that the comparison does not name
  Verdict verdict = Verdict::undecided;
  Difference difference = {};  // the value at `a` minus the value at `b`
  Difference judged = {};      // the difference after the margin was added; decides the verdict
  bool higher = false;
  std::optional<double> margin = {}, constant = {};
  // With a margin above 0: the standard deviation of the difference between two trials at `b` with different seeds, a
  // placebo. Empty if fewer than two trials at `b` trained.
  std::optional<double> placebo = {};
  // The learning rates of the trials at `a` and at `b`. Empty if unknown, and at `b` if the comparison has a constant.
  std::optional<double> rate_first = {}, rate_second = {};
  std::string why() const;       // the reason in words: "lower by 0.21, 97.5 % interval 0.17 to 0.25, 6 pairs; ..."
  std::string at_rates() const;  // "at lr 0.001 against lr 0.002", "at lr 0.001" if both are equal, empty if unknown
};

// A claim with its results.
struct JudgedClaim {
  std::string text = {}, source = {}, measure = {};  // measure: the value that the claim compares
  Verdict verdict = Verdict::undecided;
  bool post_hoc = false;                  // whether the claim was added after the study folder was made
  std::vector<ClaimResult> results = {};  // one for each place; empty if no trial is at the points of the claim
  std::string verdict_words() const;      // the verdict as shown: "depends on lr", "agree (post hoc)"
  std::string why() const;                // the reason in words with the learning rates, for each place
};
// Judges the claims of a study as one family, and those that were added later as another (judge_family() in
// comparison.h). The section of a pair has all series at the same depth and learning rate. The losses of trials that
// did not train (which_trained) are left out, whatever value the claim is about. The verdict is "agree" or "disagree"
// if the order of the two sides is decided, or, for a claim about losses, accuracies or steps, if the order is
// undecided and one side trains less often.
//
// A margin above 0 is too wide if it is more than 2.5 times the placebo (ClaimResult::placebo). In nine of ten studies
// of six seeds, a placebo (the control, compared with itself under other draws) is as good within such a margin. The
// claim is then undecided. A difference below the resolution of its measure (Measure::resolution) decides nothing.
std::vector<JudgedClaim> judge_claims(const std::vector<Claim>& claims, const std::vector<TrialResult>& trials,
                                      const Judging& how);

// A sentence about the family of these claims: its size, the chance of a wrong verdict, the number of wrong verdicts
// that can be expected, and the looks. Empty without claims.
std::string about_claims(const std::vector<JudgedClaim>& claims, const Judging& how);

// The text of claims.csv. A claim has a row for each place. `verdict` is the verdict at the place, and `overall` that
// of the claim. A row claims that the difference and its interval are below the margin (above the margin if a higher
// value is claimed). The margin is 0.1 for "not higher by 0.1" and -0.05 for "lower by at least 0.05". A margin of 0 is
// an empty cell.
std::string claims_csv(const std::vector<JudgedClaim>& claims);

}  // namespace plumb::lab
