#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "core/atomic_file.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/record/study_description.h"
#include "nn/gates/method.h"
#include "tests/programs/program.h"
#include "tests/support/catch.h"
#include "tests/support/text.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const std::string small_study = program("depth_stability") + " --dim 8 --batch 4 --steps 4 --no-progress ";

// results.csv without its last two columns, which have times. The other columns depend only on settings, code and data.
std::string deterministic(const std::string& csv) {
  std::string text;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.rfind(','));
    text += line.substr(0, line.rfind(',')) + '\n';
  }
  return text;
}

// The number of lines before the first empty line.
int runs_of(const std::string& dry_run) { return lines_of(dry_run.substr(0, dry_run.find("\n\n") + 1)); }

// Whether the output is one line that starts with "error: ".
bool one_error_line(const Finished& f) { return f.err.starts_with("error: ") && lines_of(f.err) == 1 && f.out.empty(); }

}  // namespace

TEST_CASE("a study writes its folder and prints its table with the same bytes each time") {
  const TemporaryFolder folder;
  const Finished first = run(folder.path(), small_study + "--gates pre,layerscale --depths 1,2 --seeds 0..1 --out a");
  INFO(first.err);
  REQUIRE(first.status == 0);
  CHECK_THAT(first.out, contains("layerscale") && contains("report: a/report.html"));
  const std::string csv = slurp(folder.path() / "a/results.csv");
  CHECK(
      csv.starts_with("gate,depth,lr,seed,status,steps,train_loss,val_loss,val_accuracy,diverged_at,seconds,images_per_"
                      "second\npre,1,0.003,0,ok,4,"));
  CHECK(lines_of(csv) == 1 + 8);
  CHECK(lines_of(slurp(folder.path() / "a/metrics.jsonl")) == 8 * 4);
  CHECK(lines_of(slurp(folder.path() / "a/layers.csv")) == 1 + 2 * 4 * (2 * 1 + 2 * 2) * 2);
  CHECK_THAT(slurp(folder.path() / "a/report.html"), contains("<svg") && contains("layerscale"));
  const auto info = nlohmann::json::parse(slurp(folder.path() / "a/run.json"));
  CHECK(info["settings"]["depths"] == std::vector<int>{1, 2});

  REQUIRE(
      run(folder.path(), small_study + "--gates pre,layerscale --depths 1,2 --seeds 0..1 --out b --threads 1").status ==
      0);
  CHECK(deterministic(slurp(folder.path() / "b/results.csv")) == deterministic(csv));
  for (const char* file : {"metrics.jsonl", "layers.csv"})
    CHECK(slurp(folder.path() / "b" / file) == slurp(folder.path() / "a" / file));
}

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
  REQUIRE(run(folder.path(), small_study + "--gates pre --depths 1 --out a --overwrite").status == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "a/tensorboard"));
  CHECK_FALSE(std::filesystem::exists(folder / "a/figures/overview.svg"));  // there is only one depth and one method
}

TEST_CASE("a folder with results is refused or resumed or overwritten") {
  const TemporaryFolder folder;
  const std::string command = small_study + "--gates pre,rezero --depths 1 --out a ";
  REQUIRE(run(folder.path(), command).status == 0);
  const std::string csv = slurp(folder.path() / "a/results.csv"), metrics = slurp(folder.path() / "a/metrics.jsonl");

  const Finished refused = run(folder.path(), command);
  CHECK(refused.status == 2);
  CHECK(one_error_line(refused));
  CHECK_THAT(refused.err, contains("--resume") && contains("--overwrite"));
  CHECK(slurp(folder.path() / "a/results.csv") == csv);

  const Finished complete = run(folder.path(), command + "--resume");
  CHECK(complete.status == 0);
  CHECK(slurp(folder.path() / "a/results.csv") == csv);  // the files are equal in every byte, so no trial ran again

  const Finished other = run(folder.path(), command + "--resume --steps 5");
  CHECK(other.status == 2);
  CHECK_THAT(other.err, contains("steps"));

  // The second trial is removed from the ledger, as if the process had been killed during that trial. Only that trial
  // runs again.
  const std::string ledger = slurp(folder.path() / "a/ledger.jsonl");
  { std::ofstream(folder.path() / "a/ledger.jsonl") << ledger.substr(0, ledger.find('\n') + 1); }
  REQUIRE(run(folder.path(), command + "--resume").status == 0);
  CHECK(deterministic(slurp(folder.path() / "a/results.csv")) == deterministic(csv));
  CHECK(slurp(folder.path() / "a/results.csv").starts_with(csv.substr(0, csv.rfind('\n', csv.size() - 2))));
  CHECK(slurp(folder.path() / "a/metrics.jsonl") == metrics);

  CHECK(run(folder.path(), command + "--overwrite").status == 0);
  CHECK(run(folder.path(), "mkdir e && " + small_study + "--gates pre --depths 1 --resume --out e").status == 0);
}

