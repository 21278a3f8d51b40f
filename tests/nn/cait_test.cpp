// Tests of talking heads, class attention, CaiT and the presets of CaiT.
#include <algorithm>
#include <map>
#include <set>

#include "nn/layers/branch_context.h"
#include "nn/models/cait_presets.h"
#include "plumb/plumb.h"
#include "tests/nn/shake.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

void set(const Tensor& parameter, const Tensor& value) {
  copy_into(reshape(value, parameter.shape()).array(), parameter.array());
}

Tensor named(const nn::Module& m, const std::string& name) {
  for (const nn::Parameter& p : m.parameters())
    if (p.name == name) return p.value;
  FAIL("no parameter " + name);
  return {};
}

Tensor identity(std::int64_t n) {
  std::vector<double> values(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i * (n + 1))] = 1;
  return tensor(values, {n, n});
}

double largest(const Tensor& t) {
  double most = 0;
  for (double v : t.values()) most = std::max(most, std::abs(v));
  return most;
}

nn::CaiTOptions tiny() {
  return {.image = 8, .patch = 4, .channels = 2, .classes = 5, .dim = 8, .depth = 2, .heads = 2};
}

}  // namespace

TEST_CASE("CaiT's parameters have the expected names, shapes and decay") {
  nn::CaiT model(tiny());
  std::vector<std::string> lines;
  for (const nn::Parameter& p : model.parameters())
    if (p.name.find("blocks.1.") == std::string::npos && p.name.find("only.1.") == std::string::npos &&
        !p.name.ends_with("bias"))
      lines.push_back(fmt::format("{} {}{}", p.name, p.value.shape(), nn::decays(p.role) ? "" : " no decay"));
  const std::vector<std::string> expected{"cls_token [1, 1, 8] no decay",
                                          "pos_embed [1, 4, 8] no decay",
                                          "patch_embed.proj.weight [8, 32]",
                                          "blocks.0.norm1.weight [8] no decay",
                                          "blocks.0.norm2.weight [8] no decay",
                                          "blocks.0.attn.qkv.weight [24, 8]",
                                          "blocks.0.attn.proj.weight [8, 8]",
                                          "blocks.0.attn.proj_l.weight [2, 2]",
                                          "blocks.0.attn.proj_w.weight [2, 2]",
                                          "blocks.0.mlp.fc1.weight [32, 8]",
                                          "blocks.0.mlp.fc2.weight [8, 32]",
                                          "blocks.0.gate1.gamma [8] no decay",
                                          "blocks.0.gate2.gamma [8] no decay",
                                          "blocks_token_only.0.norm1.weight [8] no decay",
                                          "blocks_token_only.0.attn.q.weight [8, 8]",
                                          "blocks_token_only.0.attn.k.weight [8, 8]",
                                          "blocks_token_only.0.attn.v.weight [8, 8]",
                                          "blocks_token_only.0.attn.proj.weight [8, 8]",
                                          "blocks_token_only.0.norm2.weight [8] no decay",
                                          "blocks_token_only.0.mlp.fc1.weight [32, 8]",
                                          "blocks_token_only.0.mlp.fc2.weight [8, 32]",
                                          "blocks_token_only.0.gate1.gamma [8] no decay",
                                          "blocks_token_only.0.gate2.gamma [8] no decay",
                                          "norm.weight [8] no decay",
                                          "head.weight [5, 8]"};
  CHECK(lines == expected);
}

TEST_CASE("LayerScale starts at the same value in both stages of CaiT, given or from the depth") {
  const auto gammas = [](const nn::CaiTOptions& o) {
    std::set<double> values;
    nn::CaiT model(o);
    for (const nn::Parameter& p : model.parameters())
      if (p.name.ends_with("gamma"))
        for (double v : p.value.values()) values.insert(v);
    return values;
  };
  const DefaultsScope f64(reference_f64);
  nn::CaiTOptions o = tiny();
  CHECK(gammas(o) == std::set<double>{0.1});
  o.depth = 24;
  CHECK(gammas(o) == std::set<double>{1e-5});
  o.init = 0.3;
  CHECK(gammas(o) == std::set<double>{0.3});
  o.method = nn::methods::layerscale(0.2);
  CHECK(gammas(o) == std::set<double>{0.3});
  o.init.reset();
  CHECK(gammas(o) ==
        std::set<double>{0.2, 1e-5});  // the value 0.2 is for stage 1 only; stage 2 uses the value from the depth
}

