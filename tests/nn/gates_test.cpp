#include <algorithm>
#include <cmath>
#include <map>

#include "nn/gates/gate_forms.h"
#include "plumb/plumb.h"
#include "tests/nn/shake.h"
#include "tests/support/built_in_gates.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

nn::ViTOptions small_vit(const nn::MethodChoice& gate, std::int64_t depth = 2, nn::Pool pool = nn::Pool::token) {
  return {.image = 16,
          .patch = 8,
          .channels = 1,
          .classes = 7,
          .dim = 12,
          .depth = depth,
          .heads = 3,
          .method = gate,
          .pool = pool};
}

nn::ViT make_vit(const nn::MethodChoice& gate, std::int64_t depth = 2, bool paper_init = false) {
  nn::ViTOptions o = small_vit(gate, depth);
  if (paper_init) o.recipe = gate->paper;
  return nn::ViT(o);
}

std::map<std::string, nn::Parameter> by_name(const nn::Module& m) {
  std::map<std::string, nn::Parameter> all;
  for (nn::Parameter& p : m.parameters()) all.emplace(p.name, p);
  return all;
}

double deviation(const Tensor& t) { return std::sqrt(mean(t * t).item()); }

// A gate that reads the stream: (1 - t) x + t f, with t = sigmoid(W x + b).
struct Highway : nn::Gate {
  explicit Highway(const nn::GateContext& c)
      : w(parameter("w", {c.dim, c.dim}, nn::Init::truncated_normal(0.3), Role::gate)),
        b(parameter("b", {c.dim}, nn::Init::constant(-1), Role::gate)) {}
  Tensor t(const Tensor& x) const { return 0.5 + 0.5 * tanh(0.5 * linear(x, w, b)); }
  Tensor values(const nn::Stream& before) const override { return t(before.x); }
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + t(skip) * (branch - skip); }
  Tensor w, b;
};

// Collects every junction of one forward pass.
void each_junction(nn::ViT& model, const Tensor& images, const std::function<void(const nn::JunctionPass&)>& look) {
  std::vector<Handle> watch;
  for (auto& block : model.stack().blocks()) watch.push_back(block.observe(look));
  model(images);
  CHECK(watch.size() == model.stack().blocks().size());
}

}  // namespace

TEST_CASE("a gate's added term is its junction minus the part of the stream that it keeps, for every method") {
  const DefaultsScope f64(reference_f64);
  const NoGrad no_grad;
  const Tensor images = random_normal({3, 1, 16, 16}, 1, "images");
  for (const std::string& name : built_in_gates) {
    INFO(name);
    nn::ViT model = make_vit(name);
    shake(model, 0.2);
    int junctions = 0;
    each_junction(model, images, [&](const nn::JunctionPass& j) {
      ++junctions;
      const Tensor zero = zeros_like(j.branch_value);
      // All built-in gates are affine functions of the stream, so the kept part is the linear part.
      const Tensor kept = j.gate.combine(j.before.x, zero) - j.gate.combine(zeros_like(j.before.x), zero);
      CHECK(relative_error(j.gate.added(j.before.x, j.branch_value),
                           j.gate.combine(j.before.x, j.branch_value) - kept) < 1e-12);
      const Tensor none = zeros({3}), once = ones({3});
      CHECK(relative_error(j.gate.combine_scaled(j.before.x, j.branch_value, once),
                           j.gate.combine(j.before.x, j.branch_value)) < 1e-12);
      CHECK(relative_error(j.gate.combine_scaled(j.before.x, j.branch_value, none), kept) < 1e-12);
    });
    CHECK(junctions == 4);
  }
}

TEST_CASE("a tiny added term is not lost in the rounding of the stream") {
  const NoGrad no_grad;
  nn::ViT model = make_vit(nn::methods::layerscale(1e-12), 1);
  each_junction(model, random_normal({3, 1, 16, 16}, 1, "images"), [](const nn::JunctionPass& j) {
    CHECK(relative_error(j.gate.added(j.before.x, j.branch_value) * 1e12, j.branch_value) < 1e-5);
  });
}

