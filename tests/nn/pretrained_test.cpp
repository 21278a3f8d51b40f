// Tests of weight files with model cards, of weights for models of other sizes, and of attention maps.
#include "nn/io/pretrained.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "nn/gates/gate_forms.h"
#include "nn/gates/method_text.h"
#include "plumb/plumb.h"
#include "tests/nn/shake.h"
#include "tests/support/built_in_gates.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const nn::ViTOptions vit{.image = 16,
                         .patch = 4,
                         .channels = 3,
                         .classes = 5,
                         .dim = 64,
                         .depth = 2,
                         .heads = 2,
                         .method = "layerscale",
                         .pool = nn::Pool::token,
                         .seed = 3};
const nn::CaiTOptions cait{
    .image = 16, .patch = 4, .channels = 3, .classes = 5, .dim = 16, .depth = 2, .heads = 2, .seed = 3};

template <class Options>
Options with_image(Options o, std::int64_t image) {
  o.image = image;
  return o;
}

nn::TensorFile file_of(const nn::Module& model, const nn::KeyMap& map = {},
                       const std::map<std::string, std::string>& metadata = {}) {
  return {.tensors = nn::copies(nn::weights(model, map)), .metadata = metadata};
}

std::vector<double> logits(const nn::Layer& model, std::int64_t image) {
  const NoGrad no_grad;
  return model(random_normal({2, 3, image, image}, 1, "images")).values();
}

nn::TensorFile saved(const nn::Module& model) { return file_of(model, {}, nn::metadata_of(*nn::card_of(model))); }

// Returns the logits of the model that a file describes, with the weights of the file.
std::vector<double> logits_of(const nn::TensorFile& file, const std::string& method = "") {
  const auto model = nn::make_model(nn::card_of(file, "w", {}, method));
  const nn::Adapted adapted = nn::load_pretrained(*model, file, "w", {.method = method});
  CHECK(adapted.same_function == true);
  CHECK(adapted.reasons.empty());
  model->eval();
  const NoGrad no_grad;
  return (*model)(random_normal({2, 3, 16, 16}, 1, "images")).values();
}

// Checks that a model with these options gives the same logits after saving and reading. Returns the logits.
template <class Model, class Options>
std::vector<double> check_comes_back(const Options& options) {
  Model model(options);
  shake(model, 0.1, 5);
  model.eval();
  const std::vector<double> before = logits(model, 16);
  CHECK(logits_of(saved(model)) == before);
  return before;
}

double off_standard(const nn::MethodConstant& c) {
  if (!c.standard) return 0.7;
  if (c.whole) return *c.standard - 1;
  return *c.standard + 0.5;
}

// Returns a copy of the file in which part of the metadata is replaced.
nn::TensorFile edited(nn::TensorFile file, const std::string& from, const std::string& to) {
  std::string& text = file.metadata.at("plumb");
  const std::size_t at = text.find(from);
  REQUIRE(at != text.npos);
  text.replace(at, from.size(), to);
  return file;
}

}  // namespace

TEST_CASE("positions resized to another grid agree with timm's") {
  const nn::TensorFile golden = nn::read_safetensors(test::source_dir() + "/tests/golden/positions.safetensors");
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
  CHECK_THAT(error_of([] {
               nn::resized_positions(tensor({1, 2, 3}, {1, 3, 1}), 1, 2);
             }),
             contains("expected positions of a square grid, got 2"));
}

TEST_CASE("a card read back from metadata equals the original") {
  nn::ModelCard card{
      .options = vit, .mean = {0.1, 0.2, 0.3}, .std = {1, 2, 3}, .class_names = {"a", "b", "c", "d", "ü"}};
  const nn::ModelCard back = nn::card_of(file_of(nn::ViT(vit), {}, nn::metadata_of(card)), "w");
  const auto& o = std::get<nn::ViTOptions>(back.options);
  CHECK((o.image == 16 && o.channels == 3 && o.patch == 4 && o.classes == 5 && o.dim == 64 && o.depth == 2 &&
         o.heads == 2 && o.mlp_ratio == 4));
  CHECK((o.method->name == "layerscale" && o.pool == nn::Pool::token && o.token_block == 0 &&
         o.norm_eps == vit.norm_eps));
  CHECK((back.mean == card.mean && back.std == card.std && back.class_names == card.class_names));
  CHECK_FALSE(nn::card_of(nn::Linear({.in = 2, .out = 2})).has_value());
}

