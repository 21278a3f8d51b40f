#include "nn/detection/set_loss.h"

#include <algorithm>
#include <array>
#include <limits>

#include "autograd/ops.h"
#include "core/scope.h"
#include "nn/detection/match_sets.h"

namespace plumb::nn {
namespace {

std::array<double, 4> centre_form(const Box& b) {
  return {(b.x0 + b.x1) / 2, (b.y0 + b.y1) / 2, b.width(), b.height()};
}

}  // namespace

SetLoss set_loss(const Detections& d, const Targets& targets, const SetLossOptions& options) {
  check(options.no_object > 0, "[set_loss] expected a weight of predictions without an object above 0, got {}",
        options.no_object);
  const SetMatches matches = match_sets(d, targets, options);
  if (!matches.not_finite.empty()) {
    const PathScope scope(std::make_shared<const std::string>("set_loss." + matches.not_finite));
    const Tensor nan = sum(d.boxes) * std::numeric_limits<double>::quiet_NaN();
    return {nan, nan, nan, nan};
  }
  const std::int64_t B = d.logits.dim(1), Q = d.logits.dim(2), K = d.logits.dim(3), rows = d.logits.numel() / K;
  std::vector<std::int64_t> labels(static_cast<std::size_t>(rows), K - 1), matched;
  std::vector<double> weights(static_cast<std::size_t>(rows), options.no_object), wanted;
  for (std::size_t l = 0; l < matches.pairs.size(); ++l) {
    double total = options.no_object * static_cast<double>(B * Q);
    for (std::size_t b = 0; b < targets.size(); ++b)
      for (const RowColumn& pair : matches.pairs[l][b]) {
        const Target& target = targets[b][static_cast<std::size_t>(pair.column)];
        const std::int64_t row = (static_cast<std::int64_t>(l) * B + static_cast<std::int64_t>(b)) * Q + pair.row;
        labels[static_cast<std::size_t>(row)] = target.label;
        weights[static_cast<std::size_t>(row)] = 1;
        total += 1 - options.no_object;
        matched.push_back(row);
        const std::array<double, 4> box = centre_form(target.box);
        wanted.insert(wanted.end(), box.begin(), box.end());
      }
    for (std::int64_t i = 0; i < B * Q; ++i)
      weights[l * static_cast<std::size_t>(B * Q) + static_cast<std::size_t>(i)] /= total;
  }
  double objects = 0;
  for (const auto& of_image : targets) objects += static_cast<double>(of_image.size());
  objects = std::max(objects, 1.0);

  const Defaults like{d.logits.dtype(), d.logits.device()};
  const Tensor log_p = log_softmax(reshape(d.logits, Shape{rows, K}));
  const Tensor of_label = take_along_axis(log_p, integers(labels, Shape{rows, 1}, like.device), 1);
  SetLoss loss;
  loss.classes = sum(of_label * tensor(weights, Shape{rows, 1}, like)) * -options.loss.classes;
  if (matched.empty()) {
    loss.l1 = loss.giou = sum(d.boxes) * 0;
  } else {
    const auto pairs = std::ssize(matched);
    const Tensor found = gather(reshape(d.boxes, Shape{rows, 4}), integers(matched, Shape{pairs}, like.device));
    const Tensor target = tensor(wanted, Shape{pairs, 4}, like);
    loss.l1 = sum(abs(found - target)) * (options.loss.l1 / objects);
    loss.giou = sum(1 - generalized_iou(corners_of(found), corners_of(target))) * (options.loss.giou / objects);
  }
  loss.total = loss.classes + loss.l1 + loss.giou;
  return loss;
}

}  // namespace plumb::nn