TEST_CASE("a gate that reads the stream reports its added term and its factors and keeps dropped samples unchanged") {
  const DefaultsScope f64(reference_f64);
  const NoGrad no_grad;
  nn::ViT model = make_vit(nn::Method{.build = nn::gates_from<Highway>});
  shake(model, 0.2);
  each_junction(model, random_normal({3, 1, 16, 16}, 1, "images"), [](const nn::JunctionPass& j) {
    const auto& gate = dynamic_cast<const Highway&>(j.gate);
    const Tensor t = 1 / (1 + exp(-(linear(j.before.x, gate.w, gate.b))));
    CHECK(relative_error(gate.values(j.before), t) < 1e-12);
    CHECK(relative_error(gate.added(j.before.x, j.branch_value), t * j.branch_value - t * j.before.x) < 1e-12);
    CHECK(gate.combine_scaled(j.before.x, j.branch_value, zeros({3})).values() == j.before.x.values());
    CHECK(relative_error(j.joined, (1 - t) * j.before.x + t * j.branch_value) < 1e-12);
    // If a gate does not override values(), vectors count as factors and a matrix does not.
    CHECK_FALSE(gate.Gate::values(j.before).defined());
  });
  CHECK(nn::AlphaGate(0.25).values({ones({1, 1, 12})}).values() == std::vector<double>{0.25});
  CHECK_FALSE(nn::ScaleGate().values({ones({1, 1, 12})}).defined());
}

TEST_CASE("the claims of a method about a fresh network hold") {
  const DefaultsScope f64(reference_f64);
  const Tensor x = random_normal({2, 5, 12}, 1, "stream"), images = random_normal({3, 1, 16, 16}, 1, "images");
  for (const std::string& name : built_in_gates) {
    INFO(name);
    const nn::Method& method = nn::method_named(name);
    CHECK_FALSE(method.formula.empty());
    CHECK_FALSE(method.source.empty());
    nn::ViT model = make_vit(name);
    const bool identity = model.blocks()[0](x).values() == x.values();
    const Gradients g = backward(cross_entropy(model(images), integers({0, 3, 6}, {3})));
    double branch_gradient = 0;
    for (const char* weight : {"attn.qkv.weight", "attn.proj.weight", "mlp.fc1.weight", "mlp.fc2.weight"})
      branch_gradient += deviation(g[fmt::format("blocks.0.{}", weight)]);
    const auto claims = [&](nn::InitProperty c) { return std::ranges::find(method.claims, c) != method.claims.end(); };
    CHECK(identity == claims(nn::InitProperty::identity_at_init));
    // With a head of zeros, only the head gets a gradient. Therefore a gradient of 0 proves a claim only without such a
    // head.
    if (!method.paper.zero_head) CHECK((branch_gradient == 0) == claims(nn::InitProperty::zero_branch_gradient));
    if (claims(nn::InitProperty::zero_branch_gradient)) CHECK(branch_gradient == 0);
    CHECK((std::abs(g.loss() - std::log(7.0)) < 1e-12) == claims(nn::InitProperty::loss_is_log_classes));
  }
}

TEST_CASE("methods add parameters with the expected names, shapes, roles and learning-rate factors") {
  const auto added = [](const std::string& gate) {
    std::vector<std::string> lines;
    for (const auto& [name, p] : by_name(make_vit(gate)))
      if (name.starts_with("blocks.1.") &&
          (name.find("gate") != std::string::npos || name.find("shifts") != std::string::npos ||
           name.find("norm1.w") != std::string::npos))
        lines.push_back(fmt::format("{} {} {} {:g} {:g}", name.substr(9), p.value.shape(), enum_name(p.role),
                                    p.lr_factor(), p.value.values()[0]));
    return lines;
  };
  using Lines = std::vector<std::string>;
  CHECK(added("post") == Lines{"norm1.weight [12] norm 1 1"});
  CHECK(added("pre") == Lines{"norm1.weight [12] norm 1 1"});
  CHECK(added("rezero") == Lines{"gate.alpha [1] gate 1 0"});
  CHECK(added("rezero_separate") == Lines{"gate1.alpha [1] gate 1 0", "gate2.alpha [1] gate 1 0"});
  CHECK(added("skipinit") == Lines{"gate1.alpha [1] gate 1 0", "gate2.alpha [1] gate 1 0"});
  CHECK(added("scalar_gate") ==
        Lines{"gate1.alpha [1] gate 1 0.1", "gate2.alpha [1] gate 1 0.1", "norm1.weight [12] norm 1 1"});
  CHECK(added("layerscale") ==
        Lines{"gate1.gamma [12] gate 1 0.1", "gate2.gamma [12] gate 1 0.1", "norm1.weight [12] norm 1 1"});
  CHECK(added("fixup") == Lines{"gate1.scale [1] gate 0.1 1", "gate2.scale [1] gate 0.1 1",
                                "shifts.act [1] shift 0.1 0", "shifts.attn [1] shift 0.1 0",
                                "shifts.fc1 [1] shift 0.1 0", "shifts.fc2 [1] shift 0.1 0"});
}