TEST_CASE(
    "a file describes the function of its network for every method with every constant changed and every model "
    "option") {
  nn::ViTOptions o = vit;
  o.dim = 16, o.heads = 2, o.depth = 4;
  int changed = 0, constants = 0;
  for (const std::string& name : built_in_gates) {
    const nn::Method standard = nn::method_named(name);
    std::vector<nn::ConstantValues> wanted{{}};
    nn::ConstantValues all;
    for (const nn::MethodConstant& c : standard.constants) wanted.push_back({{c.name, all[c.name] = off_standard(c)}});
    if (all.size() > 1) wanted.push_back(all);
    for (const nn::ConstantValues& values : wanted) {
      const nn::Method method = standard.with(values);
      INFO(method.text());
      o.method = method;
      const std::vector<double> here = check_comes_back<nn::ViT>(o);
      const nn::ViT model(o);
      const nn::ModelCard back = nn::card_of(saved(model), "w");
      CHECK(std::get<nn::ViTOptions>(back.options).method->text() ==
            method.text());  // the text includes constants that affect only initial values
      for (const nn::MethodConstant& c : standard.constants) {
        if (values.size() != 1 || !values.contains(c.name)) continue;
        ++constants;
        if (c.affects != nn::Affects::function) continue;
        o.method = standard;
        CHECK(check_comes_back<nn::ViT>(o) != here);
        ++changed;
      }
    }
  }
  CHECK((changed == 5 && constants == 13));

  const std::vector<double> plain = check_comes_back<nn::ViT>(vit);
  const nn::DropPathOptions original{
      .rate = 0.5, .schedule = nn::Schedule::increasing, .form = nn::DropPathForm::original};
  const auto vit_with = [&](const auto& change) {
    nn::ViTOptions changed_vit = vit;
    changed_vit.depth = 3;
    change(changed_vit);
    return check_comes_back<nn::ViT>(changed_vit);
  };
  const std::vector<double> usual = vit_with([](auto&) {});
  CHECK(vit_with([](auto& v) { v.norm_eps = 0.1; }) != usual);
  CHECK(vit_with([](auto& v) { v.heads = 4; }) != usual);
  CHECK(vit_with([](auto& v) { v.mlp_ratio = 2; }) != usual);
  for (const double ratio : {8 / 3.0, 2.5, 1 / 64.0}) CHECK(vit_with([&](auto& v) { v.mlp_ratio = ratio; }) != usual);
  CHECK(vit_with([](auto& v) { v.patch = 8; }) != usual);
  CHECK(vit_with([](auto& v) { v.pool = nn::Pool::mean; }) != usual);
  CHECK(vit_with([](auto& v) { v.token_block = 2; }) != usual);
  CHECK(vit_with([&](auto& v) { v.drop_path = original; }) != usual);
  CHECK(vit_with([&](auto& v) { v.drop_path = original, v.drop_path.schedule = nn::Schedule::constant; }) != usual);
  CHECK(vit_with([&](auto& v) { v.drop_path = original, v.drop_path.form = nn::DropPathForm::rescaled; }) == usual);
  const auto cait_with = [&](const auto& change) {
    nn::CaiTOptions changed_cait = cait;
    change(changed_cait);
    return check_comes_back<nn::CaiT>(changed_cait);
  };
  const std::vector<double> common = cait_with([](auto&) {});
  CHECK(cait_with([](auto& c) { c.norm_eps = 0.1; }) != common);
  CHECK(cait_with([](auto& c) { c.heads = 4; }) != common);
  CHECK(cait_with([](auto& c) { c.depth_token_only = 3; }) != common);
  CHECK(cait_with([](auto& c) { c.head_mix = nn::HeadMix::none; }) != common);
  CHECK(cait_with([](auto& c) { c.method = "mix_ln:post_share=0.75"; }) != common);
  CHECK(cait_with([&](auto& c) { c.drop_path = original; }) != common);
  nn::CaiTOptions started = cait;
  started.init = 0.3;
  CHECK(std::get<nn::CaiTOptions>(nn::card_of(saved(nn::CaiT(started)), "w").options).init == 0.3);
  // A file from a later version may contain other forms. This version rejects such a file.
  CHECK_THAT(error_of([] { nn::card_of(edited(saved(nn::ViT(vit)), "\"gelu\":\"erf\"", "\"gelu\":\"tanh\""), "w"); }),
             contains("w: its metadata \"plumb\" describes no model: expected gelu erf, got tanh"));
}

TEST_CASE("a model that no card describes is rejected before it is saved with a wrong card") {
  const auto refusal = [](const nn::MethodChoice& gate) {
    nn::ViTOptions o = vit;
    o.method = gate;
    return error_of([&] { nn::metadata_of({.options = o}); });
  };
  const auto another = contains(
      "one that reads back as another network: its method \"layerscale\" differs from the method of this name in the "
      "table; register the method "
      "under");
  nn::Method norm = nn::methods::layerscale(), layer = norm, build = norm, close = norm, nameless = norm;
  norm.norm = nn::Norm::post;
  layer.norm_layer = [](std::int64_t dim, double) { return std::make_unique<nn::LayerNorm>(dim, 1e-3); };
  build.build = [](const nn::GateContext& c) {
    nn::BlockGates gates = nn::gates_from<nn::LayerScale>(c, c.dim, 1.0);
    if (c.block == 1) gates.norm = nn::Norm::post;
    return gates;
  };
  close.close = [](const nn::Stream& s, const nn::Layer* final_norm) { return (*final_norm)(s.x * 2.0 + 0.1); };
  nameless.name = "mine";
  for (const nn::Method& changed : {norm, layer, build, close})
    CHECK_THAT(refusal(changed), another && !contains("\n"));
  CHECK_THAT(refusal(nameless), contains("one with the method \"mine\"") &&
                                    contains("expected the name of a residual method, got \"mine\"") &&
                                    contains("nn::metadata_without_card"));
  nn::Method same = nn::methods::layerscale(0.5);  // a method made by hand, but equal to the method of the table
  same.build = [](const nn::GateContext& c) { return nn::gates_from<nn::LayerScale>(c, c.dim, 0.5); };
  nn::ViTOptions equal = vit;
  equal.method = same;
  CHECK(nn::metadata_of({.options = equal}).contains("plumb"));

  // Weights that are saved without a card are not read as the weights of another model.
  const nn::TensorFile file =
      file_of(nn::ViT(vit), nn::timm_vit(), nn::metadata_without_card("its method was changed"));
  CHECK_THAT(error_of([&] { nn::card_of(file, "w"); }),
             contains("w: these weights are of a model that a card cannot describe: its method was changed; load them "
                      "with nn::load_weights"));
  nn::ViT model(vit);
  CHECK_FALSE(nn::load_pretrained(model, file, "w").same_function.has_value());
}

TEST_CASE("a card with keys of a later version is rejected and the keys are named") {
  const auto check_refused = [](const nn::TensorFile& file, const std::string& keys) {
    const std::string message = error_of([&] { nn::card_of(file, "w"); });
    CHECK_THAT(message, contains("w: its metadata has keys that this version does not know"));
    CHECK_THAT(message, contains("computes: " + keys + "; read") && !contains("\n"));
  };
  const nn::TensorFile of_vit = saved(nn::ViT(vit)), of_cait = saved(nn::CaiT(cait));
  check_refused(edited(of_vit, "\"gelu\":", "\"rope\":true,\"\\nq\":1,\"gelu\":"), "\"rope\", \"\\nq\"");
  check_refused(edited(of_cait, "\"talking_heads\":", "\"rope\":true,\"talking_heads\":"), "\"rope\"");
  check_refused(edited(of_vit, "\"pool\":", "\"talking_heads\":true,\"pool\":"), "\"talking_heads\"");
  nn::ViTOptions dropping = vit;
  dropping.drop_path = {.rate = 0.5, .form = nn::DropPathForm::original};
  check_refused(edited(saved(nn::ViT(dropping)), "\"rate\":", "\"batches\":2,\"rate\":"), "\"batches\"");
}

