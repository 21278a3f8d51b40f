// The table of residual methods. Each method has one source file, one declaration in methods.h and one row here.
#include <algorithm>
#include <deque>

#include "core/nearest.h"
#include "nn/gates/method_text.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

// The container is a deque, so that references to methods stay valid when a method is registered.
std::deque<Method>& table() {
  using namespace methods;
  static std::deque<Method> rows{post(),
                                 pre(),
                                 rezero(),
                                 rezero_separate(),
                                 rezero_ln(),
                                 skipinit(),
                                 fixup(),
                                 fixup_ln(),
                                 t_fixup(),
                                 t_fixup_ln(),
                                 scalar_gate(),
                                 layerscale(),
                                 deepnorm(),
                                 admin(),
                                 admin_profile(),
                                 residual_dual(),
                                 b2t(),
                                 sub_ln(),
                                 normformer(),
                                 sandwich(),
                                 peri_ln(),
                                 layernorm_scaling(),
                                 mix_ln(),
                                 gpt2_init(),
                                 branch_scale(),
                                 depth_mup(),
                                 complete_p(),
                                 dyt(),
                                 value_residual(),
                                 hyper_connections(),
                                 act_norm()};
  return rows;
}

}  // namespace

void register_method(const std::string& name, Method method) {
  check(!name.empty() && std::ranges::all_of(name,
                                             [](char c) {
                                               return std::islower(static_cast<unsigned char>(c)) ||
                                                      std::isdigit(static_cast<unsigned char>(c)) || c == '_';
                                             }),
        "[register_method] expected a name of lower-case letters, digits and underscores, got \"{}\"", name);
  check(name != "all",
        "[register_method] expected another name than \"all\", which stands for every method on a command line");
  check(std::ranges::find(table(), name, &Method::name) == table().end(),
        "[register_method] expected a new name, got \"{}\", which another method has", name);
  check(static_cast<bool>(method.build),
        "[register_method] expected a Method with a build function for \"{}\", got one without", name);
  check(method.chosen.empty(),
        "[register_method] expected the constants of \"{}\" at their standard values, got other values: set "
        "MethodConstant::standard instead of calling with()",
        name);
  method.name = name;
  for (auto c = method.constants.begin(); c != method.constants.end(); ++c) {
    check(!c->name.empty() &&
              std::ranges::all_of(c->name,
                                  [](char l) { return std::isalnum(static_cast<unsigned char>(l)) || l == '_'; }),
          "[register_method] expected constants of \"{}\" with names of letters, digits and underscores, got \"{}\"",
          name, c->name);
    check(std::find_if(method.constants.begin(), c,
                       [&](const MethodConstant& other) { return other.name == c->name; }) == c,
          "[register_method] expected each constant of \"{}\" once, got \"{}\" twice", name, c->name);
  }
  method = method.with(method.values());  // checks the bounds
  table().push_back(std::move(method));
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const Method& m : table()) names.push_back(m.name);
  return names;
}

Method method_named(const std::string& text) {
  const MethodText wanted = method_text(text);
  const auto row = std::ranges::find(table(), wanted.name, &Method::name);
  if (row == table().end())
    fail(
        fmt::format("[gate] expected the name of a residual method, got \"{}\"; {} (nn::method_names() and "
                    "--list-gates list all methods; a custom method is known only in programs that register it with "
                    "nn::register_method)",
                    wanted.name, suggest_name(wanted.name, method_names())));
  return wanted.values.empty() ? *row : row->with(wanted.values);
}

}  // namespace plumb::nn
