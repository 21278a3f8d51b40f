// Files of weights that say what they are of, weights for other sizes, and what attention looks at.
#include "nn/io/pretrained.h"

#include <algorithm>
#include <cmath>

#include "nn/nn.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const nn::ViTOptions vit{.image = 16, .channels = 3, .patch = 4, .classes = 5, .dim = 64, .depth = 2, .heads = 1, .gate = "layerscale", .seed = 3};
const nn::CaiTOptions cait{.image = 16, .channels = 3, .patch = 4, .classes = 5, .dim = 16, .depth = 2, .heads = 2, .seed = 3};

template <class Options>
Options with_image(Options o, std::int64_t image) {
  o.image = image;
  return o;
}

nn::TensorFile file_of(const nn::Module& model, const nn::KeyMap& map = {}, const std::map<std::string, std::string>& metadata = {}) {
  return {.tensors = nn::copies(nn::weights(model, map)), .metadata = metadata};
}

std::vector<double> logits(const nn::Layer& model, std::int64_t image) {
  const NoGrad no_grad;
  return model(random_normal({2, 3, image, image}, 1, "images")).values();
}

}  // namespace

TEST_CASE("positions of another grid are timm's") {
  const nn::TensorFile golden = nn::read_safetensors(std::string(PLUMB_SOURCE_DIR) + "/tests/golden/positions.safetensors");
  int cases = 0;
  for (const auto& [name, given] : golden.tensors) {
    if (!name.ends_with(" given")) continue;
    const std::string stem = name.substr(0, name.size() - 6);
    CAPTURE(stem);
    const Tensor expected = golden.tensors.at(stem + " resized");
    const std::int64_t prefix = stem[0] - '0', side = std::stoll(stem.substr(stem.rfind(' ') + 1));
    const Tensor ours = nn::resized_positions(given, prefix, side);
    REQUIRE(ours.shape() == expected.shape());
    const std::vector<double> a = ours.values(), b = expected.values();
    for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(std::abs(a[i] - b[i]) < 1e-5);
    ++cases;
  }
  CHECK(cases == 6);
  CHECK_THAT(error_of([] { nn::resized_positions(tensor({1, 2, 3}, {1, 3, 1}), 1, 2); }), contains("expected positions of a square grid, got 2"));
}

TEST_CASE("a card comes back from metadata as it was") {
  nn::ModelCard card{.options = vit, .mean = {0.1, 0.2, 0.3}, .std = {1, 2, 3}, .class_names = {"a", "b", "c", "d", "ü"}};
  const nn::ModelCard back = nn::card_of(file_of(nn::ViT(vit), {}, nn::metadata_of(card)), "w");
  const auto& o = std::get<nn::ViTOptions>(back.options);
  CHECK((o.image == 16 && o.channels == 3 && o.patch == 4 && o.classes == 5 && o.dim == 64 && o.depth == 2 && o.heads == 1 && o.mlp_ratio == 4));
  CHECK((o.gate->name == "layerscale" && o.pool == nn::Pool::token && o.token_block == 0 && o.norm_eps == vit.norm_eps));
  CHECK((back.mean == card.mean && back.std == card.std && back.class_names == card.class_names));
  nn::CaiTOptions plain = cait;
  plain.attention = nn::make_attention<nn::Attention>;
  plain.depth_token_only = 3;
  for (const nn::CaiTOptions& given : {cait, plain}) {
    const nn::CaiT model(given);
    const nn::ModelCard again = nn::card_of(file_of(model, {}, nn::metadata_of(*nn::card_of(model))), "w");
    const auto made = nn::make_model(again);
    CHECK(std::get<nn::CaiTOptions>(again.options).depth_token_only == given.depth_token_only);
    nn::load_pretrained(*made, file_of(model), "w");
    CHECK(logits(*made, 16) == logits(model, 16));
  }
  CHECK_FALSE(nn::card_of(nn::Linear({.in = 2, .out = 2})).has_value());
}