TEST_CASE("Ctrl-C ends a sweep with status 130 and keeps finished trials and the sweep can be resumed") {
  const TemporaryFolder folder;
  const std::string command = program("depth_stability") +
                              " --dim 8 --batch 4 --gates pre,post,rezero,layerscale --depths 1 --steps 400 --out a ";
  const Finished stopped = run(
      folder.path(),
      command +
          " & pid=$!; until [ -s a/results.csv ] || ! kill -0 $pid; do sleep 0.02; done; kill -INT $pid; wait $pid");
  INFO(stopped.err);
  REQUIRE(stopped.status == 130);
  CHECK_THAT(stopped.err, contains("--resume"));
  const auto finished = rows_of(slurp(folder.path() / "a/results.csv"));
  CHECK(!finished.empty());
  CHECK(run(folder.path(), command + "--resume").status == 0);
  CHECK(rows_of(slurp(folder.path() / "a/results.csv")).size() == 4);
  REQUIRE(run(folder.path(), command + "--out b").status == 2);  // the error is that --out is given twice
  REQUIRE(run(folder.path(), program("depth_stability") +
                                 " --dim 8 --batch 4 --gates pre,post,rezero,layerscale --depths 1 --steps 400 --out b")
              .status == 0);
  CHECK(deterministic(slurp(folder.path() / "a/results.csv")) == deterministic(slurp(folder.path() / "b/results.csv")));
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
  CHECK(deterministic(slurp(folder / "m/results.csv")) == deterministic(slurp(folder / "whole/results.csv")));
  for (const std::string file : {"metrics.jsonl", "layers.csv"})
    CHECK(slurp(folder / ("m/" + file)) == slurp(folder / ("whole/" + file)));
  using Looks = std::vector<std::vector<std::int64_t>>;
  const auto description = [&](const std::string& out) {
    return lab::StudyDescription::parse(slurp(folder / (out + "/run.json")), out);
  };
  CHECK(description("m").claims == description("s1").claims);
  CHECK(description("m").looks == Looks{{0}});
  // A merged folder is a study folder, and can be extended with further trials.
  REQUIRE(run(folder.path(), command + "--seeds 0..1 --resume --out m").status == 0);
  CHECK(rows_of(slurp(folder / "m/results.csv")).size() == 12);
  CHECK(description("m").looks == Looks{{0}, {0, 1}});
  // Only the claims of both folders stay. The longer list of looks counts, and other seeds are a further look.
  const auto merged_with = [&](const std::vector<std::string>& claims, const Looks& looks) {
    for (const auto& [out, first] : {std::pair("p1", true), {"p2", false}}) {
      REQUIRE(run(folder.path(), fmt::format("rm -rf merged {0} && cp -r {1} {0}", out, first ? "s1" : "s2")).status ==
              0);
      lab::StudyDescription d = description(out);
      d.claims = first ? std::vector<std::string>{"one", "two"} : claims;
      d.looks = first ? Looks{{0, 5}} : looks;
      write_file_atomically(folder / (std::string(out) + "/run.json"), d.text());
    }
    REQUIRE(run(folder.path(), merge + " p1 p2 --out merged").status == 0);
    return description("merged");
  };
  const lab::StudyDescription united = merged_with({"two", "three"}, {{0}, {0, 7}});
  CHECK(united.claims == std::vector<std::string>{"two"});
  CHECK(united.looks == Looks{{0}, {0, 7}, {0, 7, 5}});

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
  CHECK_THAT(refused("s1 s2"), contains("expected merge DIR.. --out DIR"));
  CHECK_THAT(refused("s1 --outt x"), contains("unknown option --outt"));
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

TEST_CASE("report writes tables and pages again from the ledger and tables for documents") {
  const TemporaryFolder folder;
  REQUIRE(run(folder.path(), small_study + "--gates pre,layerscale --depths 1 --seeds 0..1 --out a").status == 0);
  std::map<std::string, std::string> files;
  for (const std::string file : {"results.csv", "metrics.jsonl", "layers.csv", "report.html", "results.md"}) {
    files[file] = slurp(folder / ("a/" + file));
    std::filesystem::remove(folder / ("a/" + file));
  }
  const Finished f = run(folder.path(), program("report") + " a --markdown table.md");
  INFO(f.err);
  REQUIRE(f.status == 0);
  CHECK_THAT(f.out, contains("layerscale") && contains("report: a/report.html"));
  for (const auto& [file, text] : files) CHECK(slurp(folder / ("a/" + file)) == text);
  CHECK_THAT(slurp(folder / "table.md"),
             contains("| gate | depth | lr | train_loss | val_accuracy | n | outcome |\n| --- |") &&
                 contains("| pre | 1 | 0.003 |"));
  CHECK(run(folder.path(), program("report")).status == 2);
  CHECK_THAT(run(folder.path(), program("report") + " nowhere").err, contains("nowhere: no such folder"));
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

TEST_CASE("divergence is a result: the sweep continues with status 0 and without a bare NaN") {
  const TemporaryFolder folder;
  const Finished f = run(
      folder.path(), program("depth_stability") +
                         " --dim 8 --batch 4 --steps 40 --gates rezero,layerscale --depths 2 --lrs 1e18,1e-3 --out a");
  INFO(f.err);
  REQUIRE(f.status == 0);
  CHECK_THAT(f.err, contains("diverged at step"));
  const auto rows = rows_of(slurp(folder.path() / "a/results.csv"));
  REQUIRE(rows.size() == 4);
  for (const auto& row : rows) {
    const bool wild = std::stod(row.at("lr")) > 1;
    CHECK((row.at("status") == "diverged") == wild);
    CHECK(row.at("train_loss").empty() == wild);
    CHECK(row.at("diverged_at").empty() != wild);
  }
  const std::string metrics = slurp(folder.path() / "a/metrics.jsonl");
  CHECK(metrics.find("NaN") == std::string::npos);
  CHECK(metrics.find("nan,") == std::string::npos);
  CHECK_THAT(metrics, contains("\"divergence\":\""));
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) CHECK(nlohmann::json::accept(line));
}

TEST_CASE("a last update that spoils the weights is a divergence") {
  const TemporaryFolder folder;
  REQUIRE(run(folder.path(),
              program("depth_stability") + " --dim 8 --batch 4 --steps 1 --gates pre --depths 1 --lrs 1e30 --out a")
              .status == 0);
  const auto rows = rows_of(slurp(folder.path() / "a/results.csv"));
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].at("status") == "diverged");
  CHECK(rows[0].at("train_loss").empty());
}