TEST_CASE("each rule of Fixup can be left out and nothing else changes") {
  const auto with = [](const nn::ConstantValues& parts) {
    return by_name(make_vit(nn::methods::fixup().with(parts), 24));
  };
  const auto whole = with({});
  const auto alike = [&](const std::map<std::string, nn::Parameter>& p, const std::string& name) {
    return p.at(name).value.values() == whole.at(name).value.values();
  };
  const auto random_last = with({{"zero_last", 0}});
  CHECK(deviation(random_last.at("blocks.5.mlp.fc2.weight").value) > 0.01);
  CHECK(deviation(random_last.at("blocks.5.attn.proj.weight").value) > 0.01);
  CHECK(alike(random_last, "blocks.5.mlp.fc1.weight"));
  const auto unscaled = with({{"factor", 0}}), squared = with({{"factor", 2}});
  const auto ratio = [&](const auto& p, const std::string& name) {
    return deviation(p.at(name).value) / deviation(whole.at(name).value);
  };
  CHECK(ratio(unscaled, "blocks.5.mlp.fc1.weight") == Approx(std::sqrt(48.0)).epsilon(1e-3));
  CHECK(ratio(squared, "blocks.5.attn.qkv.weight") == Approx(std::pow(48.0, -1.0 / 6)).epsilon(1e-3));
  CHECK(deviation(squared.at("blocks.5.mlp.fc2.weight").value) == 0);
  const auto no_shifts = with({{"shifts", 0}}), no_scales = with({{"scales", 0}});
  CHECK((!no_shifts.contains("blocks.5.shifts.fc1") && no_shifts.contains("blocks.5.gate1.scale")));
  CHECK((no_scales.contains("blocks.5.shifts.fc1") && !no_scales.contains("blocks.5.gate1.scale")));
  CHECK(no_shifts.size() == whole.size() - 4 * 24);
  CHECK(no_scales.size() == whole.size() - 2 * 24);
  CHECK(nn::methods::fixup().claims.size() == 3);
  CHECK(nn::methods::fixup().with({{"scales", 0}}).claims.empty());  // only the complete method has claims
}

TEST_CASE("Fixup's parts follow from its constants and fixup_ln always has all parts") {
  nn::GateContext c{nn::JunctionPlace{.dim = 8, .blocks = 2, .junctions = 2}};
  c.branches = {{.kind = "attn", .hidden = 8, .heads = 2, .weight_layers = 4, .name = "attn"},
                {.kind = "mlp", .hidden = 32, .activation = true, .name = "mlp"}};
  CHECK_THAT(error_of([&] { nn::methods::fixup().build(c); }),
             contains("got \"zero_last\"; declare it in Method::constants"));
  c.constants = {{"shifts", 0}, {"scales", 0}};
  CHECK(nn::methods::fixup_ln().build(c).modules.size() == 3);
}

