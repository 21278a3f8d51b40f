// One option of a command line: the variable that the option sets, the values that the option accepts, and the present
// value as text and as JSON.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "experiments/lab/cli/enum_variable.h"
#include "experiments/lab/record/point.h"

namespace plumb::lab {

class Cli;
struct JsonValue;  // record/json_value.h

// The scope of an option: the things that its value affects. --resume and bin/merge require equal values for options of
// the scopes trial and run.
enum class Scope {
  trial,  // the result of a trial; an axis may set the option, so values may differ between trials
  run,    // the results of all trials; an axis cannot set the option
  study,  // the set of trials, but not the result of any trial; --resume may change the value
  speed,  // the speed, but not the results; run.json records the value, but calls may change it
  call    // only the present call; neither a configuration file nor run.json stores the value
};

// An option of a Cli, and the variable that the option sets. The member functions that return CliOption& restrict the
// accepted values; their calls can be chained. The type of the variable decides the syntax:
//   bool      a switch without a value
//   vector    an axis, "6,24,48"; integers may also be ranges that include both ends, "0..2,7"
//   optional  a value, or a word that means "no value" (or_word)
//   enum      the name of a value (one_of)
// All other variables are of the type std::int64_t, double or std::string, which a vector or an optional may have.
struct CliOption {
  std::string name;  // such as "--drop-key"
  std::string section;
  std::string help;
  std::string source = {}, explained = {};  // set by Cli::explain(): the source of a value, and this value as text()

  // These functions set bounds for the number, or for each number of an axis. at_least() and at_most() include the
  // bound; above() and below() exclude it.
  CliOption& at_least(double low) { return bound(lowest_, low, low_open_, false); }
  CliOption& above(double low) { return bound(lowest_, low, low_open_, true); }
  CliOption& at_most(double high) { return bound(highest_, high, high_open_, false); }
  CliOption& below(double high) { return bound(highest_, high, high_open_, true); }
  // Accepts only the given names; an axis also accepts "all". Messages call a value `noun`, as in "unknown gate 'x'".
  CliOption& one_of(std::string noun, std::vector<std::string> names);
  // For an option of enum type. The first function accepts the names of all values. The second function accepts the
  // names of `values`, in this order.
  CliOption& one_of(std::string noun);
  template <NamedEnum E>
  CliOption& one_of(std::string noun, const std::vector<E>& values) {
    return one_of_values(std::move(noun), EnumVariable::names(values), typeid(E));
  }
  // Accepts residual methods: nn::method_names(), with or without constants, as NAME:CONSTANT=VALUE[:CONSTANT=VALUE..].
  // The option stores nn::Method::label(), so that equal methods have equal texts. If `as_typed` is true, the option
  // stores the text as typed.
  CliOption& one_of_methods(bool as_typed = false);
  // Sets the word for an optional without a value, such as "all" for --threads.
  CliOption& or_word(std::string word);
  // Makes an axis a pair of names. The two names may be equal, and may be typed as two words: --preset-diff A B.
  CliOption& pair();
  // Lets a list have a value more than once, such as the widths of layers.
  CliOption& may_repeat();
  // Lets an axis be an empty list in a configuration file, which means that the user gives no values.
  CliOption& may_be_empty();
  // Sets the placeholder of the value in --help, such as HASH.
  CliOption& value_name(std::string name);
  // Says that the value is the path of a file or a folder, and sets its placeholder, such as FILE or DIR.
  CliOption& path(std::string name);
  // Sets the scope; the default is Scope::trial.
  CliOption& scope(Scope what);

  std::string key() const;                                                  // the key of the option in JSON: "drop_key"
  bool is_switch() const { return std::holds_alternative<bool*>(field_); }  // whether the variable is a bool
  // Whether the option is a switch that is on. --no-NAME turns such a switch off.
  bool is_on() const { return is_switch() && *std::get<bool*>(field_); }
  bool is_axis() const;                   // whether the variable is a vector
  bool is_pair() const { return pair_; }  // whether pair() was called
  bool is_path() const { return path_; }  // whether path() was called
  Scope scope() const { return scope_; }
  // Whether trials with different values of this option have different results.
  bool decides_results() const { return scope_ == Scope::trial || scope_ == Scope::run; }
  const std::vector<std::string>& names() const { return names_; }  // the accepted names; empty: any text is accepted
  std::string value_name() const;                                   // the placeholder: "N", "N,..", "NAME", "FILE"

  // Sets the variable from text of the command line. If the value is wrong, throws UsageError with a message that
  // begins with `where`, such as "--batch".
  void read(const std::string& where, const std::string& text);
  // Checks a value that a program has assigned to the variable, with the same rules as for a value of the user.
  void validate(const std::string& where);

  // A value for an axis as the option stores it: a residual method as its label. Throws UsageError if the option does
  // not accept the value.
  AxisValue accepted(const AxisValue& value) const;
  // Whether a number is within the bounds of the option.
  bool accepts(double number) const;
  // Sets the variable to the value of an axis. Throws UsageError if the option does not accept the value.
  void set(const AxisValue& value);

  std::string text() const;  // the value as typed on a command line: "6,24"; "" for an empty value

 private:
  friend Cli;
  using Field =
      std::variant<bool*, std::int64_t*, double*, std::string*, std::optional<std::int64_t>*, std::optional<double>*,
                   std::vector<std::int64_t>*, std::vector<double>*, std::vector<std::string>*, EnumVariable>;

  CliOption(std::string name_, std::string section_, Field field, std::string help_);
  bool sets(Field field) const { return field_ == field; }
  void read_json(const std::string& where, const JsonValue& value);  // read(), from JSON
  JsonValue json() const;                                            // the value as JSON: [6,24]
  CliOption& one_of_values(std::string noun, const EnumVariable::Names& values, const std::type_info& type);
  bool takes_text() const;
  std::string name_of_value(const EnumVariable& variable) const;
  long long value_named(const EnumVariable& variable, const std::string& where, const std::string& name) const;
  CliOption& bound(double& limit, double value, bool& open, bool is_open);
  template <class T>
  void check_bounds(const std::string& where, T value) const;
  void check_name(const std::string& where, const std::string& name) const;
  void read_items(const std::string& where, std::vector<std::string> items);
  // The accepted values, for messages: "an integer of at least 1". `all_bounds`: with the bounds of 64-bit integers.
  std::string expected(bool all_bounds = false) const;
  template <class T>
  T item(const std::string& where, const std::string& text) const;
  template <class T>
  std::vector<T> axis(const std::string& where, const std::vector<std::string>& items) const;
  [[noreturn]] void refuse(const std::string& where, const std::string& got, bool all_bounds = false) const;
  [[noreturn]] void refuse_name(const std::string& where, const std::string& got) const;

  Field field_;
  double lowest_ = -std::numeric_limits<double>::infinity(), highest_ = std::numeric_limits<double>::infinity();
  bool low_open_ = false, high_open_ = false;
  std::string noun_;
  std::vector<std::string> names_;
  std::string word_;
  std::string value_name_;
  bool pair_ = false, path_ = false, methods_ = false, as_typed_ = false, may_be_empty_ = false, may_repeat_ = false;
  Scope scope_ = Scope::trial;
};

}  // namespace plumb::lab
