#include "nn/io/weights.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "autograd/node.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::test;

namespace {

struct Small : nn::Module {
  Small() : Module("Small") {}
  Tensor weight = parameter("weight", tensor({1, 2, 3, 4, 5, 6}, {2, 3}), Role::weight),
         gamma = parameter("gamma", tensor({0.1}, {1}), Role::gate);
};

// A model with parameters of these names.
struct Tree : nn::Module {
  explicit Tree(const std::vector<std::string>& names, const Shape& shape = {2}) {
    for (const std::string& name : names) add(name, shape);
  }
  Tensor add(const std::string& name, const Shape& shape) {
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos) return parameter(name, shape, nn::Init::constant(1), Role::weight);
    const std::string part = name.substr(0, dot);
    if (!parts.contains(part)) parts[part] = {this, part, std::make_unique<Tree>(std::vector<std::string>())};
    return parts[part]->add(name.substr(dot + 1), shape);
  }
  std::map<std::string, nn::ChildPtr<Tree>> parts;
};

std::set<std::string> keys(const nn::NamedTensors& tensors) {
  std::set<std::string> names;
  for (const auto& [name, t] : tensors) names.insert(name);
  return names;
}

const nn::ViTOptions small_vit_options{.image = 8,
                                       .patch = 4,
                                       .channels = 3,
                                       .classes = 5,
                                       .dim = 8,
                                       .depth = 2,
                                       .heads = 2,
                                       .method = "layerscale",
                                       .pool = nn::Pool::token,
                                       .seed = 3};

}  // namespace

TEST_CASE("saved weights are read back bit for bit and loading counts as a change of saved values") {
  const TemporaryFolder folder;
  const nn::ViT model(small_vit_options);
  nn::save_weights(model, folder / "w");
  nn::ViTOptions o = small_vit_options;
  o.seed = 4;
  nn::ViT other(o);
  const std::uint32_t version = other.parameters()[0].value.array().version();
  const nn::Leftovers left = nn::load_weights(other, folder / "w");
  CHECK(left.missing.empty());
  CHECK(left.unexpected.empty());
  const auto a = model.parameters(), b = other.parameters();
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO(a[i].name);
    CHECK(a[i].value.values() == b[i].value.values());
  }
  CHECK(b[0].value.array().version() > version);

  Small small;
  nn::save_weights(small, folder / "s");
  const Tensor loss = sum(small.weight * small.weight);
  nn::load_weights(small, folder / "s");
  CHECK_THAT(error_of([&] { (void)backward(loss); }), contains("changed"));
}

TEST_CASE("loading casts between f32 and f64") {
  const TemporaryFolder folder;
  for (const auto& [from, to] : {std::pair(reference_f64, cpu_f32), std::pair(cpu_f32, reference_f64)}) {
    const auto made = [](Defaults where) {
      const DefaultsScope scope(where);
      return std::make_unique<Small>();
    };
    const auto saved = made(from), loaded = made(to);
    copy_into(array_from(std::vector<double>{0.1}, {1}, from.dtype, from.device), saved->gamma.array());
    copy_into(full_like(loaded->weight.array(), {2, 3}, 0), loaded->weight.array());
    copy_into(full_like(loaded->gamma.array(), {1}, 0), loaded->gamma.array());
    nn::save_weights(*saved, folder / "w");
    const std::uint32_t version = loaded->gamma.array().version();
    nn::load_weights(*loaded, folder / "w");
    CHECK(loaded->gamma.array().version() > version);
    CHECK(loaded->weight.dtype() == to.dtype);
    CHECK(loaded->weight.values() == std::vector<double>{1, 2, 3, 4, 5, 6});
    CHECK(loaded->gamma.item() == static_cast<double>(0.1f));
  }
}