TEST_CASE("networks whose logits are not finite count neither as equal nor as different") {
  struct Root : nn::ScaleGate {
    explicit Root(const nn::GateContext& c) : ScaleGate(full({1}, std::sqrt(c.constant("of")))) {}
  };
  nn::register_method<Root>(
      "root", {.formula = "x + sqrt(of) f(LN(x))", .source = "test", .constants = {{.name = "of", .standard = 1}}});
  nn::ViTOptions o = vit;
  o.method = "root:of=-1";
  CHECK_THAT(error_of([&] { nn::metadata_of({.options = o}); }),
             contains("one with the method \"root:of=-1\": both networks give an output that is not finite; "));
  nn::ViT model(o);
  o.method = "pre";
  const nn::TensorFile file = edited(saved(nn::ViT(o)), "\"gate\":\"pre\"", "\"gate\":\"root:of=-1\"");
  const nn::Adapted adapted = nn::load_pretrained(model, file, "w");
  CHECK_FALSE(adapted.same_function.has_value());
  CHECK_THAT(adapted.text(),
             contains("network: the two networks cannot be compared: both networks give an output that is not "
                      "finite"));
}

TEST_CASE("a method that cannot be built a second time is loaded, but is not compared and has no card") {
  bool built = false;
  nn::Method once = nn::methods::pre();
  once.build = [&built, build = once.build](const nn::GateContext& c) {
    if (built) throw std::runtime_error("built already");  // not an Error of Plumb
    return build(c);
  };
  nn::ViTOptions o = vit;
  o.method = "pre";
  nn::ViT theirs(o);
  shake(theirs, 0.1, 5);
  o.method = once;
  nn::ViT model(o);
  built = true;
  CHECK_THAT(error_of([&] { nn::metadata_of({.options = o}); }),
             contains("[metadata_of] ") && contains("built already"));
  const nn::Adapted adapted = nn::load_pretrained(model, saved(theirs), "w");
  CHECK_FALSE(adapted.same_function.has_value());
  CHECK_THAT(adapted.text(), contains("network: the two networks cannot be compared: built already"));
  CHECK(logits(model, 16) == logits(theirs, 16));
}

TEST_CASE("a gate that throws while weights are loaded leaves the model unchanged") {
  struct Failing : nn::Gate {
    Tensor alpha = parameter("alpha", {1}, nn::Init::constant(0.5), Role::gate);
    Tensor combine(const Tensor& skip, const Tensor& branch) const override {
      return gated_residual(skip, branch, alpha);
    }
    Tensors scales() const override { throw Error("no scales"); }
  };
  nn::ViTOptions o = vit;
  o.method = "pre";
  nn::ViT trained(o);
  shake(trained, 0.1, 5);
  nn::Method failing = nn::methods::pre();
  failing.build = nn::gates_from<Failing>;
  o.method = failing;
  nn::ViT model(o);
  const std::vector<double> before = logits(model, 16);
  CHECK_THAT(error_of([&] { nn::load_pretrained(model, saved(trained), "w", {.new_gates = true}); }),
             contains("no scales"));
  CHECK(logits(model, 16) == before);
}

TEST_CASE("files of older versions load if the name of the method is enough and otherwise name the missing constant") {
  const auto older =
      [](const nn::MethodChoice& gate) {  // returns the metadata of older versions, with only the name of the method
        nn::ViTOptions o = vit;
        o.method = gate, o.depth = 4;
        nn::ViT model(o);
        shake(model, 0.1, 5);
        return edited(saved(model), gate->text(), gate->name);
      };
  const auto described = [](const nn::TensorFile& file, const std::string& method = "") {
    return std::get<nn::ViTOptions>(nn::card_of(file, "w", {}, method).options).method->text();
  };
  CHECK(described(older("pre")) == "pre");
  CHECK(described(older(nn::methods::layerscale(0.3))) == "layerscale:init=by_depth");
  CHECK(described(older("hyper_connections")) == "hyper_connections:streams=4");
  CHECK(described(older("fixup")) == nn::method_named("fixup").text());
  // If a constant that decides the parameters has a wrong value, the shapes do not match.
  const nn::TensorFile two = older(nn::methods::hyper_connections(2));
  const auto four = nn::make_model(nn::card_of(two, "w"));
  CHECK_THAT(error_of([&] { nn::load_pretrained(*four, two, "w"); }),
             contains("of another shape or dtype") &&
                 contains("; its metadata, from an older version, lacks streams of its method hyper_connections, and "
                          "the model has streams=4; ") &&
                 contains("give it: --gate hyper_connections:streams=VALUE in programs, "
                          "nn::card_of(file, path, {}, \"hyper_connections:streams=VALUE\") in code"));
  const nn::Method without_scales = nn::methods::fixup().with({{"scales", 0}});
  const nn::TensorFile unscaled = older(without_scales);
  const auto scaled = nn::make_model(nn::card_of(unscaled, "w"));
  CHECK_THAT(error_of([&] { nn::load_pretrained(*scaled, unscaled, "w"); }),
             contains("lacks shifts, scales of its method fixup, and the model has shifts=1, scales=1; ") &&
                 contains("--gate fixup:shifts=VALUE:scales=VALUE in programs"));
  CHECK(described(unscaled, "fixup:scales=0") == without_scales.text());
  CHECK(described(two, "hyper_connections:streams=2") == "hyper_connections:streams=2");

  for (const char* gate : {"mix_ln:post_share=0.75", "deepnorm:alpha=8", "branch_scale:multiplier=1",
                           "depth_mup:base_depth=8", "complete_p:base_depth=8"}) {
    INFO(gate);
    const nn::MethodText text = nn::method_text(gate);
    const std::string constant = text.values.begin()->first;
    const nn::TensorFile file = older(gate);
    CHECK_THAT(error_of([&] { nn::card_of(file, "w"); }),
               contains(fmt::format("w: its metadata, from an older version, lacks the constant {} of its method {}",
                                    constant, text.name)) &&
                   contains(fmt::format("--gate {}:{}=", text.name, constant)));
    CHECK(described(file, gate) == gate);
    nn::ViTOptions o = vit;
    o.method = gate, o.depth = 4;
    nn::ViT model(o);
    nn::load_pretrained(model, file, "w");
    model.eval();
    CHECK(logits_of(file, gate) == logits(model, 16));
    CHECK_FALSE(nn::load_pretrained(model, file, "w").same_function.has_value());
  }
  CHECK(described(older("deepnorm"), "deepnorm:alpha=by_depth") == "deepnorm:alpha=by_depth");
  nn::ViTOptions o = vit;
  o.method = nn::methods::mix_ln(0.75);
  CHECK_THAT(
      error_of([&] { nn::card_of(saved(nn::ViT(o)), "w", {}, "mix_ln:post_share=0.5"); }),
      contains("w: post_share=0.5 was given, but its metadata says mix_ln:post_share=0.75; do not give the constant"));
  CHECK(described(saved(nn::ViT(o)), "deepnorm:alpha=8") ==
        "mix_ln:post_share=0.75");  // a `method` with another name is ignored
}