TEST_CASE("a recipe's base applies to all weights of CaiT: both stages and the head") {
  const auto deviation_of = [](const Tensor& t) { return std::sqrt(mean(t * t).item()); };
  const auto weights = [&](std::optional<nn::Recipe> recipe) {
    nn::CaiTOptions o{.image = 16, .patch = 8, .classes = 50, .dim = 24, .depth = 1, .heads = 3};
    o.recipe = recipe;
    std::map<std::string, double> r;
    for (const nn::Parameter& p : nn::CaiT(o).parameters())
      if (p.role == nn::Role::weight && !p.name.starts_with("patch_embed")) r[p.name] = deviation_of(p.value);
    return r;
  };
  const auto plain = weights({}), scaled = weights(nn::Recipe{.base = nn::Base::scaled_normal});
  for (const char* name : {"blocks.0.attn.qkv.weight", "blocks.0.mlp.fc2.weight", "blocks_token_only.0.attn.q.weight",
                           "blocks_token_only.1.mlp.fc1.weight", "head.weight"})
    CHECK(plain.contains(name));
  for (const auto& [name, deviation] : plain) {
    CAPTURE(name);
    if (name.find("proj_") != std::string::npos) continue;  // skips the mixes over heads
    CHECK(deviation == Approx(0.02).epsilon(0.15));
    CHECK(scaled.at(name) == Approx(0.08).epsilon(0.15));  // sqrt(384 / 24) = 4 times as large
  }
  CHECK(nn::weight_init(nn::Base::scaled_normal, 384).description() ==
        nn::weight_init(nn::Base::truncated_normal, 384).description());
}

TEST_CASE(
    "talking heads that start from the identity equal plain attention in every residual method with and without "
    "dropping") {
  const DefaultsScope f64(reference_f64);
  const RandomScope random({.seed = 3, .step = 2});
  const Tensor x = random_normal({2, 5, 12}, 1, "x");
  for (const std::string& gate : nn::method_names()) {
    INFO(gate);
    nn::AttentionOptions attention{.heads = 3, .drop_key = {.rate = 0.3}, .dropout = 0.2};
    nn::StackOptions o{
        .dim = 12, .depth = 2, .method = gate, .junctions = nn::transformer_block(attention, {.hidden = 24})};
    nn::Stack plain(o);
    attention.head_mix = nn::HeadMix::identity;
    o.junctions[0] = nn::self_attention(attention);
    nn::Stack talking(o);
    initialize(plain, 7);
    initialize(talking, 7);
    CHECK(relative_error(talking(x), plain(x)) < 1e-12);
    plain.eval();
    talking.eval();
    CHECK(relative_error(talking(x), plain(x)) < 1e-12);
  }
}

