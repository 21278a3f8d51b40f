// Mistakes with weights files.
#include <fstream>

#include "plumb/plumb.h"
#include "tests/misuse/misuse.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::test;

namespace {

nn::ViTOptions options(const char* gate = "layerscale", std::int64_t dim = 8) {
  return {.image = 8, .patch = 4, .channels = 3, .classes = 5, .dim = dim, .depth = 6, .heads = 2, .method = gate};
}

// The weights of a model, with names that `rename` changes.
void save_renamed(const std::filesystem::path& file, const nn::KeyMap& map, const std::string& prefix) {
  const nn::ViT model(options());
  nn::TensorFile renamed;
  for (const auto& [name, value] : nn::weights(model, map)) renamed.tensors[prefix + name] = value;
  nn::write_safetensors(file, renamed);
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("misuse: a file that torch.save made") {
  const TemporaryFolder folder;
  nn::ViT model(options());
  write(folder / "w.pt", std::string("PK\x03\x04\x00\x00\x08\x08\x00\x00\x00\x00", 12) + std::string(200, 'x'));
  CHECK_REFUSED(
      nn::load_weights(model, folder / "w.pt"),
      "expected a safetensors file, got a zip archive (from torch.save? In Python: safetensors.torch.save_file(");
  write(folder / "old.pt", std::string("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 15) + std::string(200, 'x'));
  CHECK_REFUSED(nn::load_weights(model, folder / "old.pt"),
                "expected a safetensors file, got a pickle (from torch.save?");
}

TEST_CASE("misuse: timm's weights without the name map") {
  const TemporaryFolder folder;
  save_renamed(folder / "timm", nn::timm_vit(), "");
  nn::ViT model(options());
  CHECK_REFUSED(nn::load_weights(model, folder / "timm"), "if these are timm's names, pass nn::timm_vit()");
  nn::ViT plain(options("pre"));
  CHECK_REFUSED(nn::load_weights(plain, folder / "timm"), "if these are timm's names, pass nn::timm_vit()");
  nn::load_weights(model, folder / "timm", nn::timm_vit());
}

TEST_CASE("misuse: weights of a model within a model") {
  const TemporaryFolder folder;
  save_renamed(folder / "inner", {}, "model.");
  nn::ViT model(options());
  CHECK_REFUSED(nn::load_weights(model, folder / "inner"), "all names begin with \"model.\": remove it");
}

TEST_CASE("misuse: both allowances and no matching name") {
  const TemporaryFolder folder;
  save_renamed(folder / "inner", {}, "model.");
  nn::ViT model(options());
  const nn::Strictness anything{.allow_missing = true, .allow_unexpected = true};
  CHECK_REFUSED(nn::load_weights(model, folder / "inner", {}, anything),
                "nothing would be loaded; all names begin with \"model.\"");
  nn::write_safetensors(folder / "other", {.tensors = {{"a", zeros({2})}, {"b", zeros({3})}}, .metadata = {}});
  CHECK_REFUSED(nn::load_weights(model, folder / "other", {}, anything),
                "got 2 others (a, b): nothing would be loaded");
}

TEST_CASE("misuse: weights of another model give an error with ten names and a count") {
  const TemporaryFolder folder;
  nn::save_weights(nn::ViT(options("pre", 16)), folder / "w");
  nn::ViT model(options());
  const std::string message = refusal([&] { nn::load_weights(model, folder / "w"); });
  CHECK(message.find("12 missing: blocks.0.gate1.gamma, ") != std::string::npos);
  CHECK(message.find(" and 2 more; ") != std::string::npos);
  CHECK(message.find("of another shape or dtype: ") != std::string::npos);
  CHECK(message.size() < 2000);
}

TEST_CASE("misuse: names of other programs are recognised and the error names the remedy") {
  const TemporaryFolder folder;
  nn::ViT model(options());
  const nn::NamedTensors timm = nn::weights(model, nn::timm_vit());
  const auto refused = [&](const auto& rename, const std::string& remedy) {
    nn::TensorFile file;
    for (const auto& [name, value] : timm) rename(file.tensors, name, value);
    nn::write_safetensors(folder / "w", file);
    INFO(remedy);
    CHECK(refusal([&] { nn::load_weights(model, folder / "w", nn::timm_vit()); }).find(remedy) != std::string::npos);
    // The test loads in the same order as the programs: first the model card from names and shapes, then the weights.
    CHECK(refusal([&] {
            const auto made = nn::make_model(nn::card_of(file, "w", 2));
            nn::load_pretrained(*made, file, "w");
          }).find(remedy) != std::string::npos);
  };
  const auto prefixed = [](const std::string& prefix) {
    return [prefix](nn::NamedTensors& to, const std::string& name, const Tensor& value) { to[prefix + name] = value; };
  };
  const auto replaced = [](const std::string& from, const std::string& with) {
    return [from, with](nn::NamedTensors& to, std::string name, const Tensor& value) {
      if (const std::size_t at = name.find(from); at != name.npos) name.replace(at, from.size(), with);
      to[name] = value;
    };
  };
  refused(prefixed("module."), "names begin with \"module.\", a prefix of DistributedDataParallel: remove it");
  refused(prefixed("_orig_mod."), "names begin with \"_orig_mod.\", a prefix of torch.compile: remove it");
  refused(prefixed("module._orig_mod."),
          "names begin with \"module._orig_mod.\", a prefix of DistributedDataParallel: remove it");
  refused(replaced("blocks.", "blocks.0."),
          "the blocks are in chunks, as in DINOv2: rename blocks.0.0.* to blocks.0.*, and the other blocks likewise");
  refused(replaced("gamma", "weight"),
          "the file names LayerScale ls1.weight and ls2.weight: rename them to ls1.gamma and ls2.gamma");
  refused(prefixed("model_ema."), "names begin with \"model_ema.\", the prefix of averaged weights: remove it");
  for (const char* average : {"model_ema.", "state_dict_ema."})
    refused(
        [&](nn::NamedTensors& to, const std::string& name, const Tensor& value) {
          const std::string plain = std::string(average).substr(0, std::string(average).find("_ema")) + ".";
          to[plain + name] = value, to[average + name] = value;
        },
        fmt::format("the file has averaged weights under \"{}\" and other weights: keep only one of the two", average));
}

TEST_CASE("misuse: weights with LayerScale in a model without it and the reverse") {
  const TemporaryFolder folder;
  nn::ViT with(options()), without(options("pre")), rezero(options("rezero_ln"));
  nn::save_weights(with, folder / "with", nn::timm_vit());
  nn::save_weights(without, folder / "without", nn::timm_vit());
  nn::save_weights(rezero, folder / "rezero", nn::timm_vit(), nn::metadata_of(*nn::card_of(rezero)));
  CHECK_REFUSED(
      nn::load_weights(without, folder / "with", nn::timm_vit()),
      "these weights have LayerScale, but the model does not: make it with {.method = \"layerscale\"} (--gate "
      "layerscale)");
  CHECK_REFUSED(nn::load_weights(with, folder / "without", nn::timm_vit()), "such as {.method = \"pre\"} (--gate pre)");
  CHECK_REFUSED(nn::load_pretrained(without, nn::read_safetensors(folder / "with"), "w"), "(--gate layerscale)");
  CHECK_REFUSED(nn::load_pretrained(with, nn::read_safetensors(folder / "without"), "w"), "(--gate pre)");
  CHECK_REFUSED(nn::load_pretrained(without, nn::read_safetensors(folder / "rezero"), "w"),
                "the file has the method rezero_ln, the model has pre: make the model with {.method = \"rezero_ln\"} "
                "(--gate rezero_ln)");
}

TEST_CASE("misuse: LayerScale weights in a CaiT with another method") {
  const TemporaryFolder folder;
  const auto cait = [](const char* gate) {
    return nn::CaiT({.image = 8, .patch = 4, .classes = 5, .dim = 8, .depth = 2, .heads = 2, .method = gate});
  };
  nn::CaiT with = cait("layerscale"), without = cait("pre");
  const nn::KeyMap timm = nn::timm_cait(), ours;
  for (const nn::KeyMap& map : {timm, ours}) {
    nn::save_weights(with, folder / "with", map);
    nn::save_weights(without, folder / "without", map);
    CHECK_REFUSED(nn::load_weights(without, folder / "with", map),
                  "these weights have LayerScale, but the model does not: make it with {.method = \"layerscale\"}");
    CHECK_REFUSED(nn::load_weights(with, folder / "without", map),
                  "the model has LayerScale, but these weights do not");
    CHECK_REFUSED(nn::load_pretrained(without, nn::read_safetensors(folder / "with"), "w"), "(--gate layerscale)");
    CHECK_REFUSED(nn::load_pretrained(with, nn::read_safetensors(folder / "without"), "w"), "(--gate pre)");
  }
}

TEST_CASE("misuse: saving to a place that cannot be written") {
  CHECK_REFUSED(nn::save_weights(nn::ViT(options()), "/nonexistent/folder/w"), "/nonexistent/folder");
}
