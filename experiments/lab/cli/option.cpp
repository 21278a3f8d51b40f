#include "experiments/lab/cli/option.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "core/error.h"
#include "core/names.h"
#include "core/nearest.h"
#include "core/one_line.h"
#include "experiments/lab/record/json_value.h"
#include "nn/gates/method.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t longest_range = 10'000;

template <class T>
constexpr bool is_vector = false;
template <class T>
constexpr bool is_vector<std::vector<T>> = true;
template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> items;
  for (std::size_t begin = 0;;) {
    const std::size_t comma = text.find(',', begin);
    items.push_back(text.substr(begin, comma - begin));
    if (comma == std::string::npos) return items;
    begin = comma + 1;
  }
}

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(value)) return std::nullopt;
  return value;
}

// Whether the text is an integer, of any size.
bool is_whole(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

template <class T>
std::string show(const T& value) {
  if constexpr (is_vector<T>) {
    std::string text;
    for (const auto& item : value) text += (text.empty() ? "" : ",") + show(item);
    return text;
  } else {
    return fmt::format("{}", value);
  }
}

}  // namespace

CliOption::CliOption(std::string name_, std::string section_, Field field, std::string help_)
    : name(std::move(name_)), section(std::move(section_)), help(std::move(help_)), field_(std::move(field)) {
  if (const auto* variable = std::get_if<EnumVariable>(&field_); variable) one_of("name");
}

std::string CliOption::key() const {
  std::string key = name.substr(2);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

bool CliOption::is_axis() const {
  return std::visit([](auto variable) { return is_vector<std::remove_pointer_t<decltype(variable)>>; }, field_);
}

std::string CliOption::value_name() const {
  if (is_switch()) return "";
  if (!value_name_.empty()) return value_name_;
  return std::string(takes_text() ? "NAME" : "N") + (is_axis() ? ",.." : "");
}

bool CliOption::takes_text() const {
  return std::holds_alternative<std::string*>(field_) || std::holds_alternative<std::vector<std::string>*>(field_) ||
         std::holds_alternative<EnumVariable>(field_);
}

std::string CliOption::expected(bool all_bounds) const {
  const bool whole = std::holds_alternative<std::int64_t*>(field_) ||
                     std::holds_alternative<std::optional<std::int64_t>*>(field_) ||
                     std::holds_alternative<std::vector<std::int64_t>*>(field_);
  const bool has_low = std::isfinite(lowest_), has_high = std::isfinite(highest_);
  std::string text = is_axis() ? (whole ? "integers" : "numbers") : (whole ? "an integer" : "a number");
  if (whole && all_bounds)
    text += fmt::format(" in {}{}, {}{}", low_open_ ? '(' : '[', has_low ? fmt::format("{}", lowest_) : "-2^63",
                        has_high ? fmt::format("{}", highest_) : "2^63 - 1", high_open_ ? ')' : ']');
  else if (has_low && has_high)
    text += fmt::format(" in {}{}, {}{}", low_open_ ? '(' : '[', lowest_, highest_, high_open_ ? ')' : ']');
  else if (has_low)
    text += fmt::format(" {} {}", low_open_ ? "above" : "of at least", lowest_);
  else if (has_high)
    text += fmt::format(" {} {}", high_open_ ? "below" : "of at most", highest_);
  if (is_axis()) text += whole ? " such as 6,24 or 0..4" : " such as 0.001,0.01";
  if (!word_.empty()) text += fmt::format(", or '{}'", word_);
  return text;
}

void CliOption::refuse(const std::string& where, const std::string& got, bool all_bounds) const {
  throw UsageError(fmt::format("{} expects {}, got {}", where, expected(all_bounds), got));
}

void CliOption::refuse_name(const std::string& where, const std::string& got) const {
  throw UsageError(fmt::format("{}: unknown {} '{}'; {}", where, noun_, got, suggest_name(got, names_)));
}

void CliOption::check_name(const std::string& where, const std::string& name_) const {
  if (!names_.empty() && std::find(names_.begin(), names_.end(), name_) == names_.end()) refuse_name(where, name_);
}

std::string CliOption::name_of_value(const EnumVariable& variable) const {
  const auto& names = variable.names();
  const auto found = std::ranges::find(names, variable.get(), &std::pair<std::string, long long>::second);
  check(found != names.end(), "[cli] expected the variable of {} to hold {}, got the value {} of its enum", name,
        alternatives(names_), variable.get());
  return found->first;
}

long long CliOption::value_named(const EnumVariable& variable, const std::string& where,
                                 const std::string& name_) const {
  check_name(where, name_);
  const auto& names = variable.names();
  const auto found = std::ranges::find(names, name_, &std::pair<std::string, long long>::first);
  internal_check(found != names.end(), "option {} accepts {}, but its enum has no value of this name", name, name_);
  return found->second;
}

bool CliOption::accepts(double number) const {
  return (low_open_ ? number > lowest_ : number >= lowest_) && (high_open_ ? number < highest_ : number <= highest_);
}

template <class T>
void CliOption::check_bounds(const std::string& where, T value) const {
  if (!accepts(static_cast<double>(value))) refuse(where, fmt::format("{}", value));
}

void CliOption::set(const AxisValue& value) {
  std::visit(
      [&](auto variable) {
        using T = std::remove_pointer_t<decltype(variable)>;
        const auto number = [&]<class N>(N) -> N {
          const auto* whole = std::get_if<std::int64_t>(&value);
          const auto* real = std::get_if<double>(&value);
          if (!whole && !(real && std::is_floating_point_v<N>)) refuse(name, fmt::format("'{}'", to_string(value)));
          const N n = whole ? static_cast<N>(*whole) : static_cast<N>(*real);
          check_bounds(name, n);
          return n;
        };
        if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, EnumVariable>) {
          const auto* text = std::get_if<std::string>(&value);
          if (!text) throw UsageError(fmt::format("{} expects text, got {}", name, to_string(value)));
          if constexpr (std::is_same_v<T, EnumVariable>)
            variable.set(value_named(variable, name, *text));
          else
            check_name(name, *text), *variable = *text;
        } else if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, double>) {
          *variable = number(T{});
        } else if constexpr (is_optional<T>) {
          if (const auto* text = std::get_if<std::string>(&value); text && *text == word_)
            variable->reset();
          else
            *variable = number(typename T::value_type{});
        } else {
          internal_check(false, "an axis cannot set {}, which is a switch or a list", name);
        }
      },
      field_);
}