TEST_CASE("talking heads with CaiT's init have almost uniform rows that do not sum to 1") {
  const DefaultsScope f64(reference_f64);
  const std::int64_t D = 12, H = 3;
  const Tensor x = random_normal({2, 7, D}, 1, "x");
  // Sets scores far from uniform, an identity as the output projection, and no second mix.
  const auto spread = [&](nn::HeadMix mix) {
    nn::Attention attention({.dim = D, .heads = H, .head_mix = mix});
    initialize(attention, 5);
    set(named(attention, "qkv.weight"), random_normal({3 * D, D}, 2, "qkv") * 0.5);
    set(named(attention, "proj.weight"), identity(D));
    set(named(attention, "proj_w.weight"), identity(H));
    const Tensor y = attention(x), over_queries = mean(y, {1}, true);
    return largest(y - over_queries) / largest(over_queries);
  };
  CHECK(spread(nn::HeadMix::identity) > 0.5);
  CHECK(spread(nn::HeadMix::cait) < 0.2);

  // If all values are 1, each query collects the sum of its row of mixed probabilities.
  nn::Attention attention({.dim = D, .heads = H, .head_mix = nn::HeadMix::cait});
  initialize(attention, 5);
  set(named(attention, "qkv.weight"), zeros({3 * D, D}));
  set(named(attention, "qkv.bias"), concat({zeros({2 * D}), ones({D})}, 0));
  set(named(attention, "proj.weight"), identity(D));
  const Tensor rows = sum(named(attention, "proj_w.weight").detach(), {1});
  const Tensor expected = reshape(broadcast_to(reshape(rows, {H, 1}), {H, D / H}), {D});
  CHECK(relative_error(attention(x), broadcast_to(expected, {2, 7, D})) < 1e-14);
  CHECK(largest(rows) < 0.2);  // N(0, 0.02^2 H)
  CHECK(largest(rows) > 1e-4);
}

TEST_CASE("class attention equals the attention of one query over class token and patches") {
  const DefaultsScope f64(reference_f64);
  const std::int64_t B = 2, T = 5, D = 8, H = 2, E = D / H;
  nn::ClassAttention attention({.dim = D, .heads = H});
  shake(attention, 0.5);
  const Tensor u = random_normal({B, 1 + T, D}, 4, "u");
  const auto project = [&](const char* name, const Tensor& x) {
    return linear(x, named(attention, fmt::format("{}.weight", name)), named(attention, fmt::format("{}.bias", name)));
  };
  const Tensor q = project("q", slice(u, 1, 0, 1)), k = project("k", u), v = project("v", u);
  Tensors heads;
  for (std::int64_t h = 0; h < H; ++h) {
    const auto head = [&](const Tensor& x) { return slice(x, 2, h * E, (h + 1) * E); };
    heads.push_back(
        matmul(softmax(matmul(head(q), head(k), false, true) * (1 / std::sqrt(static_cast<double>(E)))), head(v)));
  }
  const Tensor expected = project("proj", concat(heads, 2));
  CHECK(attention(u).shape() == Shape{B, 1, D});
  CHECK(relative_error(attention(u), expected) < 1e-13);
}

TEST_CASE("a block of stage 2 updates only the class token, which reads the patches through keys and values") {
  const DefaultsScope f64(reference_f64);
  nn::CaiT model(tiny());
  shake(model, 0.5);
  const Tensor patches = variable(random_normal({3, 4, 8}, 2, "patches"));
  // Every block reads the patches that stage 1 returned.
  Tensor cls = broadcast_to(named(model, "cls_token"), {3, 1, 8});
  std::vector<const nn::LayerScaleBlockClassAttn*> blocks;
  model.each_module([&](nn::Module& module) {
    if (const auto* const block = dynamic_cast<nn::LayerScaleBlockClassAttn*>(&module)) blocks.push_back(block);
  });
  for (const auto* block : blocks) cls = (*block)(patches, cls);
  const Tensor token = model.class_token(patches);
  CHECK(token.values() == cls.values());
  // The order of the patches does not matter, because their positions were added before stage 1.
  const Tensor turned = concat({slice(patches, 1, 2, 4), slice(patches, 1, 0, 2)}, 1);
  CHECK(relative_error(model.class_token(turned), token) < 1e-13);
  CHECK(largest(grad(sum(token * token), patches)) > 1e-6);
  // norm1 normalises the class token and each patch separately.
  const nn::LayerScaleBlockClassAttn& block = *blocks.front();
  const Tensor c = random_normal({3, 1, 8}, 5, "c");
  CHECK(relative_error(block(patches * 3 + 2, c), block(patches, c)) < 1e-5);
  for (const char* layer : {"k", "v"})
    for (const int index : {0, 1})
      set(named(model, fmt::format("blocks_token_only.{}.attn.{}.weight", index, layer)), zeros({8, 8}));
  const Tensor blind = model.class_token(patches);
  CHECK(largest(grad(sum(blind * blind), patches)) == 0);
}

