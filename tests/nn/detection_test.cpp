// Boxes, the assignment of predictions to objects, and the loss of a set.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "core/atomic_file.h"
#include "nn/detection/match_sets.h"
#include "nn/detection/set_loss.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;
using nn::Box;
using nn::RowColumn;
using Json = nlohmann::json;

namespace {

Json golden_json(const std::string& name) {
  return Json::parse(read_file(test::source_dir() + "/tests/golden/detection/" + name + ".json"));
}

double total(const nn::CostMatrix& costs, const std::vector<RowColumn>& pairs) {
  double sum = 0;
  for (const RowColumn& p : pairs) sum += costs.at(p.row, p.column);
  return sum;
}

// The least sum over all assignments, by trying all permutations of the columns; rows <= columns.
double least_total(const nn::CostMatrix& costs) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(costs.columns));
  std::iota(order.begin(), order.end(), 0);
  double least = std::numeric_limits<double>::infinity();
  do {
    double sum = 0;
    for (std::int64_t i = 0; i < costs.rows; ++i) sum += costs.at(i, order[static_cast<std::size_t>(i)]);
    least = std::min(least, sum);
  } while (std::ranges::next_permutation(order).found);
  return least;
}

// Whether the pairs are sorted by row, use no row or column twice, and are as many as possible.
bool is_assignment(const nn::CostMatrix& costs, const std::vector<RowColumn>& pairs) {
  std::vector<bool> used(static_cast<std::size_t>(costs.columns));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (i > 0 && pairs[i].row <= pairs[i - 1].row) return false;
    if (used[static_cast<std::size_t>(pairs[i].column)]) return false;
    used[static_cast<std::size_t>(pairs[i].column)] = true;
  }
  return std::ssize(pairs) == std::min(costs.rows, costs.columns);
}

// A small batch: 2 layers, 3 images with 2, 0 and 3 objects, 4 queries, 3 classes.
struct SmallBatch {
  Tensor logits, centres;  // the boxes are sigmoid(centres)
  nn::Targets targets{{{1, {0.1, 0.2, 0.4, 0.9}}, {0, {0.5, 0.5, 0.6, 0.8}}},
                      {},
                      {{2, {0, 0, 1, 1}}, {1, {0.3, 0.1, 0.35, 0.2}}, {0, {0.7, 0.1, 0.9, 0.5}}}};

  explicit SmallBatch(std::int64_t queries = 4)
      : logits(variable(random_normal({2, 3, queries, 4}, 0, "logits"))),
        centres(variable(random_normal({2, 3, queries, 4}, 0, "centres"))) {}
  nn::Detections predicted() const { return {logits, sigmoid(centres)}; }
};

}  // namespace

TEST_CASE("an assignment has the least cost of all assignments") {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (std::int64_t rows = 1; rows <= 7; ++rows)
    for (std::int64_t columns = rows; columns <= 7; ++columns)
      for (const bool ties : {false, true}) {
        std::vector<double> costs;
        for (std::int64_t i = 0; i < rows * columns; ++i)
          costs.push_back(ties ? std::round(normal(random)) : normal(random));
        const nn::CostMatrix c{costs, rows, columns};
        const auto pairs = nn::assign(c);
        CHECK(is_assignment(c, pairs));
        CHECK(total(c, pairs) == Approx(least_total(c)).margin(1e-12));
        // The transposed matrix has the same least sum.
        std::vector<double> turned;
        for (std::int64_t j = 0; j < columns; ++j)
          for (std::int64_t i = 0; i < rows; ++i) turned.push_back(c.at(i, j));
        const nn::CostMatrix t{turned, columns, rows};
        CHECK(is_assignment(t, nn::assign(t)));
        CHECK(total(t, nn::assign(t)) == Approx(total(c, pairs)).margin(1e-12));
      }
}

