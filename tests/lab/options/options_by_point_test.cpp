// Tests of the options of one trial.
#include "experiments/lab/options/options_by_point.h"

#include <array>

#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
using test::error_of;

namespace {

enum class CoatColour { red, green };
constexpr auto names_of(CoatColour) { return std::array{"red", "green"}; }

// A group with an option of each type that an axis can set.
struct Coating {
  CoatColour colour = CoatColour::red;
  std::string brush = "fine";
  std::int64_t coats = 1;
  double share = 0.5;
  std::optional<double> drying = {};

  void declare(Cli& cli) {
    cli.option("--colour", &colour, "CoatColour").one_of("colour");
    cli.option("--brush", &brush, "Brush").one_of("brush", {"fine", "broad"});
    cli.option("--coats", &coats, "Coats").at_least(1);
    cli.option("--share", &share, "Share").at_least(0).at_most(1);
    cli.option("--drying", &drying, "Hours").above(0).or_word("none");
  }
};

}  // namespace

TEST_CASE("the options of a trial have the values of its axes, and those of the call stay") {
  Coating call;
  call.coats = 2;
  OptionsByPoint options;
  options.add(call);
  for (const char* axis : {"colour", "brush", "coats", "share", "drying"}) options.bind(axis, option_of_axis(axis));
  const auto at = [&](const Point& point) { return options.at<Coating>(point); };

  const Coating plain = at({});
  CHECK((plain.colour == CoatColour::red && plain.coats == 2 && !plain.drying));
  const Coating all =
      at({{"colour", "green"}, {"brush", "broad"}, {"coats", std::int64_t{3}}, {"share", 1.0}, {"drying", 2.5}});
  CHECK((all.colour == CoatColour::green && all.brush == "broad" && all.coats == 3 && all.share == 1 &&
         all.drying == 2.5));
  call.drying = 1;
  CHECK(at({{"drying", "none"}}).drying == std::nullopt);
  CHECK((call.colour == CoatColour::red && call.brush == "fine" && call.coats == 2 && call.drying == 1));

  CHECK(error_of([&] { at({{"colour", "gren"}}); }) == "--colour: unknown colour 'gren'; did you mean 'green'?");
  CHECK(error_of([&] { at({{"colour", std::int64_t{1}}}); }) == "--colour expects text, got 1");
  CHECK(error_of([&] { at({{"coats", std::int64_t{0}}}); }) == "--coats expects an integer of at least 1, got 0");
  CHECK(error_of([&] { at({{"coats", 1.5}}); }) == "--coats expects an integer of at least 1, got '1.5'");
  CHECK_NOTHROW(options.check({{"coats", std::int64_t{1}}}));
  CHECK(error_of([&] { options.check({{"share", 2.0}}); }) == error_of([&] { at({{"share", 2.0}}); }));
  CHECK(error_of([&] { at({{"share", 2.0}}); }) == "--share expects a number in [0, 1], got 2");
}

TEST_CASE("a study without a group has the defaults of the group") {
  CHECK(OptionsByPoint().at<Coating>({{"coats", std::int64_t{3}}}).coats == 1);
}
