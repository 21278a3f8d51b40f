#include "experiments/lab/signals/probe.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "experiments/lab/report/layers.h"
#include "experiments/lab/signals/growth.h"
#include "experiments/lab/signals/probe_json.h"
#include "experiments/vision/data/open_data.h"
#include "plumb/vision.h"
#include "tests/support/built_in_gates.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;
using nn::Growth;
using nn::Norm;

namespace {

// The gate x + (1/2, -1/4) * f(x), without a norm.
struct TwoNumbers : nn::ScaleGate {
  TwoNumbers() { scale_ = parameter("gamma", tensor({0.5, -0.25}, {2}), Role::gate); }
};

nn::Stack two_channel_stack() {
  return nn::Stack({.dim = 2,
                    .depth = 1,
                    .method = nn::Method{.norm = Norm::none, .build = nn::gates_from<TwoNumbers>},
                    .junctions = nn::transformer_block({.heads = 1}, {.hidden = 2})});
}

void set(nn::Stack& stack, const std::string& name, const std::vector<double>& values) {
  for (const nn::Parameter& p : stack.parameters())
    if (p.name == name) return copy_into(tensor(values, p.value.shape()).array(), p.value.array());
  FAIL("no parameter " + name);
}

// Sets q = k = x and v = 0, so that the output of the attention is (2, 4). Sets the weights of the MLP so that the
// output of the MLP is (0, 0).
void make_simple(nn::Stack& stack) {
  set(stack, "blocks.0.attn.qkv.weight", {1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0});
  set(stack, "blocks.0.attn.qkv.bias", {0, 0, 0, 0, 0, 0});
  set(stack, "blocks.0.attn.proj.weight", {0, 0, 0, 0});
  set(stack, "blocks.0.attn.proj.bias", {2, 4});
  set(stack, "blocks.0.mlp.fc1.weight", {0, 0, 0, 0});
  set(stack, "blocks.0.mlp.fc1.bias", {-100, -100});  // gelu and its slope are 0 at -100
  set(stack, "blocks.0.mlp.fc2.weight", {0, 0, 0, 0});
  set(stack, "blocks.0.mlp.fc2.bias", {0, 0});
}

nn::ViT fresh(const nn::MethodChoice& gate, std::int64_t depth, bool paper_init = false) {
  return nn::ViT({.image = 32,
                  .patch = 8,
                  .channels = 1,
                  .classes = 7,
                  .dim = 32,
                  .depth = depth,
                  .heads = 2,
                  .method = gate,
                  .pool = nn::Pool::token,
                  .recipe = paper_init ? std::optional(gate->paper) : std::nullopt});
}

// The statistics of a forward pass without gradients.
lab::LayerStats forward_layers(nn::ViT& model) {
  const NoGrad no_grad;
  const Tensor images = random_normal({8, 1, 32, 32}, 3, "images");
  nn::calibrate(model, images);
  lab::SignalProbe probe(model.stack());
  model(images);
  return probe.finish(Gradients(zeros({}), {}));
}

}  // namespace

TEST_CASE("layers: the growth law predicts the mean square of the stream") {
  using Values = std::vector<double>;
  const std::vector<Norm> pre(6, Norm::pre);
  CHECK(lab::predicted_mean_square(Growth::identity, pre, 2, {8, 16}) == Values{2, 2, 2, 2, 2, 2});
  CHECK(lab::predicted_mean_square(Growth::linear, pre, 2, {8, 16}) == Values{10, 26, 34, 50, 58, 74});
  CHECK(lab::predicted_mean_square(Growth::harmonic, pre, 2, {6, 12}) == Values{8, 20, 23, 29, 31, 35});
  CHECK(lab::predicted_mean_square(Growth::geometric, {4, Norm::none}, 2, {2, 12}) == Values{4, 16, 32, 128});
  CHECK(lab::predicted_mean_square(Growth::linear, {4, Norm::post}, 2, {8, 16}) == Values{1, 1, 1, 1});
  const std::vector<Norm> mixed{Norm::post, Norm::post, Norm::pre, Norm::pre, Norm::pre, Norm::pre};
  CHECK(lab::predicted_mean_square(Growth::linear, mixed, 2, {8, 16}) == Values{1, 1, 9, 25, 33, 49});
  CHECK(lab::predicted_mean_square(Growth::harmonic, mixed, 2, {6, 12}) == Values{1, 1, 7, 19, 23, 31});
}

