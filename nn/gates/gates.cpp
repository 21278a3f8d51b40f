// The table of residual methods: one file, one declaration and one row here for each.
#include <algorithm>

#include "nn/gates/gate.h"

namespace plumb::nn {

Method post();
Method pre();
Method rezero();
Method rezero_separate();
Method skipinit();
Method fixup();
Method scalar_gate();
Method layerscale();

namespace {

using Table = std::vector<std::pair<std::string, Method>>;

Table& table() {
  static Table methods{
      {"post", post()},         {"pre", pre()},     {"rezero", rezero()},           {"rezero_separate", rezero_separate()},
      {"skipinit", skipinit()}, {"fixup", fixup()}, {"scalar_gate", scalar_gate()}, {"layerscale", layerscale()},
  };
  return methods;
}

auto find(const std::string& name) { return std::ranges::find(table(), name, &Table::value_type::first); }

}  // namespace

void register_method(const std::string& name, Method method) {
  check(
      !name.empty() &&
          std::ranges::all_of(
              name, [](char c) { return std::islower(static_cast<unsigned char>(c)) || std::isdigit(static_cast<unsigned char>(c)) || c == '_'; }) &&
          name != "all",
      "[register_gate] expected a name of lower-case letters, digits and underscores, got \"{}\"", name);
  check(find(name) == table().end(), "[register_gate] expected a new name, got \"{}\", which is taken", name);
  check(static_cast<bool>(method.build), "[register_gate] expected a method that builds gates for \"{}\", got none", name);
  table().emplace_back(name, std::move(method));
}

std::vector<std::string> gate_names() {
  std::vector<std::string> names;
  for (const auto& [name, method] : table()) names.push_back(name);
  return names;
}

const Method& method_named(const std::string& name) {
  const auto row = find(name);
  check(row != table().end(), "[gate] expected one of {}, got \"{}\"", fmt::join(gate_names(), ", "), name);
  return row->second;
}

Tensor Gate::combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const {
  return combine(skip, gated_residual(zeros_like(branch), branch, {}, row_scale));
}

Init weight_init(Base base, int packed_parts) {
  if (base == Base::truncated_normal) return Init::truncated_normal(0.02);
  return Init::xavier_uniform(base == Base::xavier ? packed_parts : 1);
}

}  // namespace plumb::nn
