// Mistakes with files of weights.
#include <fstream>

#include "nn/nn.h"
#include "tests/misuse/misuse.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::test;

namespace {

nn::ViTOptions options(const char* gate = "layerscale", std::int64_t dim = 8) {
  return {.image = 8, .channels = 3, .patch = 4, .classes = 5, .dim = dim, .depth = 6, .heads = 2, .gate = gate};
}

// The weights of a model under names that `rename` makes.
void save_renamed(const std::filesystem::path& file, const nn::KeyMap& map, const std::string& prefix) {
  const nn::ViT model(options());
  nn::TensorFile renamed;
  for (const auto& [name, value] : nn::weights(model, map)) renamed.tensors[prefix + name] = value;
  nn::write_safetensors(file, renamed);
}

void write(const std::filesystem::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

}  // namespace

TEST_CASE("misuse: a file that torch.save made") {
  const TemporaryFolder folder;
  nn::ViT model(options());
  write(folder / "w.pt", std::string("PK\x03\x04\x00\x00\x08\x08\x00\x00\x00\x00", 12) + std::string(200, 'x'));
  CHECK_REFUSED(nn::load_weights(model, folder / "w.pt"),
                "expected a safetensors file, got a zip archive (from torch.save? In Python: safetensors.torch.save_file(");
  write(folder / "old.pt", std::string("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 15) + std::string(200, 'x'));
  CHECK_REFUSED(nn::load_weights(model, folder / "old.pt"), "expected a safetensors file, got a pickle (from torch.save?");
}

TEST_CASE("misuse: timm's weights without the map of names") {
  const TemporaryFolder folder;
  save_renamed(folder / "timm", nn::timm_vit(), "");
  nn::ViT model(options());
  CHECK_REFUSED(nn::load_weights(model, folder / "timm"), "names of timm's? pass nn::timm_vit()");
  nn::ViT plain(options("pre"));
  CHECK_REFUSED(nn::load_weights(plain, folder / "timm"), "names of timm's? pass nn::timm_vit()");
  nn::load_weights(model, folder / "timm", nn::timm_vit());
}

TEST_CASE("misuse: weights of a model within a model") {
  const TemporaryFolder folder;
  save_renamed(folder / "inner", {}, "model.");
  nn::ViT model(options());
  CHECK_REFUSED(nn::load_weights(model, folder / "inner"), "all begin with \"model.\": take it off");
}

TEST_CASE("misuse: both allowances, and nothing matches") {
  const TemporaryFolder folder;
  save_renamed(folder / "inner", {}, "model.");
  nn::ViT model(options());
  const nn::Strictness anything{.allow_missing = true, .allow_unexpected = true};
  CHECK_REFUSED(nn::load_weights(model, folder / "inner", {}, anything), "nothing would be loaded; all begin with \"model.\"");
  nn::write_safetensors(folder / "other", {.tensors = {{"a", zeros({2})}, {"b", zeros({3})}}, .metadata = {}});
  CHECK_REFUSED(nn::load_weights(model, folder / "other", {}, anything), "got 2 others (a, b): nothing would be loaded");
}

TEST_CASE("misuse: weights of another model name ten and count the rest") {
  const TemporaryFolder folder;
  nn::save_weights(nn::ViT(options("pre", 16)), folder / "w");
  nn::ViT model(options());
  const std::string message = refusal([&] { nn::load_weights(model, folder / "w"); });
  CHECK(message.find("12 missing: blocks.0.gate1.gamma, ") != std::string::npos);
  CHECK(message.find(" and 2 more; ") != std::string::npos);
  CHECK(message.find("that do not fit: ") != std::string::npos);
  CHECK(message.size() < 2000);
}

TEST_CASE("misuse: no file, a folder, an empty file, a file cut off") {
  const TemporaryFolder folder;
  nn::ViT model(options());
  CHECK_REFUSED(nn::load_weights(model, folder / "none"), "expected a safetensors file, got nothing there");
  CHECK_REFUSED(nn::load_weights(model, folder.path()), "expected a safetensors file, got something that is not a file");
  write(folder / "empty", "");
  CHECK_REFUSED(nn::load_weights(model, folder / "empty"), "of at least 8 bytes, got 0");
  nn::save_weights(model, folder / "w");
  std::filesystem::resize_file(folder / "w", std::filesystem::file_size(folder / "w") - 4);
  CHECK_REFUSED(nn::load_weights(model, folder / "w"), "the file is cut off");
}

TEST_CASE("misuse: a map of names that is not one to one") {
  const TemporaryFolder folder;
  const nn::ViT model(options());
  CHECK_REFUSED(nn::save_weights(model, folder / "w", {{"blocks.*.gate1.gamma", "gamma"}}), "expected as many * on both sides");
  CHECK_REFUSED(nn::save_weights(model, folder / "w", {{"blocks.*.gate1.gamma", "blocks.*.g"}, {"blocks.*.gate2.gamma", "blocks.*.g"}}),
                "got another");
}

TEST_CASE("misuse: saving where nothing can be written") {
  CHECK_REFUSED(nn::save_weights(nn::ViT(options()), "/nonexistent/folder/w"), "/nonexistent/folder");
}