TEST_CASE("CaiT's stage 1 drops heads in training only") {
  const DefaultsScope f64(reference_f64);
  nn::CaiTOptions o = tiny();
  const Tensor images = random_normal({6, 2, 8, 8}, 1, "images");
  nn::CaiT plain(o);
  o.drop_head = {.rate = 0.6};
  nn::CaiT dropping(o);
  shake(plain, 0.5);
  shake(dropping, 0.5);
  const RandomScope random({.seed = 3, .step = 2});
  CHECK(dropping(images).values() != plain(images).values());
  dropping.eval();
  CHECK(dropping(images).values() == plain(images).values());
}

namespace {

struct MeanOfTokens : nn::Layer {  // replaces class attention: [B, 1 + T, D] -> [B, 1, D]
  nn::Child<nn::Linear> out;
  explicit MeanOfTokens(const nn::AttentionOptions& o) : out{this, "out", {.in = o.dim, .out = o.dim}} {}
  Tensor forward(const Tensor& u) const override { return out(mean(u, {1}, true)); }
};

}  // namespace

TEST_CASE("a class attention block has timm's options: biases, dropouts, stochastic depth and custom parts") {
  const DefaultsScope f64(reference_f64);
  const nn::ClassBlockOptions plain{.dim = 6, .heads = 2, .hidden = 8, .init = 0.5};
  nn::ClassBlockOptions dropping = plain;
  dropping.attn_drop = 0.4, dropping.proj_drop = 0.3, dropping.drop_path = 0.5;
  nn::LayerScaleBlockClassAttn a(plain), b(dropping);
  for (nn::Module* m : std::initializer_list<nn::Module*>{&a, &b}) shake(*m, 0.3);
  const Tensor patches = random_normal({8, 3, 6}, 1, "x"), c = random_normal({8, 1, 6}, 1, "c");
  {
    const RandomScope random({.seed = 3, .step = 2});
    const std::vector<double> y = b(patches, c).values(), skip = c.values(), without = a(patches, c).values();
    CHECK(y != without);
    CHECK(b(patches, c).values() == y);
    // If both branches of a sample are dropped, the sample does not change. The expected share of such samples is a
    // quarter.
    int passed = 0;
    for (std::size_t i = 0; i < y.size(); i += 6) passed += std::equal(&y[i], &y[i] + 6, &skip[i]);
    CHECK((passed > 0 && passed < 8));
    check_gradients([&](const Tensors& in) { return b(in[0], in[1]); }, {patches, c}, {.order = 2});
  }
  b.eval();
  CHECK(b(patches, c).values() == a(patches, c).values());

  nn::ClassBlockOptions bare = plain;
  bare.qkv_bias = false;
  CHECK(nn::LayerScaleBlockClassAttn(bare).parameter_count() ==
        nn::LayerScaleBlockClassAttn(plain).parameter_count() - 3 * 6);
  bare.mlp = [](const nn::MlpOptions& o) {
    return std::make_unique<nn::Linear>(nn::LinearOptions{.in = o.dim, .out = o.dim});
  };
  bare.norm = [](std::int64_t dim, double) { return std::make_unique<nn::RmsNorm>(dim); };
  bare.attention = [](const nn::AttentionOptions& o) { return std::make_unique<MeanOfTokens>(o); };
  nn::LayerScaleBlockClassAttn own(bare);
  bare.mlp = [](const nn::MlpOptions&) { return nullptr; };
  CHECK(error_of([&] { nn::LayerScaleBlockClassAttn{bare}; }) ==
        "[class_block] expected ClassBlockOptions::mlp to make a layer, got null");
  shake(own, 0.3);
  CHECK(own(patches, c).shape() == Shape{8, 1, 6});
  std::vector<std::string> names;
  for (const nn::Parameter& p : own.parameters()) names.push_back(p.name);
  CHECK(std::ranges::find(names, "mlp.weight") != names.end());
  CHECK(std::ranges::find(names, "attn.out.weight") != names.end());
  CHECK(std::ranges::find(names, "attn.q.weight") == names.end());
  CHECK(std::ranges::find(names, "norm1.bias") == names.end());
}

