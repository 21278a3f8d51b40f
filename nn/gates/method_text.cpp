#include "nn/gates/method_text.h"

#include <charconv>
#include <vector>

namespace plumb::nn {

MethodText method_text(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  MethodText method{.name = parts.front()};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    const std::string constant_name = parts[i].substr(0, equals),
                      number = equals == std::string::npos ? "" : parts[i].substr(equals + 1);
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    const bool read = !number.empty() && error == std::errc() && end == number.data() + number.size();
    check(!constant_name.empty() && (read || number == "by_depth"),
          "[gate] expected NAME:CONSTANT=VALUE, where VALUE is a number or by_depth, got \"{}\" in \"{}\"", parts[i],
          text);
    check(method.values.emplace(constant_name, read ? std::optional(value) : std::nullopt).second,
          "[gate] expected each constant once, got {} twice in \"{}\"", constant_name, text);
  }
  return method;
}

}  // namespace plumb::nn