TEST_CASE("an error on the command line ends with status 2 and one line and a suggestion") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& flags) {
    const Finished f = run(folder.path(), program("depth_stability") + " " + flags);
    INFO(f.err);
    CHECK(f.status == 2);
    CHECK(one_error_line(f));
    return f.err;
  };
  CHECK_THAT(refused("--gate pre"), contains("--gates"));
  CHECK_THAT(refused("--gates layer_scale"), contains("layerscale"));
  CHECK_THAT(refused("--data fashon-mnist"), contains("fashion-mnist"));
  CHECK_THAT(refused("--preset quik"), contains("quick"));
  CHECK_THAT(refused("--steps 0"), contains("--steps"));
  CHECK_THAT(refused("--threads 100000"), contains("--threads"));
  CHECK(run(folder.path(), program("depth_stability") + " --bad 2>/dev/full").status == 2);
  CHECK_THAT(refused("--depths 6,,8"), contains("--depths"));
  CHECK_THAT(refused("--drop-key 1.5"), contains("--drop-key"));
  CHECK_THAT(refused("--dim 63"), contains("--heads 2"));
  CHECK_THAT(refused("--patch 5"), contains("--patch 5"));
  CHECK_THAT(refused("--device tpu"), contains("cpu"));
  CHECK(std::filesystem::is_empty(folder.path()) == false);  // the folder has only .stdout and .stderr
  CHECK_FALSE(std::filesystem::exists(folder.path() / "runs"));
}