TEST_CASE("assignments equal those of SciPy") {
  for (const Json& c : golden_json("assignments")) {
    const auto costs = c["costs"].get<std::vector<double>>();
    const nn::CostMatrix matrix{costs, c["rows"], c["columns"]};
    const auto pairs = nn::assign(matrix);
    CHECK(is_assignment(matrix, pairs));
    CHECK(total(matrix, pairs) == Approx(c["total"].get<double>()).epsilon(1e-12));
    if (!c["unique"].get<bool>()) continue;  // with ties, several assignments have the least cost
    std::vector<RowColumn> expected;
    for (const Json& p : c["pairs"]) expected.push_back({p[0], p[1]});
    CHECK(pairs == expected);
  }
}

TEST_CASE("an assignment of nothing is empty and refuses costs that are not finite") {
  CHECK(nn::assign({{}, 0, 3}).empty());
  CHECK(nn::assign({{}, 3, 0}).empty());
  const std::vector<double> costs{1, 2, std::nan(""), 4};
  CHECK_THAT(error_of([&] {
               (void)nn::assign({costs, 2, 2});
             }),
             contains("[assign] expected finite costs, got nan in row 1 and column 0"));
  CHECK_THAT(error_of([&] {
               (void)nn::assign({costs, 2, 3});
             }),
             contains("expected a cost for each of 2 rows and 3 columns, got 4 costs"));
}

TEST_CASE("the generalised IoU and its gradients equal those of PyTorch") {
  const DefaultsScope f64(reference_f64);
  const Json c = golden_json("boxes");
  const auto values = [&](const char* name) { return c[name].get<std::vector<double>>(); };
  const std::int64_t n = std::ssize(values("giou"));
  const Tensor first = variable(tensor(values("first"), {n, 4})), second = variable(tensor(values("second"), {n, 4}));
  const Tensor giou = nn::generalized_iou(first, second);
  CHECK(relative_error(giou.values(), values("giou")) < 1e-12);
  const Tensors g = grad(sum(giou * tensor(values("cotangent"), {n})), {first, second});
  CHECK(relative_error(g[0].values(), values("d_first")) < 1e-11);
  CHECK(relative_error(g[1].values(), values("d_second")) < 1e-11);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto box = [&](const std::vector<double>& v) {
      const auto at = static_cast<std::size_t>(4 * i);
      return Box{v[at], v[at + 1], v[at + 2], v[at + 3]};
    };
    CHECK(nn::generalized_iou(box(values("first")), box(values("second"))) ==
          Approx(values("giou")[static_cast<std::size_t>(i)]).epsilon(1e-12));
  }
  CHECK_NOTHROW(check_gradients([](const Tensors& in) { return nn::generalized_iou(in[0], in[1]); }, {first, second},
                                {.order = 2}));
}

TEST_CASE("the generalised IoU is 1 for equal boxes, falls to -1, and is finite without area") {
  const Box box{0.2, 0.2, 0.4, 0.6};
  CHECK(nn::generalized_iou(box, box) == Approx(1));
  CHECK(nn::generalized_iou({0, 0, 1e-4, 1e-4}, {1 - 1e-4, 1 - 1e-4, 1, 1}) == Approx(-1).margin(1e-6));
  CHECK(nn::generalized_iou({0, 0, 1, 1}, {0, 0, 1, 0.5}) == Approx(0.5));
  const Box point{0.3, 0.3, 0.3, 0.3};
  CHECK(nn::generalized_iou(point, point) == 0);
  const DefaultsScope f32(cpu_f32);
  const Tensor points = variable(full({2, 4}, 0.3));
  const Tensor giou = nn::generalized_iou(points, points);
  CHECK(std::isfinite(sum(giou).item()));
  CHECK(std::isfinite(sum(grad(sum(giou), points)).item()));
}

