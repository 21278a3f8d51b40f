// Every program as a user starts it: --help, wrong command lines, and each study with few steps, with one job and with
// two, and shown again by bin/report.
#include <algorithm>
#include <set>

#include "experiments/studies.h"
#include "tests/programs/program.h"
#include "tests/support/catch.h"
#include "tests/support/small_studies.h"
#include "tests/support/text.h"

using namespace plumb;
using namespace plumb::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> names_of_studies() {
  std::vector<std::string> names;
  for (const lab::KnownStudy& study : lab::known_studies()) names.emplace_back(study.name);
  return names;
}

}  // namespace

TEST_CASE("every program explains itself and refuses an unknown option in one line with exit status 2") {
  const TemporaryFolder folder;
  std::vector<std::string> names = names_of_studies();
  names.insert(names.end(), {"attention_maps", "merge", "replay", "report", "bench_detr", "bench_ops", "bench_step",
                             "example_own_gate"});
  for (const std::string& name : names) {
    INFO(name);
    const Finished help = run(folder.path(), program(name) + " --help");
    CHECK(help.status == 0);
    CHECK_THAT(help.out, contains(name) && contains("--help"));
    CHECK(help.err.empty());
    const Finished wrong = run(folder.path(), program(name) + " --no-such-option");
    CHECK(wrong.status == 2);
    CHECK((wrong.err.starts_with("error: ") && lines_of(wrong.err) == 1 && wrong.out.empty()));
    CHECK(run(folder.path(), program(name) + " --no-such-option 2>/dev/full").status == 2);
    CHECK(run(folder.path(), program(name) + " --no-such-option 2>&-").status == 2);
  }
  CHECK_FALSE(fs::exists(folder / "runs"));
}

TEST_CASE("every study refuses wrong values and names the option and the remedy in one line") {
  const TemporaryFolder folder;
  std::vector<std::pair<std::string, std::string>> wrong{
      {"depth_stability --gates layer_scale", "layerscale"},
      {"depth_stability --data fashon-mnist", "fashion-mnist"},
      {"depth_stability --drop-key 0.4 --drop-key-shape block --drop-key-window 7", "window"},
      {"depth_stability --drop-key-shape square", "--drop-key-shape"},
      {"depth_stability --ema-decay 1", "--ema-decay"},
      {"depth_stability --flip on", "--flip on does not suit glyphs"},
      {"depth_stability --augment deit --batch 2", "--repeated-augmentation 3 is larger than --batch 2"},
      {"depth_stability --crop-padding 40", "--crop-padding 40 is larger than the image side 32"},
      {"depth_stability --crop-padding 2 --crop-scale 0.5", "--crop-padding and --crop-scale exclude each other"},
      {"depth_limit --first 20 --most 10", "--first 20 is larger than --most 10"},
      {"depth_limit --augment deit", "--trained-at"},
      {"drop_key --attn-drop 0.1",
       "--attn-drop cannot be given, because this program varies it; use --rates and --forms"},
      {"drop_key --drop-key 0.1", "--drop-key cannot be given"},
      {"drop_key --patch 16", "window that fits into the grid of 2 x 2 patches"},
      {"class_attention --pool token",
       "--pool cannot be given, because this program varies it; use --designs token,mean"},
      {"class_attention --recipe paper", "--recipe paper: the designs need --recipe shared"},
      {"fixup_scalars --weight-init xavier",
       "--weight-init cannot be given, because this program varies it; each piece sets its recipe"},
      {"fixup_scalars --recipe shared", "--recipe cannot be given"},
      {"deep_mlp --methods rezeno", "rezero"},
      {"deep_mlp --width 0", "--width"},
      {"passport --every 0", "--every"},
      {"passport --probes 1", "--probes"},
      {"passport --steps -1", "--steps"},
      {"passport --warmup 1", "--steps 0"},
      {"bench_step --heads 5", "--dim 192 is not a multiple of --heads 5"},
      {"bench_step --patch 5", "--patch 5 does not divide the image side 32"},
      {"bench_step --gate layerscal", "did you mean 'layerscale'?"},
      {"merge s", "expected merge DIR.. --out DIR"},
      {"replay a", "expected replay DIR 'TRIAL'"},
      {"report", "expected report DIR.."},
      {"report nowhere", "nowhere: no such folder"}};
  for (const char* bad : {"insert-2", "insert-", "insert-0", "2:", "2:0", ":2", "12", "late"})
    wrong.emplace_back(
        "class_attention --depth 2 --designs " + std::string(bad),
        "--designs: expected token, mean, insert-B with 1 <= B < 2 (--depth), or N:K such as 12:2, got '" +
            std::string(bad) + "'");
  for (const std::string& name : names_of_studies())
    for (const std::string option : {"--batch", "--seeds", "--threads", "--device"})
      wrong.emplace_back(name + " " + option + " x", option);
  for (const auto& [words, text] : wrong) {
    const Finished f = run(folder.path(), program(words));
    INFO(words << "\n" << f.err);
    CHECK(f.status == 2);
    CHECK((f.err.starts_with("error: ") && lines_of(f.err) == 1 && f.out.empty()));
    CHECK_THAT(f.err, contains(text));
  }
  CHECK_FALSE(fs::exists(folder / "runs"));
}

