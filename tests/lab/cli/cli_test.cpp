// Tests of the command line, with a program that has every kind of option.
#include "experiments/lab/options/study_options.h"

#include <array>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/atomic_file.h"
#include "core/device_lost.h"
#include "experiments/lab/build_info.h"
#include "experiments/lab/cli/cli.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::lab;
using test::contains;
using test::TemporaryFolder;

namespace {

using Names = std::vector<std::string>;
enum class Colour { red, green, blue };
constexpr auto names_of(Colour) { return std::array{"red", "green", "blue"}; }
enum class Tone { low, high };
constexpr auto names_of(Tone) { return std::array{"deep", "shrill"}; }
using Integers = std::vector<std::int64_t>;
using Numbers = std::vector<double>;

// The program "study" with its options.
struct StudyProgram : StudyOptions {
  Names gates{"post", "layerscale"};
  Integers depths{6, 48};
  Numbers lrs{1e-3};
  double drop_key = 0;
  std::optional<double> init;
  bool shared = false;
  std::string data = "glyphs", data_dir;
  Cli cli{"study", "Studies."};
  std::string printed;

  StudyProgram() {
    cli.section("Axes");
    cli.option("--gates", &gates, "Residual gates").one_of("gate", {"post", "pre", "rezero", "layerscale"});
    cli.option("--depths", &depths, "Residual blocks").at_least(1);
    cli.option("--lrs", &lrs, "Learning rates").above(0);
    cli.section("Data");
    cli.option("--data", &data, "Data set").one_of("data set", {"glyphs", "fashion"}).scope(Scope::run);
    cli.option("--data-dir", &data_dir, "Folder of the data").path("DIR").scope(Scope::speed);
    declare(cli);
    cli.section("Model");
    cli.option("--drop-key", &drop_key, "Share of keys left out").at_least(0).below(1);
    cli.option("--init", &init, "First value of the gate").or_word("auto");
    cli.option("--shared", &shared, "One gate for both branches");
    cli.listing("--list-gates", "Print the gates", [] { return std::string("post\npre\n"); });
    cli.preset("quick", "two depths, few steps", {{"--depths 6,12 --steps 20"}, {"--batch 8"}});
    cli.examples({"--preset quick"});
  }

  std::optional<int> parse(Names arguments) {
    arguments.insert(arguments.begin(), "build/study");
    std::vector<const char*> argv;
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    std::FILE* file = std::tmpfile();
    const std::optional<int> status = cli.parse(static_cast<int>(argv.size()), argv.data(), file);
    printed.resize(static_cast<std::size_t>(std::ftell(file)));
    std::rewind(file);
    REQUIRE(std::fread(printed.data(), 1, printed.size(), file) == printed.size());
    std::fclose(file);
    return status;
  }
};

// The message of the UsageError that these arguments cause.
std::string usage_error(const Names& arguments) {
  StudyProgram study;
  try {
    study.parse(arguments);
  } catch (const UsageError& e) {
    CHECK(std::string(e.what()).find('\n') == std::string::npos);
    return e.what();
  }
  FAIL("expected a UsageError, none came");
  return {};
}

std::string config_error(const std::string& content) {
  const TemporaryFolder folder;
  std::ofstream(folder / "c.json") << content;
  const std::string file = (folder / "c.json").string(), message = usage_error({"--config", file});
  REQUIRE(message.starts_with(file + ": "));
  return message.substr(file.size() + 2);
}

}  // namespace

TEST_CASE("Without arguments every option has its default", "[experiments]") {
  StudyProgram s;
  CHECK(s.parse({}) == std::nullopt);
  CHECK(s.seeds == Integers{0});
  CHECK((s.steps == 200 && s.warmup == 0 && s.batch == 64));
  CHECK((s.data == "glyphs" && s.dtype == NumberFormat::fp32 && s.device == DeviceChoice::cpu && !s.threads));
  CHECK(s.printed.empty());
}

