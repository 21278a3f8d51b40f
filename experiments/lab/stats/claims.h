// Claims: expectations of a study about its trials. Claims are stated before the trials run, such as "eps = 1e-6 ends
// lower than eps = 0".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  std::optional<double> within = {};    // set by equal_within()
  bool before_training = false;         // set by at_init()
  // Whether the comparison names a value on this axis.
  bool names(std::string_view axis) const { return a.find(axis) || where.find(axis); }
  // Returns this comparison with a difference of at least `amount` (in units of the value). The comparison must come
  // from lower() or higher(). Throws Error if the amount is not above 0, or if the comparison has a margin or a
  // constant.
  Comparison by_at_least(double amount) const;
  // Returns this comparison with `d` as the largest difference that does not matter: if the trials show that the sides
  // differ by less, the verdict is "equal within d". Without this call, d is that of the measure (equal_within() in
  // record/measure.h). Throws Error under the same conditions as by_at_least().
  Comparison equal_within(double d) const;
  // Returns this comparison for a value that trials measure before the first step. The learning rate does not change
  // such a value, so no trials at neighbouring rates are needed.
  Comparison at_init() const {
    Comparison c = *this;
    c.before_training = true;
    return c;
  }
  // Returns this comparison, restricted to trials at `place`. Throws Error if a side has another value on an axis of
  // `place`, because no trial would be at both.
  Comparison at(Point place) const;
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
  bool is_primary = false;
  // Makes the claim one of the at most three primary claims of a study, which share 0.8 of the weight of the family.
  Claim& primary() { return is_primary = true, *this; }
  // The text, with the numbers of the comparison and the mark of a primary claim. run.json has the names of the planned
  // claims.
  std::string name() const;
};

// The result of a claim, and its name in files. A claim depends on an axis that it does not name if it agrees at one
// value and disagrees at another. It is equal if no order is decided, and the sides are equal within d.
enum class Verdict { agree, disagree, equal, undecided, depends };
constexpr auto names_of(Verdict) { return std::array{"agree", "disagree", "equal", "undecided", "depends"}; }

// The verdict on a comparison at one place, and the difference that decides the verdict.
struct ClaimResult {
  Point at = {};  // the values on the axes that the comparison does not name
  Verdict verdict = Verdict::undecided;
  // The first side is the one that the claim expects to win. A win is a seed that agrees with the claim.
  Difference difference = {};
  Point cell_first = {}, cell_second = {};  // the combinations of the axes of the two sides
  bool higher = false;
  std::optional<double> margin = {}, constant = {};
  // The learning rates of the trials at `a` and at `b`. Empty if unknown, and at `b` if the comparison has a constant.
  std::optional<double> rate_first = {}, rate_second = {};
  // The median differences of the same pairs in the other measures of validation.
  std::vector<std::pair<std::string, Median>> others = {};
  std::string why() const;       // the reason in words: describe(), and the differences of `others`
  std::string at_rates() const;  // "at lr 0.001 against lr 0.002", "at lr 0.001" if both are equal, empty if unknown
};

// A claim with its results.
struct JudgedClaim {
  std::string text = {}, source = {}, measure = {};  // measure: the value that the claim compares
  Verdict verdict = Verdict::undecided;
  bool is_primary = false;                // Claim::is_primary
  bool post_hoc = false;                  // whether the claim was added after the study folder was made
  std::vector<ClaimResult> results = {};  // one for each place; empty if no trial is at the points of the claim
  std::string verdict_words() const;      // as shown: "depends on lr", "equal within 0.05", "agree (post hoc)"
  std::string why() const;                // the reason in words with the learning rates, for each place
};
// Judges the claims of a study as one family, and those that were added later as another (judge_family() in
// comparison.h). Each claim has a weight, and each place of a claim an equal part of it. A trial that did not train has
// the worst value if the value says how well a network trains (is_about_training), and is no bet otherwise.
std::vector<JudgedClaim> judge_claims(const std::vector<Claim>& claims, const std::vector<TrialGroup>& groups,
                                      const Judging& how);

// A sentence about the family of these claims: its size, and the chance of a wrong verdict. Empty without claims.
std::string about_claims(const std::vector<JudgedClaim>& claims, const Judging& how);

// The text of claims.csv. A claim has a row for each place. `verdict` is the verdict at the place, and `overall` that
// of the claim. The margin is 0.1 for "not higher by 0.1" and -0.05 for "lower by at least 0.05"; without a margin, the
// cell is empty.
std::string claims_csv(const std::vector<JudgedClaim>& claims);

}  // namespace plumb::lab