TEST_CASE("all differences between file and model are listed in one error and nothing is changed") {
  const TemporaryFolder folder;
  Small small;
  const auto write = [&](nn::NamedTensors tensors) {
    nn::write_safetensors(folder / "w", {.tensors = std::move(tensors), .metadata = {}});
  };
  const auto unchanged = [&] { return small.weight.values() == std::vector<double>{1, 2, 3, 4, 5, 6}; };

  write({{"weight", zeros({3, 2})}, {"b", zeros({1})}, {"a", zeros({1})}});
  CHECK(error_of([&] { nn::load_weights(small, folder / "w"); }) ==
        fmt::format("[load_weights] {} into Small: expected 2 tensors with the names and shapes they have here, got 1 "
                    "missing: gamma; 2 unexpected: a, b; "
                    "1 of another shape or dtype: weight (expected f32 [2, 3], got f32 [3, 2])",
                    (folder / "w").string()));
  write({{"weight", zeros({2, 3})}, {"gamma", integers({1}, {1})}});
  CHECK_THAT(error_of([&] { nn::load_weights(small, folder / "w"); }),
             contains("gamma (expected f32 [1], got i64 [1])"));
  CHECK(unchanged());

  write({{"weight", zeros({2, 3})}, {"extra", zeros({1})}});
  CHECK_THAT(error_of([&] { nn::load_weights(small, folder / "w", {}, {.allow_missing = true}); }),
             contains("got 1 unexpected: extra"));
  CHECK_THAT(error_of([&] { nn::load_weights(small, folder / "w", {}, {.allow_unexpected = true}); }),
             contains("got 1 missing: gamma"));
  CHECK(unchanged());
  const nn::Leftovers left =
      nn::load_weights(small, folder / "w", {}, {.allow_missing = true, .allow_unexpected = true});
  CHECK(left.missing == std::vector<std::string>{"gamma"});
  CHECK(left.unexpected == std::vector<std::string>{"extra"});
  CHECK(small.weight.values() == std::vector<double>(6, 0));
  CHECK(small.gamma.item() == Approx(0.1));

  write({{"weight", zeros({3, 2})}});  // a wrong shape is never allowed
  CHECK_THAT(
      error_of([&] { nn::load_weights(small, folder / "w", {}, {.allow_missing = true, .allow_unexpected = true}); }),
      contains("got 1 of another shape or dtype"));
}

TEST_CASE("a tensor of a dtype that Plumb does not read is refused only if the module has its name") {
  const TemporaryFolder folder;
  Small small;
  const auto write = [&](const char* name, bool gamma) {
    const std::string header = fmt::format(
        R"({{"{}":{{"dtype":"I32","shape":[1],"data_offsets":[0,4]}},{}"weight":{{"dtype":"F32","shape":[2,3],"data_offsets":[{},{}]}}}})",
        name, gamma ? R"("gamma":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)" : "", gamma ? 8 : 4,
        gamma ? 32 : 28);
    std::ofstream out(folder / "w", std::ios::binary);
    const std::uint64_t length = header.size();
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << header << std::string(gamma ? 32 : 28, '\0');
  };
  write("index", true);
  CHECK(nn::load_weights(small, folder / "w").unexpected == std::vector<std::string>{"index"});
  CHECK(small.weight.values() == std::vector<double>(6, 0));
  write("gamma", false);
  for (const bool lenient : {false, true})
    CHECK_THAT(error_of([&] { nn::load_weights(small, folder / "w", {}, {.allow_missing = lenient}); }),
               contains("into Small: expected dtype F64, F32, F16, BF16, I64 or U8 for \"gamma\", got I32"));
}

