// The command line of an experiment. One table of options is used for parsing, --help, --print-config, --config and the
// settings in run.json.
//
//   Cli cli("depth_stability", "Trains residual gates at several depths and reports which of them train.");
//   cli.section("Axes");
//   cli.option("--depths", &o.depths, "Residual blocks").at_least(1);
//   cli.preset("quick", "two depths, one seed", {{"--depths 6,48"}});
//   if (const std::optional<int> status = cli.parse(argc, argv)) return *status;
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

// A row of a preset: options with their values, and the source of these values, which --print-config shows. The value
// of a switch is true or false. An option without a value keeps its value, and gets the source. Without a source, the
// options are only set. For an option that Cli::leave_out() suppressed, only the variable is set, so that programs can
// share rows.
//   {"--dim 384 --heads 6", "facebookresearch/deit, models.py"}
struct Setting {
  std::string options;
  std::string source = {};
};
using Settings = std::vector<Setting>;  // the rows of a preset
// The rows of `a`, then those of `b`, which override them.
Settings operator+(Settings a, const Settings& b);

// The word as a user types it in a shell: in quotes if a shell would read it otherwise.
std::string shell_word(const std::string& word);

// Declares the options of a program, parses its command line, and prints help and settings.
class Cli {
 public:
  // `experiment` is the name of the experiment in run.json; --resume requires the same name. `summary` is the first
  // paragraph of --help. parse() takes the name of the program from argv.
  Cli(std::string experiment, std::string summary);
  Cli(const Cli&) = delete;  // not copyable, because the table of options holds pointers into the object
  Cli& operator=(const Cli&) = delete;

  // Begins a section of --help: the options that are declared next are listed under this title. A title may be used
  // more than once.
  void section(const std::string& title);
  // The title of the section for options that print something and end the program, such as listings.
  static constexpr const char* instead = "Instead of a run";
  // Declares an option that sets *variable, whose type decides the syntax (option.h). The present value of *variable is
  // the default. *variable must outlive the Cli. Bounds and accepted names are set on the returned option. Throws Error
  // if the name does not begin with -- or if the name is already declared.
  template <class T>
  CliOption& option(const std::string& name, T* variable, const std::string& help) {
    return add(CliOption(name, section_, variable, help));
  }
  // Suppresses a later option() of this name, because an axis or the program sets the variable of the option. If a user
  // gives the option and `advice` is not empty, the error is "--pool cannot be given, because this program varies it; "
  // and the advice. If `advice` is empty, the option is unknown.
  void leave_out(const std::string& name, const std::string& advice = "") { left_out_.emplace_back(name, advice); }
  // The options that leave_out() suppressed.
  const std::deque<CliOption>& left_out() const { return not_declared_; }
  // Accepts arguments that are not options, such as "DIR..", and appends them to *words. The Cli then has no --config
  // and no --print-config, because a program that works on files has no settings. `title` names the arguments in
  // --help.
  void words(const std::string& title, std::vector<std::string>* words);
  // Declares a switch, such as --list-gates, that prints the result of text() to stdout and ends the program.
  void listing(const std::string& name, const std::string& help, std::function<std::string()> text);
  // Declares a listing that takes names, such as --preset-diff A B, and stores the names in *about.
  CliOption& listing(const std::string& name, std::vector<std::string>* about, const std::string& help,
                     std::function<std::string()> text);
  // Declares a named set of values for --preset. The first call also declares the option --preset. Later rows override
  // earlier ones. `also` is called after the values are set, for settings that no option has. The name of the preset is
  // recorded with the settings, so that a configuration file selects the same preset again. Results depend only on the
  // values, not on the name. parse() throws Error if a row names an unknown option, and UsageError if an option does
  // not accept its value.
  //   cli.preset("quick", "two depths, one seed", {{"--depths 6,48 --seeds 0"}});
  void preset(const std::string& name, const std::string& help, Settings settings, std::function<void()> also = {});
  // The value of an option in the present call ("true" for a switch), or "" for an option that is not given.
  using TypedValue = std::function<std::string(std::string_view option)>;
  // Registers a function that names the preset of a call without --preset, or returns "". It gets the values of the
  // command line, or else of --config.
  void default_preset(std::function<std::string(const TypedValue&)> name) { default_preset_ = std::move(name); }
  // Records the source of a value that a preset or a rule has just set. --print-config shows the source. If the user
  // gives another value, on the command line or in --config, --print-config shows this fact instead.
  void explain(const std::string& option, const std::string& source);
  // Sets the option to the value of an axis (CliOption::set). Without an option of this name, nothing happens.
  void set(const std::string& option, const AxisValue& value);
  bool has(const std::string& option) const;  // whether an option of this name is declared
  // The declared option of this name; null if there is none. The option keeps its address.
  const CliOption* declared(std::string_view name) const;
  // Whether the user gives the option, on the command line or in --config. Rules that derive values call given().
  bool given(const std::string& option) const;
  bool typed(const std::string& option) const;  // whether the user gives the option on the command line
  const std::vector<std::string>& typed_options() const { return typed_; }  // the options for which typed() is true
  // The options that name a file or a folder and have a value from --config, not from the command line.
  std::vector<const CliOption*> paths_in_config() const;
  // Sets the text that --print-config prints below the settings, as comments.
  void config_note(std::function<std::string()> text) { config_note_ = std::move(text); }
  // Registers a function for rules that need the defaults. parse() calls `look` after the program and its presets have
  // set their values, and before it reads the values that the user gives.
  void when_defaults_are_set(std::function<void()> look) { looks_.push_back(std::move(look)); }
  // Registers a check that parse() calls after all values are set. If values do not fit together, `check` must throw
  // UsageError (usage_check).
  void rule(std::function<void()> check);
  // Registers a function that derives missing values from the values that the user gave. parse() calls these functions
  // after all rules, in the order of registration.
  void derive(std::function<void()> set) { derivations_.push_back(std::move(set)); }
  // Registers an action that replaces the study, such as --evaluate. parse() calls `act` last, and returns the exit
  // status that `act` returns, if any.
  void action(std::function<std::optional<int>()> act) { actions_.push_back(std::move(act)); }
  // Adds examples to the end of --help: command lines without the name of the program.
  void examples(const std::vector<std::string>& arguments);