TEST_CASE("names and shapes of timm's files show which model they belong to") {
  for (const nn::Pool pool : {nn::Pool::token, nn::Pool::mean})
    for (const char* gate : {"pre", "layerscale"}) {
      nn::ViTOptions o = vit;
      o.pool = pool, o.method = gate, o.mlp_ratio = 2;
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

  // DeiT III has a class token without a position, which is read as a position of 0.
  nn::TensorFile without = file_of(nn::ViT(vit), nn::timm_vit());
  const Tensor positions = without.tensors.at("pos_embed");
  nn::TensorFile zero = without;
  zero.tensors["pos_embed"] = concat({slice(positions, 1, 0, 1) * 0.0, slice(positions, 1, 1, 17)}, 1);
  without.tensors["pos_embed"] = slice(positions, 1, 1, 17);
  const auto from_without = nn::make_model(nn::card_of(without, "w")),
             from_zero = nn::make_model(nn::card_of(zero, "w"));
  nn::load_pretrained(*from_without, without, "w"), nn::load_pretrained(*from_zero, zero, "w");
  CHECK(logits(*from_without, 16) == logits(*from_zero, 16));

  nn::ViTOptions narrow = vit;
  narrow.dim = 48, narrow.heads = 4;
  const nn::TensorFile of_narrow = file_of(nn::ViT(narrow), nn::timm_vit());
  CHECK_THAT(error_of([&] { nn::card_of(of_narrow, "n"); }),
             contains("n: expected a width that is a multiple of 64") && contains("got 48; give the number of heads"));
  CHECK(std::get<nn::ViTOptions>(nn::card_of(of_narrow, "n", 4).options).heads == 4);
}

TEST_CASE("the MLP ratio can be any number and whole numbers are written as integers, as in all versions") {
  const auto text = [](double ratio) {
    nn::ViTOptions o = vit;
    o.mlp_ratio = ratio;
    return nn::metadata_of({.options = o}).at("plumb");
  };
  CHECK_THAT(text(4), contains("\"mlp_ratio\":4,"));
  CHECK_THAT(text(2.5), contains("\"mlp_ratio\":2.5,"));
  nn::ViTOptions o = vit;
  o.mlp_ratio = 2.51;  // 160.64 hidden units
  const nn::ViT model(o);
  CHECK(nn::weights(model).at("blocks.1.mlp.fc1.weight").shape() == Shape{161, 64});
  nn::CaiTOptions c = cait;
  c.mlp_ratio = 1.5;
  const nn::CaiT of_cait(c);
  for (const char* name : {"blocks.0.mlp.fc1.weight", "blocks_token_only.1.mlp.fc1.weight"})
    CHECK(nn::weights(of_cait).at(name).shape() == Shape{24, 16});
  // card_of() reads the ratio as an integer or as a number. For a file without a card, the ratio follows from the
  // widths.
  for (const char* written : {"\"mlp_ratio\":4", "\"mlp_ratio\":4.0"})
    CHECK(std::get<nn::ViTOptions>(nn::card_of(edited(saved(nn::ViT(vit)), "\"mlp_ratio\":4", written), "w").options)
              .mlp_ratio == 4);
  const nn::TensorFile without = file_of(model, nn::timm_vit());
  CHECK(std::get<nn::ViTOptions>(nn::card_of(without, "w").options).mlp_ratio == 161 / 64.0);
  const auto made = nn::make_model(nn::card_of(without, "w"));
  nn::load_pretrained(*made, without, "w");
  CHECK(logits(*made, 16) == logits(model, 16));
  // A ratio with less than one hidden unit is rejected.
  for (const double ratio : {0.0, 0.001, -4.0, std::nan(""), HUGE_VAL}) {
    o.mlp_ratio = ratio, c.mlp_ratio = ratio;
    const std::string got = fmt::format("got {}", ratio);
    CHECK_THAT(error_of([&] { nn::ViT bad(o); }),
               contains("[vit] expected an mlp_ratio that gives MLPs of 1 to 2^40 hidden units at width 64, " + got));
    CHECK_THAT(error_of([&] { nn::CaiT bad(c); }), contains("[cait] expected an mlp_ratio") && contains(got));
  }
  CHECK_THAT(error_of([&] { nn::card_of(edited(saved(model), "2.51", "-2.51"), "w"); }),
             contains("describes no model: [card] expected an mlp_ratio"));
  CHECK_THAT(error_of([&] { nn::card_of(edited(saved(model), "2.51", "2.6"), "w"); }),
             contains("blocks.0.mlp.fc1.weight"));
}

TEST_CASE("files that describe no model are rejected with one line") {
  const auto error = [](const nn::TensorFile& file) {
    const std::string text = error_of([&] { nn::card_of(file, "w.safetensors"); });
    CHECK_THAT(text, contains("w.safetensors: ") && !contains("\n"));
    return text;
  };
  CHECK_THAT(error({.tensors = {{"a", tensor({1}, {1})}}, .metadata = {}}),
             contains("got one without \"patch_embed.proj.weight\" of 4 dimensions"));
  for (const char* name : {"patch_embed.proj.weight", "pos_embed", "head.weight", "blocks.0.mlp.fc1.weight"}) {
    nn::TensorFile hollow = file_of(nn::ViT(vit), nn::timm_vit());
    hollow.tensors[name] = zeros(hollow.tensors.at(name).shape().with(0, 0));
    error(hollow);
  }
  const nn::TensorFile whole = file_of(nn::ViT(vit), nn::timm_vit());
  const auto says = [&](const std::string& text) {
    return nn::TensorFile{.tensors = whole.tensors, .metadata = {{"plumb", text}}};
  };
  // If the sizes in the card differ from the sizes of the weights, no model is made.
  for (const char* size :
       {"\"dim\":1048576", "\"depth\":900000", "\"classes\":1048576", "\"image\":1048576", "\"mlp_ratio\":1048576"}) {
    std::string text = nn::metadata_of({.options = vit}).at("plumb");
    const std::string key = std::string(size).substr(0, std::string(size).find(':') + 1);
    const std::size_t at = text.find(key);
    text.replace(at, text.find(',', at) - at, size);
    CHECK_THAT(error(says(text)), contains("expected"));
  }
  CHECK_THAT(error(says("no json")), contains("its metadata \"plumb\" is not in Plumb's format"));
  CHECK_THAT(error(says("[]")), contains("is not in Plumb's format"));
  CHECK_THAT(error(says("{\"model\": \"bert\"}")),
             contains("describes no model: expected a model vit or cait, got bert"));
  const std::string good = nn::metadata_of({.options = vit}).at("plumb");
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    REQUIRE(at != text.npos);
    return says(text.replace(at, from.size(), to));
  };
  CHECK_THAT(error(changed("\"depth\":2", "\"depth\":2000000")),
             contains("expected sizes from 1 to 1048576, got 2000000"));
  CHECK_THAT(error(changed("\"dim\":64", "\"dim\":0")), contains("expected sizes from 1"));
  CHECK_THAT(error(changed("\"heads\":2", "\"heads\":7")), contains("width of whole heads"));
  for (const char* size : {"2.5", "2e0", "true", "\"2\"", "null", "[2]", "18446744073709551617", "1e300"})
    for (const char* key : {"depth", "heads"})
      CHECK_THAT(error(changed(fmt::format("\"{}\":2", key), fmt::format("\"{}\":{}", key, size))),
                 contains(fmt::format("expected a whole number as {}, got ", key)));
  CHECK_THAT(error(changed("\"depth\":2", "\"depth\":18446744073709551615")), contains("expected sizes from 1"));
  CHECK_THAT(error(changed("\"token_block\":0", "\"token_block\":2")),
             contains("a token_block below the depth 2, got 2"));
  CHECK_THAT(error(changed("\"image\":16", "\"image\":1099511627776")), contains("expected sizes from 1"));
  CHECK_THAT(error(changed("\"image\":16", "\"image\":8192")),
             contains("expected images of at most 4096 x 4096 pixels"));
  CHECK_THAT(error(changed("\"image\":16", "\"image\":2048")),
             contains("and 65536 patches, got 2048 x 2048 and 262144"));
  CHECK_THAT(error(changed("\"class_names\":[]", "\"class_names\":[\"a\\u0000\",\"\",\"\",\"\",\"\"]")),
             contains("names of classes without control characters"));
  CHECK_THAT(error(changed("layerscale", "layerscal")), contains("layerscal"));
  CHECK_THAT(error(changed("\"mean\":[]", "\"mean\":[1]")),
             contains("a mean and a standard deviation for each of 3 channels"));
  CHECK_THAT(error(changed("\"mean\":[],\"std\":[]", "\"mean\":[0,0,0],\"std\":[1,0,1]")),
             contains("expected standard deviations above 0, got 0"));
  CHECK_THAT(error(changed("\"class_names\":[]", "\"class_names\":[\"a\"]")),
             contains("expected names of 5 classes, got 1"));
  CHECK_THAT(error(changed("\"token\"", "\"sum\"")), contains("expected a pool token or mean, got sum"));
}