TEST_CASE("dropout acts inside an MLP, after it and after attention, also within a block") {
  const DefaultsScope f64(reference_f64);
  const Tensor x = random_normal({4, 5, 6}, 1, "x");
  nn::Mlp plain({.dim = 6, .hidden = 8}), dropping({.dim = 6, .hidden = 8, .drop = 0.5});
  nn::Attention attention({.dim = 6, .heads = 2, .proj_drop = 0.5});
  for (nn::Module* m : std::initializer_list<nn::Module*>{&plain, &dropping, &attention}) shake(*m, 0.3);
  {
    const RandomScope random({.seed = 3, .step = 2});
    const std::vector<double> y = dropping(x).values(), z = attention(x).values();
    const auto zeros = [](const std::vector<double>& v) {
      return static_cast<double>(std::ranges::count(v, 0.0)) / static_cast<double>(v.size());
    };
    CHECK(zeros(y) == Approx(0.5).margin(0.18));
    CHECK(zeros(z) == Approx(0.5).margin(0.18));
    check_gradients([&](const Tensors& in) { return dropping(in[0]) + attention(in[0]); }, {x}, {.order = 2});
    // With a residual sum in the branch, the result is the same as with a separate sum, because no op is fused across
    // the dropout.
    Tensor gate = tensor({0.5}, {1});
    const nn::BranchContext summed{.sum = ResidualSum{.skip = x, .gate = gate}};
    CHECK(relative_error(call_branch(dropping, x, summed), x + gate * dropping(x)) < 1e-14);
  }
  dropping.eval();
  CHECK(dropping(x).values() == plain(x).values());
}

TEST_CASE("CaiT works with every residual method in stage 1 and checkpointed blocks change nothing") {
  const Tensor images = random_normal({2, 2, 8, 8}, 1, "images"), labels = integers({1, 4}, {2});
  for (const std::string& gate : nn::method_names()) {
    INFO(gate);
    nn::CaiTOptions o = tiny();
    o.method = gate;
    o.drop_path = {.rate = 0.2};
    nn::CaiT model(o);
    const RandomScope random({.seed = 1, .step = 1});
    const Gradients g = backward(cross_entropy(model(images), labels));
    CHECK(std::isfinite(g.loss()));
    CHECK((std::abs(g.loss() - std::log(5.0)) < 1e-6) == nn::method_named(gate).paper.zero_head);
    model.checkpoint_blocks(true);
    const Gradients again = backward(cross_entropy(model(images), labels));
    CHECK(again.loss() == g.loss());
    CHECK(again.norm() == Approx(g.norm()).epsilon(1e-6));
  }
}

// timm 1.0.31: sum(p.numel() for p in timm.create_model("cait_" + name).parameters())
TEST_CASE("presets have the same number of parameters as timm's models", "[long]") {
  struct Known {
    const char* size;
    std::int64_t image, count;
  };
  for (const Known& k : {Known{"xxs24", 224, 11956264}, Known{"xxs24", 384, 12029224}, Known{"xxs36", 224, 17299720},
                         Known{"xxs36", 384, 17372680}, Known{"xs24", 384, 26670088}, Known{"s24", 224, 46916200},
                         Known{"s36", 384, 68366632}, Known{"m36", 384, 271221352}, Known{"m48", 448, 356460520}}) {
    nn::CaiTOptions o = nn::cait_options(fmt::format("cait-timm-{}", k.size));
    o.image = k.image;
    const std::int64_t blocks =
        std::exchange(o.depth, 1);  // all blocks have the same number of parameters, so the test builds only one block
    nn::CaiT model(o);
    INFO(k.size);
    CHECK(model.parameter_count() + (blocks - 1) * model.blocks()[0].parameter_count() == k.count);
  }
}