TEST_CASE("layers: the numbers of a tiny model equal those computed by hand") {
  const DefaultsScope f64(reference_f64);
  nn::Stack stack = two_channel_stack();
  make_simple(stack);
  nn::Sgd sgd(stack.parameters(), {.lr = 0.1});
  // Two samples of two tokens. The norms of the samples are sqrt(2) and 5.
  const Tensor x = tensor({1, 0, 0, 1, /**/ 3, 0, 0, 4}, {2, 2, 2});

  lab::SignalProbe probe(stack);
  const Gradients g = backward(sum(stack(x)));
  const lab::LayerStats unmoved = probe.finish(g);
  CHECK_FALSE(unmoved.branches[0].update.has_value());
  sgd.step(g);
  const lab::LayerStats p = probe.finish(g);
  CHECK(p.sample == Shape{2, 2});
  CHECK(p.input_mean_square == Approx(27.0 / 8));
  REQUIRE(p.branches.size() == 2);

  const lab::BranchStats& attn = p.branches[0];
  CHECK(attn.block == 0);
  CHECK(attn.branch == "attn");
  CHECK(attn.norm == Norm::none);
  CHECK(attn.stream_norm == Approx((std::sqrt(2) + 5) / 2));
  CHECK(attn.branch_norm == Approx(2));  // the branch adds (1, -1) to each of two tokens
  CHECK(attn.ratio == Approx((2 / std::sqrt(2) + 2.0 / 5) / 2));
  CHECK(attn.cosine == Approx((0 + -1.0 / 10) / 2));
  CHECK(attn.mean_square == Approx(33.0 / 8));
  CHECK(attn.predicted_mean_square == Approx(27.0 / 8 + 1));
  CHECK(attn.gate_mean.value() == Approx(0.375));
  CHECK(attn.gate_min.value() == Approx(0.25));
  CHECK(attn.gate_max.value() == Approx(0.5));
  CHECK(attn.grad_norm == Approx(std::sqrt(5)));  // only proj.bias has a gradient: 4 tokens x (1/2, -1/4)
  CHECK(attn.update.value() == Approx(0.1 * std::sqrt(5) / std::sqrt(2 + 2 + 20)));
  // The logits of the four queries are (1, 0), (0, 1), (9, 0) and (0, 16), each divided by sqrt(2).
  const auto entropy = [](double s) {
    const double q = 1 / (1 + std::exp(s));
    return -q * std::log(q) - (1 - q) * std::log(1 - q);
  };
  const double r = std::numbers::sqrt2;
  CHECK(attn.entropy.value() == Approx((2 * entropy(1 / r) + entropy(9 / r) + entropy(16 / r)) / 4));
  CHECK(attn.relative_entropy.value() == Approx(attn.entropy.value() / std::numbers::ln2));
  CHECK(attn.largest_logit.value() == Approx(16 / r));

  const lab::BranchStats& mlp = p.branches[1];
  CHECK(mlp.branch == "mlp");
  CHECK(mlp.branch_norm == 0);
  CHECK(mlp.ratio == 0);
  CHECK(std::isnan(mlp.cosine));
  CHECK(mlp.mean_square == Approx(33.0 / 8));
  CHECK(mlp.predicted_mean_square == Approx(27.0 / 8 + 1));
  CHECK(mlp.update.value() == Approx(0.1 * std::sqrt(5) / (100 * r)));
  CHECK_FALSE(mlp.entropy.has_value());
  CHECK_FALSE(mlp.largest_logit.has_value());
}

