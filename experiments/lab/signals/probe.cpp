#include "experiments/lab/signals/probe.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"
#include "experiments/lab/signals/growth.h"
#include "nn/evaluation_scope.h"

namespace plumb::lab {
namespace {

constexpr std::int64_t attention_samples = 4;

double squares(const Tensor& x) { return sum_of_squares(x.array()); }
double mean_square(const Tensor& x) { return squares(x) / static_cast<double>(x.numel()); }

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

// The dot products <a, b> of all samples; a and b have the shape [B, N].
std::vector<double> products(const Tensor& a, const Tensor& b) { return sum(a * b, {1}).values(); }

Tensor rows_of(const Tensor& x) { return reshape(x, {x.dim(0), x.numel() / x.dim(0)}); }

void measure_gate(const Tensor& factors, BranchStats& row) {
  if (!factors.defined() || factors.numel() == 0) return;
  std::vector<double> sizes = factors.values();
  for (double& v : sizes) v = std::abs(v);
  const auto [least, largest] = std::ranges::minmax(sizes);
  row.gate_mean = mean_of(sizes);
  row.gate_min = least;
  row.gate_max = largest;
}

// The entropy of softmax(logits) in nats: ln Z - <p, logits>.
double entropy_of(const std::vector<double>& logits) {
  const double top = *std::ranges::max_element(logits);
  double z = 0, mean = 0;
  for (double s : logits) {
    z += std::exp(s - top);
    mean += std::exp(s - top) * (s - top);
  }
  return std::log(z) - mean / z;
}

std::string place(const BranchStats& row) {
  const std::string branch = row.branch == "mlp" ? "MLP" : row.branch == "attn" ? "attention" : row.branch;
  return fmt::format("the {} of block {}", branch, row.block);
}

}  // namespace

SignalProbe::SignalProbe(const nn::Stack& stack) : stack_(stack) {
  const std::vector<nn::Junction*> junctions = stack.junctions();
  layers_.growth = stack.method().growth;
  layers_.branches.resize(junctions.size());
  added_.resize(junctions.size());
  for (std::size_t i = 0; i < junctions.size(); ++i) {
    nn::Branch& branch = junctions[i]->branch();
    std::vector<Tensor>& copies = before_.emplace_back();
    for (const nn::Parameter& p : branch.parameters()) {
      copies.emplace_back(empty_like(p.value.array()));
      copy_into(p.value.array(), copies.back().array());
    }
    keys_.push_back(0);
    // Other attention, and talking heads, may change the scores before the softmax.
    const bool known = dynamic_cast<const nn::Attention*>(&branch) || dynamic_cast<const nn::CrossAttention*>(&branch);
    if (const auto* attention = dynamic_cast<const nn::AttentionBranch*>(&branch))
      handles_.push_back(attention->observe([this, i, known, &o = attention->options()](const nn::AttentionPass& pass) {
        keys_[i] = pass.k.dim(2);
        if (known && o.head_mix == nn::HeadMix::none) see_scores(layers_.branches[i], pass, o.causal);
      }));
  }
  for (nn::Junction* junction : junctions)
    handles_.push_back(junction->observe([this](const nn::JunctionPass& j) { see(j); }));
}

void SignalProbe::see(const nn::JunctionPass& j) {
  const NoGrad no_grad;
  const auto i = static_cast<std::size_t>(j.place.index());
  BranchStats& row = layers_.branches[i];
  const Tensor stream = j.before.x.detach();
  const Tensor added = j.gate.added(stream, j.branch_value.detach());
  const Tensor x = rows_of(stream), g = rows_of(added), moved = rows_of(j.joined.detach() - stream);
  std::vector<double> xx = products(x, x), gg = products(g, g), xg = products(x, g), mm = products(moved, moved),
                      ratios, cosines, changes;
  for (std::size_t b = 0; b < xx.size(); ++b) {
    ratios.push_back(std::sqrt(gg[b] / xx[b]));
    changes.push_back(std::sqrt(mm[b] / xx[b]));
    cosines.push_back(xg[b] / std::sqrt(xx[b] * gg[b]));
    xx[b] = std::sqrt(xx[b]);
    gg[b] = std::sqrt(gg[b]);
  }
  row.block = j.place.block;
  row.branch = j.branch_name;
  row.norm = j.norm;
  row.stream_norm = mean_of(xx);
  row.branch_norm = mean_of(gg);
  row.ratio = mean_of(ratios);
  row.cosine = mean_of(cosines);
  row.change = mean_of(changes);
  row.mean_square = mean_square(j.output);
  if (const auto* attention = dynamic_cast<const nn::AttentionBranch*>(&j.branch);
      attention && attention->training() && attention->options().drop_key.rate > 0) {
    const nn::DropKeyStatistics dropped = attention->drop_key_statistics(stream.dim(0), stream.dim(1), keys_[i]);
    row.drop_ratio = dropped.drop_ratio;
    row.empty_rows = dropped.empty_rows;
  }
  measure_gate(j.gate.values(j.before), row);
  added_[i] = mean_square(added);
  if (i == 0) {
    layers_.sample = j.branch_value.shape().without(0);  // the stream of some methods has more axes
    layers_.input_mean_square = mean_square(stream);
  }
  ++seen_;
}

void SignalProbe::see_scores(BranchStats& row, const nn::AttentionPass& pass, bool causal) {
  const NoGrad no_grad;
  const std::int64_t samples = std::min(attention_samples, pass.q.dim(0)), heads = pass.q.dim(1), N = pass.q.dim(2),
                     M = pass.k.dim(2), width = pass.q.dim(3);
  const std::vector<double> queries = slice(pass.q, 0, 0, samples).values(),
                            keys = slice(pass.k, 0, 0, samples).values(),
                            keep =
                                pass.keep.defined() ? slice(pass.keep, 0, 0, samples).values() : std::vector<double>();
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  double total = 0, relative = 0, rows = 0, largest = -std::numeric_limits<double>::infinity();
  std::vector<double> logits;
  for (std::int64_t b = 0; b < samples; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < N; ++i) {
        const double* q = queries.data() + ((b * heads + h) * N + i) * width;
        logits.clear();
        for (std::int64_t j = 0; j < (causal ? i + M - N + 1 : M); ++j) {
          if (!keep.empty() && keep[static_cast<std::size_t>(b * M + j)] == 0) continue;
          const double* k = keys.data() + ((b * heads + h) * M + j) * width;
          double dot = 0;
          for (std::int64_t c = 0; c < width; ++c) dot += q[c] * k[c];
          logits.push_back(scale * dot);
        }
        if (logits.empty()) continue;  // the query may see no key
        ++rows;
        const double entropy = entropy_of(logits);
        total += entropy;
        if (logits.size() > 1) relative += entropy / std::log(static_cast<double>(logits.size()));
        largest = std::max(largest, *std::ranges::max_element(logits));
      }
  if (rows == 0) return;
  row.entropy = total / rows;
  if (M > 1) row.relative_entropy = relative / rows;
  row.largest_logit = largest;
}

LayerStats SignalProbe::finish(const Gradients& gradients) const {
  const NoGrad no_grad;
  const std::vector<nn::Junction*> junctions = stack_.junctions();
  check(seen_ >= junctions.size(),
        "[layers] expected a forward pass through the stack while the probe exists, got none; create the probe "
        "before the pass");
  LayerStats layers = layers_;
  std::unordered_map<const Node*, const Tensor*> gradient_of;
  for (const Gradients::Entry& e : gradients.entries()) gradient_of[e.node.get()] = &e.gradient;

  std::vector<nn::Norm> norms;
  bool moved = false;
  for (std::size_t i = 0; i < junctions.size(); ++i) {
    double gradient = 0, change = 0, size = 0;
    const std::vector<nn::Parameter> parameters = junctions[i]->branch().parameters();
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const Tensor value = parameters[k].value.detach();
      if (const auto found = gradient_of.find(parameters[k].value.node().get()); found != gradient_of.end())
        gradient += squares(*found->second);
      change += squares(value - before_[i][k]);
      size += squares(before_[i][k]);
    }
    layers.branches[i].grad_norm = std::sqrt(gradient);
    layers.branches[i].update = std::sqrt(change / size);
    moved = moved || change != 0;
    norms.push_back(layers.branches[i].norm);
  }
  if (!moved)
    for (BranchStats& row : layers.branches) row.update.reset();

