// Tests of study folders from elsewhere: report, merge, replay and --rebuild execute no program that
// run.json names, and read and write no files outside the folder.
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "experiments/lab/record/ledger.h"
#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;
namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

const std::string tiny = " --dim 8 --batch 4 --steps 2 --no-progress ",
                  tiny_study = program("depth_stability") + tiny + "--gates pre --depths 1 ";

// Runs the command with a limit of 20 seconds; status 124 means that the command waited, such as for a pipe.
Finished limited(const fs::path& folder, const std::string& command) { return run(folder, "timeout 20 " + command); }

// Changes run.json of the study folder `study`.
template <class F>
void change(const fs::path& study, F&& f) {
  Json run = Json::parse(read_file(study / "run.json"));
  f(run);
  write_file_atomically(study / "run.json", run.dump(2) + "\n");
}

void write_program(const fs::path& path, const std::string& text) {
  write_file_atomically(path, "#!/bin/sh\n" + text + "\n");
  fs::permissions(path, fs::perms::owner_all);
}

// A pipe without a writer: a program that opens it waits.
fs::path make_pipe(const fs::path& path) {
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  return path;
}

}  // namespace

TEST_CASE("report, merge and replay execute no program that run.json names or that lies beside it") {
  const TemporaryFolder folder;
  REQUIRE(run(folder.path(), tiny_study + "--out study").status == 0);
  const fs::path ran = folder / "ran";
  for (const char* name :
       {"study/depth_stability", "study/depth_stability_v2", "depth_stability", "depth_stability_v2"})
    write_program(folder / name, "touch " + ran.string());
  const auto no_trial = "has no diverged trial of that name";
  for (const fs::path& at : {fs::path("/home/author/bin/depth_stability_v2"), fs::path("depth_stability"),
                             fs::path("../depth_stability"), folder / "study/depth_stability_v2"}) {
    INFO(at);
    change(folder / "study", [&](Json& run) { run["program"] = at.string(); });
    for (const char* where : {".", "study"}) {
      const std::string study = where == std::string(".") ? "study" : ".";
      CHECK(run(folder / where, program("report") + " " + study).status == 0);
      CHECK_THAT(run(folder / where, program("replay") + " " + study + " 'pre'").err, contains(no_trial));
      CHECK(run(folder / where, program("merge") + " " + study + " --out ../merged").status == 0);
      fs::remove_all(folder / "merged"), fs::remove_all(folder.path().parent_path() / "merged");
    }
  }
  // A study that is not one of Plumb's is shown only by a program that the user types.
  for (const std::string name : {"depth_stability_v2", "./depth_stability_v2", "report", "attention_maps", ""}) {
    INFO(name);
    change(folder / "study", [&](Json& run) { run["experiment"] = name; });
    const Finished refused = run(folder.path(), program("report") + " study");
    CHECK(refused.status == 2);
    CHECK(refused.err == "error: study: '" + name +
                             "' is not a study of Plumb; call its program, PROGRAM --rebuild --out study, or give it "
                             "with --program PROGRAM\n");
    CHECK_THAT(run(folder.path(), program("replay") + " study 'a b'").err,
               contains("PROGRAM --replay 'a b' --out study"));
    const Finished merged = run(folder.path(), program("merge") + " study --out merged");
    CHECK(merged.status == 2);
    CHECK_THAT(merged.err, contains("PROGRAM --rebuild --out merged"));
    CHECK(fs::exists(folder / "merged/ledger.jsonl"));
    fs::remove_all(folder / "merged");
  }
  CHECK_FALSE(fs::exists(ran));
  write_program(folder / "typed", "echo \"$@\"; exit 3");
  const Finished typed = run(folder.path(), program("report") + " study --program ./typed");
  CHECK(typed.status == 3);
  CHECK(typed.out == "--config study/run.json --out study --rebuild\n");
  CHECK_THAT(run(folder.path(), program("report") + " study --program ./absent").err,
             contains("cannot run --program ./absent"));
  change(folder / "study", [](Json& run) { run["experiment"] = "depth_stability_v2"; });
  write_file_atomically(folder / "kept.json", read_file(folder / "study/run.json"));
  write_file_atomically(folder / "kept.jsonl", read_file(folder / "study/ledger.jsonl"));
  CHECK_THAT(run(folder.path(), program("report") + " kept.jsonl --markdown x.md").err,
             contains("kept.jsonl: 'depth_stability_v2' is not a study of Plumb; give its program with --program"));
}