TEST_CASE("layers: uniform attention has entropy ln T and heads are separate") {
  const DefaultsScope f64(reference_f64);
  nn::Stack stack(
      {.dim = 4, .depth = 1, .method = "pre", .junctions = nn::transformer_block({.heads = 2}, {.hidden = 4})});
  nn::initialize(stack, 0);
  for (const nn::Parameter& p : stack.parameters())
    if (p.name.find("attn") != std::string::npos) copy_into(zeros_like(p.value).array(), p.value.array());
  // The logits are 5 / sqrt(2) in the first head and 21 / sqrt(2) in the second head.
  set(stack, "blocks.0.attn.qkv.bias", {0, 1, 3, 0, 0, 5, 7, 0, 0, 0, 0, 0});
  lab::SignalProbe probe(stack);
  Gradients g = backward(sum(stack(random_normal({6, 5, 4}, 0, "x"))));
  const lab::BranchStats attn = probe.finish(g).branches[0];
  CHECK(attn.entropy.value() == Approx(std::log(5)));
  CHECK(attn.relative_entropy.value() == Approx(1));
  CHECK(attn.largest_logit.value() == Approx(21 / std::sqrt(2)));
}

TEST_CASE("layers: attention uses the first four samples and one token has no relative entropy") {
  const DefaultsScope f64(reference_f64);
  nn::Stack stack = two_channel_stack();
  make_simple(stack);
  lab::SignalProbe probe(stack);
  stack(tensor({1, 0, 2, 0, 3, 0, 4, 0, 100, 0}, {5, 1, 2}));
  const lab::BranchStats attn = probe.finish(Gradients(zeros({}), {})).branches[0];
  CHECK(attn.largest_logit.value() == Approx(16 / std::numbers::sqrt2));
  CHECK(attn.entropy.value() == 0);
  CHECK_FALSE(attn.relative_entropy.has_value());
}

TEST_CASE("layers: the gradient norm covers a branch's parameters under any names") {
  struct Wrapped : nn::Layer {
    nn::Child<nn::Stack> inner{this,
                               "encoder",
                               {.dim = 4,
                                .depth = 2,
                                .method = "layerscale",
                                .junctions = nn::transformer_block({.heads = 2}, {.hidden = 8})}};
    Wrapped() { nn::initialize(*this, 0); }
    Tensor forward(const Tensor& x) const override { return inner(x); }
  };
  const DefaultsScope f64(reference_f64);
  Wrapped model;
  lab::SignalProbe probe(model.inner);
  const Gradients g = backward(sum(model(random_normal({2, 3, 4}, 0, "x")) * random_normal({2, 3, 4}, 0, "c")));
  double squares = 0;
  for (const char* name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"})
    for (double v : g[fmt::format("encoder.blocks.1.mlp.{}", name)].values()) squares += v * v;
  CHECK(squares > 0);
  CHECK(probe.finish(g).branches[3].grad_norm == Approx(std::sqrt(squares)));
}

TEST_CASE("layers: a probe changes no result and removes its hooks and needs a forward pass") {
  nn::Stack stack(
      {.dim = 8, .depth = 2, .method = "pre", .junctions = nn::transformer_block({.heads = 2}, {.hidden = 16})});
  nn::initialize(stack, 0);
  const Tensor x = random_normal({2, 3, 8}, 0, "x");
  const auto gradient = [&] { return backward(sum(stack(x)))["blocks.0.attn.qkv.weight"].values(); };
  const std::vector<double> alone = gradient();
  {
    lab::SignalProbe probe(stack);
    CHECK(dynamic_cast<nn::AttentionBranch&>(stack.blocks()[0].branch("attn")).observed());
    CHECK_THAT(error_of([&] { probe.finish(Gradients(zeros({}), {})); }), contains("expected a forward pass"));
    CHECK(gradient() == alone);
    CHECK(probe.finish(Gradients(zeros({}), {})).branches.size() == 4);
  }
  for (auto& block : stack.blocks()) CHECK_FALSE(dynamic_cast<nn::AttentionBranch&>(block.branch("attn")).observed());
  CHECK(gradient() == alone);
}

TEST_CASE("layers: recomputed blocks have the same statistics") {
  const auto statistics = [](bool checkpoints) {
    nn::ViT model = fresh("pre", 2);
    model.checkpoint_blocks(checkpoints);
    lab::SignalProbe probe(model.stack());
    return probe.finish(
        backward(cross_entropy(model(random_normal({2, 1, 32, 32}, 3, "images")), integers({0, 1}, {2}))));
  };
  const lab::LayerStats kept = statistics(false), recomputed = statistics(true);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(kept.branches[i].ratio == recomputed.branches[i].ratio);
    CHECK(kept.branches[i].grad_norm == Approx(recomputed.branches[i].grad_norm));
    CHECK(kept.branches[i].entropy == recomputed.branches[i].entropy);
  }
}

