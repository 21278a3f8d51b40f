#include "experiments/common/probes.h"

#include <algorithm>
#include <cmath>

#include "autograd/node.h"
#include "autograd/ops.h"

namespace plumb::lab {
namespace {

// L2 norm of each sample of x [B, ..].
std::vector<double> sample_norms(const Tensor& x) {
  const Tensor rows = reshape(x, {x.dim(0), x.numel() / x.dim(0)});
  return sqrt(sum(rows * rows, {1})).values();
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

JunctionStatistics measure(const nn::Junction& j) {
  const NoGrad no_grad;
  const Tensor stream = j.stream.detach();
  // What the gate adds: its value over a stream of zeros. The difference output - stream would drown in rounding for small gates.
  const Tensor added = j.gate.combine(zeros_like(stream), j.branch_value.detach());
  const std::vector<double> x = sample_norms(stream), g = sample_norms(added);
  std::vector<double> ratios(x.size());
  std::ranges::transform(g, x, ratios.begin(), std::divides{});

  JunctionStatistics s{.block = j.block, .branch = j.branch.kind(), .stream_norm = mean_of(x), .branch_norm = mean_of(g), .ratio = mean_of(ratios)};
  double total = 0, largest = 0;
  std::int64_t entries = 0;
  for (const nn::Parameter& p : j.gate.parameters()) {
    if (p.role != nn::Role::gate) continue;
    for (double v : p.value.values()) {
      total += std::abs(v);
      largest = std::max(largest, std::abs(v));
      ++entries;
    }
  }
  if (entries > 0) {
    s.gate_mean = total / static_cast<double>(entries);
    s.gate_max = largest;
  }
  return s;
}

}  // namespace

JunctionProbe::JunctionProbe(const nn::Stack& stack) {
  for (const auto& block : stack.blocks()) handles_.push_back(block->observe([this](const nn::Junction& j) { seen_.push_back(measure(j)); }));
}

std::vector<JunctionStatistics> JunctionProbe::finish(const Gradients& gradients) {
  for (JunctionStatistics& s : seen_) {
    const std::string prefix = fmt::format("blocks.{}.{}.", s.block, s.branch);
    double squares = 0;
    for (const Gradients::Entry& e : gradients.entries())
      if (e.node->name.starts_with(prefix)) squares += kernels(e.gradient.array()).sum_of_squares(e.gradient.array());
    s.grad_norm = std::sqrt(squares);
  }
  return std::exchange(seen_, {});
}

}  // namespace plumb::lab
