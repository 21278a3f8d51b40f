#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/atomic_file.h"
#include "core/device.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/record/study_description.h"
#include "tests/programs/program.h"
#include "tests/support/catch.h"
#include "tests/support/text.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const std::string small_study = program("depth_stability") + " --dim 8 --batch 4 --steps 4 --no-progress ";

// Whether the output is one line that starts with "error: ".
bool one_error_line(const Finished& f) { return f.err.starts_with("error: ") && lines_of(f.err) == 1 && f.out.empty(); }

}  // namespace

TEST_CASE("figures are written with the report and event files with --tensorboard") {
  const TemporaryFolder folder;
  const Finished f =
      run(folder.path(), small_study + "--gates pre,layerscale --depths 1,2 --seeds 0..1 --tensorboard --out a");
  INFO(f.err);
  REQUIRE(f.status == 0);
  for (const char* figure : {"overview", "ranking-depth-1", "ranking-depth-2", "loss-depth-1", "val-accuracy",
                             "ratio-depth-2-attn", "gate-depth-2-mlp", "gate-steps-depth-2"}) {
    INFO(figure);
    CHECK(slurp(folder / ("a/figures/" + std::string(figure) + ".svg")).starts_with("<svg "));
    CHECK(lines_of(slurp(folder / ("a/figures/" + std::string(figure) + ".csv"))) > 1);
  }
  CHECK_THAT(slurp(folder / "a/figures/overview.csv"), contains("\nlayerscale,2,"));
  CHECK_THAT(slurp(folder / "a/tensorboard/layerscale-depth-2-lr-0.003-seed-1/events.out.tfevents.0.plumb"),
             contains("final/val_accuracy"));
}

TEST_CASE("kill -9 at random moments: the resumed sweep has the results of an undisturbed one") {
  const Finished f = run(std::filesystem::temp_directory_path(),
                         test::source_dir() + "/tools/kill_sweep.sh 6 --bin " + test::binary_dir() + "/bin");
  INFO(f.out << f.err);
  CHECK(f.status == 0);
  CHECK_THAT(f.out, contains("6 kills, ") && contains("results equal those of the undisturbed sweep"));
}

TEST_CASE("Ctrl-C at random moments: the resumed sweep has the results of an undisturbed one") {
  const std::string times = "20";
  const Finished f =
      run(std::filesystem::temp_directory_path(),
          test::source_dir() + "/tools/kill_sweep.sh " + times + " --signal INT --bin " + test::binary_dir() + "/bin");
  INFO(f.out << f.err);
  CHECK(f.status == 0);
  CHECK_THAT(f.out, contains(times + " kills, ") && contains("results equal those of the undisturbed sweep"));
}

TEST_CASE("a full disk costs the checkpoint but not the trial") {
  const TemporaryFolder folder;
  const Finished f =
      run(folder.path(),
          "ulimit -f 700; trap '' XFSZ; " + program("depth_stability") +
              " --gates pre --depths 2 --batch 4 --steps 6 --checkpoint-every 0.00001 --no-progress --out a");
  INFO(f.err);
  REQUIRE(f.status == 0);
  CHECK_THAT(f.err, contains("no checkpoint") && contains("pre depth 2 lr 0.003 seed 0: ") &&
                        contains("a/checkpoints/pre-depth-2-lr-0.003-seed-0-"));
  CHECK(rows_of(slurp(folder / "a/results.csv")).at(0).at("status") == "ok");
  CHECK(std::filesystem::is_empty(folder / "a/checkpoints"));
}

