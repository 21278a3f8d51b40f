#include "experiments/lab/cli/cli.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "core/atomic_file.h"
#include "core/json_text.h"
#include "core/nearest.h"
#include "experiments/lab/build_info.h"
#include "experiments/lab/record/json_value.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;

const std::string general = "General";

// Writes a list as "[6, 24]".
std::string spaced(const Json& value) {
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& item : value) text += (text.empty() ? "" : ", ") + item.dump();
  return "[" + text + "]";
}

// The message of an exception of nlohmann-json, without the prefix "[json.exception.parse_error.101] ".
std::string json_reason(const std::exception& e) {
  const std::string text = e.what();
  const std::size_t end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

Json parse_config(const std::string& path) {
  std::string content;
  try {
    content = read_file(path);
  } catch (const Error& e) {
    throw UsageError(fmt::format("--config: {}", e.what()));
  }
  const std::optional<std::string> twice = doubled_json_name(shallow_json(content, path));
  usage_check(!twice, "{}: \"{}\" is given twice", path, twice.value_or(""));
  try {
    Json config = Json::parse(content, nullptr, true, true);
    if (config.is_object() && config.contains("experiment") && config.contains("settings"))
      config = Json(config["settings"]);  // the file is a run.json, not a configuration file
    usage_check(config.is_object(), "{}: expected an object like the one that --print-config prints, got {}", path,
                config.type_name());
    return config;
  } catch (const Json::exception& e) {
    throw UsageError(fmt::format("{}: {}", path, json_reason(e)));
  }
}

std::string did_you_mean(const std::string& near, const std::string& otherwise) {
  return near.empty() ? otherwise : fmt::format("did you mean {}?", near);
}

}  // namespace

