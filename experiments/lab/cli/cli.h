// The command line of an experiment. One table of options serves parsing, --help, --print-config, --config and the
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

// Result of Cli::parse. run: the program must run the study. done: the call asked only for text (--help, --version,
// ...) or for another action, which is finished.
enum class Action { run, done };

// Declares the options of a program, parses its command line, and prints help and settings.
class Cli {
 public:
  // `experiment` is the name of the experiment in run.json; --resume compares it. The name of the program comes from
  // argv (parse). `summary` is the first paragraph of --help.
  Cli(std::string experiment, std::string summary);
  Cli(const Cli&) = delete;  // the table of options holds pointers into the object
  Cli& operator=(const Cli&) = delete;

  // Lists the options declared from here on under this title in --help. A title may be used more than once.
  void section(const std::string& title);
  // Section of the listings and of other options that print something and end the program.
  static constexpr const char* instead = "Instead of a run";
  // Declares an option that sets *field. The present value of *field is the default; *field must outlive the Cli. The
  // returned option takes bounds and names (option.h). Throws Error if the name does not begin with -- or is already
  // declared.
  CliOption& option(const std::string& name, CliOption::Field field, const std::string& help);
  // Suppresses a later option() of this name, because an axis or the program sets its variable. If a user gives the
  // option anyway and `advice` is not empty, the error is "--pool cannot be given, because this program varies it; "
  // and the advice. Without advice the option is unknown.
  void leave_out(const std::string& name, const std::string& advice = "") { left_out_.emplace_back(name, advice); }
  // The options that leave_out() suppressed.
  const std::deque<CliOption>& left_out() const { return not_declared_; }
  // Accepts arguments without an option, such as "DIR..", and appends them to *words. For a program that works on files
  // and has no settings: removes --config and --print-config. `title` names the arguments in --help.
  void words(const std::string& title, std::vector<std::string>* words);
  // Declares a switch that prints `text()` to stdout and ends the program, such as --list-gates.
  void listing(const std::string& name, const std::string& help, std::function<std::string()> text);
  // Declares a listing that takes names, such as --preset-diff A B, and stores them in *about.
  CliOption& listing(const std::string& name, std::vector<std::string>* about, const std::string& help,
                     std::function<std::string()> text);
  // Declares a named set of values for --preset; the first call also declares --preset. `set` assigns the values and
  // may explain() them. The preset's name is recorded with the settings, so that a configuration file selects the same
  // preset again; results depend only on the values.
  void preset(const std::string& name, const std::string& help, std::function<void()> set);
  // Applies a preset now; it holds unless the command line names another. Declare the preset and its options before.
  void default_preset(const std::string& name);
  // Records the source of the value that a preset or a rule has just set; --print-config shows it. If the user gives
  // another value, on the command line or in --config, --print-config says so instead.
  void explain(const std::string& option, const std::string& source);
  bool has(const std::string& option) const;  // whether the option is declared
  // Whether the command line or --config gives the option. For rules that derive a value.
  bool given(const std::string& option) const;
  bool typed(const std::string& option) const;  // whether the command line itself gives the option
  // Shows "by rule" instead of the default in --help, for an option that a rule sets unless the user gives it. The
  // option may be declared later.
  void by_rule(const std::string& option) { by_rule_.push_back(option); }
  // Text that --print-config prints below the settings, as comments.
  void config_note(std::function<std::string()> text) { config_note_ = std::move(text); }
  // Runs after the program and its presets have set their values and before parse() reads the values that the user
  // gives. For rules that need the defaults.
  void when_defaults_are_set(std::function<void()> look) { looks_.push_back(std::move(look)); }
  // Runs after all values are set. Must throw UsageError (usage_check) if values do not fit together.
  void rule(std::function<void()> check);
  // Runs after all rules, in the order of the calls. Derives values that the user did not give from other values.
  void derive(std::function<void()> set) { derivations_.push_back(std::move(set)); }
  // Runs last, for an action that replaces the study (--evaluate). If `act` returns a status, parse() returns
  // Action::done and status() returns that status, with which the program must end.
  void action(std::function<std::optional<int>()> act) { actions_.push_back(std::move(act)); }
  int status() const { return status_; }
  // Adds an example to the end of --help: a command line without the program's name.
  void example(const std::string& arguments);

  // Sets the variables. The command line overrides --config, --config overrides --preset, and --preset overrides the
  // defaults. Throws UsageError if the command line or the configuration file is wrong. Prints --help and other texts
  // to `out`.
  Action parse(int argc, const char* const* argv, std::FILE* out = stdout);

  const std::string& experiment() const { return experiment_; }  // as given to the constructor
  // The name of the program as it was called, without its folder. Before parse(): the experiment's name.
  const std::string& program() const { return program_; }
  const std::string& command_line() const { return command_line_; }  // quoted for a shell
  // The values of all options except those of Scope::call, as a JSON object in the order of declaration.
  std::string settings() const;
  // The part of settings() that decides the results of trials (CliOption::decides_results). Trials with different fixed
  // settings must not be mixed.
  std::string fixed_settings() const;
  std::string config() const;  // settings() as a commented file for --config
  std::string help() const;    // the text of --help, with the present values as defaults
  // Compares `recorded` settings with the present ones. Returns "" if both give the same results, otherwise the first
  // difference: "steps is 200 there and 100 here".
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
  std::vector<std::pair<std::string, std::string>> left_out_;  // name and advice
  std::vector<Preset> presets_;
  std::deque<Listing> listings_;
  std::vector<std::function<void()>> rules_, derivations_, looks_;
  std::vector<std::function<std::optional<int>()>> actions_;
  int status_ = 0;
  std::function<std::string()> config_note_;
  std::vector<std::string> given_, typed_, by_rule_;  // given_: on the command line or in --config
  std::string words_title_;
  std::vector<std::string>* words_ = nullptr;
  bool help_ = false, version_ = false, print_config_ = false;
  std::string preset_, config_;
};

}  // namespace plumb::lab
