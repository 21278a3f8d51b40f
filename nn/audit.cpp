#include "nn/audit.h"

#include <algorithm>

namespace plumb::nn {
namespace {

constexpr std::size_t listed = 8;  // the maximum number of tensors that an error names

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

}  // namespace plumb::nn
