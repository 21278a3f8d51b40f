// What a study expects of its arms, stated before they run: "eps = 1e-6 ends lower than eps = 0".
#pragma once

#include <string>

#include "experiments/common/study_results.h"

namespace plumb::lab {

// Of a value that arms measure: whether it is lower in the arms at `a` than in those at `b`, pair by pair: two arms that agree in every axis that
// neither point names, above all in the seed.
struct Comparison {
  std::string value;
  Point a, b, where = {};
  Comparison at(Point place) const {
    Comparison c = *this;
    c.where = std::move(place);
    return c;
  }
};
Comparison lower(std::string value, Point a, Point b);
Comparison higher(std::string value, Point a, Point b);  // of b than of a, the same the other way round

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
// Agree or disagree where the 95 % t interval of the mean difference over the pairs does not hold 0; undecided else, and with fewer than two pairs.
// An arm that diverged is worse than any that did not: where every such pair says the same, and at least two do, that decides.
ClaimResult judge(const Comparison& comparison, const std::vector<Record>& records);

}  // namespace plumb::lab