TEST_CASE("presets hold the published constants and the constants in which paper and timm differ") {
  const auto value = [](const std::string& preset, const std::string& constant) {
    return nn::cait_preset(preset).at(constant).value;
  };
  CHECK(nn::cait_preset_names().size() == 24);
  struct Row {
    const char* size;
    double dim, heads, paper_init, timm_init, drop_path;
  };
  for (const Row& r : {Row{"xxs24", 192, 4, 1e-5, 1e-5, 0.05}, Row{"xxs36", 192, 4, 1e-6, 1e-5, 0.1},
                       Row{"xs24", 288, 6, 1e-5, 1e-5, 0.05}, Row{"xs36", 288, 6, 1e-6, 1e-6, 0.1},
                       Row{"s24", 384, 8, 1e-5, 1e-5, 0.1}, Row{"s36", 384, 8, 1e-6, 1e-6, 0.2},
                       Row{"s48", 384, 8, 1e-6, 1e-6, 0.3}, Row{"m24", 768, 16, 1e-5, 1e-5, 0.2},
                       Row{"m36", 768, 16, 1e-6, 1e-6, 0.3}, Row{"m48", 768, 16, 1e-6, 1e-6, 0.4}}) {
    INFO(r.size);
    const std::string paper = fmt::format("cait-paper-{}", r.size), timm = fmt::format("cait-timm-{}", r.size);
    CHECK(value(paper, "dim") == r.dim);
    CHECK(value(paper, "heads") == r.heads);
    CHECK(value(paper, "init") == r.paper_init);
    CHECK(value(timm, "init") == r.timm_init);
    CHECK(value(paper, "drop_path") == r.drop_path);
    CHECK(value(timm, "drop_path") == 0);
  }
  std::vector<std::string> differing;
  for (const nn::CaitDifference& d :
       nn::differences(nn::cait_preset("cait-paper-xxs36"), nn::cait_preset("cait-timm-xxs36")))
    differing.push_back(fmt::format("{} {:g} {:g}", d.name, d.a.value, d.b.value));
  CHECK(differing == std::vector<std::string>{"init 1e-06 1e-05", "drop_path 0.1 0"});
  for (const std::string& name : nn::cait_preset_names())
    for (const auto& [constant, c] : nn::cait_preset(name).constants) {
      INFO(name << " " << constant);
      CHECK_FALSE(c.source.empty());
    }
  const nn::CaitPreset timm = nn::cait_preset("cait-timm-xxs36");
  CHECK(timm.at("epochs").source ==
        "Touvron et al. 2021: 400 epochs for the final models; facebookresearch/deit, main.py has 300");
  CHECK(timm.at("repeated_augmentation").source == "facebookresearch/deit, samplers.py (num_repeats = 3)");
  CHECK(nn::cait_preset("cait-paper-s36").at("drop_path").source == "reported in secondary texts, not verified");
  CHECK_THAT(timm.at("beta2").source, contains("PyTorch's default") && contains("opt-betas None"));
  for (const auto& [constant, wanted] : {std::pair{"beta1", 0.9},
                                         {"beta2", 0.999},
                                         {"weight_std", 0.02},
                                         {"talking_heads_std", 0.02},
                                         {"talking_heads_bias", 0.0},
                                         {"attn_drop", 0.0},
                                         {"drop_path_token_only", 0.0},
                                         {"eval_crop", 1.0}})
    CHECK(timm.at(constant).value == wanted);
  for (const std::int64_t depth : {19, 23, 25, 35})
    CHECK_THAT(nn::layerscale_init_source(depth), contains("our value between the published depths"));
  for (const std::int64_t depth : {6, 18, 24, 36, 48})
    CHECK_THAT(nn::layerscale_init_source(depth), !contains("our value"));
  const nn::Constant derived = nn::cait_preset("cait-paper-xs48").at("drop_path");
  CHECK(derived.value == Approx(0.15));
  CHECK(derived.source.starts_with("rule: "));
  const nn::CaiTOptions o = nn::cait_options("cait-paper-s36");
  CHECK((o.image == 224 && o.channels == 3 && o.classes == 1000 && o.patch == 16 && o.dim == 384 && o.depth == 36 &&
         o.heads == 8 && o.depth_token_only == 2 && o.mlp_ratio == 4 && o.init == 1e-6 && o.norm_eps == 1e-6 &&
         o.drop_path.rate == 0.2));
  CHECK(o.drop_path.schedule == nn::Schedule::constant);
}