  const auto each = static_cast<std::size_t>(junctions.front()->place().junctions);
  std::size_t first = 0;  // index of the first branch of the first block without post-norm
  while (first + each < norms.size() && norms[first] == nn::Norm::post) first += each;
  const auto begin = added_.begin() + static_cast<std::ptrdiff_t>(first);
  const std::vector<double> predicted = predicted_mean_square(layers.growth, norms, layers.input_mean_square,
                                                              {begin, begin + static_cast<std::ptrdiff_t>(each)});
  for (std::size_t i = 0; i < predicted.size(); ++i) layers.branches[i].predicted_mean_square = predicted[i];
  return layers;
}

std::vector<std::string> warnings(const LayerStats& layers) {
  for (const BranchStats& row : layers.branches) {
    if (!std::isfinite(row.mean_square)) return {fmt::format("the stream is not finite after {}", place(row))};
    if (row.norm != nn::Norm::post && layers.growth == nn::Growth::unstated) continue;
    const double times = row.mean_square / row.predicted_mean_square, off = std::max(times, 1 / times);
    if (row.norm == nn::Norm::post && !(off <= norm_tolerance))
      return {fmt::format("the mean square of the stream is {:.3g} after {}, which ends in a norm: expected 1",
                          row.mean_square, place(row))};
    if (!(off <= law_tolerance))
      return {
          fmt::format("the mean square of the stream is {:.3g} after {}, {:.2g} times the {:.3g} expected of {} growth",
                      row.mean_square, place(row), times, row.predicted_mean_square, enum_name(layers.growth))};
  }
  return {};
}

Estimate jacobian(nn::Stack& stack, const LayerStats& layers, const JacobianOptions& options,
                  const nn::StackInputs& inputs) {
  const nn::EvaluationScope scope(stack);
  std::vector<std::int64_t> batch_of_one{1};
  batch_of_one.insert(batch_of_one.end(), layers.sample.begin(), layers.sample.end());
  const Tensor x =
      random_normal(Shape(batch_of_one), options.seed, "passport.input") * std::sqrt(layers.input_mean_square);
  return mean_squared_singular_value(
      [&](const Tensor& input) {
        const nn::Stream stream = stack.run(input, inputs);
        return stack.method().close ? stack.method().close(stream, nullptr) : stream.x;
      },
      x, options);
}

}  // namespace plumb::lab