TEST_CASE("merged shards of separate processes equal one process and folders that differ are refused") {
  const TemporaryFolder folder;
  const std::string command = small_study + "--gates pre,layerscale,rezero --depths 1,2 ", merge = program("merge");
  REQUIRE(run(folder.path(), command + "--out whole").status == 0);
  REQUIRE(run(folder.path(),
              command + "--shard 1/2 --out s1 & " + command + "--shard 2/2 --jobs 2 --out s2 & wait %1 && wait %2")
              .status == 0);
  CHECK(rows_of(slurp(folder / "s1/results.csv")).size() == 3);
  const Finished merged = run(folder.path(), merge + " s1 s2 --out m");
  INFO(merged.err);
  REQUIRE(merged.status == 0);
  CHECK_THAT(merged.out, contains("layerscale") && contains("report: m/report.html"));
  CHECK(timeless_rows(folder / "m") == timeless_rows(folder / "whole"));
  for (const std::string file : {"metrics.jsonl", "layers.csv"})
    CHECK(slurp(folder / ("m/" + file)) == slurp(folder / ("whole/" + file)));
  const auto description = [&](const std::string& out) {
    return lab::StudyDescription::parse(slurp(folder / (out + "/run.json")), out);
  };
  CHECK(description("m").claims == description("s1").claims);
  // A merged folder is a study folder, and can be extended with further trials.
  REQUIRE(run(folder.path(), command + "--seeds 0..1 --resume --out m").status == 0);
  CHECK(rows_of(slurp(folder / "m/results.csv")).size() == 12);
  // Only the claims of both folders stay. If one of them is older than the rule of judging, so is the merged one.
  for (const bool old_first : {true, false}) {
    for (const std::string part : {"1", "2"}) {
      REQUIRE(run(folder.path(), fmt::format("rm -rf merged p{0} && cp -r s{0} p{0}", part)).status == 0);
      lab::StudyDescription d = description("p" + part);
      CHECK(d.rule == "bets");
      d.claims = {"two", part};
      if (old_first == (part == "1")) d.rule.clear();
      write_file_atomically(folder / ("p" + part + "/run.json"), d.text());
    }
    REQUIRE(run(folder.path(), merge + " p1 p2 --out merged").status == 0);
    CHECK(description("merged").claims == std::vector<std::string>{"two"});
    CHECK(description("merged").rule.empty());
  }

  const auto refused = [&](const std::string& arguments) {
    const Finished f = run(folder.path(), merge + " " + arguments);
    INFO(f.err);
    CHECK(f.status == 2);
    CHECK(one_error_line(f));
    return f.err;
  };
  REQUIRE(run(folder.path(), small_study + "--gates pre --depths 1 --weight-decay 0.1 --out other").status == 0);
  REQUIRE(run(folder.path(),
              program("deep_mlp") + " --depths 2 --width 8 --batch 4 --steps 2 --seeds 0 --no-progress --out mlp")
              .status == 0);
  CHECK_THAT(refused("s1 other --out x"),
             contains("s1 and other") && contains("weight_decay is 0.05 in the first and 0.1 in the second"));
  CHECK_THAT(
      refused("s1 mlp --out x"),
      contains("s1 and mlp") && contains("the experiment is depth_stability in the first and deep_mlp in the second"));
  CHECK_THAT(refused("s1 s2 --out s1"), contains("--out s1 is not empty"));
  CHECK_THAT(refused("s1 nowhere --out x"), contains("nowhere: no such folder"));
  CHECK_THAT(refused("s1 . --out x"), contains(". has no run.json"));
  // A single shard is reported as incomplete. A damaged line of the ledger is reported and left out. If another machine
  // computed trials, the report names that machine.
  const Finished part = run(folder.path(), merge + " s1 --out part");
  CHECK(part.status == 0);
  CHECK_THAT(part.err, contains("3 of 6 trials have ended"));
  REQUIRE(run(folder.path(),
              "cp -r s2 hurt && sed -i '2s/pre/prf/;2s/rezero/rezerp/;2s/layerscale/layerscalf/' hurt/ledger.jsonl")
              .status == 0);
  const Finished without = run(folder.path(), merge + " s1 hurt --out without");
  CHECK(without.status == 0);
  CHECK_THAT(without.err, contains("damaged") && contains("hurt/ledger.jsonl, line 2: ") && contains("left out") &&
                              contains("5 of 6 trials have ended"));
  REQUIRE(run(folder.path(), "cp -r s2 elsewhere && rm elsewhere/ledger.jsonl").status == 0);
  {
    lab::Ledger elsewhere(folder / "elsewhere/ledger.jsonl");
    const lab::Ledger here(folder / "s2/ledger.jsonl");
    for (lab::LedgerEntry e : here.entries()) {
      e.machine = "an abacus";
      elsewhere.append(e);
    }
  }
  const Finished mixed = run(folder.path(), merge + " s1 elsewhere --out mixed");
  CHECK(mixed.status == 0);
  CHECK_THAT(mixed.err, contains("trials come from different machines") && contains("an abacus"));
  // The same trial has another result in the second folder.
  REQUIRE(run(folder.path(), "cp -r whole changed && rm changed/ledger.jsonl").status == 0);
  {
    lab::Ledger changed(folder / "changed/ledger.jsonl");
    const lab::Ledger whole(folder / "whole/ledger.jsonl");
    for (lab::LedgerEntry e : whole.entries()) {
      lab::set_value(e.record.values, "train_loss", 1);
      changed.append(e);
    }
  }
  CHECK_THAT(refused("whole changed --out x"),
             contains("whole and changed have different results for pre depth 1 lr 0.003 seed 0"));
  CHECK_FALSE(std::filesystem::exists(folder / "x"));
}