TEST_CASE("timm's files say by names and shapes what they are of") {
  for (const nn::Pool pool : {nn::Pool::token, nn::Pool::mean})
    for (const char* gate : {"pre", "layerscale"}) {
      nn::ViTOptions o = vit;
      o.pool = pool, o.gate = gate, o.mlp_ratio = 2;
      const nn::ViT model(o);
      const nn::TensorFile file = file_of(model, nn::timm_vit());
      const auto made = nn::make_model(nn::card_of(file, "w"));
      nn::load_pretrained(*made, file, "w");
      CHECK(logits(*made, 16) == logits(model, 16));
    }
  const nn::CaiT model(cait);
  const nn::TensorFile file = file_of(model, nn::timm_cait());
  const nn::ModelCard card = nn::card_of(file, "w");
  CHECK(std::get<nn::CaiTOptions>(card.options).heads == 2);
  const auto made = nn::make_model(card);
  nn::load_pretrained(*made, file, "w");
  CHECK(logits(*made, 16) == logits(model, 16));

  // DeiT III: a class token without a position is one whose position is 0.
  nn::TensorFile without = file_of(nn::ViT(vit), nn::timm_vit());
  const Tensor positions = without.tensors.at("pos_embed");
  nn::TensorFile zero = without;
  zero.tensors["pos_embed"] = concat({slice(positions, 1, 0, 1) * 0.0, slice(positions, 1, 1, 17)}, 1);
  without.tensors["pos_embed"] = slice(positions, 1, 1, 17);
  const auto from_without = nn::make_model(nn::card_of(without, "w")), from_zero = nn::make_model(nn::card_of(zero, "w"));
  nn::load_pretrained(*from_without, without, "w"), nn::load_pretrained(*from_zero, zero, "w");
  CHECK(logits(*from_without, 16) == logits(*from_zero, 16));

  nn::ViTOptions narrow = vit;
  narrow.dim = 48, narrow.heads = 4;
  const nn::TensorFile of_narrow = file_of(nn::ViT(narrow), nn::timm_vit());
  CHECK_THAT(error_of([&] { nn::card_of(of_narrow, "n"); }), contains("n: a width of 48 is no multiple of 64") && contains("say how many heads"));
  CHECK(std::get<nn::ViTOptions>(nn::card_of(of_narrow, "n", 4).options).heads == 4);
}

TEST_CASE("files that describe no model are refused in one line") {
  const auto error = [](const nn::TensorFile& file) {
    const std::string text = error_of([&] { nn::card_of(file, "w.safetensors"); });
    CHECK_THAT(text, contains("w.safetensors: ") && !contains("\n"));
    return text;
  };
  CHECK_THAT(error({.tensors = {{"a", tensor({1}, {1})}}, .metadata = {}}), contains("no \"patch_embed.proj.weight\" with 4 dimensions in it"));
  for (const char* name : {"patch_embed.proj.weight", "pos_embed", "head.weight", "blocks.0.mlp.fc1.weight"}) {
    nn::TensorFile hollow = file_of(nn::ViT(vit), nn::timm_vit());
    hollow.tensors[name] = zeros(hollow.tensors.at(name).shape().with(0, 0));
    error(hollow);
  }
  const nn::TensorFile whole = file_of(nn::ViT(vit), nn::timm_vit());
  const auto says = [&](const std::string& text) { return nn::TensorFile{.tensors = whole.tensors, .metadata = {{"plumb", text}}}; };
  // Sizes that the file does not have: nothing is made of them.
  for (const char* size : {"\"dim\":1048576", "\"depth\":900000", "\"classes\":1048576", "\"image\":1048576", "\"mlp_ratio\":1048576"}) {
    std::string text = nn::metadata_of({.options = vit}).at("plumb");
    const std::string key = std::string(size).substr(0, std::string(size).find(':') + 1);
    const std::size_t at = text.find(key);
    text.replace(at, text.find(',', at) - at, size);
    CHECK_THAT(error(says(text)), contains("expected"));
  }
  CHECK_THAT(error(says("no json")), contains("its metadata \"plumb\" is not what Plumb writes"));
  CHECK_THAT(error(says("[]")), contains("is not what Plumb writes"));
  CHECK_THAT(error(says("{\"model\": \"bert\"}")), contains("describes no model: expected a model vit or cait, got bert"));
  const std::string good = nn::metadata_of({.options = vit}).at("plumb");
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    REQUIRE(at != text.npos);
    return says(text.replace(at, from.size(), to));
  };
  CHECK_THAT(error(changed("\"depth\":2", "\"depth\":2000000")), contains("expected sizes from 1 to 1048576, got 2000000"));
  CHECK_THAT(error(changed("\"dim\":64", "\"dim\":0")), contains("expected sizes from 1"));
  CHECK_THAT(error(changed("\"heads\":1", "\"heads\":7")), contains("width of whole heads"));
  CHECK_THAT(error(changed("layerscale", "layerscal")), contains("layerscal"));
  CHECK_THAT(error(changed("\"mean\":[]", "\"mean\":[1]")), contains("a mean and a deviation for each of 3 channels"));
  CHECK_THAT(error(changed("\"mean\":[],\"std\":[]", "\"mean\":[0,0,0],\"std\":[1,0,1]")), contains("expected deviations above 0, got 0"));
  CHECK_THAT(error(changed("\"class_names\":[]", "\"class_names\":[\"a\"]")), contains("expected 5 names of classes, got 1"));
  CHECK_THAT(error(changed("\"token\"", "\"sum\"")), contains("expected a pool token or mean, got sum"));
}

