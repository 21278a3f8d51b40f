// Mistakes in claims that show before they are judged: axes, values and measures that are not there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/record/point.h"
#include "experiments/lab/record/record.h"
#include "experiments/lab/stats/claims.h"

namespace plumb::lab {

// An axis of the study in which claims are made.
struct ClaimAxis {
  std::string name, option;
  bool text = false;                    // its values are texts, not numbers
  std::vector<AxisValue> values = {};   // of this call
  std::vector<std::string> names = {};  // all texts that the option takes; empty: any
  bool searched = false;                // its values are found while the study runs
};

// When a study starts. Throws Error, which suggests the nearest name, for a claim about an axis that is not there, a
// text that the axis refuses, a value of another type, or two sides that name other axes. Returns the claims that this
// call cannot judge, as other values or combinations are run, each with the reason: "at depth 48, ...: no depth 48 in
// --depths 12,24". `places`: the combinations that are run, without seed and searched axes.
std::vector<std::string> claims_not_judged(const std::vector<Claim>& claims, const std::vector<ClaimAxis>& axes,
                                           const std::vector<Point>& places);

// When a trial has ended: the first claim about it whose value it did not measure, with the nearest name; nothing for
// trials that did not end ok.
std::optional<std::string> unmeasured_claim(const std::vector<Claim>& claims, const Record& record);

}  // namespace plumb::lab
