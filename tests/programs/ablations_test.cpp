// The studies that repeat published ablations, each with few steps. The tests check trials, values, claims and files.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/vision/data/glyphs.h"
#include "experiments/vision/data/image_file.h"
#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const std::string tiny_options = " --batch 4 --dim 8 --no-progress --out a ";
// Options of networks whose loss falls below chance in 40 steps.
const std::string small_options = " --batch 32 --dim 16 --no-progress --out a ";

Finished run_tiny(const TemporaryFolder& folder, const std::string& name, const std::string& arguments,
                  const std::string& size = tiny_options) {
  const Finished f = run(folder.path(), program(name) + size + arguments);
  INFO(f.err);
  CHECK(f.status == 0);
  CHECK(std::filesystem::exists(folder / "a/report.html"));
  return f;
}

std::vector<std::map<std::string, std::string>> results(const TemporaryFolder& folder) {
  return rows_of(slurp(folder / "a/results.csv"));
}

// The number of different values in a column. If all trials have different values, this is the number of rows.
std::size_t values_of(const std::vector<std::map<std::string, std::string>>& rows, const std::string& column) {
  std::set<std::string> values;
  for (const auto& row : rows) values.insert(row.at(column));
  return values.size();
}

}  // namespace

TEST_CASE("layerscale_init: the first move of the gates is measured with and without warm-up") {
  const TemporaryFolder folder;
  const Finished f = run_tiny(folder, "layerscale_init", "--preset quick --steps 8 --warmups 0,4 --lr 1e-3");
  const auto rows = results(folder);
  REQUIRE(rows.size() == 6);
  for (const auto& row : rows) {
    CHECK(row.at("status") == "ok");
    CHECK(row.at("first_move").empty() == (row.at("epsilon") == "0"));
  }
  // The first step of Adam moves a gate by the learning rate. The learning rate is 1e-3 without warm-up, and a quarter
  // of 1e-3 with 4 warm-up steps.
  CHECK(std::stod(rows[2].at("first_move")) == Approx(1e-3 / 1e-5).epsilon(0.02));
  CHECK(std::stod(rows[3].at("first_move")) == Approx(1e-3 / 4 / 1e-5).epsilon(0.02));
  CHECK_THAT(slurp(folder / "a/claims.csv"),
             contains("without warm-up, the first step moves gates by more than eps = 1e-05: eps is forgotten"));
  CHECK_THAT(slurp(folder / "a/report.html"),
             contains("Training loss against eps") && contains("layerscale, depth 12"));
  CHECK(std::filesystem::exists(folder / "a/layers.csv"));
}

