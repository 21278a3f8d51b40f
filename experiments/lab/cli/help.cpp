#include <algorithm>

#include "experiments/lab/cli/cli.h"

namespace plumb::lab {
namespace {

constexpr std::size_t page_width = 80;

// Wraps `text` at spaces. The first line begins at column `indent`, because the caller has already written the columns
// before it. All later lines are indented to column `indent`.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::string result, line;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t space = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, space - begin);
    if (!line.empty() && indent + line.size() + 1 + word.size() > page_width) {
      result += line + "\n" + std::string(indent, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = space + 1;
  }
  return result + line + "\n";
}

std::string replace_commas(std::string list) {
  for (std::size_t at = 0; (at = list.find(',', at)) != std::string::npos; at += 2) list.replace(at, 1, ", ");
  return list;
}

// The help text of an option with the accepted names and the default: "Data set: glyphs, fashion [glyphs]".
std::string described(const CliOption& option) {
  if (option.is_on()) return fmt::format("{} [on; off with --no-{}]", option.help, option.name.substr(2));
  const std::string standard = option.is_switch() ? "" : option.text();
  constexpr std::size_t few = 6;
  std::string text = option.help;
  const auto& names = option.names();
  if (names.size() > 1 && names.size() <= few) text += fmt::format(": {}", fmt::join(names, ", "));
  if (names.size() > 1 && standard == fmt::format("{}", fmt::join(names, ","))) return text + " [all]";
  return standard.empty() ? text : text + " [" + replace_commas(standard) + "]";
}

}  // namespace

std::string Cli::help() const {
  std::vector<std::string> left;
  std::size_t column = 0;
  for (const CliOption& option : options_) {
    left.push_back("  " + option.name + (option.is_switch() ? "" : " " + option.value_name()));
    column = std::max(column, left.back().size() + 2);
  }
  std::string text =
      fmt::format("{}\nUsage: {}{} [options]\n", wrapped(summary_, 0), program_, words_ ? " " + words_title_ : "");
  for (const std::string& section : section_order()) {
    text += fmt::format("\n{}:\n", section);
    for (std::size_t i = 0; i < options_.size(); ++i)
      if (options_[i].section == section)
        text += fmt::format("{:<{}}{}", left[i], column, wrapped(described(options_[i]), column));
  }
  if (!presets_.empty()) text += "\nPresets:\n";
  for (const Preset& preset : presets_)
    text += fmt::format("{:<{}}{}", "  " + preset.name, column, wrapped(preset.help, column));
  if (!words_)
    text += "\n" + wrapped(
                       "Separate the items of a list by commas (6,24). A list of integers may contain ranges that "
                       "include both ends (0..4). The command line overrides --config, --config overrides --preset, "
                       "and --preset overrides the defaults in brackets.",
                       0);
  if (!examples_.empty()) text += fmt::format("\nExample{}:\n", examples_.size() > 1 ? "s" : "");
  for (const std::string& example : examples_) text += fmt::format("  {} {}\n", program_, example);
  return text;
}

}  // namespace plumb::lab