std::string shell_word(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=.,/:+@%") ==
                                          std::string::npos;
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

Cli::Cli(std::string experiment, std::string summary)
    : experiment_(std::move(experiment)), program_(experiment_), summary_(std::move(summary)), section_(general) {
  option("--config", &config_, "Read settings from a file in the format of --print-config")
      .path("FILE")
      .scope(Scope::call);
  option("--print-config", &print_config_, "Print all settings in the format of --config").scope(Scope::call);
  option("--help", &help_, "Print this help (short: -h)").scope(Scope::call);
  option("--version", &version_, "Print the version of the program").scope(Scope::call);
}

void Cli::section(const std::string& title) {
  section_ = title;
  if (title != general && std::find(sections_.begin(), sections_.end(), title) == sections_.end())
    sections_.push_back(title);
}

CliOption& Cli::add(CliOption option) {
  const std::string& name = option.name;
  if (std::ranges::find(left_out_, name, &std::pair<std::string, std::string>::first) != left_out_.end())
    return not_declared_.emplace_back(std::move(option));
  check(name.starts_with("--") && !find(name), "[cli] expected a new option whose name begins with --, got {}{}", name,
        find(name) ? ", which exists; choose another name" : "");
  return options_.emplace_back(std::move(option));
}

void Cli::words(const std::string& title, std::vector<std::string>* words) {
  words_title_ = title, words_ = words;
  section("Options");
  std::erase_if(options_, [](const CliOption& o) { return o.name == "--config" || o.name == "--print-config"; });
}

void Cli::listing(const std::string& name, const std::string& help, std::function<std::string()> text) {
  Listing& listing = listings_.emplace_back(Listing{false, nullptr, std::move(text)});
  const std::string here = section_;
  section(instead);
  option(name, &listing.wanted, help).scope(Scope::call);
  section_ = here;
}

CliOption& Cli::listing(const std::string& name, std::vector<std::string>* about, const std::string& help,
                        std::function<std::string()> text) {
  listings_.push_back({false, about, std::move(text)});
  const std::string here = section_;
  section(instead);
  CliOption& listed = option(name, about, help).scope(Scope::call);
  section_ = here;
  return listed;
}

void Cli::explain(const std::string& name, const std::string& source) {
  CliOption* option = find(name);
  internal_check(option, "option {} is explained but not declared", name);
  option->source = source;
  option->explained = option->text();
}

void Cli::set(const std::string& name, const AxisValue& value) {
  if (CliOption* const option = find(name)) option->set(value);
}

bool Cli::has(const std::string& name) const {
  return std::ranges::find(options_, name, &CliOption::name) != options_.end();
}

bool Cli::given(const std::string& name) const { return std::find(given_.begin(), given_.end(), name) != given_.end(); }

Settings operator+(Settings a, const Settings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void Cli::preset(const std::string& name, const std::string& help, Settings settings, std::function<void()> also) {
  if (presets_.empty())
    options_.emplace_front(CliOption("--preset", general, &preset_, "Use a named set of settings; see Presets below"))
        .scope(Scope::speed);
  presets_.push_back({name, help, std::move(settings), std::move(also)});
}

void Cli::rule(std::function<void()> check) { rules_.push_back(std::move(check)); }

void Cli::examples(const std::vector<std::string>& arguments) {
  examples_.insert(examples_.end(), arguments.begin(), arguments.end());
}

CliOption* Cli::find(std::string_view name) {
  const auto it = std::find_if(options_.begin(), options_.end(), [&](const CliOption& o) { return o.name == name; });
  return it == options_.end() ? nullptr : &*it;
}

const CliOption* Cli::declared(std::string_view name) const {
  const auto it = std::ranges::find(options_, name, &CliOption::name);
  return it == options_.end() ? nullptr : &*it;
}

std::vector<std::string> Cli::section_order() const {
  std::vector<std::string> order = sections_;
  if (std::erase(order, instead) > 0) order.emplace_back(instead);
  order.push_back(general);
  return order;
}

std::vector<Cli::Given> Cli::split_arguments(const std::vector<std::string>& arguments) {
  std::vector<Given> given;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!argument.starts_with('-') && words_) {
      words_->push_back(argument);
      continue;
    }
    if (!argument.starts_with('-')) {
      const bool after_axis = !given.empty() && given.back().option->is_axis();
      const bool after_pair = !given.empty() && given.back().option->is_pair();
      const std::string hint = after_pair   ? fmt::format("{} takes two names", given.back().option->name)
                               : after_axis ? fmt::format("separate list items by commas: {} {},{}",
                                                          given.back().option->name, given.back().value, argument)
                                            : "every value must follow its option; see --help";
      throw UsageError(fmt::format("unexpected argument '{}'; {}", argument, hint));
    }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    CliOption* option = find(name);
    const bool off = !option && name.starts_with("--no-") && equals == std::string::npos;
    if (off) {
      option = find("--" + name.substr(5));
      if (option && !option->is_switch()) option = nullptr;
    }
    if (!option) {
      for (const auto& [varied, advice] : left_out_)
        usage_check(varied != name || advice.empty(), "{} cannot be given, because this program varies it; {}", name,
                    advice);
      std::vector<std::string> names;
      for (const CliOption& o : options_) names.push_back(o.name.substr(2));
      const std::string near = nearest_name(name.substr(std::min(name.find_first_not_of('-'), name.size())), names);
      throw UsageError(fmt::format("unknown option {}; {}", name,
                                   did_you_mean(near.empty() ? "" : "--" + near, "--help lists all options")));
    }
    for (const Given& earlier : given)
      usage_check(earlier.option != option, "{} is given twice{}", name,
                  option->is_axis() ? "; separate list items by commas, such as 6,24" : "");
    std::string value = off ? "false" : "";
    if (equals != std::string::npos) {
      usage_check(!option->is_switch(), "{} takes no value, got '{}'", name, argument.substr(equals + 1));
      value = argument.substr(equals + 1);
    } else if (!option->is_switch()) {
      usage_check(i + 1 < arguments.size() && !arguments[i + 1].starts_with("--"), "{} expects a value: {} {}", name,
                  name, option->value_name());
      value = arguments[++i];
      if (option->is_pair() && i + 1 < arguments.size() && !arguments[i + 1].starts_with('-'))
        value += "," + arguments[++i];
    }
    given.push_back({option, std::move(value)});
  }
  return given;
}

