// One option of a command line: the variable that it sets, the values that it accepts, and its value as text and JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "experiments/lab/cli/enum_variable.h"
#include "experiments/lab/record/point.h"

namespace plumb::lab {

// The effect of an option's value. --resume and bin/merge require equal values of options of the scopes trial and run.
enum class Scope {
  trial,  // the result of a trial; an axis of a study may set the option, so that trials have different values
  run,    // the results of all trials alike; an axis cannot set the option
  study,  // the set of trials, not the result of one; --resume may change the value
  speed,  // the speed, not the results; recorded in run.json, but free to change (also used for the preset's name)
  call    // the present call only; stored neither in a configuration file nor in run.json
};

// An option of a Cli. The member functions that return CliOption& restrict the accepted values and can be chained.
struct CliOption {
  // The variable that the option sets; its value at declaration is the default. The type decides the syntax:
  //   bool      a switch without a value
  //   vector    an axis, "6,24,48"; integers may also be ranges that include both ends, "0..2,7"
  //   optional  a value, or a word that means "no value" (or_word)
  //   enum      the name of a value (one_of)
  using Field =
      std::variant<bool*, std::int64_t*, double*, std::string*, std::optional<std::int64_t>*, std::optional<double>*,
                   std::vector<std::int64_t>*, std::vector<double>*, std::vector<std::string>*, EnumVariable>;

  CliOption(std::string name_, std::string section_, Field field_, std::string help_);

  std::string name;  // "--drop-key"
  std::string section;
  Field field;
  std::string help;
  std::string source = {}, explained = {};  // where a value comes from, and that value as text(); set by Cli::explain

  // Bounds of the number, or of each number of an axis. at_least and at_most include the bound, above and below do not.
  CliOption& at_least(double low) { return bound(lowest_, low, low_open_, false); }
  CliOption& above(double low) { return bound(lowest_, low, low_open_, true); }
  CliOption& at_most(double high) { return bound(highest_, high, high_open_, false); }
  CliOption& below(double high) { return bound(highest_, high, high_open_, true); }
  // Accepts only these names; an axis also accepts "all". Messages use `noun`: "unknown gate 'x'".
  CliOption& one_of(std::string noun, std::vector<std::string> names);
  // For an enum. Accepts the names of all values, of the given `values` in this order, or, for an enum that declares no
  // names, the given `names`, where named(name) returns the value of a name.
  CliOption& one_of(std::string noun);
  template <NamedEnum E>
  CliOption& one_of(std::string noun, const std::vector<E>& values) {
    return one_of_values(std::move(noun), EnumVariable::names(values), typeid(E));
  }
  template <class E>
  CliOption& one_of(std::string noun, const std::vector<std::string>& names, E (*named)(const std::string&)) {
    EnumVariable::Names values;
    for (const std::string& name_ : names) values.emplace_back(name_, static_cast<long long>(named(name_)));
    return one_of_values(std::move(noun), std::move(values), typeid(E));
  }
  // Accepts residual methods: nn::method_names(), also with constants, NAME:CONSTANT=VALUE[:CONSTANT=VALUE..]. Stores
  // nn::Method::label(), so that equal methods have equal texts. With `as_typed` it stores the text as typed.
  CliOption& one_of_methods(std::string noun, bool as_typed = false);
  // The word for an empty optional, such as "all" for --threads.
  CliOption& or_word(std::string word);
  // Makes an axis a pair of names. Both may be equal and may be typed as two words: --preset-diff A B.
  CliOption& pair();
  // The placeholder of the value in --help, such as FILE.
  CliOption& value_name(std::string name);
  // Sets the scope; the default is Scope::trial.
  CliOption& scope(Scope what);

  std::string key() const;                                                 // the option's key in JSON: "drop_key"
  bool is_switch() const { return std::holds_alternative<bool*>(field); }  // whether the variable is a bool
  // Whether the option is a switch that is on; --no-NAME turns it off.
  bool is_on() const { return is_switch() && *std::get<bool*>(field); }
  bool is_axis() const;                   // whether the variable is a vector
  bool is_pair() const { return pair_; }  // whether pair() was called
  Scope scope() const { return scope_; }
  // Whether trials with different values of the option have different results.
  bool decides_results() const { return scope_ == Scope::trial || scope_ == Scope::run; }
  const std::vector<std::string>& names() const { return names_; }  // the accepted names; empty: any text
  std::string value_name() const;                                   // the placeholder: "N", "N,..", "NAME", "FILE"

  // Set the variable from text of the command line or from JSON. If the value is wrong, they throw UsageError with a
  // message that begins with `where`: "--batch", "quick.json: batch".
  void read(const std::string& where, const std::string& text);
  void read_json(const std::string& where, const std::string& json);
  // Checks the present value of the variable like a value from the user. For values that a program sets.
  void validate(const std::string& where);

  // Sets the same variable in `copy`, a copy of the struct `original`. Does nothing if the variable is not part of
  // `original`. Throws UsageError if the option does not accept the value.
  template <class Struct>
  void set_in_copy(const Struct& original, Struct& copy, const AxisValue& value) const {
    set_at(&original, &copy, sizeof(Struct), value);
  }

  std::string text() const;  // the value as typed on a command line: "6,24"; "" if it is empty
  std::string json() const;  // the value as JSON: "[6,24]"

 private:
  CliOption& one_of_values(std::string noun, const EnumVariable::Names& values, const std::type_info& type);
  bool takes_text() const;
  std::string name_of_value(const EnumVariable& variable) const;
  long long value_named(const EnumVariable& variable, const std::string& where, const std::string& name) const;
  CliOption& bound(double& limit, double value, bool& open, bool is_open);
  void set_at(const void* original, void* copy, std::size_t size, const AxisValue& value) const;
  template <class T>
  void check_bounds(const std::string& where, T value) const;
  void check_name(const std::string& where, const std::string& name) const;
  void read_items(const std::string& where, std::vector<std::string> items);
  std::string expected() const;  // the accepted values, for messages: "an integer of at least 1"
  template <class T>
  T item(const std::string& where, const std::string& text) const;
  template <class T>
  std::vector<T> axis(const std::string& where, const std::vector<std::string>& items) const;
  [[noreturn]] void refuse(const std::string& where, const std::string& got) const;
  [[noreturn]] void refuse_name(const std::string& where, const std::string& got) const;

  double lowest_ = -std::numeric_limits<double>::infinity(), highest_ = std::numeric_limits<double>::infinity();
  bool low_open_ = false, high_open_ = false;
  std::string noun_;
  std::vector<std::string> names_;
  std::string word_;
  std::string value_name_;
  bool pair_ = false, methods_ = false, as_typed_ = false;
  Scope scope_ = Scope::trial;
};

}  // namespace plumb::lab