TEST_CASE("with a class token that joins late, the blocks before it see only patches") {
  const auto build = [](std::int64_t joins, nn::Pool pool, const char* gate) {
    nn::ViTOptions o = small_vit(gate, 3, pool);
    o.token_block = joins;
    return nn::ViT(o);
  };
  for (const std::int64_t joins : {0, 1, 2}) {
    nn::ViT model = build(joins, nn::Pool::token, "pre");
    CHECK(by_name(model).at("pos_embed").value.shape() == Shape{1, joins == 0 ? 5 : 4, 12});
    std::vector<std::int64_t> tokens;
    std::vector<Handle> handles;
    for (auto& block : model.blocks())
      handles.push_back(block.observe([&](const nn::JunctionPass& j) {
        if (j.branch.kind() == "attn") tokens.push_back(j.before.x.dim(1));
      }));
    const Gradients g = backward(sum(model(random_normal({3, 1, 16, 16}, 1, "images"))));
    for (std::int64_t b = 0; b < 3; ++b) CHECK(tokens.at(static_cast<std::size_t>(b)) == (b < joins ? 4 : 5));
    CHECK(norm(g["cls_token"]).item() > 0);
    CHECK(norm(g["blocks.0.attn.qkv.weight"]).item() > 0);  // patches reach the class token through attention
    model.checkpoint_blocks(true);
    CHECK(model(random_normal({3, 1, 16, 16}, 1, "images")).shape() == Shape{3, 7});
  }
  CHECK_THAT(error_of([&] { build(3, nn::Pool::token, "pre"); }),
             contains("[vit] expected a class token that joins before one of 3 blocks, got block 3"));
  CHECK_THAT(error_of([&] { build(1, nn::Pool::mean, "pre"); }),
             contains("[vit] expected pool token if the class token joins late (token_block 1)"));
  CHECK_THAT(error_of([&] {
               build(1, nn::Pool::token, "residual_dual")(zeros({1, 1, 16, 16}));
             }),
             contains("whose stream is only the tokens") && contains("residual_dual"));
}

TEST_CASE(
    "a recipe decides how weights and head start and how scalars learn and the shared recipe is the same for all "
    "methods") {
  const auto with = [](const std::string& gate, const nn::Recipe& recipe) {
    nn::ViTOptions o = small_vit(gate);
    o.recipe = recipe;
    return nn::ViT(o);
  };
  const auto pre = by_name(with("pre", {}));
  for (const std::string& gate : built_in_gates) {
    INFO(gate);
    const nn::ViT model = with(gate, {});
    const auto p = by_name(model);
    for (const char* name : {"patch_embed.proj.weight", "cls_token", "pos_embed", "head.weight"})
      CHECK(p.at(name).value.values() == pre.at(name).value.values());
    for (const auto& [name, parameter] : p)
      if (parameter.role == nn::Role::gate || parameter.role == nn::Role::shift) CHECK(parameter.lr_factor() == 1);
    CHECK_FALSE(nn::method_named(gate).paper.source.empty());
  }
  const auto fixup = by_name(with("fixup", nn::method_named("fixup").paper));
  CHECK(fixup.at("blocks.0.gate1.scale").lr_factor() == 0.1);
  CHECK(fixup.at("blocks.1.shifts.fc2").lr_factor() == 0.1);
  CHECK(fixup.at("blocks.0.mlp.fc1.weight").lr_factor() == 1);
  CHECK(deviation(fixup.at("head.weight").value) == 0);
  // In the comparison of the CaiT paper, all methods have the same base and warm-up.
  for (const char* gate : {"rezero_ln", "t_fixup_ln", "fixup_ln", "scalar_gate", "layerscale"}) {
    const nn::Recipe& paper = nn::method_named(gate).paper;
    CHECK((paper.base == nn::Base::truncated_normal && paper.warmup == 5.0 / 300));
  }
}

TEST_CASE("a ViT with mean pooling has no class token and reads the mean of its normalised patches") {
  for (const char* gate : {"pre", "rezero", "residual_dual", "hyper_connections"}) {
    INFO(gate);
    nn::ViT model(small_vit(gate, 2, nn::Pool::mean));
    const auto p = by_name(model);
    CHECK_FALSE(p.contains("cls_token"));
    CHECK(p.at("pos_embed").value.shape() == Shape{1, 4, 12});
    for (const auto& [name, parameter] : p)
      if (parameter.role == nn::Role::gate || parameter.role == nn::Role::shift)
        copy_into((parameter.value.detach() + 0.3).array(), parameter.value.array());
    const Tensor images = random_normal({3, 1, 16, 16}, 1, "images");
    // Computes the logits by hand: the embedding of each patch as a product, the stack, and the mean over patches.
    const Tensor patches = permute(reshape(images, {3, 1, 2, 8, 2, 8}), {0, 2, 4, 3, 5, 1});
    const Tensor tokens = linear(reshape(patches, {3, 4, 64}), p.at("patch_embed.proj.weight").value,
                                 p.at("patch_embed.proj.bias").value) +
                          p.at("pos_embed").value;
    const Tensor out = model.stack()(tokens);
    const Tensor pooled =
        (slice(out, 1, 0, 1) + slice(out, 1, 1, 2) + slice(out, 1, 2, 3) + slice(out, 1, 3, 4)) * 0.25;
    const Tensor logits = linear(reshape(pooled, {3, 12}), p.at("head.weight").value, p.at("head.bias").value);
    CHECK(norm(model(images) - logits).item() < 1e-5 * norm(logits).item());
  }
}

