#include "nn/init_groups.h"

#include <algorithm>

namespace plumb::nn {
namespace {

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