TEST_CASE("a card must not ask for a larger network than its file") {
  const auto error = [](const nn::TensorFile& file) { return error_of([&] { nn::card_of(file, "w"); }); };
  // Every block must be in the file, with its products.
  for (const bool of_cait : {false, true}) {
    const nn::TensorFile whole = of_cait ? saved(nn::CaiT(cait)) : saved(nn::ViT(vit));
    CHECK_NOTHROW(nn::card_of(whole, "w"));
    std::vector<std::string> needed{"head.weight", "pos_embed", "patch_embed.proj.weight"};
    for (const char* block : {"blocks.0.", "blocks.1."})
      for (const char* name : {"attn.qkv.weight", "attn.proj.weight", "mlp.fc1.weight", "mlp.fc2.weight"})
        needed.push_back(std::string(block) + name);
    if (of_cait)
      for (const char* name : {"attn.q.weight", "attn.k.weight", "attn.v.weight", "attn.proj.weight", "mlp.fc1.weight"})
        needed.push_back(std::string("blocks_token_only.0.") + name);
    for (const std::string& name : needed) {
      INFO(name);
      nn::TensorFile other = whole;
      other.tensors.erase(name);
      CHECK_THAT(error(other), contains(name == "pos_embed" ? "expected positions of 16 patches, got none"
                                                            : "expected \"" + name + "\" with "));
      other.tensors[name] = zeros({7});
      CHECK_THAT(error(other), contains(", got [7]"));
    }
    // The last block alone does not prove that there are 2^20 blocks.
    nn::TensorFile deep = edited(whole, of_cait ? "\"depth_token_only\":2" : "\"depth\":2",
                                 of_cait ? "\"depth_token_only\":1048576" : "\"depth\":1048576");
    for (const auto& [name, value] : whole.tensors)
      if (const std::string block = of_cait ? "blocks_token_only.1." : "blocks.1."; name.starts_with(block))
        deep.tensors[(of_cait ? "blocks_token_only.1048575." : "blocks.1048575.") + name.substr(block.size())] = value;
    CHECK_THAT(error(deep),
               contains(of_cait ? "\"blocks_token_only.2.attn.q.weight\"" : "\"blocks.2.attn.qkv.weight\""));
  }
  // Products of extents that overflow do not match an empty tensor.
  nn::TensorFile huge = saved(nn::ViT(vit));
  for (const auto& [from, to] : {std::pair("\"image\":16", "\"image\":4096"),
                                 {"\"patch\":4", "\"patch\":4096"},
                                 {"\"channels\":3", "\"channels\":1048576"},
                                 {"\"dim\":64", "\"dim\":1048576"}})
    huge = edited(huge, from, to);
  huge.tensors["patch_embed.proj.weight"] = zeros({0});
  CHECK_THAT(error(huge), contains("with 1048576 x 1048576 x 4096 x 4096 elements, as its description says, got [0]"));
  // A constant of the method decides how many parameters the gates have.
  nn::ViTOptions o = vit;
  o.dim = 8, o.method = "hyper_connections:streams=2";
  CHECK_THAT(error(edited(saved(nn::ViT(o)), "streams=2", "streams=1024")),
             contains("expected a description of a network of this size, got ") && contains(" parameters"));
}