TEST_CASE("a model with the recipe of a method's paper has the base init of this recipe") {
  const auto p = by_name(make_vit("rezero", 2, true));
  CHECK(deviation(p.at("blocks.0.mlp.fc1.weight").value) == Approx(std::sqrt(2.0 / (12 + 48))).epsilon(0.1));
  CHECK(deviation(p.at("blocks.0.attn.qkv.weight").value) ==
        Approx(std::sqrt(2.0 / (12 + 36))).epsilon(0.1));  // q, k and v as one packed matrix
  CHECK(deviation(by_name(make_vit("post", 2, true)).at("blocks.0.attn.qkv.weight").value) ==
        Approx(std::sqrt(2.0 / 24)).epsilon(0.1));
  CHECK(deviation(by_name(make_vit("layerscale", 2, true)).at("blocks.0.attn.qkv.weight").value) ==
        Approx(0.02).epsilon(0.1));
}

TEST_CASE("LayerScale works as a layer") {
  nn::LayerScale scale(6);
  CHECK(scale.gamma().shape() == Shape{6});
  CHECK(scale.gamma().values()[3] == Approx(1e-4));
  for (const Shape& shape : {Shape{6}, Shape{2, 6}, Shape{2, 3, 4, 6}}) {
    const Tensor x = random_normal(shape, 0, "x"), y = scale(x);
    CHECK(y.shape() == shape);
    CHECK(y.dtype() == x.dtype());
    CHECK(relative_error(y * 1e4, x) < 1e-6);
  }
  CHECK(scale.flop_count(65) == 65 * 6);
  CHECK_FALSE(nn::decays(scale.parameters()[0].role));
  const nn::LayerScale zero(6, 0);  // the initial value 0 is allowed
  CHECK(zero.gamma().values()[0] == 0);
  CHECK(zero(ones({2, 6})).values()[0] == 0);
  CHECK_THAT(error_of([&] { scale(ones({2, 5})); }), contains("[layer_scale] expected input [.., 6], got [2, 5]"));
  const DefaultsScope f64(reference_f64);
  nn::LayerScale twice(3);
  CHECK(twice(ones({2, 3})).dtype() == DType::f64);
}

TEST_CASE("a method with other constants is the same as text and in code, bit for bit") {
  const double third = 1.0 / 3;
  const nn::Method m = nn::methods::mix_ln(third);
  CHECK(m.text() == "mix_ln:post_share=0.3333333333333333");
  CHECK(nn::method_named(m.text()).value("post_share") == third);
  CHECK(m.label() == m.text());
  CHECK(nn::methods::mix_ln().label() == "mix_ln");
  CHECK(nn::methods::mix_ln().text() == "mix_ln:post_share=0.25");
  CHECK(nn::method_named("mix_ln:post_share=0.250").label() == "mix_ln");
  CHECK(nn::methods::deepnorm().text() == "deepnorm:alpha=by_depth");
  CHECK(nn::method_named("deepnorm:alpha=2").with({{"alpha", std::nullopt}}).label() == "deepnorm");
  CHECK(nn::method_named("fixup:scales=0:factor=0.5:zero_last=0").label() == "fixup:zero_last=0:factor=0.5:scales=0");
  // Fields that depend on constants are the same in both forms.
  CHECK(nn::method_named("fixup:scales=0").claims.empty());
  CHECK(nn::method_named("fixup:scales=0").with({{"scales", 1}}).claims.size() == 3);
  CHECK_THAT(nn::method_named("depth_mup:base_depth=8").counts, contains("Nb = 8"));
  // Both forms build the same network.
  for (const auto& [text, method] : std::vector<std::pair<std::string, nn::Method>>{
           {"layerscale:init=0.3", nn::methods::layerscale(0.3)},
           {"hyper_connections:streams=2", nn::methods::hyper_connections(2)},
           {"complete_p:base_depth=8", nn::methods::complete_p(8)}}) {
    const nn::ViT a = make_vit(text), b = make_vit(method);
    const Tensor images = random_normal({2, 1, 16, 16}, 0, "images");
    CHECK(a(images).values() == b(images).values());
    const auto one = a.parameters(), other = b.parameters();
    for (std::size_t i = 0; i < one.size(); ++i) {
      CHECK(one[i].value.values() == other[i].value.values());
      CHECK((one[i].lr_factor() == other[i].lr_factor() && one[i].eps_factor() == other[i].eps_factor()));
    }
  }
}

