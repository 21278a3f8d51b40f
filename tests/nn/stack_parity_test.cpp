// Stacks of blocks under each residual method against PyTorch's answers in f64: outputs, and gradients of the input and of every
// parameter. The cases lie outside the repository (PLUMB_TEST_DATA/reference/cases); without them the test is skipped.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "nn/nn.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

struct Case {
  nlohmann::json settings;
  std::map<std::string, Tensor> tensors;  // f64
};

// A safetensors file whose tensors are f64: length of the header, header (JSON), data.
Case read_case(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  Case c{.settings = nlohmann::json::parse(header["__metadata__"]["case"].get<std::string>()), .tensors = {}};
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    REQUIRE(entry["dtype"] == "F64");
    const auto dims = entry["shape"].get<std::vector<std::int64_t>>();
    std::vector<double> values(static_cast<std::size_t>(Shape(dims).numel()));
    std::memcpy(values.data(), bytes.data() + 8 + length + entry["data_offsets"][0].get<std::size_t>(), 8 * values.size());
    c.tensors[name] = tensor(values, Shape(dims), reference_f64);
  }
  return c;
}

nn::StackOptions options_of(const Case& c) {
  const std::int64_t dim = c.settings["dim"];
  nn::GateChoice gate = c.settings["method"].get<std::string>();
  if (c.settings.contains("multiplier")) gate = nn::methods::branch_scale(c.settings["multiplier"].get<double>());
  return {.dim = dim,
          .heads = c.settings["heads"],
          .hidden = 4 * dim,
          .depth = c.settings["depth"],
          .gate = gate,
          .norm_eps = c.settings["norm_eps"],
          .final_norm = c.tensors.contains("param.norm.weight")};
}

// The measure of the cases' authors: largest difference / max(largest entry, 1e-3 x largest gradient of the case).
double error_of_case(const Tensor& ours, const Tensor& theirs, double floor) {
  const std::vector<double> a = ours.values(), b = theirs.values();
  double difference = 0, size = floor;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference = std::max(difference, std::abs(a.at(i) - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  return difference / size;
}

}  // namespace

TEST_CASE("blocks under each residual method agree with PyTorch in f64") {
  const char* set = std::getenv("PLUMB_TEST_DATA");
  const auto folder = std::filesystem::path(set ? set : std::string(PLUMB_SOURCE_DIR) + "/../shared") / "reference/cases";
  if (!std::filesystem::exists(folder)) PLUMB_SKIP("no reference cases in " + folder.string() + " (PLUMB_TEST_DATA)");
  const DefaultsScope f64(reference_f64);
  for (const std::string& method : nn::gate_names()) {
    if (!std::filesystem::exists(folder / ("stack_" + method + ".safetensors"))) continue;
    INFO(method);
    const Case c = read_case(folder / ("stack_" + method + ".safetensors"));
    nn::Stack stack(options_of(c));
    std::size_t given = 0;
    for (const auto& [name, value] : c.tensors) given += name.starts_with("param.");
    const auto parameters = stack.parameters();
    REQUIRE(parameters.size() == given);
    for (const nn::Parameter& p : parameters) copy_into(c.tensors.at("param." + p.name).array(), p.value.array());
    double floor = 0;
    for (const auto& [name, value] : c.tensors)
      if (name.starts_with("grad."))
        for (double v : value.values()) floor = std::max(floor, 1e-3 * std::abs(v));

    const Tensor x = variable(c.tensors.at("in.x")), y = stack(x);
    CHECK(error_of_case(y, c.tensors.at("out.y"), 0) < 1e-9);
    Tensors wanted{x};
    for (const nn::Parameter& p : parameters) wanted.push_back(p.value);
    const Tensors gradients = grad(y, wanted, {.cotangent = c.tensors.at("cot.y")});
    CHECK(error_of_case(gradients[0], c.tensors.at("grad.in.x"), floor) < 1e-9);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      INFO(parameters[i].name);
      CHECK(error_of_case(gradients[i + 1], c.tensors.at("grad.param." + parameters[i].name), floor) < 1e-9);
    }
  }
}