TEST_CASE("A value follows its option after a space or an equals sign", "[experiments]") {
  StudyProgram s;
  CHECK(s.parse({"--depths=6,24", "--lrs", "1e-3,.5", "--seeds", "0..2,7", "--drop-key=0.25", "--init", "-0.5",
                 "--threads=3", "--data-dir", "a=b", "--shared", "--no-progress"}) == std::nullopt);
  CHECK(s.depths == Integers{6, 24});
  CHECK(s.lrs == Numbers{1e-3, .5});
  CHECK(s.seeds == Integers{0, 1, 2, 7});
  CHECK(s.drop_key == 0.25);
  CHECK(s.init == -0.5);
  CHECK(s.threads == 3);
  CHECK(s.data_dir == "a=b");
  CHECK((s.shared && s.no_progress));
}

TEST_CASE("A range of integers includes both ends", "[experiments]") {
  StudyProgram s;
  const std::string last = std::to_string(std::numeric_limits<std::int64_t>::max());
  s.parse({"--seeds", "3..3,5..6," + last + ".." + last});
  CHECK(s.seeds == Integers{3, 5, 6, std::numeric_limits<std::int64_t>::max()});
}

TEST_CASE("The word all selects every name of a list and stands for an empty optional", "[experiments]") {
  StudyProgram s;
  s.parse({"--gates", "all", "--threads", "all", "--init", "auto"});
  CHECK(s.gates == Names{"post", "pre", "rezero", "layerscale"});
  CHECK((!s.threads && !s.init));
}