AxisValue CliOption::accepted(const AxisValue& value) const {
  if (const auto* text = std::get_if<std::string>(&value)) return item<std::string>(name, *text);
  const auto* whole = std::get_if<std::int64_t>(&value);
  check_bounds(name, whole ? static_cast<double>(*whole) : std::get<double>(value));
  return value;
}

template <class T>
T CliOption::item(const std::string& where, const std::string& text) const {
  if constexpr (std::is_same_v<T, std::string>) {
    const std::string name_ = methods_ ? text.substr(0, text.find(':')) : text;
    check_name(where, name_);
    if (name_ == text) return text;
    try {
      const nn::Method method = nn::method_named(text);
      return as_typed_ ? text : method.label();
    } catch (const Error& e) {
      throw UsageError(fmt::format("{} {}: {}", where, text, e.what()));
    }
  } else {
    const std::optional<T> value = parse_number<T>(text);
    // An integer that is not read is too large for 64 bits. The message then also names the bounds that are implied.
    if (!value) refuse(where, fmt::format("'{}'", text), is_whole(text));
    check_bounds(where, *value);
    return *value;
  }
}

template <class T>
std::vector<T> CliOption::axis(const std::string& where, const std::vector<std::string>& items) const {
  std::vector<T> values;
  const auto append = [&](const T& value) {
    const auto is_there = [&](const T& other) {
      if constexpr (std::is_floating_point_v<T>) return same(AxisValue(other), AxisValue(value));
      return other == value;
    };
    if (!pair_ && !may_repeat_ && std::ranges::any_of(values, is_there))
      throw UsageError(fmt::format("{}: {} is given twice; give each value once", where, value));
    values.push_back(value);
  };
  for (const std::string& text : items) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (text == "all" && !names_.empty()) {
        for (const std::string& name_ : names_) append(name_);
        continue;
      }
    }
    if constexpr (std::is_same_v<T, std::int64_t>) {
      if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
        const auto first = item<T>(where, text.substr(0, dots)), last = item<T>(where, text.substr(dots + 2));
        if (first > last)
          throw UsageError(fmt::format("{}: the range {} is empty; write {}..{}", where, text, last, first));
        // The difference is computed in unsigned numbers, because last - first may overflow.
        const std::uint64_t span = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
        if (span >= longest_range)
          throw UsageError(fmt::format("{}: the range {} has more than {} values; give a shorter range", where, text,
                                       longest_range));
        for (std::uint64_t i = 0; i <= span; ++i) append(first + static_cast<T>(i));
        continue;
      }
    }
    append(item<T>(where, text));
  }
  if (values.empty()) throw UsageError(fmt::format("{} expects at least one value, got an empty list", where));
  return values;
}