TEST_CASE("an error at run time ends with status 1 and one line and no files") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "data/fashion-mnist");
  std::ofstream(folder.path() / "data/fashion-mnist/train-images-idx3-ubyte")
      << std::string("\x00\x00\x08\x03\x7f\xff\xff\xff\x00\x00\x00\x1c\x00\x00\x00\x1c", 16);
  for (const char* file : {"train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"})
    std::ofstream(folder.path() / "data/fashion-mnist" / file) << "x";
  const auto failed = [&](const std::string& flags) {
    const Finished f = run(folder.path(), small_study + "--gates pre --depths 1 --out a " + flags);
    INFO(f.err);
    CHECK(f.status == 1);
    CHECK(one_error_line(f));
    CHECK_FALSE(std::filesystem::exists(folder.path() / "a"));
    return f.err;
  };
  CHECK_THAT(failed("--data fashion-mnist --data-dir nowhere"), contains("nowhere"));
  const Finished large =
      run(folder.path(), program("depth_stability") + " --batch 100000 --gates pre --depths 1 --out a");
  CHECK(large.status == 1);
  CHECK_THAT(large.err, contains("--batch 100000 is more than the 12800 training images"));
  CHECK_THAT(failed("--data fashion-mnist --data-dir data"), contains("train-images-idx3-ubyte"));
  if (const std::string why = why_no_cuda(); !why.empty())
    CHECK_THAT(failed("--device cuda"), contains("--device cuda: " + why));
  const Finished full = run(folder.path(), small_study + "--gates pre --depths 1 --json --out b > /dev/full");
  CHECK(full.status == 1);
  CHECK_THAT(full.err, contains("error: "));
  const Finished disk =
      run(folder.path(), "ulimit -f 8; trap '' XFSZ; " + small_study + "--gates pre --depths 1 --out c");
  CHECK(disk.status == 1);
  CHECK_THAT(disk.err, contains("error: ") && contains("c/"));
}

