// Evidence about the order of two series of trials, seed by seed, that holds whenever a study stops.
//
// At each seed, capital is bet on one of the two series. If the series have the same distribution, the expected capital
// stays 1, so P(capital ever reaches 1/a) <= a (Ville 1939), whatever the rule of stopping. The evidence E is the mean
// of two such capitals:
//   - sign bets: exact whenever a seed is won with a chance of 1/2 (Ramdas et al. 2023, "Game-theoretic statistics and
//     safe anytime-valid inference");
//   - t mixture: right Haar prior on the deviation of the differences, effect N(0, 1.5^2) in deviations (Rouder et al.
//     2009; Perez-Ortiz et al. 2024).
// docs/statistics.md explains the rule, and has the rates of wrong verdicts and the power in simulated studies.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/lab/stats/difference.h"

namespace plumb::lab {

// S(w, l), the capital of bets on wins: the mean over p in {.6, .7, .8, .9, .97} of (2p)^w (2 - 2p)^l.
double bets_on_wins(std::int64_t wins, std::int64_t losses);
// (S(w, l) + S(l, w)) / 2.
double sign_evidence(std::int64_t wins, std::int64_t losses);
// The t mixture of n differences: g^(-1/2) ((1 + t^2/v) / (1 + t^2/(v g)))^(n/2) with v = n - 1 and g = 1 + 2.25 n. It
// is its limit g^((n-1)/2) if all differences are the same number other than 0, and 1 if all are 0 or n < 2.
double t_evidence(const std::vector<double>& differences);

// The meaning of a difference that equals the margin.
enum class Tie { no_bet, loss, win };

// Compares two series. Throws Error if they differ in length.
Duel duel(const Outcomes& first, const Outcomes& second, double margin = 0, Tie tie = Tie::no_bet);

// The evidence that two series differ by less than d: the smaller of the capitals, at their largest, of bets on
// first - second < d and on first - second > -d. A difference of exactly d loses its bet, and so does a failed trial on
// its side. Two failed trials are no bet.
double equality(const Outcomes& first, const Outcomes& second, double d);

// The number of bets after which the evidence is predicted to reach `needs`, after `wins` of `bets`: the logarithm of
// `needs` over its growth with each bet that is won with a chance of (wins + 1/2) / (bets + 1). Infinite if the capital
// of no bet on wins would grow.
double predicted_bets(std::int64_t wins, std::int64_t bets, double needs);

// The result of a hypothesis in its family.
struct Rejection {
  bool rejected = false;
  double needs = 0;  // the evidence at which the hypothesis is rejected, given the rejections before it
};
// Holm's procedure (1979) with weights, on p = 1 / evidence: hypotheses are rejected in the order of p / weight, while
// p <= level * weight / (sum of the weights that are still open). If all hypotheses are true, any is rejected with a
// chance of at most `level`.
std::vector<Rejection> weighted_holm(const std::vector<double>& evidence, const std::vector<double>& weights,
                                     double level);

}  // namespace plumb::lab