TEST_CASE("report shows a study with a custom gate by the program that the user types") {
  const TemporaryFolder folder;
  const std::string own = program("example_own_gate");
  REQUIRE(run(folder.path(), own + tiny + "--gates tanh_gate --depths 1 --out a").status == 0);
  const Finished refused = run(folder.path(), program("report") + " a");
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, contains("unknown method 'tanh_gate'") &&
                              contains("a was written by a program named example_own_gate, which may have gates or "
                                       "options of its own: call its program, PROGRAM --rebuild --out a, or give it "
                                       "with --program PROGRAM\n"));
  const Finished shown = run(folder.path(), program("report") + " a --program " + own);
  INFO(shown.err);
  CHECK(shown.status == 0);
  CHECK_THAT(shown.out, contains("tanh_gate") && contains("report: a/report.html"));
  CHECK(run(folder.path(), program("merge") + " a --out m --program " + own).status == 0);
}

TEST_CASE("a study folder with a link or a pipe is refused and the target is neither read nor written") {
  const TemporaryFolder folder;
  REQUIRE(run(folder.path(), tiny_study + "--out study").status == 0);
  const std::string run_json = slurp(folder / "study/run.json");
  write_file_atomically(folder / "secret", "secret\nmine.svg\n");
  fs::create_directory(folder / "outside");
  write_file_atomically(folder / "outside/mine.svg", "mine");
  write_file_atomically(folder / "outside/.figures", "mine.svg\n");
  write_file_atomically(folder / "outside/.x.1-0.plumb-tmp", "mine");
  const fs::path pipe = make_pipe(folder / "pipe");
  const auto refused = [&](const std::string& what) {
    INFO(what);
    for (const std::string& command :
         {program("report") + " study", program("merge") + " study --out m", program("replay") + " study pre",
          program("depth_stability") + " --rebuild --out study", program("depth_stability") + " --resume --out study",
          program("depth_stability") + " --replay pre --out study"}) {
      INFO(command);
      const Finished f = limited(folder.path(), command);
      CHECK(f.status == 2);
      CHECK_THAT(f.err,
                 (contains("study/" + what + " is a link, ") || contains("study/" + what + " is not a file; ")) &&
                     !contains("secret"));
    }
    CHECK_FALSE(fs::exists(folder / "m"));
  };
  for (const std::string name : {"run.json", "ledger.jsonl", ".lock", "figures", "weights", "tensorboard",
                                 "figures/.figures", "checkpoints/a.safetensors"}) {
    const fs::path file = folder / "study" / name, before = folder / "before";
    fs::create_directories(file.parent_path());
    const bool had = fs::exists(file);
    if (had) fs::rename(file, before);
    const bool is_folder = name == "figures" || name == "weights" || name == "tensorboard";
    fs::create_symlink(is_folder ? folder / "outside" : name == ".lock" ? folder / "new" : folder / "secret", file);
    refused(name);
    fs::remove(file);
    if (!is_folder) {
      fs::create_symlink(pipe, file);
      refused(name);
      fs::remove(file);
      make_pipe(file);
      refused(name);
      fs::remove(file);
    }
    if (had) fs::rename(before, file);
  }
  CHECK_FALSE(fs::exists(folder / "new"));
  CHECK(slurp(folder / "secret") == "secret\nmine.svg\n");
  CHECK(fs::exists(folder / "outside/mine.svg"));
  CHECK(fs::exists(folder / "outside/.x.1-0.plumb-tmp"));
  CHECK(slurp(folder / "study/run.json") == run_json);
  // The path of the study folder itself may be a link.
  fs::create_symlink("study", folder / "latest");
  CHECK(run(folder.path(), program("report") + " latest").status == 0);
  // The tables are written beside a link, not through it, and not into a pipe.
  fs::remove(folder / "study/results.md");
  fs::create_symlink(folder / "secret", folder / "study/results.md");
  CHECK(run(folder.path(), program("report") + " study").status == 0);
  CHECK_FALSE(fs::is_symlink(folder / "study/results.md"));
  CHECK(slurp(folder / "secret") == "secret\nmine.svg\n");
  fs::remove(folder / "study/results.md");
  make_pipe(folder / "study/results.md");
  CHECK(limited(folder.path(), program("report") + " study").status == 1);
  fs::remove(folder / "study/results.md");
  // The files beside a kept ledger are checked in the same way.
  fs::create_symlink(pipe, folder / "kept.json");
  write_file_atomically(folder / "kept.jsonl", slurp(folder / "study/ledger.jsonl"));
  CHECK_THAT(limited(folder.path(), program("report") + " kept.jsonl --markdown x.md").err,
             contains("kept.json is a link, which"));
  fs::remove(folder / "kept.json");
  write_file_atomically(folder / "kept.json", run_json);
  fs::create_symlink(folder / "secret", folder / "kept.notes.md");
  CHECK_THAT(limited(folder.path(), program("report") + " kept.jsonl --markdown x.md").err,
             contains("kept.notes.md is a link, which"));
}