TEST_CASE("weights for other images, other classes and new gates") {
  const nn::ViT model(vit);
  const nn::TensorFile file = file_of(model, nn::timm_vit());
  nn::ViT larger(with_image(vit, 32));
  const nn::Adapted adapted = nn::load_pretrained(larger, file, "w");
  CHECK(adapted.positions_from == 4);
  CHECK(adapted.as_initialised.empty());
  const Tensor expected = nn::resized_positions(file.tensors.at("pos_embed"), 1, 8);
  CHECK(nn::weights(larger).at("pos_embed").values() == expected.values());
  nn::CaiT wide(with_image(cait, 32));
  CHECK(nn::load_pretrained(wide, file_of(nn::CaiT(cait)), "w").positions_from == 4);

  nn::ViTOptions other = vit;
  other.classes = 7, other.seed = 9;
  nn::ViT tuned(other);
  const std::vector<double> head = nn::weights(tuned).at("head.weight").values(), before = nn::weights(tuned).at("norm.weight").values();
  const Tensor first = nn::weights(tuned).at("blocks.0.attn.qkv.weight");
  const std::vector<double> untouched = first.values();
  CHECK_THAT(error_of([&] { nn::load_pretrained(tuned, file, "w"); }), contains("head.weight"));
  CHECK(first.values() == untouched);  // nothing has changed
  CHECK(nn::load_pretrained(tuned, file, "w", {.new_head = true}).as_initialised == std::vector<std::string>{"head.weight", "head.bias"});
  CHECK(nn::weights(tuned).at("head.weight").values() == head);
  CHECK(first.values() == nn::weights(model).at("blocks.0.attn.qkv.weight").values());

  // New LayerScales that start at 1 leave a pre-norm network as it was.
  nn::ViTOptions plain = vit;
  plain.gate = "pre";
  const nn::ViT old(plain);
  plain.gate = nn::methods::layerscale(1.0);
  nn::ViT gated(plain);
  CHECK_THAT(error_of([&] { nn::load_pretrained(gated, file_of(old, nn::timm_vit()), "w"); }), contains("blocks.0.ls1.gamma"));
  CHECK(nn::load_pretrained(gated, file_of(old, nn::timm_vit()), "w", {.new_gates = true}).as_initialised.size() == 4);
  const std::vector<double> a = logits(gated, 16), b = logits(old, 16);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-5);
  nn::NamedTensors lacking = file.tensors;
  lacking.erase("norm.bias");
  CHECK_THAT(error_of([&] { nn::load_pretrained(tuned, {.tensors = lacking, .metadata = {}}, "w", {true, true}); }), contains("norm.bias"));
}