TEST_CASE("printed settings can be read back and lists and dry runs go to stdout") {
  const TemporaryFolder folder;
  const Finished printed =
      run(folder.path(), program("depth_stability") +
                             " --preset quick --seeds 0..2 --drop-path 0.1 --drop-path-schedule linear --print-config");
  REQUIRE(printed.status == 0);
  std::ofstream(folder.path() / "config.json") << printed.out;
  const Finished again = run(folder.path(), program("depth_stability") + " --config config.json --print-config");
  CHECK(again.out == printed.out);
  const Finished list = run(folder.path(), program("depth_stability") + " --list-gates");
  for (const std::string& gate : nn::method_names()) CHECK_THAT(list.out, contains(gate));
  CHECK(runs_of(run(folder.path(), program("depth_stability") + " --preset quick --dry-run").out) == 12);
  const Finished dry =
      run(folder.path(), program("depth_stability") +
                             " --gates all --depths 6,24,48 --seeds 0..2,7 --at-lr 3e-3 --dim 8 --batch 4 --dry-run");
  const auto runs = static_cast<int>(nn::method_names().size()) * 3 * 4;
  CHECK(runs_of(dry.out) == runs);
  CHECK_THAT(dry.out, contains(std::to_string(runs) +
                               " trials of 300 steps of 4 images: " + std::to_string(300 * runs) + " steps") &&
                          contains("parameters of a network: ") && contains("training: about ") &&
                          contains("2000 validation images: the generated test set"));
  CHECK_THAT(run(folder.path(), program("depth_stability") + " --version").out, contains("depth_stability 0."));
  CHECK_THAT(run(folder.path(), program("depth_stability") + " --help").out,
             contains("--drop-key-schedule") && contains("--gates"));
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
  const std::string command =
      program("depth_stability") + " --dim 8 --batch 4 --steps 4 --no-progress --depths 1 --gates pre,rezero ";
  const auto loss = [&](const std::string& out, const std::string& gate) {
    for (const auto& row : rows_of(slurp(folder / (out + "/results.csv"))))
      if (row.at("gate") == gate) return row.at("train_loss");
    return std::string();
  };
  REQUIRE(run(folder.path(), command + "--weight-init recipe --out shared").status == 0);
  REQUIRE(run(folder.path(), command + "--weight-init truncated_normal --out same").status == 0);
  REQUIRE(run(folder.path(), command + "--weight-init xavier_packed --out packed").status == 0);
  REQUIRE(run(folder.path(), command + "--recipe paper --warmup 0 --weight-init recipe --out paper").status == 0);
  REQUIRE(run(folder.path(), command + "--recipe paper --warmup 0 --weight-init truncated_normal --out paper-shared")
              .status == 0);
  for (const std::string gate : {"pre", "rezero"}) {
    CHECK(loss("same", gate) == loss("shared", gate));
    CHECK(loss("packed", gate) != loss("shared", gate));
  }
  // If there is no warm-up, the paper's recipe of pre-norm is the shared recipe. The paper's recipe of ReZero then
  // differs only in its packed Glorot weights.
  CHECK(loss("paper", "pre") == loss("shared", "pre"));
  CHECK(loss("paper", "rezero") == loss("packed", "rezero"));
  CHECK(loss("paper-shared", "rezero") == loss("shared", "rezero"));
  // recipe_scaled scales a deviation of 0.02 to this width. Other weights of the paper's recipe do not change.
  REQUIRE(run(folder.path(), command + "--weight-init scaled_normal --out scaled").status == 0);
  REQUIRE(run(folder.path(), command + "--recipe paper --warmup 0 --out paper-scaled").status == 0);
  CHECK(loss("paper-scaled", "pre") == loss("scaled", "pre"));
  CHECK(loss("scaled", "pre") != loss("shared", "pre"));
  CHECK(loss("paper-scaled", "rezero") == loss("packed", "rezero"));
  CHECK_THAT(slurp(folder / "paper-scaled/report.html"),
             contains("in place of a std of 0.02: truncated normal, std 0.02 x sqrt(384 / dim)"));
  CHECK_THAT(slurp(folder / "packed/report.html"), contains("weights Xavier uniform of the packed qkv"));
  CHECK_THAT(slurp(folder / "paper-shared/report.html"),
             contains("weights: truncated normal, std 0.02") && contains("weights as set by --weight-init"));
  const Finished bad = run(folder.path(), command + "--weight-init glorot --out bad");
  CHECK(bad.status == 2);
  CHECK_THAT(bad.err, contains("glorot") && contains("recipe") && contains("xavier_packed"));
  // The program class_attention trains narrow networks. By default the program scales DeiT's weights to the width of
  // the network, also in the stages of class attention, as --weight-init scaled_normal does.
  const std::string stages =
      program("class_attention") + " --dim 8 --batch 4 --steps 4 --warmup 0 --no-progress --depth 1 --designs 1:1 ";
  REQUIRE(run(folder.path(), stages + "--out stages").status == 0);
  REQUIRE(run(folder.path(), stages + "--weight-init scaled_normal --out stages-scaled").status == 0);
  REQUIRE(run(folder.path(), stages + "--weight-init recipe --out stages-recipe").status == 0);
  const auto only_loss = [&](const std::string& out) {
    return rows_of(slurp(folder / (out + "/results.csv"))).at(0).at("train_loss");
  };
  CHECK(only_loss("stages") == only_loss("stages-scaled"));
  CHECK(only_loss("stages") != only_loss("stages-recipe"));
}

