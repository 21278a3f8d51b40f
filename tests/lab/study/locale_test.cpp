// Programs give the same numbers in a locale with a decimal comma.
#include <plumb/vision.h>

#include <clocale>
#include <cstdlib>
#include <string>

#include "tests/lab/study/epsilon_study.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

namespace {

// Sets a locale with a decimal comma for the process until the scope ends. localedef compiles the locale if the system
// has none.
class CommaLocale {
 public:
  explicit CommaLocale(const TemporaryFolder& folder) {
    if (std::setlocale(LC_ALL, "de_DE.UTF-8")) return;
    const std::string path = (folder.path() / "locales").string();
    std::filesystem::create_directory(path);
    const std::string command =
        "localedef -i de_DE -f UTF-8 '" + path + "/de_DE.UTF-8' >'" + path + "/log' 2>&1 </dev/null";
    if (std::system(command.c_str()) != 0) return;
    ::setenv("LOCPATH", path.c_str(), 1);
    std::setlocale(LC_ALL, "de_DE.UTF-8");
  }
  ~CommaLocale() {
    std::setlocale(LC_ALL, "C");
    ::unsetenv("LOCPATH");
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;
  static bool works() { return std::string(std::localeconv()->decimal_point) == ","; }
};

std::string table_of(const std::string& html) {
  const std::size_t begin = html.find("<table class=\"results\">"), end = html.find("</table>", begin);
  REQUIRE(end != std::string::npos);
  return html.substr(begin, end - begin);
}

}  // namespace

TEST_CASE("a locale with a decimal comma changes no rate of stability_map and no number in the report of passport") {
  const TemporaryFolder folder;
  const Words small{"--device", "cpu",           "--dim",         "8", "--batch", "4", "--seeds",
                    "0",        "--no-progress", "--eval-images", "8"};
  const Words map = with(small, {"--gates", "pre", "--depths", "2", "--steps", "2", "--no-stop-hopeless"});
  const Words signals =
      with(small, {"--gates", "pre", "--depths", "2", "--probes", "2", "--warmup", "0", "--steps", "2"});
  const auto run = [&](const Main& program, const Words& words) {
    const Ended ended = call(folder.path(), program, words);
    INFO(ended.err);
    REQUIRE(ended.status == 0);
  };
  run(stability_map, with(map, {"--first-lr", "2.5e-3", "--out", "map"}));
  run(passport, with(signals, {"--lr", "1.5e-3", "--out", "signals"}));
  const CommaLocale locale(folder);
  if (!locale.works()) PLUMB_SKIP("no locale with a decimal comma: localedef or its source of de_DE is missing");
  run(stability_map, with(map, {"--first-lr", "2.5e-3", "--out", "comma_map"}));
  run(passport, with(signals, {"--lr", "1.5e-3", "--out", "comma_signals"}));
  const std::string rates = timeless(file(folder, "map/results.csv"));
  CHECK_THAT(rates, contains("0.0025"));
  CHECK(timeless(file(folder, "comma_map/results.csv")) == rates);
  const std::string table = table_of(file(folder, "signals/report.html"));
  CHECK(table_of(file(folder, "comma_signals/report.html")) == table);
  CHECK(file(folder, "comma_signals/layers.csv") == file(folder, "signals/layers.csv"));
  run(passport, {"--rebuild", "--out", "signals"});
  CHECK(table_of(file(folder, "signals/report.html")) == table);
}