TEST_CASE("errors of CaiT and its parts say what was expected") {
  nn::CaiTOptions o = tiny();
  o.depth_token_only = 0;
  CHECK_THAT(error_of([&] { nn::CaiT{o}; }), contains("[cait] expected a depth_token_only of at least 1 block, got 0"));
  for (const std::int64_t heads : {0, 3})
    CHECK_THAT(error_of([&] { nn::Attention({.dim = 8, .heads = heads, .head_mix = nn::HeadMix::cait}); }),
               contains(fmt::format("[attention] expected a width that is a multiple of the heads, got dim 8 and {} "
                                    "heads",
                                    heads)));
  CHECK_THAT(error_of([&] { nn::CrossAttention({.dim = 8, .heads = 2, .head_mix = nn::HeadMix::identity}); }),
             contains("[cross_attention] expected no mix of heads, got HeadMix::identity"));
  CHECK_THAT(error_of([&] { nn::ClassAttention({.dim = 8, .heads = 2, .head_mix = nn::HeadMix::cait}); }),
             contains("[class_attention] expected no mix of heads, got HeadMix::cait"));
  CHECK_THAT(error_of([&] { nn::ClassAttention({.dim = 8, .heads = 3}); }),
             contains("[class_attention] expected a width that is a multiple"));
  CHECK_THAT(error_of([&] { nn::ClassAttention({.dim = 8, .heads = 2, .drop_head = {.rate = 1}}); }),
             contains("[class_attention] expected a DropHead rate in [0, 1), got 1"));
  for (const double rate : {-0.1, 1.0})
    CHECK_THAT(error_of([&] { nn::Attention({.dim = 8, .heads = 2, .dropout = rate}); }),
               contains(fmt::format("[attention] expected a dropout rate in [0, 1), got {}", rate)));
  o = tiny();
  o.init = std::numeric_limits<double>::infinity();
  CHECK_THAT(error_of([&] { nn::CaiT{o}; }), contains("[layerscale] expected init to be a finite number, got inf"));
  nn::ClassAttention attention({.dim = 8, .heads = 2});
  nn::initialize(attention, 0);
  CHECK_THAT(error_of([&] {
               attention(zeros({2, 3, 4}));
             }),
             contains("[class_attention] expected an input [B, 1 + T, 8] with the class token first, got [2, 3, 4]"));
  nn::LayerScaleBlockClassAttn block({.dim = 8, .heads = 2, .hidden = 16});
  CHECK_THAT(
      error_of([&] {
        block(zeros({2, 3, 8}), zeros({2, 2, 8}));
      }),
      contains("[class_block] expected patches [B, T, D] and a class token [B, 1, D], got [2, 3, 8] and [2, 2, 8]"));
  CHECK_THAT(error_of([&] { nn::cait_preset("cait-papr-xxs36"); }),
             contains("expected a preset such as cait-paper-xxs36, ") && contains("got \"cait-papr-xxs36\""));
  CHECK_THAT(error_of([&] { nn::cait_preset("cait-timm-s24").at("drop"); }),
             contains("[cait] expected a constant of preset cait-timm-s24, got \"drop\""));
}