TEST_CASE("the option --control changes the report without new trials") {
  const TemporaryFolder folder;
  const std::string command =
      small_study + "--gates pre,post,layerscale --depths 1,2 --at-lr 1e-3,3e-3 --seeds 0..3 --pool mean ";
  REQUIRE(run(folder.path(), command + "--out a").status == 0);
  CHECK_THAT(slurp(folder / "a/report.html"), contains("At depth 2 and lr 0.003,") && contains("<h2>Against pre</h2>"));
  const std::string csv = slurp(folder / "a/comparisons.csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') ==
        1 + 2 * (2 + 3));  // no network trains here, so methods are not compared at depth 2
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
  CHECK(deterministic(slurp(folder / "m/results.csv")) == deterministic(slurp(folder / "whole/results.csv")));
  CHECK(slurp(folder / "m/rates.csv") == slurp(folder / "whole/rates.csv"));
  CHECK_THAT(run(folder.path(), merge + "s1 later --out x").err,
             contains("the source of the learning rates is a search by seed 0 in the first and a search by seed 1 in "
                      "the second"));
  CHECK_THAT(run(folder.path(), merge + "s1 at --out x").err, contains("the same rates for all methods in the second"));
}

TEST_CASE("every kind of dropping and dtype and device and init runs and --json prints JSON") {
  const TemporaryFolder folder;
  const std::string dropping =
      "--drop-key 0.3 --drop-key-schedule decreasing --attn-drop 0.1 --drop-path 0.2 --drop-path-schedule linear "
      "--recipe paper --warmup 2 ";
  const Finished f = run(folder.path(), small_study + dropping + "--gates all --depths 2 --json --out a");
  INFO(f.err);
  REQUIRE(f.status == 0);
  const auto json = nlohmann::json::parse(f.out);
  CHECK(json["results"].size() == nn::method_names().size());
  const std::string tiny = program("depth_stability") + " --dim 8 --batch 2 --steps 2 --json --no-progress ";
  const Finished f64 =
      run(folder.path(), tiny + dropping + "--gates rezero --depths 1 --dtype fp64 --device reference --out b");
  const Finished f32 = run(folder.path(), tiny + dropping + "--gates rezero --depths 1 --out c");
  INFO(f64.err);
  REQUIRE(f64.status == 0);
  REQUIRE(f32.status == 0);
  const double a = nlohmann::json::parse(f64.out)["results"][0]["train_loss"],
               b = nlohmann::json::parse(f32.out)["results"][0]["train_loss"];
  CHECK(std::abs(a - b) < 1e-5);  // both backends use the same random draws
}

TEST_CASE("DropKey's expected share is printed before the training for every form") {
  const TemporaryFolder folder;
  for (const std::string shape : {"plain", "block", "cross"})
    for (const std::string sharing : {"per_entry", "heads", "column"}) {
      const std::string name = shape + "_" + sharing;
      const Finished f =
          run(folder.path(),
              small_study + "--drop-key 0.4 --drop-key-shape " + shape + " --drop-key-sharing " + sharing +
                  " --empty-rows zero --drop-head 0.3 --drop-path 0.2 --drop-path-form original --gates layerscale "
                  "--depths 1 --out " +
                  name);
      INFO(name << f.err);
      REQUIRE(f.status == 0);
      CHECK_THAT(f.err, contains("DropKey 0.4, constant, " + shape + ", " + sharing + "; expected share of keys 0.") &&
                            contains("probability of an empty row"));
      std::istringstream rows(slurp(folder / (name + "/layers.csv")));
      std::string line;
      std::getline(rows, line);
      REQUIRE(line.ends_with(",drop_ratio,empty_rows,change"));
      int logged = 0;
      while (std::getline(rows, line)) {
        const bool attention = line.find(",attn,") != std::string::npos;
        const std::size_t last = line.rfind(',', line.rfind(',') - 1), before = line.rfind(',', last - 1);
        const std::string ratio = line.substr(before + 1, last - before - 1);
        CHECK(ratio.empty() != attention);
        if (!attention) continue;
        ++logged;
        const double dropped = std::stod(ratio);
        CHECK((dropped > 0.02 && dropped < 0.9));
      }
      CHECK(logged > 0);
    }
  const Finished wide =
      run(folder.path(),
          small_study + "--drop-key 0.4 --drop-key-shape block --drop-key-window 7 --gates pre --depths 1 --out wide");
  CHECK(wide.status == 2);
  CHECK_THAT(wide.err, contains("window"));
  CHECK_FALSE(std::filesystem::exists(folder / "wide"));
  CHECK(run(folder.path(), small_study + "--drop-key-shape square --gates pre").status == 2);
}

