// Which known name a mistyped one was meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumb {

// How many letters have to be inserted, dropped, replaced or swapped with their neighbour to turn one word into the
// other; capital and small letters, '-' and '_' are the same (optimal string alignment).
int edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word` (the first of equals), or "" when none is near: at most a third of its letters differ
// (one always may), or the word, of three letters or more, begins it ("cifar" for "cifar-10").
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

// For messages about an unknown name: "did you mean 'rezero'?" where one is near, else "known: post, pre, rezero", and
// of more than ten the first ten and how many more there are.
std::string suggest_name(std::string_view word, const std::vector<std::string>& names);

}  // namespace plumb
