// What a study expects of its arms, stated before they run: "eps = 1e-6 ends lower than eps = 0".
#pragma once

#include <string>

#include "experiments/common/study_results.h"

namespace plumb::lab {

// Of a value that arms measure: whether it is lower (or higher) in the arms at `a` than in those at `b`, pair by pair: two arms that agree in every
// axis that neither point names, above all in the seed.
struct Comparison {
  std::string value;
  bool higher;  // not lower
  Point a, b, where = {};
  Comparison at(Point place) const {
    Comparison c = *this;
    c.where = std::move(place);
    return c;
  }
};
Comparison lower(std::string value, Point a, Point b);
Comparison higher(std::string value, Point a, Point b);

struct Claim {
  std::string text, source;
  Comparison comparison;
};

enum class Verdict { agree, disagree, undecided };
std::string_view to_string(Verdict verdict);

struct ClaimResult {
  Verdict verdict = Verdict::undecided;
  std::string why;  // "lower by 0.21 ± 0.04 over 5 pairs"
};
// Agree or disagree where the 95 % t interval of the mean difference over the pairs that both trained does not hold 0, and no pair in which one arm
// diverged says the opposite: an arm that diverged is worse than any that did not. Where no pair trained, at least two that diverged in the same one
// alone decide. Undecided else.
ClaimResult judge(const Comparison& comparison, const std::vector<Record>& records);

}  // namespace plumb::lab
