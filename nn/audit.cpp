#include "nn/audit.h"

#include <algorithm>

namespace plumb::nn {
namespace {

constexpr std::size_t listed = 8;  // the maximum number of tensors that an error names

// Replaces indices by stars: "blocks.3.attn" -> "blocks.*.attn".
std::string without_indices(const std::string& name) {
  std::string pattern, segment;
  for (const char c : name + ".") {
    if (c != '.') {
      segment += c;
      continue;
    }
    const bool index = !segment.empty() && std::ranges::all_of(segment, [](char d) { return '0' <= d && d <= '9'; });
    pattern += (pattern.empty() ? "" : ".") + (index ? "*" : segment);
    segment.clear();
  }
  return pattern;
}

}  // namespace

void audit_init(const Module& module, std::uint64_t seed) {
  std::vector<std::string> different;
  for (const Parameter& p : module.parameters()) {
    const Array found = p.value.array(), declared = empty_like(found);
    p.init.fill(declared, seed, p.name);
    if (same_bytes(found, declared)) continue;
    const std::vector<double> a = to_vector(declared), b = to_vector(found);
    const auto [i, j] = std::ranges::mismatch(a, b);
    const auto at =
        i == a.end() ? 0 : i - a.begin();  // index 0 if all numbers are equal and only their bits differ (0 and -0)
    different.push_back(fmt::format("{} {}: declared {}, element {} would be {:g}, found {:g}", p.name, p.value.shape(),
                                    p.init.description(), at, a[static_cast<std::size_t>(at)],
                                    b[static_cast<std::size_t>(at)]));
  }
  if (different.empty()) return;
  const std::size_t count = different.size();
  different.resize(std::min(count, listed));
  fail(fmt::format(
      "[audit_init] expected every tensor of {} to start as its Init declares for seed {}, got {} that differ:\n "
      "      {}{}\n       call initialize() last, after every change of an Init",
      *module.path(), seed, count, fmt::join(different, "\n       "), count > listed ? "\n       .." : ""));
}

std::vector<InitGroup> init_groups(const Module& module) {
  std::vector<InitGroup> groups;
  for (const Parameter& p : module.parameters()) {
    InitGroup g{without_indices(p.name), p.value.shape(), p.role,           p.init.description(),
                p.lr_factor(),           p.eps_factor(),  p.decay_factor(), 1};
    const auto same = std::ranges::find_if(groups, [&](const InitGroup& o) {
      return o.names == g.names && o.shape == g.shape && o.role == g.role && o.init == g.init &&
             o.lr_factor == g.lr_factor && o.eps_factor == g.eps_factor && o.decay_factor == g.decay_factor;
    });
    if (same != groups.end())
      ++same->tensors;
    else
      groups.push_back(std::move(g));
  }
  return groups;
}

}  // namespace plumb::nn