TEST_CASE("layers: the share of dropped keys is measured under talking heads too") {
  nn::CaiT model({.image = 8,
                  .patch = 4,
                  .channels = 1,
                  .classes = 3,
                  .dim = 8,
                  .depth = 2,
                  .heads = 2,
                  .drop_key = {.rate = 0.4}});
  const RandomScope random({.seed = 0, .step = 0});
  const lab::SignalProbe probe(model.stack());
  const lab::LayerStats layers = probe.finish(
      backward(cross_entropy(model(random_normal({4, 1, 8, 8}, 3, "images")), integers({0, 1, 2, 0}, {4}))));
  REQUIRE(layers.branches[0].drop_ratio.has_value());
  CHECK(std::abs(*layers.branches[0].drop_ratio - 0.4) < 0.25);
  CHECK(layers.branches[0].empty_rows.has_value());
  CHECK_FALSE(layers.branches[0].entropy.has_value());  // the entropy of mixed scores is unknown
  CHECK_FALSE(layers.branches[1].drop_ratio.has_value());
}

TEST_CASE("layers: attention of one's own has no entropy, because its scores are unknown") {
  struct Own : nn::AttentionBranch {
    explicit Own(const nn::AttentionOptions& o) : AttentionBranch("Own", "own", "attn", o) {}
    Tensor forward(nn::BranchCall& call) const override {
      const Tensor packed = call.enter(qkv());
      show(packed, packed, options().dim, {});
      return leave(call, attention_qkv(packed, options().heads, {.scale = 10.0}));
    }
  };
  nn::Stack stack(
      {.dim = 8, .depth = 1, .method = "pre", .junctions = {{"attn", [](const nn::JunctionPlace& place) {
                                                               return std::make_unique<Own>(
                                                                   nn::AttentionOptions{.dim = place.dim, .heads = 2});
                                                             }}}});
  nn::initialize(stack, 1);
  const lab::SignalProbe probe(stack);
  const lab::LayerStats layers = probe.finish(backward(sum(stack(random_normal({2, 3, 8}, 2, "x")))));
  CHECK_FALSE(layers.branches[0].entropy.has_value());
}

TEST_CASE("layers: for every method the change compares the stream before and after the residual sum") {
  const DefaultsScope f64(reference_f64);
  const NoGrad no_grad;
  const Tensor images = random_normal({4, 1, 32, 32}, 3, "images");
  for (const std::string& gate : built_in_gates) {
    INFO(gate);
    nn::ViT model = fresh(gate, 2);
    lab::SignalProbe probe(model.stack());
    std::vector<double> expected;
    std::vector<Handle> watch;
    Tensor before_attention;
    for (auto& block : model.stack().blocks())
      watch.push_back(block.observe([&](const nn::JunctionPass& j) {
        if (j.branch.kind() == "attn") before_attention = j.before.x;
        Tensor y = j.gate.combine(j.before.x, j.branch_value);
        if (gate == "b2t" && j.branch.kind() == "mlp")
          y = y + before_attention;  // the shortcut bypasses the norm of the attention
        double ratios = 0;
        for (std::int64_t b = 0; b < 4; ++b) {
          const Tensor x = slice(j.before.x, 0, b, b + 1), d = slice(y, 0, b, b + 1) - x;
          ratios += std::sqrt(sum(d * d).item() / sum(x * x).item()) / 4;
        }
        expected.push_back(ratios);
      }));
    model(images);
    const lab::LayerStats layers = probe.finish(Gradients(zeros({}), {}));
    REQUIRE(expected.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) CHECK(layers.branches[i].change == Approx(expected[i]).epsilon(1e-9));
  }
}