TEST_CASE("replay calls the study's program and finds a learning rate of 1000 dynamical") {
  const TemporaryFolder folder;
  REQUIRE(run(folder.path(), program("depth_stability") +
                                 " --dim 8 --batch 4 --steps 60 --no-progress --gates pre --depths 2 --lrs 1e3 --out a")
              .status == 0);
  const Finished f = run(folder.path(), program("replay") + " a 'pre depth 2 lr 1000 seed 0'");
  INFO(f.out << f.err);
  CHECK(f.status == 0);
  CHECK_THAT(f.out, contains("recorded as diverged at step") && contains("\ndynamical: "));
  const Finished wrong = run(folder.path(), program("replay") + " a 'pre depth 3 lr 1000 seed 0'");
  CHECK(wrong.status == 2);
  CHECK_THAT(wrong.err, contains("a has no diverged trial of that name; did you mean 'pre depth 2 lr 1000 seed 0'?"));
  CHECK(run(folder.path(), program("replay") + " a").status == 2);
}

TEST_CASE("divergence is a result, also in the last update, and metrics.jsonl has no bare NaN") {
  const TemporaryFolder folder;
  const auto rows = [&](const std::string& arguments) {
    const Finished f = run(folder.path(), program("depth_stability") +
                                              " --dim 8 --batch 4 --no-progress --overwrite --out a " + arguments);
    INFO(f.err);
    REQUIRE(f.status == 0);
    CHECK_THAT(f.err, contains("diverged at step"));
    return rows_of(slurp(folder / "a/results.csv"));
  };
  const auto last = rows("--steps 1 --gates pre --depths 1 --lrs 1e30");
  REQUIRE(last.size() == 1);
  CHECK(last[0].at("status") == "diverged");
  CHECK(last[0].at("train_loss").empty());
  const auto all = rows("--steps 40 --gates rezero,layerscale --depths 2 --lrs 1e18,1e-3");
  REQUIRE(all.size() == 4);
  for (const auto& row : all) {
    const bool wild = std::stod(row.at("lr")) > 1;
    CHECK((row.at("status") == "diverged") == wild);
    CHECK(row.at("train_loss").empty() == wild);
    CHECK(row.at("diverged_at").empty() != wild);
  }
  const std::string metrics = slurp(folder / "a/metrics.jsonl");
  CHECK_THAT(metrics, contains("\"divergence\":\""));
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) CHECK(nlohmann::json::accept(line));
}

TEST_CASE("an error at run time ends with status 1 and one line") {
  const TemporaryFolder folder;
  const std::string command = small_study + "--gates pre --depths 1 ";
  const auto failed = [&](const std::string& flags) {
    const Finished f = run(folder.path(), command + flags);
    INFO(f.err);
    CHECK(f.status == 1);
    CHECK(one_error_line(f));
    return f.err;
  };
  if (const std::string why = why_no_cuda(); !why.empty())
    CHECK_THAT(failed("--device cuda --out a"), contains("--device cuda: " + why));
  CHECK_FALSE(std::filesystem::exists(folder / "a"));
  CHECK_THAT(run(folder.path(), command + "--json --out b > /dev/full").err, contains("error: "));
  const Finished disk = run(folder.path(), "ulimit -f 8; trap '' XFSZ; " + command + "--out c");
  CHECK(disk.status == 1);
  CHECK_THAT(disk.err, contains("error: ") && contains("c/"));
}