void CliOption::read_items(const std::string& where, std::vector<std::string> items) {
  std::visit(
      [&](auto variable) {
        using T = std::remove_pointer_t<decltype(variable)>;
        if constexpr (std::is_same_v<T, EnumVariable>) {
          variable.set(value_named(variable, where, items[0]));
        } else if constexpr (is_vector<T>) {
          *variable = axis<typename T::value_type>(where, items);
        } else if constexpr (is_optional<T>) {
          if (items[0] == word_)
            variable->reset();
          else
            *variable = item<typename T::value_type>(where, items[0]);
        } else if constexpr (std::is_same_v<T, bool>) {
          *variable = items[0] != "false";
        } else {
          *variable = item<T>(where, items[0]);
        }
      },
      field_);
}

void CliOption::read(const std::string& where, const std::string& typed) {
  if (typed.empty() && !is_switch())
    throw UsageError(fmt::format("{} expects {}, got nothing", where, is_axis() ? "a list" : "a value"));
  read_items(where, is_axis() ? split(typed) : std::vector<std::string>{typed});
}

void CliOption::read_json(const std::string& where, const JsonValue& given) {
  const Json& value = given.json;
  if (const auto* variable = std::get_if<bool*>(&field_)) {
    if (!value.is_boolean()) throw UsageError(fmt::format("{} expects true or false, got {}", where, value.dump()));
    **variable = value.get<bool>();
    return;
  }
  // A string is read as on the command line ("0..4", "all"), and a number is read as its digits.
  const auto typed = [&](const Json& one) {
    if (one.is_string()) {
      const auto text = one.get<std::string>();
      if (printable(text) != text)
        throw UsageError(fmt::format("{} expects text without control characters, got {}", where, one.dump()));
      return text;
    }
    if (one.is_number() && !takes_text()) return one.dump();
    throw UsageError(
        fmt::format("{} expects {}, got {}", where, takes_text() ? "text in quotes" : expected(), one.dump()));
  };
  if (may_be_empty_ && value.is_array() && value.empty())
    return std::visit(
        [](auto variable) {
          if constexpr (is_vector<std::remove_pointer_t<decltype(variable)>>) variable->clear();
        },
        field_);
  std::vector<std::string> items;
  if (value.is_array() && is_axis())
    for (const Json& one : value) items.push_back(typed(one));
  else
    items = is_axis() ? split(typed(value)) : std::vector<std::string>{typed(value)};
  read_items(where, std::move(items));
}

void CliOption::validate(const std::string& where) { read_json(where, json()); }

std::string CliOption::text() const {
  return std::visit(
      [&](auto variable) -> std::string {
        using T = std::remove_pointer_t<decltype(variable)>;
        if constexpr (std::is_same_v<T, EnumVariable>)
          return name_of_value(variable);
        else if constexpr (std::is_same_v<T, bool>)
          return *variable ? "true" : "false";
        else if constexpr (is_optional<T>)
          return *variable ? show(**variable) : word_;
        else
          return show(*variable);
      },
      field_);
}

JsonValue CliOption::json() const {
  const Json value = std::visit(
      [&](auto variable) -> Json {
        using T = std::remove_pointer_t<decltype(variable)>;
        if constexpr (std::is_same_v<T, EnumVariable>)
          return Json(name_of_value(variable));
        else if constexpr (is_optional<T>)
          return *variable ? Json(**variable) : Json(word_);
        else
          return Json(*variable);
      },
      field_);
  // A path may contain bytes that are not UTF-8, which dump() replaces.
  return {Json::parse(value.dump(-1, ' ', false, Json::error_handler_t::replace))};
}

}  // namespace plumb::lab