TEST_CASE("layers: a gate that reads earlier branches is measured on the tensors that the stream carries") {
  // The factor of branch i is 1 / (1 + the number of earlier branches), which the stream counts.
  struct Counted : nn::Gate {
    Tensor factor(const nn::Stream& s) const { return 1 / (1 + s.carried[0]); }
    Tensor values(const nn::Stream& before) const override { return factor(before); }
    void join(nn::Stream& s, const Tensor& branch, const Tensor& row_scale, const nn::Layer* norm) const override {
      const Tensor scaled = factor(s) * branch;
      s.carried[0] = s.carried[0] + 1.0;
      nn::Gate::join(s, scaled, row_scale, norm);
    }
    Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + branch; }
  };
  nn::ViT model = fresh(nn::Method{.growth = Growth::unstated,
                                   .build = nn::gates_from<Counted>,
                                   .open =
                                       [](const Tensor& x) {
                                         return nn::Stream{x, {zeros({1, 1, 1})}};
                                       }},
                        2);
  const lab::LayerStats layers = forward_layers(model);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(layers.branches[i].gate_mean.value() == Approx(1.0 / static_cast<double>(i + 1)));
}

TEST_CASE("layers: a gate that depends on the stream is measured on the stream") {
  struct Highway : nn::Gate {  // (1 - t) x + t f(x), where t = sigmoid(W x + b)
    explicit Highway(const nn::GateContext& c)
        : w(parameter("w", {c.dim, c.dim}, nn::Init::truncated_normal(0.02), Role::gate)),
          b(parameter("b", {c.dim}, nn::Init::constant(3), Role::gate)) {}
    Tensor t(const Tensor& x) const { return 0.5 + 0.5 * tanh(0.5 * linear(x, w, b)); }
    Tensor values(const nn::Stream& before) const override { return t(before.x); }
    Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + t(skip) * (branch - skip); }
    Tensor w, b;
  };
  nn::ViT model = fresh(nn::Method{.growth = Growth::unstated, .build = nn::gates_from<Highway>}, 2);
  const lab::LayerStats layers = forward_layers(model);
  for (const lab::BranchStats& row : layers.branches) {
    CHECK(row.change > 0.8);  // t is near 0.95 and f is small, so the gate removes most of the stream
    CHECK(row.ratio == Approx(row.change).epsilon(1e-5));
    CHECK(row.gate_mean.value() == Approx(1 / (1 + std::exp(-3))).margin(0.02));
    CHECK(row.gate_max.value() <= 1);
    CHECK(std::isnan(row.predicted_mean_square));
  }
  CHECK(lab::warnings(layers).empty());
}

TEST_CASE("layers: fresh networks of built-in methods give no warning", "[long]") {
  for (const std::string& gate : built_in_gates)
    for (std::int64_t depth : {12, 24, 48})
      for (bool paper_init : {false, true}) {
        INFO(gate << " depth " << depth << (paper_init ? " paper" : " shared"));
        nn::ViT model = fresh(gate, depth, paper_init);
        CHECK(lab::warnings(forward_layers(model)) == std::vector<std::string>{});
      }
}

TEST_CASE("layers: a method that breaks its growth law gives a warning") {
  struct Doubling : nn::Gate {  // the branches of a block add twice as much as the branches of the block before
    explicit Doubling(const nn::GateContext& c) : factor(std::exp2(c.block)) {}
    Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + factor * branch; }
    double factor;
  };
  struct WithoutNorm : nn::Gate {
    Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + branch; }
    void join(nn::Stream& s, const Tensor& branch, const Tensor&, const nn::Layer*) const override {
      s.x = s.x + branch;
    }
  };
  struct Overflowing : nn::Gate {
    Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + 1e30 * branch * 1e30; }
  };
  const auto first_warning = [](nn::Method method) {
    nn::ViT model = fresh(std::move(method), 12);
    const std::vector<std::string> found = lab::warnings(forward_layers(model));
    REQUIRE(found.size() == 1);
    return found[0];
  };
  CHECK_THAT(first_warning({.norm = Norm::pre, .build = nn::gates_from<Doubling>}), contains("linear growth"));
  CHECK_THAT(first_warning({.norm = Norm::post, .build = nn::gates_from<WithoutNorm>}),
             contains("after the attention of block 0, which ends in a norm: expected 1"));
  CHECK_THAT(first_warning({.norm = Norm::pre, .build = nn::gates_from<Overflowing>}),
             contains("not finite after the attention of block 0"));
}