TEST_CASE("attention maps weigh the values as the layers do, and change nothing") {
  // A block's attention, without its map: what the probabilities collect of the values, through the last product.
  const auto check_layer = [](nn::SelfAttention& layer, std::int64_t heads) {
    nn::initialize(layer, 7);
    layer.eval();
    const Tensor x = random_normal({2, 9, 16}, 2, "x");
    const Tensor qkv = layer.first()(x), p = layer.probabilities(qkv);
    CHECK(p.shape() == Shape{2, heads, 9, 9});
    const Tensor v = permute(reshape(slice(qkv, 2, 32, 48), {2, 9, heads, 16 / heads}), {0, 2, 1, 3});
    const Tensor collected = reshape(permute(matmul(p, v), {0, 2, 1, 3}), {2, 9, 16});
    const std::vector<double> ours = layer.last()(collected).values(), expected = layer(x).values();
    for (std::size_t i = 0; i < ours.size(); ++i) REQUIRE(std::abs(ours[i] - expected[i]) < 1e-5);
  };
  const nn::Init wide = nn::Init::truncated_normal(0.5);
  nn::Attention plain({.dim = 16, .heads = 4, .init = wide}), causal({.dim = 16, .heads = 4, .init = wide, .causal = true});
  nn::TalkingHeadsAttention talking({.dim = 16, .heads = 4, .init = wide}, nn::HeadMixInit::identity);
  check_layer(plain, 4), check_layer(causal, 4), check_layer(talking, 4);

  nn::CaiT model(cait);
  model.eval();
  const std::vector<double> without = logits(model, 16);
  {
    const nn::AttentionMaps maps(model);
    CHECK(logits(model, 16) == without);
    logits(model, 16);
    REQUIRE(maps.all().size() == 4);
    CHECK(maps.all()[0].path == "blocks.0.attn");
    CHECK(maps.all()[3].path == "blocks_token_only.1.attn");
    CHECK(maps.all()[0].probabilities.shape() == Shape{2, 2, 16, 16});
    CHECK(maps.all()[3].probabilities.shape() == Shape{2, 2, 1, 17});
    for (const double row : sum(maps.all()[3].probabilities, {3}).values()) CHECK(std::abs(row - 1) < 1e-6);
    CHECK(nn::rollout(maps.all()).shape() == Shape{2, 1, 16});
  }
  CHECK(logits(model, 16) == without);
}

TEST_CASE("rollout is the product of the layers' means with what goes past them") {
  const auto map = [](const std::string& path, const std::vector<double>& values, const Shape& shape) {
    return nn::AttentionMap{path, tensor(values, shape)};
  };
  // Two heads, two tokens: means {{0.5, 0.5}, {0, 1}}, then {{1, 0}, {0.5, 0.5}}.
  const nn::AttentionMap first = map("a", {1, 0, 0, 1, 0, 1, 0, 1}, {1, 2, 2, 2}), second = map("b", {1, 0, 0.5, 0.5}, {1, 1, 2, 2});
  const std::vector<double> through = nn::rollout({first, second}).values(), expected{0.75, 0.25, 0.1875, 0.8125};
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(through[i] - expected[i]) < 1e-6);
  // A class token that joins late reads the patches as they were then.
  const nn::AttentionMap late = map("e", {0.5, 0.25, 0.25, 0, 1, 0, 0, 0, 1}, {1, 1, 3, 3});
  const std::vector<double> joined = nn::rollout({first, late}).values();
  const double token[] = {0.75, 0.125 * 0.75, 0.125 * 0.25 + 0.125};
  for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(joined[i] - token[i]) < 1e-6);
  const nn::AttentionMap of_class = map("c", {0.5, 0.25, 0.25}, {1, 1, 1, 3});  // half of it goes to the token itself
  const std::vector<double> of_token = nn::rollout({first, second, of_class}).values();
  CHECK(std::abs(of_token[0] - 0.46875) < 1e-6);
  CHECK_THAT(error_of([] { nn::rollout({}); }), contains("expected at least one attention map"));
  CHECK_THAT(error_of([&] { nn::rollout({first, map("d", {1}, {1, 1, 1, 1})}); }), contains("expected maps of 2 queries and keys, got 1 and 1 in d"));
}
