// Checks claims before they are judged. The checks find unknown axes, unknown values, and values that no trial
// measures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/record/point.h"
#include "experiments/lab/record/record.h"
#include "experiments/lab/stats/claims.h"

namespace plumb::lab {

// An axis of the study whose claims are checked.
struct ClaimAxis {
  std::string name, option;
  bool text = false;                    // whether the values are texts instead of numbers
  std::vector<AxisValue> values = {};   // the values in this call
  std::vector<std::string> names = {};  // all texts that the option accepts; empty if every text is accepted
  bool searched = false;                // whether the study finds the values while it runs
};

// Checks the claims when a study starts. Returns the claims that this call cannot judge because the call runs no trials
// at the claim's values or combination of values. Each claim is returned with the reason: "at depth 48, ...: no depth
// 48 in --depths 12,24". `places` has the points that the call runs, without the seed and without searched axes. Throws
// Error for an unknown axis, a text that the axis does not accept, a value of another type, two sides that name
// different axes, or more than three primary claims. The error suggests the nearest name.
std::vector<std::string> claims_not_judged(const std::vector<Claim>& claims, const std::vector<ClaimAxis>& axes,
                                           const std::vector<Point>& places);

// Checks the claims when a trial has ended. If a claim is about the trial, and the trial did not measure the value of
// the claim, returns a message. The message is about the first such claim, and suggests the nearest name. Returns
// nothing if there is no such claim, or if the trial did not end ok.
std::optional<std::string> unmeasured_claim(const std::vector<Claim>& claims, const Record& record);

}  // namespace plumb::lab