TEST_CASE("layers: the Jacobian of identity blocks is 1 both exactly and with random vectors") {
  nn::ViT model = fresh("rezero", 3);
  lab::LayerStats layers = forward_layers(model);
  CHECK(layers.sample == Shape{17, 32});
  const Estimate estimate = lab::jacobian(model.stack(), layers, {.probes = 4});
  CHECK_FALSE(estimate.exact);
  CHECK(estimate.value == Approx(1));
  layers.sample = {2, 32};
  const Estimate exact = lab::jacobian(model.stack(), layers);
  CHECK(exact.exact);
  CHECK(exact.value == Approx(1));
  CHECK(model.stack().training());
  nn::ViT pre = fresh("peri_ln", 3);
  layers = forward_layers(pre);
  const double grown = lab::jacobian(pre.stack(), layers).value;
  CHECK(grown > 1.2);
  nn::ViT dropping({.image = 32,
                    .patch = 8,
                    .channels = 1,
                    .classes = 7,
                    .dim = 32,
                    .depth = 3,
                    .heads = 2,
                    .method = "peri_ln",
                    .drop_path = {.rate = 0.5},
                    .pool = nn::Pool::token});
  CHECK(lab::jacobian(dropping.stack(), layers).value == grown);  // the Jacobian is measured in evaluation mode
}

namespace {

// The statistics of the forward and backward pass of a stack on x, and its copy from JSON.
struct Measured {
  lab::LayerStats layers, read;
};
Measured measure(const nn::Stack& stack, const Tensor& x) {
  lab::SignalProbe probe(stack);
  const Gradients g = backward(sum(stack(x) * random_normal(x.shape(), 2, "cotangent")));
  const lab::LayerStats layers = probe.finish(g);
  return {layers, lab::layers_from_json(nlohmann::ordered_json::parse(lab::to_json(layers).dump()))};
}

}  // namespace

TEST_CASE("layers: blocks of one and of three junctions keep their numbers in JSON and in layers.csv") {
  const std::vector<nn::BranchChoice> three{nn::mlp({.hidden = 4}), nn::mlp({.hidden = 4}).named("second"),
                                            nn::mlp({.hidden = 4}).named("third")};
  for (const std::size_t each : {1, 3})
    for (const std::int64_t depth : {2, 3}) {
      INFO(each << " junctions, depth " << depth);
      nn::Stack stack({.dim = 8,
                       .depth = depth,
                       .method = "layerscale",
                       .junctions = {three.begin(), three.begin() + static_cast<std::ptrdiff_t>(each)}});
      nn::initialize(stack, 0);
      const auto [layers, read] = measure(stack, random_normal({2, 3, 8}, 0, "x"));
      REQUIRE(read.branches.size() == each * static_cast<std::size_t>(depth));
      CHECK(read.depth() == depth);
      CHECK(read.sample == Shape{3, 8});
      lab::StudyResults results;
      results.records.push_back(
          {.attachments = {fmt::format(R"({{"step":0,"passport":{}}})", lab::to_json(layers).dump())}});
      results.attached.push_back(lab::attached_to(results.records.back()));
      const std::string csv = lab::layers_csv(results);
      for (std::size_t i = 0; i < read.branches.size(); ++i) {
        const lab::BranchStats& row = read.branches[i];
        CHECK(row.block == static_cast<std::int64_t>(i / each));
        CHECK(row.branch == std::array{"mlp", "second", "third"}[i % each]);
        CHECK(row.ratio == layers.branches[i].ratio);
        CHECK(row.gate_max == layers.branches[i].gate_max);
        CHECK_THAT(csv, contains(fmt::format("\n0,{},{},", row.block, row.branch)));
      }
    }
}

