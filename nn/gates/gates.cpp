// The table of residual methods: one file, one declaration in methods.h and one row here for each.
#include <algorithm>

#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

std::vector<Method>& table() {
  static std::vector<Method> rows = [] {
    using namespace methods;
    std::vector<Method> t;
    const auto row = [&](const char* name, Method m) {
      m.name = name;
      t.push_back(std::move(m));
    };
    row("post", post());
    row("pre", pre());
    row("rezero", rezero());
    row("rezero_separate", rezero_separate());
    row("rezero_ln", rezero_ln());
    row("skipinit", skipinit());
    row("fixup", fixup());
    row("fixup_ln", fixup_ln());
    row("t_fixup", t_fixup());
    row("t_fixup_ln", t_fixup_ln());
    row("scalar_gate", scalar_gate());
    row("layerscale", layerscale());
    row("deepnorm", deepnorm());
    row("admin", admin());
    row("admin_profile", admin_profile());
    row("residual_dual", residual_dual());
    row("b2t", b2t());
    row("sub_ln", sub_ln());
    row("normformer", normformer());
    row("sandwich", sandwich());
    row("peri_ln", peri_ln());
    row("layernorm_scaling", layernorm_scaling());
    row("mix_ln", mix_ln());
    row("gpt2_init", gpt2_init());
    row("branch_scale", branch_scale());
    row("depth_mup", depth_mup());
    row("complete_p", complete_p());
    row("dyt", dyt());
    row("value_residual", value_residual());
    row("hyper_connections", hyper_connections());
    row("act_norm", act_norm());
    return t;
  }();
  return rows;
}

}  // namespace

void register_method(const std::string& name, Method method) {
  check(
      !name.empty() &&
          std::ranges::all_of(
              name, [](char c) { return std::islower(static_cast<unsigned char>(c)) || std::isdigit(static_cast<unsigned char>(c)) || c == '_'; }) &&
          name != "all",
      "[register_gate] expected a name of lower-case letters, digits and underscores, got \"{}\"", name);
  check(std::ranges::find(table(), name, &Method::name) == table().end(), "[register_gate] expected a new name, got \"{}\", which is taken", name);
  check(static_cast<bool>(method.build), "[register_gate] expected a method that builds gates for \"{}\", got none", name);
  method.name = name;
  table().push_back(std::move(method));
}

std::vector<std::string> gate_names() {
  std::vector<std::string> names;
  for (const Method& m : table()) names.push_back(m.name);
  return names;
}

const Method& method_named(const std::string& name) {
  const auto row = std::ranges::find(table(), name, &Method::name);
  check(row != table().end(), "[gate] expected one of {}, got \"{}\"", fmt::join(gate_names(), ", "), name);
  return *row;
}

}  // namespace plumb::nn
