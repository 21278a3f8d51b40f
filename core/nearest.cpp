// The edit distance of names, and suggestions for mistyped names.
#include "core/nearest.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace plumb {
namespace {

std::string plain(std::string_view word) {
  std::string result(word);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';
  }
  return result;
}

}  // namespace

int edit_distance(std::string_view first, std::string_view second) {
  const std::string a = plain(first), b = plain(second);
  // Three rows of the table of distances between the prefixes a[0, i) and b[0, j): rows i - 2, i - 1 and i.
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  int least = 0;
  for (const std::string& candidate : candidates) {
    const int distance = edit_distance(word, candidate);
    const int allowed = std::max(1, static_cast<int>(std::max(word.size(), candidate.size()) / 3));
    const bool begins = word.size() >= 3 && plain(candidate).starts_with(plain(word));
    if ((distance <= allowed || begins) && (!best || distance < least)) {
      best = &candidate;
      least = distance;
    }
  }
  return best ? *best : std::string();
}

std::string suggest_name(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t most = 10;
  if (const std::string near = nearest_name(word, names); !near.empty()) return fmt::format("did you mean '{}'?", near);
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most));
  return fmt::format("known: {}{}", fmt::join(names.begin(), end, ", "),
                     names.size() > most ? fmt::format(" and {} more", names.size() - most) : "");
}

}  // namespace plumb
