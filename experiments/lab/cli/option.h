// One option of a command line: the variable it sets, what it accepts, and how its value reads as text and as JSON.
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

// What the value of an option decides. --resume and bin/merge insist on equal values of the first two.
enum class Scope {
  trial,  // how a trial ends; an axis of a study may stand for the option, so that its trials differ
  run,    // how the trials end, alike for all trials of a run; no axis may stand for the option
  study,  // which trials there are, not how one ends; --resume may change it
  speed,  // how fast a run is; recorded and free to change, as is a preset's name (the values it sets are recorded)
  call    // about this call only; neither in a configuration nor in run.json
};

struct CliOption {
  // The variable; what it holds when declared is the default. bool is a switch without a value; vector is an axis:
  // "6,24,48", and for integers also ranges that include both ends: "0..2,7"; optional also takes a word for "none
  // given" (or_word); an enum takes the names of its values (one_of).
  using Field =
      std::variant<bool*, std::int64_t*, double*, std::string*, std::optional<std::int64_t>*, std::optional<double>*,
                   std::vector<std::int64_t>*, std::vector<double>*, std::vector<std::string>*, EnumVariable>;

  CliOption(std::string name_, std::string section_, Field field_, std::string help_);

  std::string name;  // "--drop-key"
  std::string section;
  Field field;
  std::string help;
  std::string source = {}, explained = {};  // where a value comes from, and which (as text()); set by Cli::explain

  // Bounds on the number, or on each number of an axis.
  CliOption& at_least(double low) { return bound(lowest_, low, low_open_, false); }
  CliOption& above(double low) { return bound(lowest_, low, low_open_, true); }
  CliOption& at_most(double high) { return bound(highest_, high, high_open_, false); }
  CliOption& below(double high) { return bound(highest_, high, high_open_, true); }
  // The names accepted; an axis also takes "all". `noun` is for messages: "unknown gate 'x'".
  CliOption& one_of(std::string noun, std::vector<std::string> names);
  // The names of an enum: of all its values; of some, in this order; or `names`, of an enum that declares none itself,
  // with the function that has the value of each.
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
  // Residual methods: nn::method_names(), each also with constants, NAME:CONSTANT=VALUE[:CONSTANT=VALUE..]. The value
  // becomes nn::Method::label(), so that equal methods are equal texts; or stays as it is typed, with its standard
  // values.
  CliOption& one_of_methods(std::string noun, bool as_typed = false);
  // The word for an empty optional, such as "all" for --threads.
  CliOption& or_word(std::string word);
  // An axis of two names, which may be the same and may also be typed as two words: --preset-diff A B.
  CliOption& pair();
  // What stands for the value in --help, such as FILE.
  CliOption& value_name(std::string name);
  CliOption& scope(Scope what);  // Scope::trial if it is not called

  std::string key() const;  // its name in JSON: "drop_key"
  bool is_switch() const { return std::holds_alternative<bool*>(field); }
  bool is_on() const {
    return is_switch() && *std::get<bool*>(field);
  }  // a switch that is set, and that --no-NAME sets back
  bool is_axis() const;
  bool is_pair() const { return pair_; }
  Scope scope() const { return scope_; }
  bool decides_results() const { return scope_ == Scope::trial || scope_ == Scope::run; }
  const std::vector<std::string>& names() const { return names_; }
  std::string value_name() const;  // "N", "N,...", "NAME"

  // Set the variable. `where` begins the message of the UsageError that a wrong value is: "--batch", "quick.json:
  // batch".
  void read(const std::string& where, const std::string& text);
  void read_json(const std::string& where, const std::string& json);
  // Reads the variable's own value again: for values that a program sets.
  void validate(const std::string& where);

  // Sets the variable's counterpart in a copy of the struct that holds the variable; nothing where `original` does not
  // hold it. Throws UsageError for a value that the option would refuse.
  template <class Struct>
  void set_in_copy(const Struct& original, Struct& copy, const AxisValue& value) const {
    set_at(&original, &copy, sizeof(Struct), value);
  }

  std::string text() const;  // as it is typed: "6,24"; "" for nothing
  std::string json() const;  // "[6,24]"

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
  std::string expected() const;  // "an integer of at least 1"
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