TEST_CASE("a file with a tensor that Plumb does not read loads unless the network has this tensor") {
  const auto loaded = [](nn::TensorFile file, const std::string& name, bool erase) {
    file.skipped[name] = "I32";
    if (erase) file.tensors.erase(name);
    const auto model = nn::make_model(nn::card_of(file, "w"));
    return nn::load_pretrained(*model, file, "w").text();
  };
  const nn::ViT model(vit);
  CHECK(
      loaded(saved(model), "index", false) ==
      "the model computes the same function as the file's network; tensors of dtypes that Plumb does not read are left "
      "out: index (I32)");
  for (const bool card : {true, false}) {
    const nn::TensorFile file = card ? saved(model) : file_of(model, nn::timm_vit());
    CHECK_THAT(error_of([&] { loaded(file, "norm.bias", true); }),
               contains("w: expected dtype F64, F32, F16, BF16, I64 or U8 for \"norm.bias\", got I32"));
    CHECK_THAT(error_of([&] { loaded(file, "head.weight", true); }),
               contains("; tensors of dtypes that Plumb does not read were left out: head.weight (I32)"));
  }
}

TEST_CASE("weights load into models for other images, other classes and with new gates") {
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
  const std::vector<double> head = nn::weights(tuned).at("head.weight").values(),
                            before = nn::weights(tuned).at("norm.weight").values();
  const Tensor first = nn::weights(tuned).at("blocks.0.attn.qkv.weight");
  const std::vector<double> untouched = first.values();
  CHECK_THAT(error_of([&] { nn::load_pretrained(tuned, file, "w"); }), contains("head.weight"));
  CHECK(first.values() == untouched);  // unchanged
  CHECK(nn::load_pretrained(tuned, file, "w", {.new_head = true}).as_initialised ==
        std::vector<std::string>{"head.weight", "head.bias"});
  CHECK(nn::weights(tuned).at("head.weight").values() == head);
  CHECK(first.values() == nn::weights(model).at("blocks.0.attn.qkv.weight").values());

  // New gates must be allowed.
  nn::ViTOptions plain = vit;
  plain.method = "pre";
  const nn::ViT old(plain);
  plain.method = nn::methods::layerscale(1.0);
  nn::ViT gated(plain);
  CHECK_THAT(error_of([&] { nn::load_pretrained(gated, file_of(old, nn::timm_vit()), "w"); }),
             contains("blocks.0.ls1.gamma"));
  CHECK(nn::load_pretrained(gated, file_of(old, nn::timm_vit()), "w", {.new_gates = true}).as_initialised.size() == 4);
  nn::NamedTensors lacking = file.tensors;
  lacking.erase("norm.bias");
  CHECK_THAT(error_of([&] {
               nn::load_pretrained(tuned, {.tensors = lacking, .metadata = {}}, "w", {true, true});
             }),
             contains("norm.bias"));
}

