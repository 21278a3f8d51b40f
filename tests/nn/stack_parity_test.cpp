// Stacks of blocks under each residual method against PyTorch's answers in f64: outputs, and gradients of the input and of every
// parameter. The cases lie outside the repository (PLUMB_TEST_DATA/reference/cases); without them the test is skipped.
#include "nn/nn.h"
#include "tests/support/reference_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

nn::StackOptions options_of(const ReferenceCase& c) {
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

}  // namespace

TEST_CASE("blocks under each residual method agree with PyTorch in f64") {
  const auto folder = reference_cases();
  if (!std::filesystem::exists(folder)) PLUMB_SKIP("no reference cases in " + folder.string() + " (PLUMB_TEST_DATA)");
  const DefaultsScope f64(reference_f64);
  for (const std::string& method : nn::gate_names()) {
    if (!std::filesystem::exists(folder / ("stack_" + method + ".safetensors"))) continue;
    INFO(method);
    const ReferenceCase c = read_case(folder / ("stack_" + method + ".safetensors"));
    nn::Stack stack(options_of(c));
    std::size_t given = 0;
    for (const auto& [name, value] : c.tensors) given += name.starts_with("param.");
    const auto parameters = stack.parameters();
    REQUIRE(parameters.size() == given);
    for (const nn::Parameter& p : parameters) copy_into(c.tensors.at("param." + p.name).array(), p.value.array());
    const Tensor x = variable(c.tensors.at("in.x")), y = stack(x);
    CHECK(error_of_case(y, c.tensors.at("out.y"), 0) < 1e-9);
    Tensors wanted{x};
    for (const nn::Parameter& p : parameters) wanted.push_back(p.value);
    const Tensors gradients = grad(y, wanted, {.cotangent = c.tensors.at("cot.y")});
    CHECK(error_of_case(gradients[0], c.tensors.at("grad.in.x"), c.floor) < 1e-9);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      INFO(parameters[i].name);
      CHECK(error_of_case(gradients[i + 1], c.tensors.at("grad.param." + parameters[i].name), c.floor) < 1e-9);
    }
  }
}
