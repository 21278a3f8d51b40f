// What a study declares: programs write it down through Study (study.h); plan.h, outputs.h and runner.h read it.
#pragma once

#include <concepts>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/options_by_point.h"
#include "experiments/lab/plot/figure.h"
#include "experiments/lab/plot/section.h"
#include "experiments/lab/report/curves.h"
#include "experiments/lab/report/results.h"
#include "experiments/lab/stats/claims.h"
#include "experiments/lab/stats/reference.h"
#include "experiments/lab/study/axis.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

// One of the searches of a study with searched axes: it has a value on every other axis but the seed, and names its
// next trials from those that it has.
struct Search {
  Point point;  // on the axes that are not searched, without the seed
  std::vector<const Record*>
      so_far;  // its trials, all ended (ok, diverged or hopeless), in the order in which they were named, seed by seed
  int round = 0;  // how often it was asked before
};
// The points that are wanted next, each with a value on every searched axis; they are run for every seed, or for the
// seed alone that a point has. An empty result ends the search. It must depend on `search` only, so that a resumed
// sweep takes the same path. A trial that fails ends its search until --resume has tried it again.
using NextPoints = std::function<std::vector<Point>(const Search& search)>;

// How a study shows its results: the page, the table on the terminal, and the array that --json prints.
struct Display {
  Report report;
  std::string terminal;
  std::string json_rows = {};  // "": a row a trial
};
Display display_of(const StudyResults& results);  // of any study

// What a study makes of its results besides the files of every study.
class Output {
 public:
  using Value = std::variant<Section, Display, std::string>;
  // A function that returns a Section (shown in table, report and results.md) or a Display (in place of the library's).
  template <class F>
  requires std::invocable<F, const StudyResults&> Output(F f)
      : make_([f = std::move(f)](const StudyResults& r) { return Value(f(r)); }), kind_(kind_of<F>) {}
  // A further file in the study's folder.
  template <class F>
  Output(std::string file, F text)
      : file_(std::move(file)), make_([text = std::move(text)](const StudyResults& r) { return Value(text(r)); }) {}

  enum class Kind { section, display, file };
  Kind kind() const { return kind_; }
  const std::string& file() const { return file_; }
  Value make(const StudyResults& results) const { return make_(results); }

 private:
  template <class F>
  static constexpr Kind kind_of =
      std::is_same_v<std::invoke_result_t<F, const StudyResults&>, Section> ? Kind::section : Kind::display;
  std::string file_;
  std::function<Value(const StudyResults&)> make_;
  Kind kind_ = Kind::file;
};

struct StudyParts {
  bool network = true;       // options of the ViT that Trial::vit makes
  bool optimization = true;  // and of how Trial::train trains
};

struct StudyDeclaration {
  StudyDeclaration(std::string name_, std::string question_, StudyParts parts_)
      : name(name_), question(question_), parts(parts_), cli(std::move(name_), std::move(question_)) {
    if (parts.network) options.warmup.reset();
  }
  StudyDeclaration(const StudyDeclaration&) = delete;  // options and axes point into it
  StudyDeclaration& operator=(const StudyDeclaration&) = delete;

  const std::string name, question;
  const StudyParts parts;
  std::string title = {};  // of the report: "Depth stability", on the data; "": the name
  Cli cli;
  StudyOptions options = {};
  StudyChoices choices = {};
  NetworkOptions network = {};
  OptimizationOptions optimization = {};
  OptionsByPoint by_point{options, network, optimization};
  std::deque<AxisData> axes = {};  // a deque keeps references valid
  NextPoints next = {};
  bool best_lr = false;  // --best-lr: the axis lr is searched
  std::function<bool(const Point&)> wanted = {};
  std::function<void(const ImageSet&)> check = {};
  std::function<void(Trial&)> body = {};
  std::vector<Output> outputs = {};
  std::vector<Claim> claims = {};
  std::vector<Published> published = {};
  std::vector<Reference> references = {};
  Judging judging = {};
  std::vector<std::string> columns = {}, show = {};
  std::vector<std::string> own_settings = {};  // decided by options of the study's own
  std::vector<std::string> notes = {};         // lines on stderr before the first trial

  const AxisData* axis(const std::string& axis_name) const {
    for (const AxisData& a : axes)
      if (a.name == axis_name) return &a;
    return nullptr;
  }
};

}  // namespace plumb::lab