TEST_CASE("tables are made again without the data and the weights that run.json names") {
  const TemporaryFolder folder;
  const std::string pipe = make_pipe(folder / "pipe").string();
  REQUIRE(run(folder.path(), program("vit") + tiny + "--depth 1 --save-weights --out a").status == 0);
  REQUIRE(run(folder.path(), program("vit") +
                                 " --no-progress --weights a/weights/seed-0.safetensors --fine-tune --steps 2 --batch "
                                 "4 --out b")
              .status == 0);
  const std::string tables = slurp(folder / "b/results.md");
  change(folder / "b", [&](Json& run) {
    run["settings"]["weights"] = pipe;
    run["settings"]["data_dir"] = pipe;
  });
  for (const std::string& command :
       {program("report") + " b", program("merge") + " b --out m", program("vit") + " --rebuild --out b"}) {
    INFO(command);
    const Finished f = limited(folder.path(), command);
    INFO(f.err);
    CHECK(f.status == 0);
    CHECK_THAT(f.err, !contains("pipe"));
  }
  CHECK(slurp(folder / "b/results.md") == tables);
  // A call that trains reads the weights, and names the paths first.
  const Finished resumed = limited(folder.path(), program("vit") + " --resume --seeds 0..1 --out b");
  CHECK(resumed.status == 1);
  CHECK_THAT(resumed.err, contains("--weights " + pipe + ": expected a file"));
  CHECK_THAT(resumed.err, contains("reads " + pipe + ": --"));
  const Finished replayed = limited(folder.path(), program("replay") + " b 'seed 0'");
  CHECK(replayed.status == 1);
  CHECK_THAT(replayed.err, contains("reads " + pipe + ": --"));

  change(folder / "b", [&](Json& run) { run["settings"]["data"] = "image-folder"; });
  CHECK(limited(folder.path(), program("report") + " b").status == 0);

  // The rates of another study come from copies in the ledger. A ledger without copies has no tables.
  REQUIRE(run(folder.path(), program("depth_stability") + tiny + "--gates pre,post --depths 1 --seeds 0..3 --out r")
              .status == 0);
  change(folder / "r", [&](Json& run) {
    run["settings"]["rates_from"] = pipe;
    run["settings"]["depths"] = {1, 2};
  });
  const Finished rates = limited(folder.path(), program("report") + " r");
  CHECK(rates.status == 2);
  CHECK_THAT(rates.err, contains("r/ledger.jsonl has no search for the learning rate of"));

  // Settings that belong to one call cannot come from run.json.
  REQUIRE(run(folder.path(), tiny_study + "--out c").status == 0);
  for (const auto& [key, value] : {std::pair("out", Json("elsewhere")), {"overwrite", Json(true)}}) {
    change(folder / "c", [&](Json& run) { run["settings"][key] = value; });
    CHECK_THAT(run(folder.path(), program("report") + " c").err, contains("can only be given on the command line"));
    change(folder / "c", [&](Json& run) { run["settings"].erase(key); });
  }
  CHECK_FALSE(fs::exists(folder / "elsewhere"));
}