TEST_CASE("every study trains its quick preset, gives the same bytes in parallel jobs, and is shown again") {
  std::vector<std::string> names;
  for (const SmallStudy& study : small_studies)
    if (names.empty() || names.back() != study.name) names.push_back(study.name);  // vit has two rows
  REQUIRE(names == names_of_studies());
  for (const SmallStudy& study : small_studies) {
    INFO(study.name);
    const TemporaryFolder folder;
    const std::string command = program(study.name) + " " + study.words + " --batch 4 --no-progress ";
    const Finished one = run(folder.path(), command + "--threads 1 --out one");
    INFO(one.err);
    REQUIRE(one.status == 0);
    CHECK_THAT(one.out, contains("report: one/report.html"));
    REQUIRE(run(folder.path(), command + "--jobs 2 --out two").status == 0);
    const auto rows = timeless_rows(folder / "one");
    CHECK(rows.size() == study.trials);
    CHECK(timeless_rows(folder / "two") == rows);
    std::set<std::string> losses;
    for (const auto& row : rows) {
      CHECK(row.at("status") == "ok");
      losses.insert(row.at(study.name == "deep_mlp" ? "train_loss" : "val_loss"));
    }
    CHECK(losses.size() == study.trials);
    std::vector<std::string> files{"metrics.jsonl"};
    if (!study.file.empty()) files.push_back(study.file);
    for (const std::string& file : files) {
      INFO(file);
      CHECK(lines_of(slurp(folder / "one" / file)) >= static_cast<int>(study.trials));
      CHECK(slurp(folder / "two" / file) == slurp(folder / "one" / file));
    }
    const std::string page = slurp(folder / "one/report.html");
    CHECK_THAT(page, contains("<svg") && contains(study.section));
    int pictures = 0;
    for (std::size_t at = 0; (at = page.find("<figure class=\"picture\">", at)) != page.npos; ++at) ++pictures;
    CHECK(pictures == study.pictures);

    // The ledger suffices for all other files.
    files.insert(files.end(), {"results.csv", "results.md", "report.html"});
    std::map<std::string, std::string> before;
    for (const std::string& file : files)
      before[file] = slurp(folder / "one" / file), fs::remove(folder / "one" / file);
    const Finished shown = run(folder.path(), program("report") + " one");
    INFO(shown.err);
    CHECK(shown.status == 0);
    for (const auto& [file, text] : before) {
      INFO(file);
      CHECK(slurp(folder / "one" / file) == text);
    }
  }
}