TEST_CASE("layers: the Jacobian is measured on images and with a memory") {
  const DefaultsScope f64(reference_f64);
  nn::Stack images(
      {.dim = 6, .depth = 2, .method = "rezero", .junctions = {nn::conv_branch()}, .layout = nn::Layout::images});
  nn::initialize(images, 0);
  const lab::LayerStats seen = measure(images, random_normal({3, 6, 5, 4}, 0, "images")).layers;
  CHECK(seen.sample == Shape{6, 5, 4});
  CHECK(lab::jacobian(images, seen).value == Approx(1));

  // The branch x * (the sum of the memory over its tokens), between two layers that are the identity.
  struct Reader : nn::Branch {
    explicit Reader(const nn::JunctionPlace&) {}
    Tensor forward(nn::BranchCall& call) const override {
      return call.leave(last, call.enter(first) * sum(call.memory().x, {1}, true));
    }
    nn::Child<nn::Linear> first{this, "first", {.in = 4, .out = 4}}, last{this, "last", {.in = 4, .out = 4}};
  };
  struct Plain : nn::Gate {
    Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + branch; }
  };
  nn::Stack readers({.dim = 4,
                     .depth = 1,
                     .method = nn::Method{.norm = Norm::none, .build = nn::gates_from<Plain>},
                     .junctions = {nn::branch<Reader>("reader")}});
  for (const char* layer : {"first", "last"}) {
    const std::string name = fmt::format("blocks.0.reader.{}.", layer);
    set(readers, name + "weight", {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
    set(readers, name + "bias", {0, 0, 0, 0});
  }
  const lab::LayerStats three{.sample = {3, 4}, .input_mean_square = 1};
  const nn::StackInputs inputs{.memory = {.x = full({1, 2, 4}, 0.5)}};  // x + (0.5 + 0.5) x = 2 x
  CHECK(lab::jacobian(readers, three, {}, inputs).value == Approx(4));
  CHECK_THAT(error_of([&] { (void)lab::jacobian(readers, three); }),
             contains("expected a second input (StackInputs::memory)"));
}

TEST_CASE("layers: the decoder of a DETR has three branches a block, and padding is no key of the memory") {
  nn::Detr model({.classes = 2,
                  .backbone = {4, 4},
                  .dim = 8,
                  .heads = 2,
                  .encoder = 1,
                  .decoder = 2,
                  .hidden = 12,
                  .queries = 3,
                  .method = "layerscale"});
  // One of two images has half of its columns: 2 of 4 columns of the map of 4 x 4 cells.
  const Tensor images = random_normal({2, 3, 16, 16}, 0, "images");
  std::vector<std::uint8_t> kept(2 * 16 * 16, 1);
  for (std::size_t i = 0; i < 256; ++i) kept[i] = i % 16 < 8;
  const Tensor keep(array_from(kept, {2, 16, 16}, Device::cpu));
  const nn::Targets targets{{{0, {0.1, 0.1, 0.5, 0.5}}}, {{1, {0.3, 0.3, 0.7, 0.9}}}};
  lab::SignalProbe probe(model.decoder());
  const Gradients g = backward(nn::set_loss(model.detect(images, keep), targets).total);
  const lab::LayerStats seen = probe.finish(g), read = lab::layers_from_json(lab::to_json(seen));
  CHECK(seen.depth() == 2);
  CHECK(seen.sample == Shape{3, 8});
  REQUIRE(read.branches.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    const lab::BranchStats& row = read.branches[i];
    INFO(i);
    CHECK(row.block == static_cast<std::int64_t>(i / 3));
    CHECK(row.branch == std::array{"attn", "cross", "mlp"}[i % 3]);
    CHECK((row.branch_norm > 0) == (i > 0));  // the stream starts at 0, and so do the values of the first attention
    CHECK(row.grad_norm > 0);
    CHECK(row.gate_mean.has_value());
    CHECK(row.entropy.has_value() == (i % 3 < 2));
  }
  // Nearly uniform attention at the start: to 3 queries, and to 8 cells of one image and 16 of the other.
  CHECK(*seen.branches[0].entropy == Approx(std::log(3)).epsilon(0.1));
  CHECK(*seen.branches[1].entropy == Approx((std::log(8) + std::log(16)) / 2).epsilon(0.1));
  CHECK(*seen.branches[1].relative_entropy <= 1 + 1e-6);
  const nn::StackInputs inputs{.memory = {.x = random_normal({1, 4, 8}, 0, "memory")}};
  CHECK(lab::jacobian(model.decoder(), seen, {}, inputs).value > 0);
}