TEST_CASE("The command line overrides --config which overrides --preset and the defaults in any order",
          "[experiments]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "c.json") << R"({"steps": 30, /* both kinds */ "batch": 16, "lrs": [0.5]} // of comments)";
  const std::string file = (folder / "c.json").string();
  for (const Names& arguments : {Names{"--batch", "4", "--config", file, "--preset", "quick"},
                                 Names{"--preset=quick", "--config=" + file, "--batch=4"}}) {
    StudyProgram s;
    s.parse(arguments);
    CHECK(s.batch == 4);
    CHECK(s.steps == 30);
    CHECK(s.lrs == Numbers{0.5});
    CHECK(s.depths == Integers{6, 12});
    CHECK(s.seeds == Integers{0});
  }
}

TEST_CASE("The output of --print-config restores the same settings", "[experiments]") {
  const TemporaryFolder folder;
  StudyProgram first;
  CHECK(first.parse({"--preset", "quick", "--gates", "all", "--lrs", "1e-5,0.1,3e-4", "--seeds", "0..2,7", "--drop-key",
                     "0.1", "--init", "1e-6", "--shared", "--data-dir", "a \"quoted\" // folder", "--print-config"}) ==
        0);
  std::ofstream(folder / "c.json") << first.printed;
  StudyProgram second;
  second.parse({"--config", (folder / "c.json").string(), "--print-config"});
  CHECK(second.printed == first.printed);
  CHECK(second.cli.settings() == first.cli.settings());
  CHECK(second.cli.difference(first.cli.settings()).empty());
  CHECK((second.init == 1e-6 && second.shared && second.lrs == Numbers{1e-5, 0.1, 3e-4}));
  CHECK(first.printed.find("\"out\"") == std::string::npos);
}

TEST_CASE("A configuration file accepts lists in the syntax of the command line", "[experiments]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "c.json") << R"({"seeds": "0..2", "gates": "all", "threads": 2, "shared": true})";
  StudyProgram s;
  s.parse({"--config", (folder / "c.json").string()});
  CHECK(s.seeds == Integers{0, 1, 2});
  CHECK(s.gates.size() == 4);
  CHECK((s.threads == 2 && s.shared));
}

TEST_CASE("Help and version and listings are printed and end the call", "[experiments]") {
  StudyProgram s;
  CHECK(s.parse({"--help"}) == 0);
  for (const char* part :
       {"Studies.", "--drop-key N", "[6, 48]", "[all]", "glyphs, fashion [glyphs]", "quick", "study --preset quick"})
    CHECK_THAT(s.printed, contains(part));
  std::size_t begin = 0;
  for (std::size_t end; (end = s.printed.find('\n', begin)) != std::string::npos; begin = end + 1)
    CHECK(end - begin <= 80);

  CHECK(s.parse({"--batch", "wrong", "-h"}) == 0);
  CHECK(s.parse({"--version"}) == 0);
  CHECK(s.printed == fmt::format("study {}\n", version()));
  CHECK(s.parse({"--list-gates"}) == 0);
  CHECK(s.printed == "post\npre\n");
}

TEST_CASE("Output that cannot be written causes an error", "[experiments]") {
  std::FILE* full = std::fopen("/dev/full", "w");
  if (!full) PLUMB_SKIP("no /dev/full");
  CHECK(test::error_of([&] { write_result("text", full); }) == "cannot write the result: No space left on device");
  std::fclose(full);
}

TEST_CASE("The error of an unknown option or name suggests the nearest one", "[experiments]") {
  CHECK(usage_error({"--gate", "post"}) == "unknown option --gate; did you mean --gates?");
  CHECK(usage_error({"--dropkey=1"}) == "unknown option --dropkey; did you mean --drop-key?");
  CHECK(usage_error({"--qqqqqqqqqq"}) == "unknown option --qqqqqqqqqq; --help lists all options");
  CHECK_THAT(usage_error({"-b"}), contains("unknown option -b") && contains("--help"));
  CHECK(usage_error({"--gates", "post,layerscal"}) == "--gates: unknown gate 'layerscal'; did you mean 'layerscale'?");
  CHECK(usage_error({"--gates", "qqqqqqqqqq"}) ==
        "--gates: unknown gate 'qqqqqqqqqq'; known: post, pre, rezero, layerscale");
  CHECK(usage_error({"--data", "glyph"}) == "--data: unknown data set 'glyph'; did you mean 'glyphs'?");
  CHECK(usage_error({"--preset", "quik"}) == "--preset: unknown preset 'quik'; did you mean 'quick'?");
  CHECK(usage_error({"--preset", "paper"}) == "--preset: unknown preset 'paper'; known: quick");
}

TEST_CASE("A value that is not a number or out of range is refused", "[experiments]") {
  CHECK(usage_error({"--batch", "0"}) == "--batch expects an integer in [1, 1048576], got 0");
  CHECK(usage_error({"--batch", "1.5"}) == "--batch expects an integer in [1, 1048576], got '1.5'");
  CHECK(usage_error({"--batch", "9999999999999999999"}) ==
        "--batch expects an integer in [1, 1048576], got '9999999999999999999'");
  // An integer beyond 64 bits is refused with the bounds of 64 bits.
  CHECK(usage_error({"--seeds", "9223372036854775808"}) ==
        "--seeds expects integers in [0, 2^63 - 1] such as 6,24 or 0..4, got '9223372036854775808'");
  CHECK(usage_error({"--depths", "6..99999999999999999999"}) ==
        "--depths expects integers in [1, 2^63 - 1] such as 6,24 or 0..4, got '99999999999999999999'");
  CHECK(usage_error({"--seeds", "-1"}) == "--seeds expects integers of at least 0 such as 6,24 or 0..4, got -1");
  CHECK(usage_error({"--drop-key", "1.5"}) == "--drop-key expects a number in [0, 1), got 1.5");
  CHECK(usage_error({"--drop-key", "1"}) == "--drop-key expects a number in [0, 1), got 1");
  CHECK(usage_error({"--lrs", "0"}) == "--lrs expects numbers above 0 such as 0.001,0.01, got 0");
  CHECK(usage_error({"--threads", "0"}) == "--threads expects an integer in [1, 256], or 'all', got 0");
  for (const char* number : {"nan", "inf", "1e999", "1x", "0x1", " 1", "+1"})
    CHECK_THAT(usage_error({"--lrs", number}), contains("--lrs expects"));
}

TEST_CASE("A list that is empty or too long or has a value twice is refused", "[experiments]") {
  CHECK(usage_error({"--depths="}) == "--depths expects a list, got nothing");
  CHECK(usage_error({"--depths", "6,,8"}) == "--depths expects integers of at least 1 such as 6,24 or 0..4, got ''");
  CHECK(usage_error({"--depths", "8..6"}) == "--depths: the range 8..6 is empty; write 6..8");
  CHECK(usage_error({"--depths", "4..6,5"}) == "--depths: 5 is given twice; give each value once");
  CHECK_THAT(usage_error({"--seeds", "0..9223372036854775807"}), contains("more than 10000 values"));
  for (const char* range : {"..", "1..", "..2", "1..2..3", "1...3"})
    CHECK_THAT(usage_error({"--seeds", range}), contains("--seeds expects"));
}

TEST_CASE("The error names an argument that is missing or repeated or unexpected", "[experiments]") {
  CHECK(usage_error({"--batch"}) == "--batch expects a value: --batch N");
  CHECK(usage_error({"--batch", "--data"}) == "--batch expects a value: --batch N");
  CHECK(usage_error({"--out="}) == "--out expects a value, got nothing");
  CHECK(usage_error({"--resume=yes"}) == "--resume takes no value, got 'yes'");
  CHECK_THAT(usage_error({"--no-steps"}), contains("unknown option --no-steps"));
  CHECK(usage_error({"--depths", "6", "--depths=24"}) ==
        "--depths is given twice; separate list items by commas, such as 6,24");
  CHECK(usage_error({"--depths", "6", "24"}) ==
        "unexpected argument '24'; separate list items by commas: --depths 6,24");
  CHECK(usage_error({"run"}) == "unexpected argument 'run'; every value must follow its option; see --help");
}

TEST_CASE("Options that contradict each other are refused", "[experiments]") {
  CHECK(usage_error({"--steps", "10", "--warmup", "11"}) == "--warmup 11 is longer than --steps 10");
  CHECK_THAT(usage_error({"--resume", "--overwrite", "--out", "x"}), contains("exclude each other"));
  CHECK(usage_error({"--overwrite"}) == "--overwrite needs --out DIR, the folder of the study");
}

TEST_CASE("A configuration file is checked like the command line", "[experiments]") {
  CHECK(config_error(R"({"depth": [6]})") == "unknown key \"depth\"; did you mean \"depths\"?");
  CHECK(config_error(R"({"qqqqqqqqqq": 1})") == "unknown key \"qqqqqqqqqq\"; --print-config shows all keys");
  CHECK(config_error(R"({"out": "x"})") == "\"out\" can only be given on the command line, as --out");
  CHECK(config_error(R"({"batch": 1, "batch": 2})") == "\"batch\" is given twice");
  CHECK(config_error(R"({"batch": 0})") == "\"batch\" expects an integer in [1, 1048576], got 0");
  CHECK(config_error(R"({"batch": 2.5})") == "\"batch\" expects an integer in [1, 1048576], got '2.5'");
  CHECK(config_error(R"({"batch": [2]})") == "\"batch\" expects an integer in [1, 1048576], got [2]");
  CHECK(config_error(R"({"batch": null})") == "\"batch\" expects an integer in [1, 1048576], got null");
  CHECK(config_error(R"({"shared": 1})") == "\"shared\" expects true or false, got 1");
  CHECK(config_error(R"({"data": 3})") == "\"data\" expects text in quotes, got 3");
  CHECK(config_error(R"({"gates": ["pots"]})") == "\"gates\": unknown gate 'pots'; did you mean 'post'?");
  CHECK(config_error(R"({"depths": []})") == "\"depths\" expects at least one value, got an empty list");
  CHECK(config_error(R"({"preset": "quik"})") == "\"preset\": unknown preset 'quik'; did you mean 'quick'?");
  CHECK(config_error(R"({"preset": 1})") == "\"preset\" expects text in quotes, got 1");
  CHECK_THAT(config_error("[]"), contains("expected an object"));
  CHECK_THAT(config_error(""), contains("parse error at line 1"));
  CHECK_THAT(config_error("{\"batch\": 1,\n \"steps\" 2}"), contains("parse error at line 2"));
  CHECK_THAT(usage_error({"--config", "/no/such.json"}), contains("cannot read /no/such.json: No such file"));
}

TEST_CASE("A resumed study may differ only in options that do not change results", "[experiments]") {
  StudyProgram first, other;
  first.parse({"--threads", "2"});
  const auto recorded = nlohmann::ordered_json::parse(first.cli.settings());
  other.parse({"--threads", "1", "--out", "x", "--no-progress", "--json"});
  CHECK(other.cli.difference(recorded.dump()).empty());
  other.depths = {6, 24};
  CHECK(other.cli.difference(recorded.dump()) == "depths is [6,48] there and [6,24] here");
  nlohmann::ordered_json longer = recorded, shorter = recorded;
  longer["tau"] = 1;
  shorter.erase("steps");
  CHECK(first.cli.difference(longer.dump()) == "tau is 1 there and unknown here");
  // The record has no steps, as if the option --steps were newer than the record. The user does not give --steps.
  CHECK(first.cli.difference(shorter.dump()).empty());
  StudyProgram given;
  given.parse({"--steps", "200"});
  CHECK(given.cli.difference(shorter.dump()) == "steps is not recorded there and 200 here");
}

TEST_CASE("The recorded command line is quoted for a shell", "[experiments]") {
  StudyProgram s;
  s.parse({"--data-dir", "it's $HOME", "--seeds=0..2"});
  CHECK(s.cli.command_line() == R"(study --data-dir 'it'\''s $HOME' --seeds=0..2)");
}

TEST_CASE("Errors become exit statuses", "[experiments]") {
  CHECK(exit_status([] { return 130; }) == 130);
  CHECK(exit_status([]() -> int { throw UsageError("(this line belongs to a test)"); }) == 2);
  CHECK(exit_status([]() -> int { throw Error("(this line belongs to a test)"); }) == 1);
  CHECK(exit_status([]() -> int { throw std::bad_alloc(); }) == 1);
  CHECK(exit_status([]() -> int { throw OutOfMemory("(this line belongs to a test)"); }) == 1);
  CHECK(exit_status([]() -> int { throw DeviceLost("(this line belongs to a test)"); }) == 1);
}

TEST_CASE("The error of a preset with a wrong value names the preset", "[experiments]") {
  StudyProgram s;
  s.cli.preset("broken", "names an unknown gate", {{"--gates pots"}});
  CHECK(test::error_of([&] {
          s.parse({"--preset", "broken"});
        }) == "preset broken: gates: unknown gate 'pots'; did you mean 'post'?");
}

TEST_CASE("The rows of a preset set values in order, give sources, and set options that are left out",
          "[experiments]") {
  std::int64_t width = 1, height = 2, depth = 3;
  Cli cli("study", "A study.");
  cli.leave_out("--depth", "use --depths");
  cli.option("--width", &width, "Width");
  cli.option("--height", &height, "Height");
  cli.option("--depth", &depth, "Depth");
  bool also = false;
  cli.preset("small", "small sizes",
             {{"--width 4 --height 5 --depth 6", "a paper"}, {"--width 7"}, {"--height", "another paper"}},
             [&] { also = width == 7; });
  cli.preset("unknown", "an option that the program does not have", {{"--widht 4"}});
  const char* arguments[] = {"study", "--preset", "small", "--print-config"};
  const TemporaryFolder folder;
  std::FILE* out = std::fopen((folder / "printed").c_str(), "w");
  CHECK(cli.parse(4, arguments, out) == 0);
  std::fclose(out);
  CHECK((width == 7 && height == 5 && depth == 6 && also));
  CHECK_THAT(read_file(folder / "printed"), contains("Width\n") && contains("Height [another paper]"));
  arguments[2] = "unknown";
  CHECK(test::error_of([&] { cli.parse(3, arguments); }) ==
        "[cli] expected options of the program in preset unknown, got --widht");
}

TEST_CASE("A printed configuration shows the source that a preset gives for a value unless the user gives another",
          "[experiments]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "c.json") << R"({"width": 6})";
  const auto printed = [&](std::vector<const char*> arguments) {
    std::int64_t width = 0, twice = 0;
    std::vector<std::string> about;
    Cli cli("study", "A study.");
    cli.option("--width", &width, "Width");
    cli.option("--twice", &twice, "Twice the width");
    for (const std::int64_t w : {3, 4})
      cli.preset(fmt::format("w{}", w), "a width", {{fmt::format("--width {}", w), fmt::format("paper {}", w)}});
    cli.default_preset([](const Cli::TypedValue& value) { return value("--twice") == "8" ? "w4" : "w3"; });
    cli.listing("--compare", &about, "Compare", [&] { return fmt::format("{}", fmt::join(about, "|")); })
        .one_of("preset", {"w3", "w4"})
        .pair();
    cli.rule([&] {
      if (cli.given("--twice")) return;
      twice = 2 * width;
      cli.explain("--twice", "2 x width");
    });
    cli.config_note([] { return std::string("a note\n\nof two lines"); });
    arguments.insert(arguments.begin(), "study");
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
    const std::optional<int> status = cli.parse(static_cast<int>(arguments.size()), arguments.data(), file.get());
    CHECK(status == 0);
    std::string text(static_cast<std::size_t>(std::ftell(file.get())), ' ');
    std::rewind(file.get());
    REQUIRE(std::fread(text.data(), 1, text.size(), file.get()) == text.size());
    return text;
  };
  const std::string file = (folder / "c.json").string();
  CHECK_THAT(printed({"--print-config"}),
             contains("\"width\": 3,") && contains("// Width [paper 3]\n") && contains("\"twice\": 6") &&
                 contains("// Twice the width [2 x width]\n") && contains("}\n// a note\n//\n// of two lines\n"));
  CHECK_THAT(printed({"--print-config", "--preset", "w4"}),
             contains("\"width\": 4,") && contains("// Width [paper 4]\n"));
  CHECK_THAT(printed({"--print-config", "--width", "5"}),
             contains("// Width [given; w3 sets 3]\n") && contains("\"twice\": 10"));
  CHECK_THAT(printed({"--print-config", "--config", file.c_str(), "--preset", "w4"}),
             contains("// Width [given; w4 sets 4]\n"));
  CHECK_THAT(printed({"--print-config", "--config", file.c_str(), "--width", "3"}), contains("// Width [paper 3]\n"));
  CHECK_THAT(printed({"--print-config", "--twice", "1"}),
             contains("\"twice\": 1 ") && contains("// Twice the width\n"));
  // The preset of a call without --preset follows from a value of the command line, or else of the configuration file.
  std::ofstream(folder / "twice.json") << R"({"twice": "8"})";
  const std::string twice = (folder / "twice.json").string();
  for (const std::vector<const char*>& call :
       {std::vector<const char*>{"--print-config", "--twice", "8"}, {"--print-config", "--config", twice.c_str()}})
    CHECK_THAT(printed(call), contains("\"width\": 4,") && contains("// Width [paper 4]\n"));
  CHECK_THAT(printed({"--print-config", "--config", twice.c_str(), "--twice", "6"}), contains("\"width\": 3,"));
  CHECK(printed({"--compare", "w3", "w4"}) == "w3|w4");
  CHECK(printed({"--compare", "w4,w3"}) == "w4|w3");
  CHECK(printed({"--compare", "w4", "--width", "9"}) == "w4");
  CHECK(printed({"--compare", "w4", "w4"}) == "w4|w4");
  CHECK(test::error_of([&] {
          printed({"--compare", "w3", "w4", "w4"});
        }) == "unexpected argument 'w4'; --compare takes two names");
}

TEST_CASE("A configuration keeps the name of its preset but results depend only on the values", "[experiments]") {
  const TemporaryFolder folder;
  const std::string file = (folder / "c.json").string();
  std::ofstream(file) << R"({"preset": "quick", "batch": 4})";
  StudyProgram s, other, plain;
  s.parse({"--config", file});
  CHECK((s.steps == 20 && s.batch == 4));
  CHECK(nlohmann::json::parse(s.cli.settings())["preset"] == "quick");
  other.cli.preset("slow", "many steps", {{"--steps 900"}});
  other.parse({"--config", file, "--preset", "slow"});
  CHECK((other.steps == 900 && other.batch == 4));
  CHECK(nlohmann::json::parse(other.cli.settings())["preset"] == "slow");
  plain.parse({"--depths", "6,12", "--steps", "20", "--batch", "4"});
  CHECK(plain.cli.difference(s.cli.settings()) == "");
}

TEST_CASE("A program without presets has no option --preset", "[experiments]") {
  StudyOptions options;
  Cli cli("study", "Studies.");
  options.declare(cli);
  CHECK_THAT(cli.help(), !contains("--preset N"));
  const char* arguments[] = {"study", "--preset", "quick"};
  CHECK_THAT(test::error_of([&] { cli.parse(3, arguments); }), contains("unknown option --preset"));
  CHECK_THAT(StudyProgram().cli.help(), contains("--preset NAME"));
}

TEST_CASE("The prefix --no- turns a switch off and the error of an option left out says what to give instead",
          "[experiments]") {
  bool stop = true, loud = false;
  std::string pool = "mean", shape = "plain";
  Cli cli("study", "Studies.");
  cli.leave_out("--pool", "give --designs token,mean"), cli.leave_out("--shape");
  cli.option("--pool", &pool, "Pooling");
  cli.option("--shape", &shape, "Shapes");
  cli.option("--stop-early", &stop, "Stop early");
  cli.option("--loud", &loud, "Say more");
  CHECK_THAT(cli.help(),
             contains("Stop early [on; off with --no-stop-early]") && contains("Say more\n") && !contains("--pool"));
  const auto error = [&](const char* argument) {
    const char* arguments[] = {"study", argument, "token"};
    return test::error_of([&] { cli.parse(3, arguments); });
  };
  CHECK(error("--pool") == "--pool cannot be given, because this program varies it; give --designs token,mean");
  CHECK_THAT(error("--shape"), contains("unknown option --shape"));
  CHECK_THAT(error("--no-pool"), contains("unknown option --no-pool"));
  CHECK_THAT(error("--no-stop-early=1"), contains("unknown option --no-stop-early"));
  const char* arguments[] = {"study", "--no-stop-early", "--loud"};
  CHECK(cli.parse(3, arguments) == std::nullopt);
  CHECK((!stop && loud));
}

TEST_CASE(
    "The help shows listings in a separate section before the general options and keeps the section of later options",
    "[experiments]") {
  StudyOptions options;
  bool checks = false, other = false;
  Cli cli("study", "Studies.");
  cli.section("Model");
  cli.listing("--list-things", "Print the things", [] { return std::string(); });
  cli.option("--other", &other, "Another");
  cli.section(Cli::instead);
  cli.option("--check-things", &checks, "Check them");
  options.declare(cli);
  const std::string help = cli.help();
  CHECK_THAT(help, contains("\nInstead of a run:\n  --list-things ") && contains("\nModel:\n  --other "));
  const std::size_t own = help.find("\nInstead of a run:\n"), output = help.find("\nOutput:\n"),
                    general = help.find("\nGeneral:\n");
  CHECK((output < own && own < general));
  CHECK((own < help.find("--check-things") && help.find("--check-things") < general));
}

TEST_CASE("The command line and the help name the called program but experiment() is the declared name",
          "[experiments]") {
  StudyProgram s;
  CHECK(s.cli.program() == "study");
  const char* arguments[] = {"/opt/my programs/my study", "--steps", "3"};
  s.cli.parse(3, arguments);
  CHECK(s.cli.program() == "my study");
  CHECK(s.cli.experiment() == "study");
  CHECK(s.cli.command_line() == "'my study' --steps 3");
  CHECK_THAT(s.cli.help(), contains("Usage: my study [options]") && contains("  my study --preset quick\n"));
}

namespace {

struct Painted {
  Colour wall = Colour::green, door = Colour::blue;
  Tone tone = Tone::high;
};

// The program "paint", which has options of enum types.
struct Paint : Painted {
  Cli cli{"paint", "Paints."};

  Paint() {
    cli.section("Paint");
    cli.option("--wall", &wall, "Wall colour").one_of("colour");
    cli.option("--door", &door, "Door colour").one_of("colour", std::vector{Colour::blue, Colour::red});
    cli.option("--tone", &tone, "Tone").one_of("tone");
  }
  void parse(const std::vector<const char*>& words) {
    std::vector<const char*> argv{"paint"};
    argv.insert(argv.end(), words.begin(), words.end());
    cli.parse(static_cast<int>(argv.size()), argv.data());
  }
};

std::string paint_error(const std::vector<const char*>& words) {
  return test::error_of([&] { Paint().parse(words); });
}

}  // namespace

TEST_CASE("An option of an enum reads and shows the names of its values and refuses other names", "[experiments]") {
  Paint p;
  p.parse({"--wall", "blue", "--door=red", "--tone", "deep"});
  CHECK((p.wall == Colour::blue && p.door == Colour::red && p.tone == Tone::low));
  CHECK(p.cli.settings() == R"({"wall":"blue","door":"red","tone":"deep"})");
  p.door = Colour::blue;
  CHECK(nlohmann::json::parse(p.cli.settings())["door"] == "blue");
  CHECK_THAT(Paint().cli.help(), contains("  --wall NAME     Wall colour: red, green, blue [green]\n") &&
                                     contains("  --door NAME     Door colour: blue, red [blue]\n") &&
                                     contains("  --tone NAME     Tone: deep, shrill [shrill]\n"));
  CHECK(paint_error({"--wall", "bleu"}) == "--wall: unknown colour 'bleu'; did you mean 'blue'?");
  CHECK(paint_error({"--wall", "black"}) == "--wall: unknown colour 'black'; known: red, green, blue");
  CHECK(paint_error({"--door", "green"}) == "--door: unknown colour 'green'; known: blue, red");
  CHECK(paint_error({"--tone", "low"}) == "--tone: unknown tone 'low'; known: deep, shrill");
  CHECK(paint_error({"--wall", ""}) == "--wall expects a value, got nothing");
}

TEST_CASE("An option of an enum is read from a configuration and refuses a default that is not among its names",
          "[experiments]") {
  const TemporaryFolder folder;
  const std::string file = (folder / "c.json").string();
  { std::ofstream(file) << R"({"wall": "red", "tone": "deep"})"; }
  Paint p;
  p.parse({"--config", file.c_str()});
  CHECK((p.wall == Colour::red && p.door == Colour::blue && p.tone == Tone::low));
  { std::ofstream(file) << R"({"wall": 2})"; }
  CHECK(paint_error({"--config", file.c_str()}) == file + ": \"wall\" expects text in quotes, got 2");
  Paint q;
  q.cli.preset("wrong", "a colour that --door does not accept", {{"--door green"}});
  CHECK(test::error_of([&] {
          q.parse({"--preset", "wrong"});
        }) == "preset wrong: door: unknown colour 'green'; known: blue, red");
  q.tone = static_cast<Tone>(7);
  CHECK(test::error_of([&] { q.cli.settings(); }) ==
        "[cli] expected the variable of --tone to hold deep or shrill, got the value 7 of its enum");
}

TEST_CASE("The scope of an option decides in which settings its value is recorded", "[experiments]") {
  std::int64_t trial = 1, run = 2, study = 3, speed = 4, call = 5;
  Cli cli("scopes", "Scopes.");
  cli.option("--trial", &trial, "Trial");
  cli.option("--run", &run, "Run").scope(Scope::run);
  cli.option("--study", &study, "Study").scope(Scope::study);
  cli.option("--speed", &speed, "Speed").scope(Scope::speed);
  cli.option("--call", &call, "Call").scope(Scope::call);
  CHECK(cli.settings() == R"({"trial":1,"run":2,"study":3,"speed":4})");
  CHECK(cli.fixed_settings() == R"({"trial":1,"run":2})");
  CHECK(cli.difference(R"({"trial": 1, "run": 2, "study": 0, "speed": 0})") == "");
  CHECK(cli.difference(R"({"trial": 1, "run": 0, "study": 3, "speed": 4})") == "run is 0 there and 2 here");
}
