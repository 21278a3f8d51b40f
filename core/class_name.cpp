#include "core/class_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace plumb {

std::string class_name(const std::type_info& type) {
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr),
                                                         &std::free);
  const std::string full = text ? text.get() : type.name();
  int open = 0;  // the name begins after the last "::" outside of brackets
  for (std::size_t i = full.size(); i-- > 1;) {
    if (std::string_view(")>}").find(full[i]) != std::string_view::npos) ++open;
    if (std::string_view("(<{").find(full[i]) != std::string_view::npos) --open;
    if (open == 0 && full[i] == ':') return full.substr(i + 1);
  }
  return full;
}

}  // namespace plumb