TEST_CASE("a registered gate is in the table and a wrong registration is rejected") {
  struct TanhGate : nn::Gate {
    Tensor a = parameter("a", zeros({1}), Role::gate);
    Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + tanh(a) * branch; }
  };
  struct Shrinking : nn::Gate {
    Tensor combine(const Tensor& skip, const Tensor&) const override { return slice(skip, 1, 0, 1); }
  };
  nn::register_method<TanhGate>("tanh_gate",
                                {.norm = nn::Norm::pre,
                                 .claims = {nn::InitProperty::identity_at_init, nn::InitProperty::zero_branch_gradient},
                                 .formula = "x + tanh(a) f(LN(x))",
                                 .source = "test"});
  CHECK(nn::method_names().back() == "tanh_gate");
  const Tensor images = random_normal({8, 1, 16, 16}, 0, "images");
  CHECK_THAT(error_of([] { nn::register_method<TanhGate>("pre"); }), contains("expected a new name, got \"pre\""));
  CHECK_THAT(error_of([] { nn::register_method<TanhGate>("Bad Name"); }), contains("lower-case"));
  CHECK_THAT(
      error_of([] { make_vit("layer_scale"); }),
      contains("[gate] expected the name of a residual method, got \"layer_scale\"; did you mean 'layerscale'?"));
  CHECK_THAT(error_of([] { make_vit("qqqqqqqqqqqq"); }),
             contains("known: post, pre, rezero, ") && contains(" more (nn::method_names()"));
  nn::register_method<Shrinking>("shrinking");
  CHECK_THAT(error_of([&] { make_vit("shrinking")(images); }),
             contains("[gate] expected combine to return the shape of the stream [8, 5, 12], got [8, 1, 12]"));
}

TEST_CASE("stochastic depth drops samples, keeps the expectation and is off in evaluation") {
  nn::DropPath drop(0.25);
  const Tensor x = ones({4000, 3});
  const RandomScope random({.seed = 3, .step = 1});
  const std::vector<double> y = drop(x).values();
  double kept = 0;
  for (std::size_t i = 0; i < y.size(); i += 3) {
    CHECK((y[i] == 0 || y[i] == Approx(1 / 0.75)));
    CHECK((y[i] == y[i + 1] && y[i] == y[i + 2]));
    kept += y[i] != 0;
  }
  CHECK(kept / 4000 == Approx(0.75).margin(0.02));
  CHECK(drop(x).values() == y);
  {
    const RandomScope next({.seed = 3, .step = 2});
    CHECK(drop(x).values() != y);
  }
  {
    // The scope of the second part of a larger batch.
    const RandomScope rest({.seed = 3, .step = 1, .first_sample = 1000});
    const std::vector<double> tail = drop(ones({10, 3})).values();
    CHECK(std::equal(tail.begin(), tail.end(), y.begin() + 3000));
  }
  drop.eval();
  CHECK(drop(x).values() == x.values());
}

TEST_CASE("drop rates follow their schedule over depth") {
  using enum nn::Schedule;
  const auto rates = [](nn::Schedule s) {
    std::vector<double> r;
    for (int l = 0; l < 6; ++l) r.push_back(nn::rate_at(s, 0.3, l, 6));
    return r;
  };
  const auto near = [](const std::vector<double>& a, const std::vector<double>& b) {
    return relative_error(a, b) < 1e-12;
  };
  CHECK(near(rates(constant), {0.3, 0.3, 0.3, 0.3, 0.3, 0.3}));
  CHECK(near(rates(decreasing), {0.3, 0.24, 0.18, 0.12, 0.06, 0}));
  CHECK(near(rates(increasing), {0, 0.06, 0.12, 0.18, 0.24, 0.3}));
  CHECK(near(rates(dec_open), {0.3, 0.25, 0.2, 0.15, 0.1, 0.05}));
  CHECK(nn::rate_at(increasing, 0.3, 0, 1) == 0.3);
}
