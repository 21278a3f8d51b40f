// Suggestions for mistyped names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumb {

// The number of letters that must be inserted, deleted, replaced or swapped with their neighbour to turn one word into
// the other (optimal string alignment). Upper and lower case count as equal; '-' and '_' count as equal too.
int edit_distance(std::string_view a, std::string_view b);

// Returns the candidate nearest to `word`. If several candidates are equally near, returns the first of them. If no
// candidate is near, returns "". A candidate is near if at most a third of the letters differ (one letter may always
// differ), or if `word` has at least three letters and the candidate begins with it ("cifar" for "cifar-10").
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

// The end of a message about an unknown name: "did you mean 'rezero'?" if a known name is near, else "known: post, pre,
// rezero". If there are more than ten known names, the text has the first ten and the number of the others.
std::string suggest_name(std::string_view word, const std::vector<std::string>& names);

}  // namespace plumb