TEST_CASE("the option --recipe paper uses and reports each method's recipe and --warmup holds for all methods") {
  const TemporaryFolder folder;
  const std::string command = program("depth_stability") + " --dim 8 --batch 4 --steps 180 --no-progress --depths 1 ";
  const auto rates = [&](const std::string& out, const std::string& gate) {
    std::istringstream lines(slurp(folder / (out + "/metrics.jsonl")));
    std::vector<double> found;
    for (std::string line; std::getline(lines, line);)
      if (const auto json = nlohmann::json::parse(line); json["gate"] == gate) found.push_back(json["lr_now"]);
    return found;
  };
  REQUIRE(run(folder.path(), command + "--gates post,rezero,layerscale --recipe paper --schedule constant --out p")
              .status == 0);
  const auto rising = [&](const std::vector<double>& r) {
    return std::count_if(r.begin(), r.end(), [](double rate) { return rate < 2.999e-3; });
  };
  CHECK(rising(rates("p", "post")) == 6);  // 4 % of 180 steps are seven steps; the last of these has the peak
  CHECK(rising(rates("p", "rezero")) == 0);
  CHECK(rising(rates("p", "layerscale")) == 2);  // 5 / 300 of 180 steps are three steps
  CHECK_THAT(slurp(folder / "p/report.html"),
             contains("recipe of rezero") &&
                 contains("Xavier uniform of the packed qkv, ordinary head, no warm-up (Bachlechner") &&
                 contains("recipe of post") && contains("warm-up of 4 % of the steps"));
  REQUIRE(run(folder.path(), command + "--gates post,rezero --recipe paper --warmup 10 --schedule constant --out w")
              .status == 0);
  CHECK(rising(rates("w", "rezero")) == rising(rates("w", "post")));
  CHECK(rising(rates("w", "rezero")) >= 9);
  REQUIRE(run(folder.path(), command + "--gates post --schedule constant --out s").status == 0);
  CHECK(rising(rates("s", "post")) == 0);
  CHECK_THAT(slurp(folder / "s/report.html"),
             contains("shared, everything equal except the gate") && !contains("recipe of post"));
}

TEST_CASE("one base for all methods by --weight-init under either recipe and in the report") {
  const TemporaryFolder folder;
  const auto loss = [&](const std::string& program_and_words, const std::string& gate = "") {
    const Finished f =
        run(folder.path(),
            program(program_and_words) + " --dim 8 --batch 4 --steps 4 --warmup 0 --no-progress --overwrite --out a");
    INFO(program_and_words << "\n" << f.err);
    CHECK(f.status == 0);
    for (const auto& row : rows_of(slurp(folder / "a/results.csv")))
      if (gate.empty() || row.at("gate") == gate) return row.at("train_loss");
    return std::string();
  };
  struct Losses {
    std::string pre, rezero, report;
  };
  const auto of = [&](const std::string& words) {
    const std::string all = "depth_stability --depths 1 --gates pre,rezero " + words;
    return Losses{loss(all, "pre"), loss(all, "rezero"), slurp(folder / "a/report.html")};
  };
  const Losses shared = of("--weight-init recipe"), same = of("--weight-init truncated_normal"),
               packed = of("--weight-init xavier_packed"), scaled = of("--weight-init scaled_normal"),
               paper = of("--recipe paper --weight-init recipe"),
               paper_shared = of("--recipe paper --weight-init truncated_normal"), paper_scaled = of("--recipe paper");
  CHECK((same.pre == shared.pre && same.rezero == shared.rezero));
  CHECK((packed.pre != shared.pre && packed.rezero != shared.rezero && scaled.pre != shared.pre));
  // If there is no warm-up, the paper's recipe of pre-norm is the shared recipe. The paper's recipe of ReZero then
  // differs only in its packed Glorot weights.
  CHECK((paper.pre == shared.pre && paper.rezero == packed.rezero && paper_shared.rezero == shared.rezero));
  // The default scales a deviation of 0.02 to this width. Other weights of the paper's recipe do not change.
  CHECK((paper_scaled.pre == scaled.pre && paper_scaled.rezero == packed.rezero));
  CHECK_THAT(paper_scaled.report, contains("in place of a std of 0.02: truncated normal, std 0.02 x sqrt(384 / dim)"));
  CHECK_THAT(packed.report, contains("weights Xavier uniform of the packed qkv"));
  CHECK_THAT(paper_shared.report,
             contains("weights: truncated normal, std 0.02") && contains("weights as set by --weight-init"));
  // By default, class_attention scales DeiT's weights to the width, also in the stages of class attention.
  const std::string stages = "class_attention --depth 1 --designs 1:1";
  const std::string by_default = loss(stages);
  CHECK(by_default == loss(stages + " --weight-init scaled_normal"));
  CHECK(by_default != loss(stages + " --weight-init recipe"));
}