TEST_CASE(
    "new gates do not change trained branches and the result says whether the function is the same as the file's") {
  const auto is = [](const nn::Adapted& adapted, const std::optional<bool>& same, const std::string& text) {
    INFO(adapted.text());
    CHECK(adapted.same_function == same);
    CHECK(adapted.reasons.empty() == (same == true));
    CHECK_THAT(adapted.text(), contains(text));
  };
  const auto of = [](const nn::MethodChoice& gate) {
    nn::ViTOptions o = vit;
    o.method = gate, o.depth = 24;
    return o;
  };
  const auto near = [](const nn::Layer& a, const nn::Layer& b) {
    const std::vector<double> x = logits(a, 16), y = logits(b, 16);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (!(std::abs(x[i] - y[i]) < 1e-5)) return false;
    return true;
  };
  const auto gates_of = [](const nn::Module& model) {
    std::set<double> values;
    for (const nn::Parameter& p : model.parameters())
      if (p.role == nn::Role::gate)
        for (const double v : p.value.values()) values.insert(v);
    return values;
  };
  nn::ViT pre(of("pre")), post(of("post"));
  shake(pre, 0.1, 5), shake(post, 0.1, 5);
  const nn::TensorFile timm = file_of(pre, nn::timm_vit()), own = saved(pre), of_post = saved(post);
  for (const bool card : {false, true})
    for (const char* gate : {"layerscale", "rezero_ln", "scalar_gate:init=0.1"}) {
      nn::ViT model(of(gate));
      INFO(gate);
      const nn::Adapted adapted = nn::load_pretrained(model, card ? own : timm, "w", {.new_gates = true});
      if (card)
        is(adapted, true, "the model computes the same function as the file's network");
      else
        is(adapted, {},
           "heads, GELU, eps, pooling are not in the file; taken: heads 2, GELU erf, eps 1e-06, pooling token");
      CHECK(gates_of(model) == std::set<double>{1});
      CHECK(near(model, pre));
    }
  nn::ViT admin(of("admin"));  // the factor omega multiplies the skip
  is(nn::load_pretrained(admin, of_post, "w", {.new_gates = true}), true, "computes the same function");
  CHECK(near(admin, post));
  nn::ViT act(of("act_norm"));  // the initial values of ActNorm do not change the function
  is(nn::load_pretrained(act, own, "w", {.new_gates = true}), true, "computes the same function");
  CHECK(near(act, pre));
  // With hyper-connections, the input of the final norm is n times the stream of pre-norm, so the eps of this norm has
  // less influence.
  nn::ViT hyper(of("hyper_connections"));
  is(nn::load_pretrained(hyper, own, "w", {.new_gates = true}), false, "of the largest");

  nn::ViT small(of("layerscale"));
  is(nn::load_pretrained(small, own, "w", {.new_gates = true, .gate_start = 1e-5}), false,
     "the model does not compute the same function as the file's network: gates are new: blocks.0.gate1.gamma starts "
     "at 1e-05 (the "
     "logits of a small network change by ");
  CHECK(gates_of(small) == std::set<double>{static_cast<float>(1e-5)});
  CHECK_FALSE(near(small, pre));
  // The gate has no factor of a branch, so its parameters keep their initial values.
  nn::ViT mixed(of("value_residual"));
  is(nn::load_pretrained(mixed, own, "w", {.new_gates = true}), false,
     "gates are new: blocks.1.gate1.lambdas starts at 0.5");
  CHECK(gates_of(mixed) == std::set<double>{0.5});

  nn::ViTOptions o = of("pre");
  o.classes = 3;
  nn::ViT head(o), larger(with_image(of("pre"), 32));
  is(nn::load_pretrained(head, own, "w", {.new_head = true}), false, "the head is new");
  is(nn::load_pretrained(larger, own, "w"), false, "positions of 4 x 4 patches are resized to 8 x 8");
  o = of("pre");
  o.norm_eps = 1e-3;
  nn::ViT eps(o), scaled(of(nn::methods::branch_scale(1.0))), slower(of("branch_scale"));
  is(nn::load_pretrained(eps, own, "w"), false, "norm_eps is 0.001 here and 1e-06 in the file");
  is(nn::load_pretrained(scaled, own, "w"), true,
     "computes the same function");  // another method with the same function
  is(nn::load_pretrained(slower, own, "w"), false, "gate is branch_scale:multiplier=by_depth here and pre in the file");
  nn::Method hand = nn::methods::pre();
  hand.build = nn::gates_from<nn::SkipScaleGate>;
  hand.norm_layer = [](std::int64_t dim, double) { return std::make_unique<nn::LayerNorm>(dim, 1e-2); };
  nn::ViT by_hand(of(hand));
  is(nn::load_pretrained(by_hand, own, "w"), false,
     "the method pre here differs from the method of this name in the table");
  nn::ViT again(of("pre"));
  is(nn::load_pretrained(again, file_of(pre), "w"), {},
     "it is not known whether the model computes the same function as the file's network: the file has no card");
  is(nn::load_pretrained(head, file_of(pre), "w", {.new_head = true}), false,
     "the model does not compute the same function as the file's network: the head is new; the file has no card");
  // New gates are a reason only if the new gates alone change the function.
  o = of("layerscale");
  o.norm_eps = 1e-3;
  nn::ViT gated_eps(o), gated_small(o);
  is(nn::load_pretrained(gated_eps, own, "w", {.new_gates = true}), false,
     "the model does not compute the same function as the file's network: norm_eps is 0.001 here and 1e-06 in the "
     "file");
  const nn::Adapted both = nn::load_pretrained(gated_small, own, "w", {.new_gates = true, .gate_start = 0.5});
  is(both, false,
     "the file's network: gates are new: blocks.0.gate1.gamma starts at 0.5 (the logits of a small network change by ");
  is(both, false, "; norm_eps is 0.001 here and 1e-06 in the file");
}

TEST_CASE("without a card, the function is the file's function only if the caller knows each property") {
  const auto loaded = [](nn::ViTOptions o, const nn::TensorFile& file, const nn::Adaptation& adaptation = {}) {
    nn::ViT model(o);
    return nn::load_pretrained(model, file, "w", adaptation);
  };
  nn::ViTOptions o = vit;
  o.method = "pre", o.dim = 192, o.heads = 3;
  const nn::TensorFile tiny = file_of(nn::ViT(o), nn::timm_vit());
  const std::string unknown = "it is not known whether the model computes the same function as the file's network: ";
  CHECK(loaded(o, tiny).text() ==
        unknown + "heads, GELU, eps, pooling are not in the file; taken: heads 3, GELU erf, eps 1e-06, pooling token");
  CHECK_FALSE(loaded(o, tiny).same_function.has_value());
  CHECK(loaded(o, tiny, {.given_heads = true, .given_pool = true}).text() ==
        unknown + "GELU, eps are not in the file; taken: GELU erf, eps 1e-06");
  CHECK(loaded(o, tiny, {.given_heads = true, .given_norm_eps = true, .given_pool = true}).text() ==
        unknown + "GELU is not in the file; taken: GELU erf");
  const nn::Adaptation known{.given_heads = true, .given_gelu = true, .given_norm_eps = true, .given_pool = true};
  CHECK(loaded(o, tiny, known).same_function == true);
  o.norm_eps = 1e-5, o.heads = 6;  // values that the caller knows
  CHECK(loaded(o, tiny, known).same_function == true);
  CHECK_THAT(loaded(o, tiny).text(), contains("taken: heads 6, GELU erf, eps 1e-05, pooling token"));
  o.norm_eps = vit.norm_eps;
  o.classes = 7, o.image = 32;  // these changes are reasons, whatever the network of the file is
  const nn::Adapted head = loaded(o, tiny, {.new_head = true});
  CHECK(head.same_function == false);
  CHECK(head.reasons ==
        std::vector<std::string>{
            "the head is new", "positions of 4 x 4 patches are resized to 8 x 8",
            "heads, GELU, eps, pooling are not in the file; taken: heads 6, GELU erf, eps 1e-06, pooling token"});
  // The heads of a width without a rule, and mean pooling.
  o = vit;
  o.dim = 48, o.heads = 4, o.pool = nn::Pool::mean;
  CHECK_THAT(loaded(o, file_of(nn::ViT(o), nn::timm_vit())).text(),
             contains("taken: heads 4, GELU erf, eps 1e-06, pooling mean"));
  o.method = "layerscale";
  CHECK_THAT(loaded(o, file_of(nn::ViT(o), nn::timm_vit()), {.new_gates = true, .gate_start = 0.5}).text(),
             contains("taken: heads 4"));
  // A CaiT has its heads in talking heads, and always a class token.
  const auto of_cait = [](const nn::CaiTOptions& options) {
    nn::CaiT model(options);
    return nn::load_pretrained(model, file_of(model, nn::timm_cait()), "w").text();
  };
  CHECK(of_cait(cait) == unknown + "GELU, eps are not in the file; taken: GELU erf, eps 1e-06");
  nn::CaiTOptions plain = cait;
  plain.head_mix = nn::HeadMix::none;
  CHECK(of_cait(plain) == unknown + "heads, GELU, eps are not in the file; taken: heads 2, GELU erf, eps 1e-06");
}