TEST_CASE("every optimizer and schedule trains and is named in the report") {
  const TemporaryFolder folder;
  const std::string command =
      program("depth_stability") +
      " --dim 8 --batch 4 --no-progress --gates layerscale --depths 1 --steps 8 --warmup 2 --lrs 0.01 ";
  const auto trained = [&](const std::string& name, const std::string& flags) {
    const Finished f = run(folder.path(), command + flags + " --out " + name);
    INFO(f.err);
    REQUIRE(f.status == 0);
    const auto rows = rows_of(slurp(folder / (name + "/results.csv")));
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].at("steps") == "8");
    std::vector<double> rates;
    std::istringstream lines(slurp(folder / (name + "/metrics.jsonl")));
    for (std::string line; std::getline(lines, line);) rates.push_back(nlohmann::json::parse(line)["lr_now"]);
    CHECK(rates.size() == 8);
    return std::tuple(std::stod(rows[0].at("train_loss")), std::stod(rows[0].at("val_loss")), rates,
                      slurp(folder / (name + "/report.html")));
  };
  const auto [loss, val_loss, rates, report] = trained("default", "");
  CHECK_THAT(report, contains("AdamW, decay 0.05 on weights, peak learning rate 0.01, warm-up 2, cosine to 0"));
  std::set<double> losses;
  for (const auto& [name, title] : std::map<std::string, std::string>{
           {"adamw", "AdamW, decay"}, {"sgd", "SGD with Nesterov"}, {"lamb", "LAMB"}, {"adagrad", "Adagrad"}}) {
    const auto [l, v, r, text] = trained(name, "--optimizer " + name);
    CHECK(r == rates);
    CHECK((l == loss) == (name == "adamw"));
    losses.insert(l);
    INFO(name);
    CHECK_THAT(text, contains(title));
  }
  CHECK(losses.size() == 4);
  const std::map<std::string, std::vector<double>> courses{
      {"constant", {5e-3, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01}},
      {"cosine", rates},
      {"inverse_sqrt",
       {5e-3, 0.01, 0.01 * std::sqrt(2 / 3.), 0.01 * std::sqrt(2 / 4.), 0.01 * std::sqrt(2 / 5.),
        0.01 * std::sqrt(2 / 6.), 0.01 * std::sqrt(2 / 7.), 0.01 * std::sqrt(2 / 8.)}},
      {"step", {5e-3, 0.01, 0.01, 0.01, 0.01, 1e-3, 1e-3, 1e-4}}};
  for (const auto& [name, expected] : courses) {
    const auto r = std::get<2>(trained("s_" + name, "--schedule " + name));
    INFO(name);
    for (std::size_t i = 0; i < 8; ++i) CHECK(r[i] == Approx(expected[i]));
  }
  CHECK(std::get<0>(trained("decay", "--weight-decay 2")) != loss);
  const auto clipped = trained("clip", "--clip-norm 0.01 --optimizer sgd");
  CHECK(!losses.contains(std::get<0>(clipped)));
  CHECK_THAT(std::get<3>(clipped), contains("gradients clipped to norm 0.01"));
  const auto averaged = trained("ema", "--ema-decay 0.9");  // averaging changes the evaluation, but not the training
  CHECK(std::get<0>(averaged) == loss);
  CHECK(std::get<1>(averaged) != val_loss);
  CHECK_THAT(std::get<3>(averaged), contains("moving average of the weights, decay 0.9"));

  for (const auto& [flags, message] :
       std::map<std::string, std::string>{{"--optimizer rmsprop", "known: adamw, sgd, lamb, adagrad"},
                                          {"--schedule exponential", "known: constant, cosine, inverse_sqrt, step"},
                                          {"--weight-decay -1", "--weight-decay"},
                                          {"--clip-norm -1", "--clip-norm"},
                                          {"--ema-decay 1", "--ema-decay"}}) {
    const Finished f = run(folder.path(), command + flags + " --out refused");
    INFO(f.err);
    CHECK(f.status == 2);
    CHECK(one_error_line(f));
    CHECK_THAT(f.err, contains(message));
  }
  CHECK_FALSE(std::filesystem::exists(folder / "refused"));
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
  CHECK_THAT(slurp(folder / "a/results.md"),
             contains("pre trained, to a training loss of 2.2") && !contains("near chance"));
}
