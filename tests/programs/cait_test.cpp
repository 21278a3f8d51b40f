#include <nlohmann/json.hpp>

#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const std::string cait = program("cait"), small = cait + " --dim 8 --heads 2 --depth 2 --patch 16 --batch 4 --no-progress ";

std::string line_with(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find(part) != std::string::npos) return line;
  return {};
}

}  // namespace

TEST_CASE("a CaiT preset at a small size trains, evaluates, and gives the same bytes again") {
  const TemporaryFolder folder;
  const Finished first = run(folder.path(), small + "--steps 4 --preset cait-paper-s24 --seeds 0..1 --out a");
  INFO(first.err);
  REQUIRE(first.status == 0);
  CHECK(slurp(folder.path() / "a/results.csv").starts_with("seed,loss,grad_norm,lr,val_loss,val_accuracy\n0,"));
  const auto settings = nlohmann::json::parse(slurp(folder.path() / "a/run.json"))["settings"];
  CHECK(settings["dim"] == 8);
  CHECK(settings["drop_path"] == 0.1);  // the preset's
  CHECK(settings["init"] == 0.1);       // by the depth given
  REQUIRE(run(folder.path(), small + "--steps 4 --preset cait-paper-s24 --seeds 0..1 --out b --threads 1 --checkpoint").status == 0);
  CHECK(slurp(folder.path() / "a/metrics.jsonl") == slurp(folder.path() / "b/metrics.jsonl"));
  for (const char* other : {"--gate rezero", "--talking-heads identity", "--talking-heads none", "--drop-key 0.5", "--label-smoothing 0"}) {
    INFO(other);
    REQUIRE(run(folder.path(), small + "--steps 4 --preset cait-paper-s24 --overwrite --out c " + other).status == 0);
    CHECK(slurp(folder.path() / "c/metrics.jsonl") !=
          slurp(folder.path() / "a/metrics.jsonl").substr(0, slurp(folder.path() / "c/metrics.jsonl").size()));
  }
}

TEST_CASE("the schedule warms up from lr-start and ends at lr-end") {
  const TemporaryFolder folder;
  REQUIRE(run(folder.path(), small + "--lr 1e-3 --lr-start 1e-4 --lr-end 2e-4 --warmup 2 --steps 6 --out a").status == 0);
  std::vector<double> rates;
  std::istringstream lines(slurp(folder.path() / "a/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);)
    if (const auto object = nlohmann::json::parse(line); object.contains("lr")) rates.push_back(object["lr"].get<double>());
  REQUIRE(rates.size() == 6);
  CHECK(rates[0] == Approx(1e-4));
  CHECK(rates[1] == Approx(5.5e-4));
  CHECK(rates[2] == Approx(1e-3));
  CHECK(rates[4] == Approx(6e-4));  // half-way between peak and end
}

TEST_CASE("print-config shows each constant with its source, and reads back") {
  const TemporaryFolder folder;
  const Finished f = run(folder.path(), cait + " --preset cait-paper-xxs36 --batch 128 --steps 800 --weight-decay 0.1 --print-config");
  INFO(f.err);
  REQUIRE(f.status == 0);
  CHECK_THAT(line_with(f.out, "\"dim\""), contains("192") && contains("[facebookresearch/deit, cait_models.py]"));
  CHECK_THAT(line_with(f.out, "\"init\""), contains("1e-06") && contains("1e-6 deeper; the released model has 1e-5]"));
  CHECK_THAT(line_with(f.out, "\"drop_path\""), contains("0.1") && contains("[reported, not verified"));
  CHECK_THAT(line_with(f.out, "\"lr\""), contains("0.000125") && contains("[0.0005 x batch / 512; facebookresearch/deit, main.py]"));
  CHECK_THAT(line_with(f.out, "\"warmup\""), contains("10,") && contains("[5 of 400 epochs"));
  CHECK_THAT(line_with(f.out, "\"weight_decay\""), contains("0.1") && contains("[given; cait-paper-xxs36 has 0.05]"));
  CHECK_THAT(line_with(f.out, "\"patch\""), contains("4") && contains("has 16 at 224 x 224]"));
  CHECK_THAT(line_with(f.out, "mixup"), contains("0.8") && contains("[facebookresearch/deit, main.py]"));
  { std::ofstream(folder.path() / "c.json") << f.out; }
  const Finished again = run(folder.path(), cait + " --config c.json --print-config --preset cait-paper-xxs36");
  CHECK(line_with(again.out, "\"weight_decay\"") == line_with(f.out, "\"weight_decay\""));
  CHECK(line_with(again.out, "\"init\"") == line_with(f.out, "\"init\""));
  CHECK_THAT(line_with(again.out, "\"lr\""), contains("0.000125"));
  CHECK_THAT(line_with(run(folder.path(), cait + " --depth 12 --print-config").out, "\"init\""), contains("0.1") && contains("[rule: by --depth"));
  CHECK_THAT(line_with(run(folder.path(), cait + " --preset cait-timm-xxs36 --print-config").out, "\"init\""),
             contains("1e-05") && contains("[timm 1.0.31, cait.py, cait_xxs36]"));
}

TEST_CASE("preset-diff shows the constants that differ, and no others") {
  const TemporaryFolder folder;
  const Finished f = run(folder.path(), cait + " --preset-diff cait-paper-xxs36 cait-timm-xxs36");
  INFO(f.err);
  REQUIRE(f.status == 0);
  CHECK_THAT(f.out, contains("init") && contains("1e-06") && contains("1e-05") && contains("drop_path") && contains("timm 1.0.31, cait.py"));
  CHECK(line_with(f.out, "dim").empty());
  CHECK(line_with(f.out, "weight_decay").empty());
  CHECK(run(folder.path(), cait + " --preset-diff cait-paper-xxs36,cait-timm-xxs36").out == f.out);
  CHECK_THAT(run(folder.path(), cait + " --preset-diff cait-timm-s36,cait-timm-m36").out, contains("768") && !contains("drop_path"));

  for (const auto& [arguments, message] :
       {std::pair{"--preset-diff cait-paper-xxs36", "--preset-diff expects two presets, got 1"},
        {"--preset-diff cait-paper-xxs36 cait-tim-xxs36", "unknown preset 'cait-tim-xxs36'; did you mean 'cait-timm-xxs36'?"},
        {"--preset cait-paper-xxl24", "unknown preset 'cait-paper-xxl24'; did you mean 'cait-paper-xxs24'?"},
        {"--heads 5", "--dim 192 is not a multiple of --heads 5"},
        {"--patch 5", "--patch 5 does not divide the image side 32"}}) {
    const Finished wrong = run(folder.path(), cait + " " + arguments);
    CHECK(wrong.status == 2);
    CHECK_THAT(wrong.err, contains(message));
  }
  const std::string list = run(folder.path(), cait + " --list-presets").out;
  CHECK(std::count(list.begin(), list.end(), '\n') == 24);
  CHECK_THAT(run(folder.path(), cait + " --help").out, contains("cait-timm-m48") && contains("--preset-diff A B") && contains("[192]"));
}