TEST_CASE("the two forms of boxes convert into each other") {
  const DefaultsScope f64(reference_f64);
  const Tensor centres = tensor({{0.5, 0.4, 0.2, 0.6}, {0.1, 0.1, 0.1, 0.2}});
  CHECK(allclose(nn::corners_of(centres), tensor({{0.4, 0.1, 0.6, 0.7}, {0.05, 0.0, 0.15, 0.2}})));
  CHECK(allclose(nn::centres_of(nn::corners_of(centres)), centres));
  CHECK_THAT(error_of([] {
               (void)nn::corners_of(zeros({2, 3}));
             }),
             contains("[corners_of] expected boxes [.., 4], got [2, 3]"));
}

TEST_CASE("the loss of a set equals that of PyTorch") {
  const DefaultsScope f64(reference_f64);
  for (const Json& c : golden_json("set_loss")) {
    const std::int64_t L = c["layers"], B = c["images"], Q = c["queries"], C = c["classes"];
    const auto values = [&](const char* name) { return c[name].get<std::vector<double>>(); };
    const Tensor logits = variable(tensor(values("logits"), {L, B, Q, C + 1})),
                 boxes = variable(tensor(values("boxes"), {L, B, Q, 4}));
    nn::Targets targets;
    for (const Json& of_image : c["targets"]) {
      targets.emplace_back();
      for (const Json& object : of_image) {
        const auto b = object["box"].get<std::vector<double>>();
        targets.back().push_back(
            {object["label"], {b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2}});
      }
    }
    const nn::SetLoss loss = nn::set_loss({logits, boxes}, targets);
    CHECK(loss.classes.item() == Approx(c["terms"]["classes"].get<double>()).epsilon(1e-12));
    CHECK(loss.l1.item() == Approx(c["terms"]["l1"].get<double>()).epsilon(1e-12));
    CHECK(loss.giou.item() == Approx(c["terms"]["giou"].get<double>()).epsilon(1e-12));
    CHECK(loss.total.item() == Approx(loss.classes.item() + loss.l1.item() + loss.giou.item()));
    const Tensors g = grad(loss.total, {logits, boxes});
    CHECK(relative_error(g[0].values(), values("d_logits")) < 1e-11);
    CHECK(relative_error(g[1].values(), values("d_boxes")) < 1e-11);
  }
}

TEST_CASE("the loss of a set has right first and second derivatives") {
  const DefaultsScope f64(reference_f64);
  const SmallBatch batch;
  CHECK_NOTHROW(check_gradients([&] { return nn::set_loss(batch.predicted(), batch.targets).total; },
                                {batch.logits, batch.centres}, {.order = 2, .elements = 4, .directions = 3}));
}

TEST_CASE("the loss of a set depends neither on the order of the targets nor on that of the queries") {
  const DefaultsScope f64(reference_f64);
  for (const std::int64_t queries : {4, 2}) {  // with two queries, the last image has more objects than queries
    SmallBatch batch(queries);
    const double loss = nn::set_loss(batch.predicted(), batch.targets).total.item();
    const auto turned = [](const Tensor& x) { return flip(x, {2}); };
    CHECK(nn::set_loss({turned(batch.logits), turned(sigmoid(batch.centres))}, batch.targets).total.item() ==
          Approx(loss).epsilon(1e-12));
    for (auto& of_image : batch.targets) std::ranges::reverse(of_image);
    CHECK(nn::set_loss(batch.predicted(), batch.targets).total.item() == Approx(loss).epsilon(1e-12));
  }
}

