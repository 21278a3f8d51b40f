#include "experiments/lab/plot/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

namespace plumb::lab {
namespace {

std::string superscript(int exponent) {
  static constexpr const char* digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "⁻" : "";
  for (char c : std::to_string(std::abs(exponent))) text += digits[c - '0'];
  return text;
}

// A number as a multiple of a power of ten with up to four digits, such as 2×10⁻⁵ for 0.00002.
std::string power_of_ten(double value) {
  const std::string text = fmt::format("{:.3e}", value);
  const std::size_t e = text.find('e');
  std::string mantissa = text.substr(0, text.find_last_not_of("0.", e - 1) + 1);
  if (mantissa.empty() || mantissa == "-") return "0";
  const int exponent = std::stoi(text.substr(e + 1));
  if (exponent == 0) return mantissa;
  const std::string power = "10" + superscript(exponent);
  return mantissa == "1" ? power : mantissa + "×" + power;
}

// Inserts commas between groups of three digits, if the number has at least five digits before the decimal point.
std::string with_thousands(std::string text) {
  const std::size_t begin = text.front() == '-' ? 1 : 0, end = std::min(text.find('.'), text.size());
  if (end - begin < 5) return text;
  for (std::size_t i = end; i > begin + 3;) text.insert(i -= 3, ",");
  return text;
}

// The number of decimals with which `value` is shown with an error of at most about 1e-6 of `scale`.
int decimals_of(double value, double scale) {
  for (int d = 0; d < 9; ++d)
    if (const double shifted = value * std::pow(10.0, d);
        std::abs(shifted - std::round(shifted)) < 1e-6 * scale * std::pow(10.0, d))
      return d;
  return 9;
}

}  // namespace

std::vector<double> linear_ticks(double low, double high, int count) {
  const double raw = (high - low) / std::max(1, count);
  if (!(raw > 0) || !std::isfinite(raw)) return {low};
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (double m : {5.0, 2.0, 1.0})
    if (raw <= m * power * (1 + 1e-9)) step = m * power;
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9), last = std::floor(high / step + 1e-9);
  for (double i = first; i <= last; ++i) ticks.push_back(i == 0 ? 0 : i * step);
  return ticks;
}

std::vector<double> log_ticks(double low, double high) {
  const double decades = std::log10(high) - std::log10(low);
  const int every = std::max(1, static_cast<int>(std::ceil(decades / 7)));
  std::vector<double> ticks;
  for (int e = static_cast<int>(std::floor(std::log10(low))); e <= static_cast<int>(std::ceil(std::log10(high))); ++e)
    for (double m : {1.0, 2.0, 5.0}) {
      const double tick = m * std::pow(10.0, e);
      if ((m == 1 ? e % every == 0 : decades < 2.5) && tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9))
        ticks.push_back(tick);
    }
  return ticks.size() >= 2 ? ticks : linear_ticks(low, high, 5);
}

std::vector<std::string> tick_labels(const std::vector<double>& ticks, bool log) {
  double largest = 0, smallest = std::numeric_limits<double>::infinity(), gap = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    largest = std::max(largest, std::abs(ticks[i]));
    if (ticks[i] != 0) smallest = std::min(smallest, std::abs(ticks[i]));
    if (i > 0) gap = std::min(gap, ticks[i] - ticks[i - 1]);
  }
  const double finest = log || ticks.size() < 2 ? smallest : gap;
  const bool powers = largest >= 1e6 || finest < (log ? 0.9e-3 : 0.9e-4);
  int decimals = 0;
  if (!log)
    for (double t : ticks) decimals = std::max(decimals, decimals_of(t, std::min(gap, largest)));
  std::vector<std::string> labels;
  for (double t : ticks)
    labels.push_back(powers ? power_of_ten(t)
                            : with_thousands(log ? fmt::format("{:.6g}", t) : fmt::format("{:.{}f}", t, decimals)));
  return labels;
}

double rounded_to(double value, int digits) {
  const std::string text = fmt::format("{:.{}e}", value, digits - 1);
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return "not finite";
  if (value != 0 && (std::abs(value) < 1e-3 || std::abs(value) >= 1e6)) return power_of_ten(value);
  return std::abs(value) < 9999.5 ? fmt::format("{:.4g}", value) : with_thousands(fmt::format("{:.0f}", value));
}

std::string escape_markup(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        // Control characters are left out, because XML does not allow them.
        if (static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\t') out += c;
    }
  }
  return out;
}

std::string escape_markdown(std::string_view text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : ' ';
    const bool element = text[i] == '<' &&
                         (std::isalpha(static_cast<unsigned char>(next)) || next == '/' || next == '!' || next == '?'),
               target = text[i] == ']' && (next == '(' || next == '[' || next == ':');
    if (element || target) escaped += '\\';
    escaped += text[i];
  }
  return escaped;
}

std::size_t letters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string shortened(std::string_view text, std::size_t most) {
  if (letters(text) <= most) return std::string(text);
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end)
    if ((static_cast<unsigned char>(text[end]) & 0xC0) != 0x80 && ++seen == most) break;
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace plumb::lab
