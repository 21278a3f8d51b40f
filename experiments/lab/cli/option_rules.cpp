// The values that an option accepts.
#include "core/error.h"
#include "experiments/lab/cli/option.h"
#include "nn/gates/method.h"

namespace plumb::lab {

CliOption& CliOption::bound(double& limit, double value, bool& open, bool is_open) {
  limit = value;
  open = is_open;
  return *this;
}

CliOption& CliOption::one_of(std::string noun, std::vector<std::string> names) {
  noun_ = std::move(noun);
  names_ = std::move(names);
  return *this;
}

CliOption& CliOption::one_of(std::string noun) {
  const auto* variable = std::get_if<EnumVariable>(&field_);
  internal_check(variable, "option {} needs the names of an enum, but its variable is not an enum", name);
  return one_of_values(std::move(noun), variable->names(), variable->type());
}

CliOption& CliOption::one_of_values(std::string noun, const EnumVariable::Names& values, const std::type_info& type) {
  const auto* variable = std::get_if<EnumVariable>(&field_);
  internal_check(variable && variable->type() == type, "option {} has names of a different enum than its variable",
                 name);
  std::vector<std::string> names;
  for (const auto& [name_, value] : values) names.push_back(name_);
  return one_of(std::move(noun), std::move(names));
}

CliOption& CliOption::one_of_methods(bool as_typed) {
  methods_ = true;
  as_typed_ = as_typed;
  help += "; write NAME:CONSTANT=VALUE to change a constant of a method";
  return one_of("method", nn::method_names());
}

CliOption& CliOption::or_word(std::string word) {
  word_ = std::move(word);
  return *this;
}

CliOption& CliOption::pair() {
  pair_ = true;
  return *this;
}

CliOption& CliOption::may_repeat() {
  internal_check(is_axis(), "option {} may repeat values, but its variable is not a vector", name);
  may_repeat_ = true;
  return *this;
}

CliOption& CliOption::may_be_empty() {
  internal_check(is_axis(), "option {} may be empty, but its variable is not a vector", name);
  may_be_empty_ = true;
  return *this;
}

CliOption& CliOption::value_name(std::string name_) {
  value_name_ = std::move(name_);
  return *this;
}

CliOption& CliOption::path(std::string name_) {
  internal_check(takes_text(), "option {} is a path, but its variable is not a text", name);
  path_ = true;
  return value_name(std::move(name_));
}

CliOption& CliOption::scope(Scope what) {
  scope_ = what;
  return *this;
}

}  // namespace plumb::lab