void Cli::apply(const std::string& preset, const Setting& row) {
  std::istringstream words(row.options);
  CliOption* option = nullptr;
  bool has_value = true;
  for (std::string word; words >> word;) {
    if (!word.starts_with("--")) {
      check(!has_value && (!option->is_switch() || word == "true" || word == "false"),
            "[cli] expected options with one value each in preset {}, true or false for a switch, got {} in \"{}\"",
            preset, word, row.options);
      option->read(fmt::format("preset {}: {}", preset, option->key()), word);
      option->source.clear();
      has_value = true;
    } else {
      option = find(word);
      const auto left_out = std::ranges::find(not_declared_, word, &CliOption::name);
      check(option || left_out != not_declared_.end(), "[cli] expected options of the program in preset {}, got {}",
            preset, word);
      if (!option) option = &*left_out;
      has_value = false;
    }
    if (!row.source.empty() && has(option->name)) explain(option->name, row.source);
  }
}

void Cli::apply_preset(const std::string& name, const std::string& where) {
  std::vector<std::string> names;
  for (const Preset& preset : presets_) names.push_back(preset.name);
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) {
    throw UsageError(fmt::format("{}: unknown preset '{}'; {}", where, name, suggest_name(name, names)));
  }
  const Preset& preset = presets_[static_cast<std::size_t>(it - names.begin())];
  for (const Setting& row : preset.settings) apply(name, row);
  if (preset.also) preset.also();
  for (CliOption& option : options_)
    if (option.scope() != Scope::call) option.validate(fmt::format("preset {}: {}", name, option.key()));
}

// Applies the preset that the configuration file names or that its values need, unless the command line names another
// preset.
void Cli::apply_preset_of(const std::string& path, const TypedValue& typed) {
  CliOption* option = find("--preset");
  if (!option || given("--preset")) return;
  const Json config = parse_config(path);
  const std::string where = fmt::format("{}: \"preset\"", path);
  if (const auto preset = config.find("preset"); preset != config.end()) option->read_json(where, {*preset});
  if (preset_.empty() && default_preset_)
    preset_ = default_preset_([&](std::string_view name) {
      const CliOption* const of_config = find(name);
      const auto value = of_config ? config.find(of_config->key()) : config.end();
      const std::string given_value = typed(name);
      return !given_value.empty() || value == config.end() || !value->is_string() ? given_value
                                                                                  : value->get<std::string>();
    });
  if (!preset_.empty()) apply_preset(preset_, where);
}

void Cli::apply_config(const std::string& path) {
  const Json config = parse_config(path);
  for (const auto& [key, value] : config.items()) {
    std::vector<std::string> keys;
    CliOption* option = nullptr;
    for (CliOption& o : options_) {
      if (o.key() == key) option = &o;
      if (o.scope() != Scope::call) keys.push_back(o.key());
    }
    if (!option) {
      const std::string near = nearest_name(key, keys);
      throw UsageError(
          fmt::format("{}: unknown key \"{}\"; {}", path, key,
                      did_you_mean(near.empty() ? "" : "\"" + near + "\"", "--print-config shows all keys")));
    }
    usage_check(option->scope() != Scope::call, "{}: \"{}\" can only be given on the command line, as {}", path, key,
                option->name);
    option->read_json(fmt::format("{}: \"{}\"", path, key), {value});
    given_.push_back(option->name);
  }
}

bool Cli::typed(const std::string& name) const { return std::ranges::find(typed_, name) != typed_.end(); }

std::vector<const CliOption*> Cli::paths_in_config() const {
  std::vector<const CliOption*> paths;
  for (const CliOption& option : options_)
    if (option.is_path() && option.scope() != Scope::call && given(option.name) && !typed(option.name) &&
        !option.text().empty())
      paths.push_back(&option);
  return paths;
}