TEST_CASE("texts of run.json and of the ledger send no commands to the terminal and add no elements to pages") {
  const TemporaryFolder folder;
  REQUIRE(run(folder.path(), tiny_study + "--seeds 0..1 --out a").status == 0);
  const std::string wild = "\x1b[31m\r\nwild <img src=x onerror=alert(1)> ![p](http://x) \xc2\x9b", mild = "wild";
  const auto spoil = [&](const auto& self, Json& json) -> void {
    if (json.is_string() && json != "lower" && json != "higher" && json != "plain" && json != "fraction")
      json = json.get<std::string>() + wild;
    if (json.is_structured())
      for (Json& item : json) self(self, item);
  };
  change(folder / "a", [&](Json& run) {
    const Json settings = run["settings"], fixed = run["fixed"], code = run["code"], experiment = run["experiment"],
               hash = run["data_facts"]["hash"], names = run["data_facts"]["measures"];
    spoil(spoil, run);
    run["settings"] = settings, run["fixed"] = fixed, run["code"] = code, run["experiment"] = experiment;
    run["data_facts"]["hash"] = hash;
    for (std::size_t i = 0; i < names.size(); ++i) run["data_facts"]["measures"][i]["name"] = names[i]["name"];
  });
  lab::Ledger ledger(folder / "a/ledger.jsonl");
  std::vector<lab::LedgerEntry> entries = ledger.entries();
  entries[0].machine += wild, entries[0].record.status = lab::Status::failed, entries[0].record.reason = wild;
  entries[1].record.values.emplace_back("value" + wild, 1);
  fs::remove(folder / "a/ledger.jsonl");
  lab::Ledger(folder / "a/ledger.jsonl").append_all(entries);
  entries[0].code = wild;
  lab::Ledger(folder / "a/ledger.jsonl").append(entries[0]);
  const Finished shown = run(folder.path(), program("report") + " a");
  INFO(shown.err);
  REQUIRE(shown.status == 0);
  const Finished kept = run(
      folder.path(), program("report") + " a --keep kept && " + program("report") + " kept/a.jsonl --markdown all.md");
  REQUIRE(kept.status == 0);
  // An arm with such a name is only in the kept ledger.
  entries[1].key = "other", entries[1].record.point.set("gate", wild);
  lab::Ledger(folder / "kept/a.jsonl").append(entries[1]);
  const std::string depth = to_string(*entries[1].record.point.find("depth"));
  write_file_atomically(folder / "kept/text.md",
                        fmt::format("{{best a {0}}}\n{{methods a {0}}}\n{{decided}}\n{{studies}}\n", depth));
  REQUIRE(run(folder.path(), program("report") + " kept/text.md kept/a.jsonl --markdown pages.md").status == 0);
  for (const std::string& text : {shown.out, shown.err, kept.out, kept.err, slurp(folder / "a/results.md"),
                                  slurp(folder / "all.md"), slurp(folder / "pages.md"), slurp(folder / "kept/a.md")}) {
    CHECK_THAT(text, !contains("\x1b") && !contains("\r") && !contains("\xc2\x9b") && !contains("\nwild"));
  }
  for (const char* file : {"a/results.md", "all.md", "pages.md", "kept/a.md"}) {
    INFO(file);
    std::string text = slurp(folder / file);
    const std::size_t code = text.find("    " + std::string("depth_stability"));  // a code block shows tags as they are
    if (code != text.npos) text.erase(code, text.find('\n', code) - code);
    CHECK_THAT(text, contains(mild));
    for (std::size_t at = text.find("<img"); at != text.npos; at = text.find("<img", at + 1))
      CHECK(text[at - 1] == '\\');
    for (std::size_t at = text.find("](http"); at != text.npos; at = text.find("](http", at + 1))
      CHECK(text[at - 1] == '\\');
  }
  CHECK_THAT(slurp(folder / "a/report.html"), contains(mild) && !contains("<img src=x") && !contains("\x1b"));

  // A picture comes from the ledger.
  REQUIRE(run(folder.path(), program("vit") + tiny + "--depth 1 --out v").status == 0);
  std::vector<lab::LedgerEntry> drawn = lab::Ledger(folder / "v/ledger.jsonl").entries();
  drawn[0].record.attachments = {Json{{"attention", "\"><img src=x onerror=alert(1)>"}}.dump()};
  fs::remove(folder / "v/ledger.jsonl");
  lab::Ledger(folder / "v/ledger.jsonl").append_all(drawn);
  REQUIRE(run(folder.path(), program("report") + " v").status == 0);
  CHECK_THAT(slurp(folder / "v/report.html"), contains("onerror=alert(1)") && !contains("<img src=x"));

  // The name of a branch comes from the ledger, too, and is in the warning about its stream.
  REQUIRE(run(folder.path(), program("passport") +
                                 " --gates pre --depths 1 --dim 8 --patch 16 --batch 4 --no-jacobian --no-progress "
                                 "--out p")
              .status == 0);
  std::vector<lab::LedgerEntry> layers = lab::Ledger(folder / "p/ledger.jsonl").entries();
  Json attached = Json::parse(layers[0].record.attachments[0]);
  Json& branches = attached["passport"]["branches"];
  branches["branch"][0] = wild, branches["mean_square"][0] = 1e9;
  layers[0].record.attachments[0] = attached.dump();
  fs::remove(folder / "p/ledger.jsonl");
  lab::Ledger(folder / "p/ledger.jsonl").append_all(layers);
  const Finished exploded = run(folder.path(), program("report") + " p");
  REQUIRE(exploded.status == 0);
  for (const std::string& text : {exploded.out, slurp(folder / "p/results.md"), slurp(folder / "p/layers.csv")}) {
    CHECK_THAT(text, contains("\\x1b[31m\\x0d\\x0awild"));
    CHECK_THAT(text, !contains("\x1b") && !contains("\r") && !contains("\xc2\x9b") && !contains("\nwild"));
  }
  CHECK_THAT(exploded.out, contains("mean square of the stream is 1e+09 after the \\x1b"));
  CHECK_THAT(slurp(folder / "p/results.md"), !contains(" <img"));
  CHECK_THAT(slurp(folder / "p/report.html"), contains("not followed") && !contains("<img src=x"));

  // Names in messages are shown in the same way.
  change(folder / "a", [&](Json& run) { run["experiment"] = "x\x1b]0;title\a\n"; });
  CHECK_THAT(run(folder.path(), program("report") + " a").err,
             contains("'x\\x1b]0;title\\x07\\x0a' is not a study") && !contains("\x1b"));
  change(folder / "a",
         [&](Json& run) { run["experiment"] = "depth_stability", run["settings"]["data_dir"] = "\x1b[31m"; });
  CHECK_THAT(run(folder.path(), program("report") + " a").err,
             contains("\"data_dir\" expects text without control characters") && !contains("\x1b"));
}