TEST_CASE("each layer of predictions is matched by itself and every query gets at most one object") {
  const SmallBatch batch;
  const nn::SetMatches matches = nn::match_sets(batch.predicted(), batch.targets);
  REQUIRE(matches.pairs.size() == 2);
  for (const auto& layer : matches.pairs) {
    REQUIRE(layer.size() == 3);
    CHECK(layer[0].size() == 2);
    CHECK(layer[1].empty());
    CHECK(layer[2].size() == 3);
  }
  // The predictions of one query are the objects of an image: the pair is found.
  const Tensor centre = tensor({{0.25, 0.55, 0.3, 0.7}});
  const Tensor boxes = concat({full({1, 1, 2, 4}, 0.1), reshape(centre, {1, 1, 1, 4})}, 2);
  const Tensor logits = tensor({{{{0, 0, 0, 9}, {0, 0, 0, 9}, {0, 9, 0, 0}}}});
  const auto found = nn::match_sets({logits, boxes}, {{batch.targets[0][0]}});
  CHECK(found.pairs[0][0] == std::vector<RowColumn>{{2, 0}});
}

TEST_CASE("a batch without objects has a finite loss of classes and no loss of boxes") {
  const SmallBatch batch;
  const nn::SetLoss loss = nn::set_loss(batch.predicted(), nn::Targets(3));
  CHECK(std::isfinite(loss.classes.item()));
  CHECK(loss.l1.item() == 0);
  CHECK(loss.giou.item() == 0);
  const Tensors g = grad(loss.total, {batch.logits, batch.centres});
  CHECK(max(abs(g[0])).item() > 0);
  CHECK(max(abs(g[1])).item() == 0);
}

TEST_CASE("a cost that is not finite makes the loss NaN and its term is named") {
  const SmallBatch batch;
  const auto spoiled = [](const Tensor& x, double value) {
    std::vector<double> values = x.values();
    values[1] = value;
    return tensor(values, x.shape());
  };
  const Tensor boxes = sigmoid(batch.centres).detach();
  const nn::Detections bad_logits{spoiled(batch.logits, std::nan("")), boxes},
      bad_boxes{batch.logits.detach(), spoiled(boxes, std::numeric_limits<double>::infinity())};
  CHECK(nn::match_sets(bad_logits, batch.targets).not_finite == "classes");
  CHECK(nn::match_sets(bad_boxes, batch.targets).not_finite == "l1");
  CHECK(std::isnan(nn::set_loss(bad_logits, batch.targets).total.item()));
  CHECK(std::isnan(nn::set_loss(bad_boxes, batch.targets).total.item()));
  const AnomalyMode anomaly;
  CHECK_THAT(error_of([&] { (void)nn::set_loss(bad_logits, batch.targets); }), contains("in set_loss.classes"));
  CHECK_THAT(error_of([&] { (void)nn::set_loss(bad_boxes, batch.targets); }), contains("in set_loss.l1"));
}

TEST_CASE("the loss of a set refuses wrong shapes and labels and boxes") {
  SmallBatch batch;
  const auto error = [&] { return error_of([&] { (void)nn::set_loss(batch.predicted(), batch.targets); }); };
  batch.targets[2][1].label = 3;
  CHECK_THAT(error(), contains("[set_loss] expected labels in 0..2, got 3 in image 2"));
  batch.targets[2][1] = {0, {0.5, 0.5, 0.5, 0.6}};
  CHECK_THAT(error(), contains("expected boxes with x0 < x1 and y0 < y1, got (0.5, 0.5, 0.5, 0.6) in image 2"));
  batch.targets[2][1] = {0, {10, 10, 30, 40}};
  CHECK_THAT(error(), contains("expected boxes in shares of the sides of the image, got (10, 10, 30, 40) in image 2"));
  batch.targets.pop_back();
  CHECK_THAT(error(), contains("expected the targets of each of 3 images, got those of 2"));
  CHECK_THAT(error_of([&] {
               (void)nn::set_loss({batch.logits, batch.logits[0]}, batch.targets);
             }),
             contains("expected logits [L, B, Q, C + 1] and boxes [L, B, Q, 4]"));
  CHECK_THAT(error_of([&] { (void)nn::set_loss(batch.predicted(), batch.targets, {.no_object = 0}); }),
             contains("expected a weight of predictions without an object above 0, got 0"));
}
