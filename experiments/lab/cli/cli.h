// The command line of an experiment. One table of options feeds parsing, --help, --print-config, --config and the
// settings in run.json.
//
//   Cli cli("depth_stability", "Trains residual gates at several depths and reports which of them train.");
//   cli.section("Axes");
//   cli.option("--depths", &o.depths, "Residual blocks").at_least(1);
//   cli.preset("quick", "two depths, one seed", [&] { o.depths = {6, 48}; });
//   if (cli.parse(argc, argv) == Action::done) return 0;
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/lab/cli/option.h"
#include "experiments/lab/console.h"

namespace plumb::lab {

enum class Action { run, done };  // done: what was asked for (--help, --version, ...) is printed

class Cli {
 public:
  // The name of the experiment stands in run.json and decides what --resume takes; the program is what was called
  // (parse).
  Cli(std::string experiment, std::string summary);
  Cli(const Cli&) = delete;  // the table points into it
  Cli& operator=(const Cli&) = delete;

  // Options that follow stand under this title in --help; a title may come again.
  void section(const std::string& title);
  static constexpr const char* instead = "Instead of a run";  // listings stand there, and what else prints and ends
  // Declares an option that sets *field, which holds the default now and must outlive the Cli. Bounds and names:
  // cli_option.h.
  CliOption& option(const std::string& name, CliOption::Field field, const std::string& help);
  // A later option() of this name is not declared: whoever sets its variable is another option, such as an axis, or the
  // program. Who gives it all the same reads "--pool is what this program varies; " and the advice, where there is one.
  void leave_out(const std::string& name, const std::string& advice = "") { left_out_.emplace_back(name, advice); }
  const std::deque<CliOption>& left_out() const { return not_declared_; }  // of those, what was to be declared
  // Words without an option, such as "DIR..", for a program that is about files: it has no settings, so no --config and
  // no --print-config.
  void words(const std::string& title, std::vector<std::string>* words);
  // A switch that prints `text()` to stdout and ends, such as --list-gates.
  void listing(const std::string& name, const std::string& help, std::function<std::string()> text);
  // The same about names given with it, such as --preset-diff A B.
  CliOption& listing(const std::string& name, std::vector<std::string>* about, const std::string& help,
                     std::function<std::string()> text);
  // A named set of values, for --preset, which the first one declares. `set` may explain() them. The name is recorded
  // with the settings, so that a configuration comes back with its preset; it decides nothing by itself.
  void preset(const std::string& name, const std::string& help, std::function<void()> set);
  // Applies a preset now, to stand where the command line names none. Its options and itself are declared before.
  void default_preset(const std::string& name);
  // Says where the value that a preset or a rule has just set comes from: --print-config shows it. A value that is
  // given instead, on the command line or in --config, is shown as such.
  void explain(const std::string& option, const std::string& source);
  bool has(const std::string& option) const;  // whether there is such an option
  // Whether the command line or --config gave it, for rules that derive a value.
  bool given(const std::string& option) const;
  bool typed(const std::string& option) const;  // on the command line itself
  // Says in --help that a rule sets this option unless it is given, in place of a default that no run uses. It may be
  // declared later.
  void by_rule(const std::string& option) { by_rule_.push_back(option); }
  // Lines that --print-config shows below the settings.
  void config_note(std::function<std::string()> text) { config_note_ = std::move(text); }
  // Runs when the program and its presets have set their values, and before those that are given are read: for rules
  // about what a default was.
  void when_defaults_are_set(std::function<void()> look) { looks_.push_back(std::move(look)); }
  // Runs when all values are set; throws UsageError (usage_check) where values do not go together.
  void rule(std::function<void()> check);
  // Runs after all rules, in the order of the calls: derives values from others, where none was given.
  void derive(std::function<void()> set) { derivations_.push_back(std::move(set)); }
  // What the program may do instead of a run (--evaluate), after all that: if it returns a status, parse() returns
  // Action::done, and the program ends with status().
  void action(std::function<std::optional<int>()> act) { actions_.push_back(std::move(act)); }
  int status() const { return status_; }
  // A command line for the end of --help, without the program's name.
  void example(const std::string& arguments);

  // Sets the variables: flag beats --config beats --preset beats default. Throws UsageError for what is wrong on the
  // command line or in the configuration. The text of --help and the like goes to `out`.
  Action parse(int argc, const char* const* argv, std::FILE* out = stdout);

  const std::string& experiment() const { return experiment_; }
  const std::string& program() const {
    return program_;
  }  // as called, without its folder; the experiment's name before parse()
  const std::string& command_line() const { return command_line_; }  // quoted for a shell
  std::string settings() const;        // what a run depends on, as a JSON object in the order of declaration
  std::string fixed_settings() const;  // of these, what decides how each trial ends: the same in all that go together
  std::string config() const;          // settings() as a commented file for --config
  std::string help() const;            // with the values of now as defaults
  // "" when `recorded` settings give the results of ours; else the first that differs: "steps is 200 there and 100
  // here".
  std::string difference(const std::string& recorded) const;

 private:
  struct Preset {
    std::string name, help;
    std::function<void()> set;
  };
  struct Listing {
    bool wanted = false;
    std::vector<std::string>* about = nullptr;
    std::function<std::string()> text;
  };
  struct Given {
    CliOption* option;
    std::string value;
  };

  CliOption* find(std::string_view name);
  std::vector<std::string> section_order() const;
  std::vector<Given> split_arguments(const std::vector<std::string>& arguments);
  void apply_preset(const std::string& name, const std::string& where);
  void apply_preset_of(const std::string& config_file);
  void apply_config(const std::string& path);

  std::string experiment_, program_, summary_, section_, command_line_;
  std::deque<CliOption> options_;  // a deque keeps references valid
  std::deque<CliOption> not_declared_;
  std::vector<std::string> sections_, examples_;
  std::vector<std::pair<std::string, std::string>> left_out_;  // with the advice
  std::vector<Preset> presets_;
  std::deque<Listing> listings_;
  std::vector<std::function<void()>> rules_, derivations_, looks_;
  std::vector<std::function<std::optional<int>()>> actions_;
  int status_ = 0;
  std::function<std::string()> config_note_;
  std::vector<std::string> given_, typed_, by_rule_;  // given: typed, or in --config
  std::string words_title_;
  std::vector<std::string>* words_ = nullptr;
  bool help_ = false, version_ = false, print_config_ = false;
  std::string preset_, config_;
};

}  // namespace plumb::lab