TEST_CASE("a call with --resume and without settings needs a study") {
  const TemporaryFolder folder;
  REQUIRE(run(folder.path(), tiny_study + "--out runs/warmup").status == 0);
  const std::string call = program("depth_stability") + " --no-progress --resume --out ";
  const auto refused = [&](const std::string& out, const std::string& text) {
    INFO(out);
    const Finished f = run(folder.path(), call + out);
    CHECK(f.status == 2);
    CHECK(f.err == "error: --resume: " + text + "\n");
  };
  refused("runs/warmpu", "runs/warmpu does not exist; did you mean --out runs/warmup?");
  refused("runs/warmpu/", "runs/warmpu/ does not exist; did you mean --out runs/warmup?");
  refused("runs/other", "runs/other does not exist; give the folder of a study, or the settings of a new study");
  refused("nowhere/warmup",
          "nowhere/warmup does not exist; give the folder of a study, or the settings of a new study");
  fs::create_directory(folder / "runs/warmups"), fs::create_directory(folder / "runs/lost");
  refused("runs/warmups", "runs/warmups has no study; did you mean --out runs/warmup?");
  CHECK_FALSE(fs::exists(folder / "runs/warmpu"));
  write_file_atomically(folder / "runs/lost/ledger.jsonl", "");
  CHECK_THAT(run(folder.path(), call + "runs/lost").err, contains("has no run.json") && contains("is not lost"));
  CHECK(run(folder.path(), call + "runs/warmup").status == 0);
  CHECK(run(folder / "runs", call + "warmup --dry-run").status == 0);
  CHECK_THAT(run(folder / "runs", call + "warmpu --dry-run").err, contains("did you mean --out warmup?"));
  // As a requeued job calls it: with settings, a missing folder is a new study.
  CHECK(run(folder.path(), tiny_study + "--out runs/new --resume").status == 0);
  write_file_atomically(folder / "settings.json", R"({"steps": 2, "gates": ["pre"], "depths": [1], "dim": 8})");
  CHECK(run(folder.path(), call + "runs/config --config settings.json").status == 0);
}