TEST_CASE("timm's ViT has its names and shapes in both directions") {
  const TemporaryFolder folder;
  const nn::ViT model(small_vit_options);
  const nn::NamedTensors theirs = nn::weights(model, nn::timm_vit());
  std::set<std::string> expected{
      "cls_token",   "pos_embed", "patch_embed.proj.weight", "patch_embed.proj.bias", "norm.weight", "norm.bias",
      "head.weight", "head.bias"};
  for (const char* block : {"blocks.0.", "blocks.1."})
    for (const char* name : {"norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias", "attn.qkv.weight",
                             "attn.qkv.bias", "attn.proj.weight", "attn.proj.bias", "mlp.fc1.weight", "mlp.fc1.bias",
                             "mlp.fc2.weight", "mlp.fc2.bias", "ls1.gamma", "ls2.gamma"})
      expected.insert(std::string(block) + name);
  CHECK(keys(theirs) == expected);
  CHECK(theirs.at("patch_embed.proj.weight").shape() == Shape{8, 3, 4, 4});
  const nn::NamedTensors ours = nn::weights(model);
  for (const auto& [name, their_name] : {std::pair("blocks.1.gate1.gamma", "blocks.1.ls1.gamma"),
                                         std::pair("blocks.1.gate2.gamma", "blocks.1.ls2.gamma")})
    CHECK(theirs.at(their_name).array().shares_buffer_with(ours.at(name).array()));

  nn::save_weights(model, folder / "w", nn::timm_vit());
  nn::ViTOptions o = small_vit_options;
  o.seed = 4;
  nn::ViT other(o);
  CHECK_THAT(error_of([&] { nn::load_weights(other, folder / "w"); }),
             contains("blocks.1.gate2.gamma") && contains("unexpected: blocks.0.ls1.gamma") &&
                 contains("(expected f32 [8, 48], got f32 [8, 3, 4, 4])"));
  nn::load_weights(other, folder / "w", nn::timm_vit());
  const Tensor images = random_normal({2, 3, 8, 8}, 1, "images");
  CHECK(other(images).values() == model(images).values());

  CHECK_THAT(error_of([&] { nn::weights(model, nn::timm_vit(5)); }),
             contains("expected a patch projection [dim, 5 p p] for 5 channels, got [8, 48]"));
}

TEST_CASE("timm's CaiT has its names in both directions") {
  const Tree ours({"blocks.0.attn.proj_l.weight", "blocks.11.gate1.gamma", "blocks.11.gate2.gamma",
                   "blocks_token_only.1.gate1.gamma", "blocks_token_only.1.gate2.gamma",
                   "blocks_token_only.1.attn.q.weight", "head.bias"});
  CHECK(keys(nn::weights(ours, nn::timm_cait())) ==
        std::set<std::string>{"blocks.0.attn.proj_l.weight", "blocks.11.gamma_1", "blocks.11.gamma_2",
                              "blocks_token_only.1.gamma_1", "blocks_token_only.1.gamma_2",
                              "blocks_token_only.1.attn.q.weight", "head.bias"});
  const nn::NamedTensors before = nn::weights(ours), after = nn::weights(ours, nn::timm_cait());
  for (const std::string block : {"blocks.11.", "blocks_token_only.1."})
    for (const std::string gate : {"1", "2"})
      CHECK(after.at(block + "gamma_" + gate)
                .array()
                .shares_buffer_with(before.at(block + "gate" + gate + ".gamma").array()));
}

TEST_CASE("a star stands for one segment and two parameters must not share a name") {
  const Tree tree({"a.0.w", "a.0.b.w", "x.1.y.2.w"});
  CHECK(keys(nn::weights(tree, {{"a.*.w", "c.*.v"}, {"x.*.y.*.w", "*.*.z"}})) ==
        std::set<std::string>{"c.0.v", "a.0.b.w", "1.2.z"});
  CHECK(keys(nn::weights(tree, {{"a.*.w", "first.*"}, {"a.0.w", "second"}})).contains("first.0"));
  CHECK_THAT(error_of([&] {
               nn::weights(tree, {{"a.0.w", "same"}, {"x.1.y.2.w", "same"}});
             }),
             contains("expected one parameter of Tree for \"same\", got a second one: x.1.y.2.w"));
  // The rule must have the same number of stars in both names, even if the rule matches no parameter.
  for (const nn::KeyRule& rule : {nn::KeyRule{"a.0.w", "b.*"}, nn::KeyRule{"a.*.w", "b"}, nn::KeyRule{"none.*", "b"}})
    CHECK_THAT(error_of([&] { nn::weights(tree, {rule}); }),
               contains("[weights] expected the same number of * on both sides of a rule, got \"" + rule.ours +
                        "\" and \"" + rule.theirs + "\""));
  for (const std::int64_t channels : {0, -3}) {
    CHECK_THAT(error_of([&] { nn::timm_vit(channels); }),
               contains("[weights] expected images with at least one channel, got "));
    CHECK_THAT(error_of([&] { nn::timm_cait(channels); }),
               contains("[weights] expected images with at least one channel, got "));
  }
}