TEST_CASE("the option --control changes the report without new trials") {
  const TemporaryFolder folder;
  const std::string command =
      small_study + "--gates pre,post,layerscale --depths 1,2 --at-lr 1e-3,3e-3 --seeds 0..3 --pool mean ";
  REQUIRE(run(folder.path(), command + "--out a").status == 0);
  CHECK_THAT(slurp(folder / "a/report.html"), contains("At depth 2 and lr 0.003,") && contains("<h2>Against pre</h2>"));
  const std::string csv = slurp(folder / "a/comparisons.csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + 2 * 2 * (2 + 3));
  const std::string ledger = slurp(folder / "a/ledger.jsonl");
  const Finished f = run(folder.path(), command + "--control post --resume --out a");
  INFO(f.err);
  REQUIRE(f.status == 0);
  CHECK_THAT(slurp(folder / "a/report.html"), contains("<h2>Against post</h2>"));
  CHECK(slurp(folder / "a/ledger.jsonl") == ledger);
  CHECK_THAT(run(folder.path(), small_study + "--control prr").err, contains("did you mean 'pre'?"));
}

TEST_CASE("shards of methods at their own learning rates merge only with folders of the same rule") {
  const TemporaryFolder folder;
  const std::string command = small_study + "--gates pre,layerscale --depths 1 ", merge = program("merge") + " ";
  for (const std::string more :
       {"--seeds 0..3 --out whole", "--seeds 0..3 --shard 1/2 --out s1", "--seeds 0..3 --shard 2/2 --out s2",
        "--seeds 1..4 --shard 2/2 --out later", "--seeds 0..3 --at-lr 3e-3 --shard 2/2 --out at"})
    REQUIRE(run(folder.path(), command + more).status == 0);
  const Finished merged = run(folder.path(), merge + "s1 s2 --out m");
  INFO(merged.err);
  REQUIRE(merged.status == 0);
  CHECK(timeless_rows(folder / "m") == timeless_rows(folder / "whole"));
  CHECK(slurp(folder / "m/rates.csv") == slurp(folder / "whole/rates.csv"));
  CHECK_THAT(run(folder.path(), merge + "s1 later --out x").err,
             contains("the source of the learning rates is a search by seed 0 in the first and a search by seed 1 in "
                      "the second"));
  CHECK_THAT(run(folder.path(), merge + "s1 at --out x").err, contains("the same rates for all methods in the second"));
}

TEST_CASE("DropKey's expected share is printed before the training and the measured share is in layers.csv") {
  const TemporaryFolder folder;
  for (const auto& [shape, sharing] : {std::pair("plain", "heads"), {"block", "per_entry"}, {"cross", "column"}}) {
    const std::string name = fmt::format("{}_{}", shape, sharing);
    const Finished f =
        run(folder.path(),
            fmt::format("{} --drop-key 0.4 --drop-key-shape {} --drop-key-sharing {} --empty-rows zero --drop-head 0.3 "
                        "--drop-path 0.2 --drop-path-form original --gates layerscale --depths 1 --out {}",
                        small_study, shape, sharing, name));
    INFO(name << f.err);
    REQUIRE(f.status == 0);
    CHECK_THAT(f.err,
               contains(fmt::format("DropKey 0.4, constant, {}, {}; expected share of keys 0.", shape, sharing)) &&
                   contains("probability of an empty row"));
    const auto rows = rows_of(slurp(folder / (name + "/layers.csv")));
    CHECK(std::ranges::count(rows, "attn", [](const auto& row) { return row.at("branch"); }) > 0);
    for (const auto& row : rows) {
      const std::string& share = row.at("drop_ratio");
      CHECK(share.empty() == (row.at("branch") != "attn"));
      if (!share.empty()) CHECK((std::stod(share) > 0.02 && std::stod(share) < 0.9));
    }
  }
}

TEST_CASE("every optimizer and schedule trains and is named in the report") {
  const TemporaryFolder folder;
  struct Trained {
    std::string loss, val_loss, report;
    std::vector<double> rates = {};
  };
  const auto trained = [&](const std::string& flags) {
    const Finished f =
        run(folder.path(), program("depth_stability") +
                               " --dim 8 --batch 4 --no-progress --gates layerscale --depths 1 --steps 8 "
                               "--warmup 2 --lrs 0.01 --overwrite --out a " +
                               flags);
    INFO(flags << "\n" << f.err);
    REQUIRE(f.status == 0);
    const auto row = rows_of(slurp(folder / "a/results.csv")).at(0);
    Trained t{row.at("train_loss"), row.at("val_loss"), slurp(folder / "a/report.html")};
    std::istringstream lines(slurp(folder / "a/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) t.rates.push_back(nlohmann::json::parse(line)["lr_now"]);
    return t;
  };
  const Trained usual = trained("");
  std::set<std::string> losses;
  for (const auto& [flags, title] : std::map<std::string, std::string>{
           {"--optimizer adamw", "AdamW, decay 0.05 on weights, peak learning rate 0.01, warm-up 2, cosine to 0"},
           {"--optimizer sgd", "SGD with Nesterov"},
           {"--optimizer lamb", "LAMB"},
           {"--optimizer adagrad", "Adagrad"},
           {"--weight-decay 2", "decay 2 on weights"},
           {"--clip-norm 0.01 --optimizer sgd", "gradients clipped to norm 0.01"}}) {
    const Trained t = trained(flags);
    INFO(flags);
    CHECK((t.loss == usual.loss) == (flags == "--optimizer adamw"));
    CHECK(t.rates == usual.rates);
    CHECK_THAT(t.report, contains(title));
    losses.insert(t.loss);
  }
  CHECK(losses.size() == 6);
  const Trained averaged = trained("--ema-decay 0.9");  // averaging changes the evaluation, but not the training
  CHECK(averaged.loss == usual.loss);
  CHECK(averaged.val_loss != usual.val_loss);
  CHECK_THAT(averaged.report, contains("moving average of the weights, decay 0.9"));
  const std::vector<double> step{5e-3, 0.01, 0.01, 0.01, 0.01, 1e-3, 1e-3, 1e-4},
      rates = trained("--schedule step").rates;
  REQUIRE(rates.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) CHECK(rates[i] == Approx(step[i]));
}

TEST_CASE("the switch --check-gates reports every rule") {
  const TemporaryFolder folder;
  const Finished f =
      run(folder.path(), program("depth_stability") + " --check-gates --gates layerscale,hyper_connections");
  INFO(f.out << f.err);
  CHECK(f.status == 0);
  CHECK_THAT(f.out, contains("layerscale\n  ok") && contains("second order") && contains("2 of 2 methods conform"));
  CHECK_FALSE(std::filesystem::exists(folder / "runs"));
}

TEST_CASE("real data sets train") {
  const std::filesystem::path data = outside_data() / "data";
  if (!std::filesystem::exists(data / "fashion-mnist"))
    PLUMB_SKIP("no data sets in " + data.string() + "; set PLUMB_TEST_DATA");
  const TemporaryFolder folder;
  const Finished fashion = run(folder.path(), small_study + "--data fashion-mnist --data-dir '" + data.string() +
                                                  "' --gates layerscale --depths 1 --out a");
  INFO(fashion.err);
  CHECK(fashion.status == 0);
  std::filesystem::create_directories(folder.path() / "cifar-100-binary");
  std::filesystem::create_symlink(data / "cifar-100/train.bin.part1of5.gz",
                                  folder.path() / "cifar-100-binary/train.bin.gz");
  std::filesystem::create_symlink(data / "cifar-100/test.bin.gz", folder.path() / "cifar-100-binary/test.bin.gz");
  const Finished cifar =
      run(folder.path(), small_study + "--data cifar-100 --data-dir . --gates layerscale --depths 1 --out b");
  INFO(cifar.err);
  CHECK(cifar.status == 0);
}

TEST_CASE("a network that learns smoothed labels is neither near chance nor hopeless") {
  const TemporaryFolder folder;
  const Finished f =
      run(folder.path(), program("depth_stability") +
                             " --gates pre --depths 2 --dim 32 --heads 2 --batch 32 --steps 320 --seeds 0 "
                             "--at-lr 3e-3 --label-smoothing 0.9 --stop-hopeless --no-progress --out a");
  INFO(f.err);
  REQUIRE(f.status == 0);
  const auto row = rows_of(slurp(folder / "a/results.csv")).at(0);
  CHECK(row.at("status") == "ok");
  CHECK(std::stod(row.at("val_accuracy")) > 0.9);
  CHECK(std::stod(row.at("train_loss")) > 0.95 * std::log(10.0));  // near the entropy of the labels, below chance
  CHECK(std::stod(row.at("target_entropy")) == Approx(-(0.19 * std::log(0.19) + 9 * 0.09 * std::log(0.09))));
  CHECK_THAT(slurp(folder / "a/results.md"), contains("to a training loss of 2.2") && !contains("near chance"));
}