  // Registers a function that names a file of settings for a call without --config and --preset, or returns "". It gets
  // the values of the command line.
  void usual_config(std::function<std::string(const TypedValue&)> file) { usual_config_ = std::move(file); }

  // Reads the command line and sets the variables of the options. Values of the command line override values of
  // --config, which override values of --preset, which override the defaults. Throws UsageError if the command line or
  // the configuration file is wrong. Returns an exit status if the program must end with it, because the call asked
  // only for a text (--help, --version, ...), which is printed to `out`, or for an action().
  std::optional<int> parse(int argc, const char* const* argv, std::FILE* out = stdout);

  const std::string& experiment() const { return experiment_; }  // the argument of the constructor
  // The name of the running program without its folder. Before parse(), the result is the name of the experiment.
  const std::string& program() const { return program_; }
  const std::string& command_line() const { return command_line_; }  // the call, quoted for a shell
  // The values of all options except options of Scope::call, as the text of a JSON object in the order of declaration.
  std::string settings() const;
  // The part of settings() that decides the results of trials (CliOption::decides_results). Trials with different fixed
  // settings must not be mixed in one study.
  std::string fixed_settings() const;
  std::string config() const;  // settings() as a file for --config, with comments
  std::string help() const;    // the text of --help; the defaults are the present values
  // Compares `recorded` settings with the present settings. Returns "" if both settings give the same results.
  // Otherwise returns the first difference, such as "steps is 200 there and 100 here".
  std::string difference(const std::string& recorded) const;

 private:
  struct Preset {
    std::string name, help;
    Settings settings;
    std::function<void()> also;
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

  CliOption& add(CliOption option);
  CliOption* find(std::string_view name);
  std::vector<std::string> section_order() const;
  std::vector<Given> split_arguments(const std::vector<std::string>& arguments);
  void apply_preset(const std::string& name, const std::string& where);
  void apply(const std::string& preset, const Setting& row);
  void apply_preset_of(const std::string& config_file, const TypedValue& typed);
  void apply_config(const std::string& path);

  std::string experiment_, program_, summary_, section_, command_line_;
  std::deque<CliOption> options_;  // a deque, because references to elements must stay valid
  std::deque<CliOption> not_declared_;
  std::vector<std::string> sections_, examples_;
  std::vector<std::pair<std::string, std::string>> left_out_;  // name and advice of each option
  std::vector<Preset> presets_;
  std::deque<Listing> listings_;
  std::vector<std::function<void()>> rules_, derivations_, looks_;
  std::vector<std::function<std::optional<int>()>> actions_;
  std::function<std::string()> config_note_;
  std::function<std::string(const TypedValue&)> usual_config_, default_preset_;
  std::vector<std::string> given_, typed_;  // given_: options from the command line or --config
  std::string words_title_;
  std::vector<std::string>* words_ = nullptr;
  bool help_ = false, version_ = false, print_config_ = false;
  std::string preset_, config_;
};

}  // namespace plumb::lab
