#include "nn/detection/match_sets.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "autograd/ops.h"

namespace plumb::nn {
namespace {

void check_inputs(const Detections& d, const Targets& targets) {
  detail::check_operands("set_loss", d.logits, d.boxes);
  const Shape& logits = d.logits.shape();
  check(logits.rank() == 4 && logits.numel() > 0 && logits[3] >= 2 && d.boxes.shape() == logits.with(3, 4),
        "[set_loss] expected logits [L, B, Q, C + 1] and boxes [L, B, Q, 4], got {} and {}", logits, d.boxes.shape());
  check(std::ssize(targets) == logits[1], "[set_loss] expected the targets of each of {} images, got those of {}",
        logits[1], targets.size());
  const std::int64_t classes = logits[3] - 1;
  for (std::size_t b = 0; b < targets.size(); ++b)
    for (const Target& t : targets[b]) {
      check(0 <= t.label && t.label < classes, "[set_loss] expected labels in 0..{}, got {} in image {}", classes - 1,
            t.label, b);
      check(std::isfinite(t.box.area()) && t.box.width() > 0 && t.box.height() > 0,
            "[set_loss] expected boxes with x0 < x1 and y0 < y1, got ({:g}, {:g}, {:g}, {:g}) in image {}", t.box.x0,
            t.box.y0, t.box.x1, t.box.y1, b);
      check(std::min(t.box.x0, t.box.y0) >= -1 && std::max(t.box.x1, t.box.y1) <= 2,
            "[set_loss] expected boxes in shares of the sides of the image, got ({:g}, {:g}, {:g}, {:g}) in image {}",
            t.box.x0, t.box.y0, t.box.x1, t.box.y1, b);
    }
}

// The terms of the cost of one pair.
SetTerms terms_of(std::span<const double> probabilities, std::span<const double> centre, const Target& target) {
  const double x = centre[0], y = centre[1], w = centre[2], h = centre[3];
  const Box box{x - w / 2, y - h / 2, x + w / 2, y + h / 2};
  return {.classes = -probabilities[static_cast<std::size_t>(target.label)],
          .l1 = l1_distance(box, target.box),
          .giou = -generalized_iou(box, target.box)};
}

// softmax of a row of logits, in place.
void to_probabilities(std::span<double> row) {
  const double most = *std::ranges::max_element(row);
  for (double& x : row) x = std::exp(x - most);
  const double total = std::accumulate(row.begin(), row.end(), 0.0);
  for (double& x : row) x /= total;
}

}  // namespace

SetMatches match_sets(const Detections& d, const Targets& targets, const SetLossOptions& options) {
  check_inputs(d, targets);
  const std::int64_t L = d.logits.dim(0), Q = d.logits.dim(2);
  const auto K = static_cast<std::size_t>(d.logits.dim(3));
  std::vector<double> probabilities = d.logits.values(), boxes = d.boxes.values(), costs;
  const SetTerms& weight = options.matching;
  SetMatches matches{std::vector(static_cast<std::size_t>(L), std::vector(targets.size(), std::vector<RowColumn>()))};
  std::size_t row = 0;  // of the predictions, over layers, images and queries
  for (auto& layer : matches.pairs)
    for (std::size_t b = 0; b < targets.size(); ++b) {
      costs.clear();
      for (std::int64_t q = 0; q < Q; ++q, ++row) {
        const std::span<double> p(probabilities.data() + row * K, K);
        to_probabilities(p);
        for (const Target& target : targets[b]) {
          const SetTerms t = terms_of(p, std::span(boxes).subspan(row * 4, 4), target);
          for (const auto& [name, value] : {std::pair("classes", t.classes), {"l1", t.l1}, {"giou", t.giou}})
            if (!std::isfinite(value)) return {.pairs = {}, .not_finite = name};
          costs.push_back(weight.classes * t.classes + weight.l1 * t.l1 + weight.giou * t.giou);
        }
      }
      layer[b] = assign({costs, Q, std::ssize(targets[b])});
    }
  return matches;
}

}  // namespace plumb::nn