std::optional<int> Cli::parse(int argc, const char* const* argv, std::FILE* out) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (argc > 0)  // use the name of the running program, because several programs may share one experiment
    if (const std::string ran = std::filesystem::path(argv[0]).filename().string(); !ran.empty()) program_ = ran;
  command_line_ = shell_word(program_);
  for (const std::string& argument : arguments) command_line_ += " " + shell_word(argument);

  const auto print = [&](const std::string& text) {
    write_result(text, out);
    return 0;
  };
  // --help and --version print their text even if other arguments are wrong.
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h") return print(help());
    if (argument == "--version") return print(fmt::format("{} {}\n", program_, version()));
  }
  const std::vector<Given> given = split_arguments(arguments);
  const auto read = [&](const Given& g) { g.option->read(g.option->name, g.value); };
  for (const Given& g : given)
    if (g.option->sets(&preset_) || g.option->sets(&config_)) {
      read(g);
      given_.push_back(g.option->name);
    }
  const TypedValue typed = [&](std::string_view option) {
    const auto it = std::ranges::find(given, option, [](const Given& g) { return std::string_view(g.option->name); });
    return it == given.end() ? "" : it->option->is_switch() && it->value.empty() ? "true" : it->value;
  };
  if (usual_config_ && config_.empty() && given_.empty()) config_ = usual_config_(typed);
  if (preset_.empty() && config_.empty() && default_preset_) preset_ = default_preset_(typed);
  if (!preset_.empty()) apply_preset(preset_, "--preset");
  if (!config_.empty()) apply_preset_of(config_, typed);
  for (const auto& look : looks_) look();
  if (!config_.empty()) apply_config(config_);
  for (const Given& g : given) {
    read(g);
    given_.push_back(g.option->name);
    typed_.push_back(g.option->name);
  }
  for (const auto& check : rules_) check();
  for (const auto& set : derivations_) set();

  for (const Listing& listing : listings_)
    if (listing.wanted || (listing.about && !listing.about->empty())) return print(listing.text());
  if (print_config_) return print(config());
  for (const auto& act : actions_)
    if (const std::optional<int> status = act()) return status;
  return std::nullopt;
}

std::string Cli::settings() const {
  Json settings = Json::object();
  for (const CliOption& option : options_)
    if (option.scope() != Scope::call) settings[option.key()] = option.json().json;
  return settings.dump();
}

std::string Cli::fixed_settings() const {
  Json settings = Json::object();
  for (const CliOption& option : options_)
    if (option.decides_results()) settings[option.key()] = option.json().json;
  return settings.dump();
}

std::string Cli::config() const {
  struct Line {
    std::string section, setting, help;
  };
  const auto comment = [&](const CliOption& o) {
    if (o.source.empty()) return o.help;
    return fmt::format("{} [{}]", o.help,
                       o.text() == o.explained ? o.source : fmt::format("given; {} sets {}", preset_, o.explained));
  };
  std::vector<Line> lines;
  for (const std::string& section : section_order())
    for (const CliOption& option : options_) {
      if (option.section != section || option.scope() == Scope::call) continue;
      lines.push_back({section, fmt::format("\"{}\": {}", option.key(), spaced(option.json().json)), comment(option)});
    }
  std::string text = fmt::format("// Settings of {} {}; use them with --config FILE\n{{\n", program_, version());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i == 0 || lines[i].section != lines[i - 1].section)
      text += fmt::format("{}  // {}\n", i == 0 ? "" : "\n", lines[i].section);
    text += fmt::format("  {:<34}  // {}\n", lines[i].setting + (i + 1 < lines.size() ? "," : ""), lines[i].help);
  }
  text += "}\n";
  if (!config_note_) return text;
  std::istringstream note(config_note_());
  for (std::string line; std::getline(note, line);) text += (line.empty() ? "//" : "// " + line) + "\n";
  return text;
}

std::string Cli::difference(const std::string& recorded_settings) const {
  const Json ours = Json::parse(settings()), recorded = Json::parse(recorded_settings);
  for (const CliOption& option : options_) {
    const std::string key = option.key();
    if (!option.decides_results()) continue;
    if (!recorded.contains(key)) {
      // The program got the option after the record was made. The default must keep the behaviour of before.
      if (!given(option.name)) continue;
      return fmt::format("{} is not recorded there and {} here", key, ours[key].dump());
    }
    if (recorded[key] != ours[key])
      return fmt::format("{} is {} there and {} here", key, recorded[key].dump(), ours[key].dump());
  }
  for (const auto& [key, value] : recorded.items())
    if (!ours.contains(key)) return fmt::format("{} is {} there and unknown here", key, value.dump());
  return "";
}

}  // namespace plumb::lab
