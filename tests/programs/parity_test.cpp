// Runs bin/parity on the cases in the repository, on the cases of PyTorch and timm if they are available, and on wrong
// answers.
#include <cmath>
#include <filesystem>

#include "core/atomic_file.h"
#include "nn/io/safetensors.h"
#include "tests/programs/program.h"
#include "tests/programs/reference_cases.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;
namespace fs = std::filesystem;

namespace {

const fs::path golden = fs::path(test::source_dir()) / "tests/golden/cases";

Finished parity(const fs::path& folder) {
  const TemporaryFolder here;
  return run(here.path(), program("parity") + " '" + folder.string() + "'");
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n'), begin = text.rfind('\n', end);
  return text.substr(begin + 1, end - begin);
}

}  // namespace

TEST_CASE("parity with PyTorch on the cases in the repository") {
  const Finished f = parity(golden);
  INFO(f.out << f.err);
  CHECK(f.status == 0);
  CHECK(last_line(f.out) == "37 passed, 0 failed");
}

TEST_CASE("parity with PyTorch and timm on the reference cases") {
  const TemporaryFolder cases;
  if (!link_reference_cases(cases.path()))
    PLUMB_SKIP("no reference cases in " + outside_data().string() + "; set PLUMB_TEST_DATA");
  const Finished f = parity(cases.path());
  INFO(f.out << f.err);
  CHECK(f.status == 0);
  CHECK_THAT(last_line(f.out), contains(" passed, 0 failed"));
}

TEST_CASE("parity fails a case whose answers differ or are too many or are unknown") {
  const TemporaryFolder cases;
  const nn::TensorFile sound = nn::read_safetensors(golden / "stack_pre.safetensors");
  const auto with = [&](const std::string& name, const auto& change) {
    nn::TensorFile file{nn::copies(sound.tensors), sound.metadata};
    change(file);
    nn::write_safetensors(cases / (name + ".safetensors"), file);
  };
  const auto settings = [](const std::string& from, const std::string& to) {
    return [=](nn::TensorFile& file) {
      std::string& text = file.metadata.at("case");
      const std::size_t at = text.find(from);
      REQUIRE(at != std::string::npos);
      text.replace(at, from.size(), to);
    };
  };
  const auto nudge = [](const std::string& tensor_name) {
    return [=](nn::TensorFile& file) { Out(file.tensors.at(tensor_name).array()).mutable_data<double>()[0] += 1e-3; };
  };
  with("a_sound", [](nn::TensorFile&) {});
  with("b_output", nudge("out.y"));
  with("c_gradient", nudge("grad.param.blocks.1.mlp.fc1.weight"));
  with("d_nan",
       [](nn::TensorFile& file) { Out(file.tensors.at("out.y").array()).mutable_data<double>()[3] = std::nan(""); });
  with("e_more", [](nn::TensorFile& file) { file.tensors["out.z"] = file.tensors.at("out.y"); });
  with("f_kind", settings("\"stack\"", "\"tower\""));
  with("g_method", settings("\"pre\"", "\"pre_post\""));
  with("h_parameter", [](nn::TensorFile& file) { file.tensors.erase("param.blocks.0.norm1.bias"); });
  write_file_atomically(cases / "i_broken.safetensors", slurp(golden / "stack_pre.safetensors").substr(0, 1000));
  write_file_atomically(
      cases / "tables.json",
      R"({"factors": [{"blocks": 6, "deepnorm_alpha": 1.8612097182041991, "layerscale_init": 0.2}], "other": 1})");
  const Finished f = parity(cases.path());
  INFO(f.out << f.err);
  CHECK(f.status == 1);
  CHECK(last_line(f.out) == "1 passed, 9 failed");
  CHECK_THAT(f.out,
             contains("reference f64, out.y: error") && contains("cpu fp32, out.y: error") && contains("above 1e-09"));
  CHECK_THAT(f.out, contains("grad.param.blocks.1.mlp.fc1.weight: error"));
  CHECK_THAT(f.out, contains("out.y: error nan") && contains("out.z: not computed"));
  CHECK_THAT(f.out, contains("expected a known kind, got \"tower\"") && contains("got \"pre_post\""));
  CHECK_THAT(f.out, contains("layerscale_init of 6 blocks: expected 0.2, got 0.1") && contains("unknown table: other"));
  CHECK_THAT(f.out, !contains("deepnorm_alpha"));
}

TEST_CASE("parity explains its arguments") {
  const TemporaryFolder empty;
  const auto ends = [&](const std::string& words, int status, const std::string& text) {
    const Finished f = run(empty.path(), program("parity") + " " + words);
    CHECK(f.status == status);
    CHECK_THAT(f.out + f.err, contains(text));
  };
  ends(".", 1, "expected cases");
  ends("nowhere", 1, "expected a folder of cases");
  ends("", 2, "usage: parity DIR");
  ends("--quickly", 2, "usage: parity DIR");
  ends("--help", 0, "parity DIR");
}