TEST_CASE("drop_key: equal settings are trained once and peakedness is measured") {
  const TemporaryFolder folder;
  run_tiny(folder, "drop_key", "--steps 4 --warmup 0 --depth 2 --rates 0,0.3 --tunes 0,0.5");
  const auto rows = results(folder);
  // One trial has no dropping. Four trials have form plain (constant with and without tuning, decreasing, increasing).
  // The forms block, cross and dropout have two trials each.
  REQUIRE(rows.size() == 1 + 4 + 6);
  CHECK(values_of(rows, "val_loss") == rows.size());
  const auto dots = rows_of(slurp(folder / "a/figures/val-accuracy-dots.csv"));
  REQUIRE(dots.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    CHECK(std::stod(dots[i].at("value")) == Approx(std::stod(rows[i].at("val_accuracy"))));
  for (const auto& row : rows) {
    CHECK(row.at("status") == "ok");
    CHECK((std::stod(row.at("attention_entropy")) > 0.5 && std::stod(row.at("attention_entropy")) <= 1));
  }
  const Finished config = run(folder.path(), program("drop_key") + " --print-config");
  CHECK_THAT(config.out, contains("\"drop_key_match\": \"share\""));
}

TEST_CASE("depth_limit: the search doubles the depth up to --most or goes shallower and resumes to the same table") {
  const TemporaryFolder folder;
  const std::string arguments = "--gates pre --steps 40 --seeds 0 --most 10 ";
  const Finished all = run_tiny(folder, "depth_limit", arguments + "--first 4 --trained-at 0.95", small_options);
  CHECK_THAT(all.out, contains("\nTrains deepest: pre lr 0.003, to depth 10 or more (10 was the deepest tried).\n\n") &&
                          contains("Largest depth at which most seeds train") &&
                          contains("10 or more (10 was the deepest tried)") && contains("4 (1/1), 8 (1/1), 10 (1/1)"));
  const Finished again =
      run(folder.path(), program("depth_limit") + small_options + arguments + "--first 4 --trained-at 0.95 --resume");
  CHECK(again.status == 0);
  CHECK_THAT(again.out, contains("4 (1/1), 8 (1/1), 10 (1/1)"));
  CHECK_THAT(slurp(folder / "a/results.md"), contains("| pre lr 0.003 | 10 or more (10 was the deepest tried) |"));
  const Finished none = run(folder.path(), program("depth_limit") + " --batch 32 --dim 16 --no-progress --out b " +
                                               arguments + "--trained-at 0.05 --first 8");
  INFO(none.err);
  CHECK(none.status == 0);
  CHECK_THAT(none.out, contains("\nNo method trains at a tried depth.\n") &&
                           contains("none (4 was the lowest tried)") && contains("4 (0/1), 8 (0/1)"));
  const Finished bad = run(folder.path(), program("depth_limit") + " --first 20 --most 10");
  CHECK(bad.status == 2);
  CHECK_THAT(bad.err, contains("--first 20 is larger than --most 10"));
}

TEST_CASE("stability_map: the table has both edges and one number per method") {
  const TemporaryFolder folder;
  const Finished f =
      run_tiny(folder, "stability_map", "--gates pre --depths 1 --steps 40 --seeds 0 --trained-at 0.95", small_options);
  CHECK_THAT(f.out, contains("learning rates, in octaves as a mean over depths: pre (at least ") &&
                        contains("Where each method trains") && contains("octaves, mean over depths") &&
                        contains(" to "));
  // The width in the table must follow from the trials. On each side of the first learning rate, the edge lies half way
  // between the last rate that trains and the first rate that does not train.
  std::map<double, bool> trained;
  for (const auto& row : results(folder))
    trained[std::stod(row.at("lr"))] = row.at("status") == "ok" && std::stod(row.at("trained")) > 0;
  CHECK(trained.size() >= 4);
  REQUIRE(trained.at(1e-3));
  double low = 1e-3, high = 1e-3, below = 0, above = 0;
  for (const auto& [rate, trains] : trained)
    if (rate < 1e-3 && !trains) below = rate;
  for (auto it = trained.rbegin(); it != trained.rend(); ++it)
    if (it->first > 1e-3 && !it->second) above = it->first;
  for (const auto& [rate, trains] : trained)
    if (trains && rate > below && (above == 0 || rate < above)) low = std::min(low, rate), high = std::max(high, rate);
  const double octaves = 0.5 * (std::log2(high) + std::log2(above > 0 ? above : high)) -
                         0.5 * (std::log2(low) + std::log2(below > 0 ? below : low));
  const std::string page = slurp(folder / "a/results.md");
  const std::size_t at = page.find("| pre | ", page.find("| octaves, mean over depths |"));
  REQUIRE(at != page.npos);
  const std::string line = page.substr(at, page.find('\n', at) - at),
                    last = line.substr(line.rfind("| ", line.size() - 3) + 2);
  CHECK((last.find("at least") != last.npos) == (below == 0 || above == 0));
  CHECK(std::stod(last.substr(last.find_first_of("0123456789"))) ==
        Approx(octaves).margin(0.12));  // learning rates are printed with two digits
  CHECK_THAT(slurp(folder / "a/report.html"), contains("Edges by depth"));
}

TEST_CASE("depth_stability repeats CaiT's table 1 with its authors' claims") {
  const TemporaryFolder folder;
  const Finished f = run_tiny(folder, "depth_stability", "--preset cait-table1-quick --steps 2 --depths 12");
  CHECK(results(folder).size() == 9);
  CHECK_THAT(f.out, contains("One seed gives no verdicts; ") && contains("Published results"));
  const std::string claims = slurp(folder / "a/claims.csv");
  CHECK_THAT(claims, contains("depth 12: a scalar gate that starts at eps trains better than one that starts at 0") &&
                         contains("depth 12: fixup_ln is as good as LayerScale, within a loss of 0.05") &&
                         !contains("depth 24"));
  CHECK_THAT(slurp(folder / "a/report.html"), contains("Published results") && contains("80.5 % top-1 on ImageNet"));
  // --rebuild restores the claims of the preset from the ledger.
  const Finished report = run(folder.path(), program("report") + " a --markdown table.md");
  CHECK(report.status == 0);
  CHECK(slurp(folder / "a/claims.csv") == claims);
}

TEST_CASE("augmentation works by name and by single options and is refused if it does not suit the images") {
  const TemporaryFolder folder;
  const auto losses = [&](const std::string& arguments) {
    const Finished f =
        run(folder.path(),
            program("depth_stability") +
                " --batch 6 --dim 8 --no-progress --overwrite --gates pre --depths 1 --steps 3 --out c " + arguments);
    INFO(f.err);
    CHECK(f.status == 0);
    return rows_of(slurp(folder / "c/results.csv")).at(0).at("train_loss");
  };
  const std::string plain = losses(""), deit = losses("--augment deit"), again = losses("--augment deit");
  CHECK(plain != deit);
  CHECK(deit == again);
  CHECK_THAT(
      slurp(folder / "c/report.html"),
      contains("crops after padding by 4, RandAugment (2 operations, magnitude 9 ± 0.5), random erasing 0.25, mixup "
               "0.8, cutmix 1, "
               // The recipe has no flips, because a mirrored glyph may be of another class.
               "each image 3 times in a row, labels smoothed by 0.1"));
  CHECK(losses("--augment deit --mixup 0 --cutmix 0") != deit);
  CHECK(losses("--random-erasing 1") != plain);
  CHECK(losses("--crop-scale 0.3") != plain);
  const auto refused = [&](const std::string& arguments, const std::string& text) {
    const Finished f =
        run(folder.path(),
            program("depth_stability") + " --batch 2 --dim 8 --gates pre --depths 1 --steps 3 --out d " + arguments);
    CHECK(f.status == 2);
    CHECK_THAT(f.err, contains(text));
  };
  refused("--flip on", "--flip on does not suit glyphs");
  refused("--augment deit", "--repeated-augmentation 3 is larger than --batch 2");
  refused("--crop-padding 40", "--crop-padding 40 is larger than the image side 32");
  refused("--crop-padding 2 --crop-scale 0.5", "--crop-padding and --crop-scale exclude each other");
}

TEST_CASE("the published setting of every study names the source of each constant and trains") {
  const TemporaryFolder folder;
  const vision::ImageSet glyphs = vision::make_glyphs(vision::GlyphSplit::train, 40);
  for (std::int64_t i = 0; i < 16; ++i) {
    const auto path = folder / fmt::format("images/{}/{}/{}.png", i < 12 ? "train" : "val", i % 2 ? "a" : "b", i);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << vision::png(vision::original(glyphs, i));
  }
  const std::set<std::string> of_this_call{"threads",          "jobs",          "shard",        "preset",
                                           "checkpoint_every", "until_decided", "deterministic"};
  struct Case {
    // `less` has options that make the study small. If `less` is empty, only the configuration of the study is read.
    std::string name, preset, less;
  };
  for (const Case& c : {Case{"depth_stability", "cait-table1", "--depths 2 --gates layerscale,fixup --warmup 0"},
                        {"layerscale_init", "paper", "--depths 2 --epsilons 0,0.1 --warmups 0"},
                        {"residual_ratio", "paper", "--depths 2 --warmup 0"},
                        {"class_attention", "paper", "--designs token,2:1 --depth 2 --warmup 0"},
                        {"stochastic_depth", "paper", "--depths 2 --drop-paths 0,0.1 --warmup 0"},
                        {"norm_placement", "paper", "--depths 2 --gates pre,deepnorm --warmups 0"},
                        {"drop_key", "paper", ""},
                        {"fixup_scalars", "paper", "--depths 2 --pieces whole,nothing"},
                        {"depth_limit", "paper", ""},
                        {"stability_map", "paper", ""}}) {
    CAPTURE(c.name);
    const Finished config = run(folder.path(), program(c.name) + " --print-config --preset " + c.preset);
    REQUIRE(config.status == 0);
    std::istringstream lines(config.out);
    int sourced = 0;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("  \"")) continue;
      const std::string key = line.substr(3, line.find('"', 3) - 3);
      INFO(line);
      if (of_this_call.contains(key)) continue;
      CHECK(line.ends_with("]"));
      ++sourced;
    }
    CHECK(sourced > 40);
    CHECK_THAT(config.out, contains("\n//   AdamW's betas ") && contains(" 0.9, 0.999 ") &&
                               contains("[facebookresearch/deit, main.py") && contains("ours: auto, "));
    // DeiT's settings choose the shared recipe, but Fixup needs its own.
    if (c.name == "fixup_scalars")
      CHECK_THAT(config.out, contains("scalars at 0.1 times the learning rate, no warm-up"));
    if (c.less.empty()) continue;
    const Finished f = run(
        folder.path(),
        program(c.name) + " --preset " + c.preset + " " + c.less +
            " --image-folder images --image-size 16 --batch 4 --steps 2 --dtype fp32 --device cpu --dim 16 --heads 2 "
            "--patch 4 --no-progress --out " +
            c.name);
    INFO(f.err);
    CHECK(f.status == 0);
  }
}

TEST_CASE("Fixup trains without a warm-up") {
  const TemporaryFolder folder;
  REQUIRE(run(folder.path(), program("fixup_scalars") +
                                 " --pieces whole --depths 1 --dim 8 --heads 1 --steps 120 --lrs 0.001 --seeds 0 "
                                 "--no-progress --out a")
              .status == 0);
  const std::string metrics = slurp(folder.path() / "a/metrics.jsonl");
  CHECK_THAT(metrics.substr(0, metrics.find('\n')), contains("\"step\":0,") && contains("\"lr_now\":0.001,"));
}