TEST_CASE("widths of published models have the heads of timm") {
  const auto heads = [](std::int64_t dim, nn::Pool pool = nn::Pool::token, std::int64_t patch = 16) {
    const std::int64_t tokens = 4 + (pool == nn::Pool::token);
    nn::TensorFile file;
    const auto add = [&](const char* name, const Shape& shape) { file.tensors[name] = zeros(shape); };
    add("patch_embed.proj.weight", {dim, 1, patch, patch}), add("pos_embed", {1, tokens, dim});
    add("head.weight", {2, dim}), add("blocks.0.norm1.weight", {dim}), add("blocks.0.mlp.fc1.weight", {8, dim});
    add("blocks.0.mlp.fc2.weight", {dim, 8}), add("blocks.0.attn.qkv.weight", {3 * dim, dim});
    add("blocks.0.attn.proj.weight", {dim, dim});
    if (pool == nn::Pool::token) add("cls_token", {1, 1, dim});
    return std::get<nn::ViTOptions>(nn::card_of(file, "w").options).heads;
  };
  CHECK(heads(64) == 2);  // test_vit
  CHECK(heads(192) == 3);
  CHECK(heads(768) == 12);
  CHECK(heads(768, nn::Pool::mean) == 16);      // vit_base_patch16_gap_224
  CHECK(heads(768, nn::Pool::mean, 32) == 12);  // vit_base_patch32_siglip_gap_256
  CHECK(heads(1024, nn::Pool::mean) == 16);
  CHECK(heads(1152, nn::Pool::mean) == 16);  // vit_so400m_patch16_siglip_gap_256
  CHECK(heads(1280) == 16);                  // deit3_huge_patch14_224
  CHECK(heads(1408) == 16);                  // vit_giant_patch14_224
  CHECK(heads(1536, nn::Pool::mean) == 16);  // vit_giantopt_patch16_siglip_gap_256
  CHECK(heads(1536) == 24);
  CHECK(heads(1664) == 16);  // vit_gigantic_patch14_224
}

TEST_CASE("attention maps are the weights that the layers apply to the values and recording changes nothing") {
  // Checks the layer against the values weighted by the probabilities, followed by the last product.
  const auto check_layer = [](nn::AttentionBranch& layer, std::int64_t heads) {
    nn::initialize(layer, 7);
    layer.eval();
    const Tensor x = random_normal({2, 9, 16}, 2, "x");
    const Tensor qkv = layer.first()(x);
    Tensor p;
    {
      const Handle watch = layer.observe([&](const nn::AttentionPass& pass) { p = layer.probabilities(pass); });
      (void)layer(x);
    }
    CHECK(p.shape() == Shape{2, heads, 9, 9});
    const Tensor v = permute(reshape(slice(qkv, 2, 32, 48), {2, 9, heads, 16 / heads}), {0, 2, 1, 3});
    const Tensor collected = reshape(permute(matmul(p, v), {0, 2, 1, 3}), {2, 9, 16});
    const std::vector<double> ours = layer.last()(collected).values(), expected = layer(x).values();
    for (std::size_t i = 0; i < ours.size(); ++i) REQUIRE(std::abs(ours[i] - expected[i]) < 1e-5);
  };
  const nn::Init wide = nn::Init::truncated_normal(0.5);
  nn::Attention plain({.dim = 16, .heads = 4, .init = wide}),
      causal({.dim = 16, .heads = 4, .init = wide, .causal = true});
  nn::Attention talking({.dim = 16, .heads = 4, .init = wide, .head_mix = nn::HeadMix::identity});
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

TEST_CASE("rollout is the product over layers of the mean attention and the skip connection") {
  const auto map = [](const std::string& path, const std::vector<double>& values, const Shape& shape) {
    return nn::AttentionMap{path, tensor(values, shape)};
  };
  // The maps have two heads and two tokens. The means over the heads are {{0.5, 0.5}, {0, 1}} in the first map and {{1,
  // 0}, {0.5, 0.5}} in the second map.
  const nn::AttentionMap first = map("a", {1, 0, 0, 1, 0, 1, 0, 1}, {1, 2, 2, 2}),
                         second = map("b", {1, 0, 0.5, 0.5}, {1, 1, 2, 2});
  const std::vector<double> through = nn::rollout({first, second}).values(), expected{0.75, 0.25, 0.1875, 0.8125};
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(through[i] - expected[i]) < 1e-6);
  // A class token that joins late reads the patches of the layer at which the token joins.
  const nn::AttentionMap late = map("e", {0.5, 0.25, 0.25, 0, 1, 0, 0, 0, 1}, {1, 1, 3, 3});
  const std::vector<double> joined = nn::rollout({first, late}).values();
  const double token[] = {0.75, 0.125 * 0.75, 0.125 * 0.25 + 0.125};
  for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(joined[i] - token[i]) < 1e-6);
  const nn::AttentionMap of_class =
      map("c", {0.5, 0.25, 0.25}, {1, 1, 1, 3});  // half of the attention goes to the class token itself
  const std::vector<double> of_token = nn::rollout({first, second, of_class}).values();
  CHECK(std::abs(of_token[0] - 0.46875) < 1e-6);
  CHECK_THAT(error_of([] { nn::rollout({}); }), contains("expected at least one attention map"));
  CHECK_THAT(error_of([&] {
               nn::rollout({first, map("d", {1}, {1, 1, 1, 1})});
             }),
             contains("expected maps of 2 queries and keys, got 1 and 1 in d"));
}
