#include "experiments/lab/run/folder.h"
#include "core/scope.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/atomic_file.h"
#include "experiments/lab/build_info.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/record/checkpoint.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/report/figure_files.h"
#include "experiments/lab/run/files.h"
#include "experiments/lab/run/stored_run.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::lab;
namespace fs = std::filesystem;
using test::contains;
using test::TemporaryFolder;

namespace {

// A call of the program of a study with the given arguments. open() opens the study folder.
struct StudyCall {
  StudyOptions options;
  std::string data_dir;
  Cli cli;

  explicit StudyCall(std::vector<const char*> arguments, const std::string& program = "study")
      : cli(program, "Studies.") {
    options.declare(cli);
    cli.option("--data-dir", &data_dir, "Folder of the data").path("DIR").scope(Scope::speed);
    arguments.insert(arguments.begin(), "build/study");
    cli.parse(static_cast<int>(arguments.size()), arguments.data());
  }
  std::vector<std::string> claims = {"a is better than b"};
  StudyFolder open(const std::string& code = "c0de") const {
    return StudyFolder(cli, options,
                       {.machine = {.device = "a device", .threads = 2},
                        .data = {.text = "some data", .further = R"({"validation_images":123})"},
                        .code = code,
                        .outputs = {"layers.csv"},
                        .claims = claims});
  }
};

void put(const fs::path& path, const std::string& content = "x") { std::ofstream(path) << content; }

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

std::string open_error(const StudyCall& study) {
  try {
    study.open();
  } catch (const UsageError& e) {
    return e.what();
  }
  FAIL("expected a UsageError, got none");
  return {};
}

// The study folder of a finished study.
struct FinishedRun : TemporaryFolder {
  std::string out = (path() / "run").string();
  fs::path file(const char* name) const { return fs::path(out) / name; }

  FinishedRun() {
    const StudyFolder folder = StudyCall({"--out", out.c_str()}).open();
    for (const char* name : {"results.csv", "metrics.jsonl", "layers.csv", "report.html"}) put(folder / name, "old");
  }
  // Adds the trial "pre seed 0" to the ledger.
  void add_trial() const {
    Ledger(file(Ledger::file_name)).append({.key = "0123456789abcdef", .code = "c0de", .record = {.point = trial()}});
  }
  static Point trial(const char* gate = "pre") { return {{"gate", gate}, {"seed", 0}}; }
};

}  // namespace

TEST_CASE("a missing folder is created and run.json describes the study", "[experiments]") {
  const TemporaryFolder temporary;
  const std::string out = (temporary / "a" / "b").string();
  ::setenv("SOURCE_DATE_EPOCH", "86400", 1);
  {
    const StudyFolder folder = StudyCall({"--out", out.c_str(), "--steps=7"}).open();
    CHECK(folder.path() == out);
  }
  ::unsetenv("SOURCE_DATE_EPOCH");
  CHECK(names_in(out) == std::set<std::string>{"run.json"});
  const auto run = nlohmann::ordered_json::parse(read_file(fs::path(out) / "run.json"));
  CHECK(run["experiment"] == "study");
  CHECK(run["version"] == version());
  CHECK(run["commit"] == commit());
  CHECK(run["build"] == build());
  CHECK(run["code"] == "c0de");
  CHECK(run["data"] == "some data");
  CHECK(run["program"] == "study");
  CHECK(run["fixed"][0] == "steps");
  CHECK(run["machine"]["device"] == "a device");
  CHECK(run["machine"]["threads"] == 2);
  CHECK(run["command_line"] == "study --out " + out + " --steps=7");
  CHECK(run["started"] == "1970-01-02T00:00:00Z");
  CHECK(run["settings"]["steps"] == 7);
  CHECK_FALSE(run["settings"].contains("out"));
  CHECK(run["data_facts"]["validation_images"] == 123);
  CHECK(run["claims"] == std::vector<std::string>{"a is better than b"});
  CHECK(run["rule"] == "bets");
}

TEST_CASE("resuming keeps the claims and the rule of the call that made the folder", "[experiments]") {
  const FinishedRun run;
  StudyDescription old = described(run.out);
  old.rule.clear();
  put(run.file("run.json"), old.text());
  StudyCall resumed({"--out", run.out.c_str(), "--resume", "--seeds=0..3"});
  resumed.claims = {"a is better than b", "added later"};
  CHECK(resumed.open("beef").description().claims == std::vector<std::string>{"a is better than b"});
  CHECK(described(run.out).claims == std::vector<std::string>{"a is better than b"});
  CHECK(described(run.out).rule.empty());
  // Without claims the folder says that there were none.
  StudyCall anew({"--out", run.out.c_str(), "--overwrite"});
  anew.claims.clear();
  anew.open();
  CHECK(described(run.out).claims == std::vector<std::string>());
}

TEST_CASE("the start time is now without SOURCE_DATE_EPOCH and a wrong epoch is an error", "[experiments]") {
  const TemporaryFolder temporary;
  const std::string out = (temporary / "a").string();
  for (const char* epoch : {"x", "-1", "1.5"}) {
    ::setenv("SOURCE_DATE_EPOCH", epoch, 1);
    CHECK_THAT(test::error_of([&] {
                 StudyCall({"--out", out.c_str()}).open();
               }),
               contains("SOURCE_DATE_EPOCH expects seconds since 1970"));
  }
  ::unsetenv("SOURCE_DATE_EPOCH");
  CHECK(names_in(out).empty());
  StudyCall({"--out", out.c_str()}).open();
  CHECK(nlohmann::json::parse(read_file(fs::path(out) / "run.json"))["started"] > "2024");
}

TEST_CASE("names that are not UTF-8 do not stop a study or its resumption", "[experiments]") {
  const TemporaryFolder temporary;
  const std::vector<const char*> arguments{"--out", temporary.path().c_str(), "--data-dir", "caf\xe9", "--resume"};
  StudyCall(arguments).open();
  const std::string before = read_file(temporary / "run.json");
  StudyCall(arguments).open();
  CHECK(read_file(temporary / "run.json") == before);
}

TEST_CASE("without --out every call gets a new folder", "[experiments]") {
  const TemporaryFolder temporary;
  const fs::path former = fs::current_path();
  fs::current_path(temporary.path());
  ::setenv("SOURCE_DATE_EPOCH", "0", 1);
  for (int i = 0; i < 3; ++i) StudyCall({}).open();
  ::unsetenv("SOURCE_DATE_EPOCH");
  StudyCall({}).open();
  const std::set<std::string> names = names_in("runs");
  fs::current_path(former);
  CHECK(names.size() == 4);
  for (const char* name : {"study-19700101-000000", "study-19700101-000000-2", "study-19700101-000000-3"})
    CHECK(names.count(name) == 1);
}

TEST_CASE("a folder that is not empty is refused and not changed", "[experiments]") {
  const FinishedRun run;
  const std::string before = read_file(run.file("run.json"));
  const auto names = names_in(run.out);
  const std::string message = open_error(StudyCall({"--out", run.out.c_str()}));
  CHECK_THAT(message, contains("is not empty") && contains("--resume") && contains("--overwrite"));
  CHECK(names_in(run.out) == names);
  CHECK(read_file(run.file("run.json")) == before);

  const TemporaryFolder photos;
  put(photos / "holiday.jpg");
  for (const char* flag : {"--resume", "--overwrite"})
    CHECK_THAT(open_error(StudyCall({"--out", photos.path().c_str(), flag, "--steps=7"})), contains("has no run.json"));
  CHECK(names_in(photos.path()) == std::set<std::string>{"holiday.jpg"});
  CHECK_THAT(open_error(StudyCall({"--out", (photos / "holiday.jpg").c_str()})), contains("is not a folder"));
}

TEST_CASE("resuming keeps the files and run.json except for axes and code", "[experiments]") {
  const FinishedRun run;
  const std::string before = read_file(run.file("run.json"));
  StudyCall({"--out", run.out.c_str(), "--resume", "--no-progress"}).open();
  CHECK(read_file(run.file("run.json")) == before);
  StudyCall({"--out", run.out.c_str(), "--resume", "--seeds=0..3"}).open("beef");
  const auto now = nlohmann::json::parse(read_file(run.file("run.json"))), then = nlohmann::json::parse(before);
  CHECK(now["settings"]["seeds"] == std::vector<int>{0, 1, 2, 3});
  CHECK(now["code"] == "beef");
  CHECK(now["command_line"] == "study --out " + run.out + " --resume --seeds=0..3");
  CHECK(now["started"] == then["started"]);
  CHECK(read_file(run.file("results.csv")) == "old");
}

TEST_CASE("resuming a missing or empty folder with settings starts a new study", "[experiments]") {
  const TemporaryFolder temporary;
  StudyCall({"--out", temporary.path().c_str(), "--resume", "--steps=7"}).open();
  CHECK(fs::exists(temporary / "run.json"));
  StudyCall({"--out", (temporary / "new").c_str(), "--resume", "--steps=7"}).open();
  CHECK(fs::exists(temporary / "new/run.json"));
  CHECK_THROWS_WITH(StudyCall({"--out", (temporary / "enw").c_str(), "--resume", "--no-progress"}),
                    contains("did you mean --out " + (temporary / "new").string() + "?"));
}

TEST_CASE("resuming with other settings names the first difference", "[experiments]") {
  const FinishedRun run;
  CHECK_THAT(open_error(StudyCall({"--out", run.out.c_str(), "--resume", "--steps=10", "--batch=3"})),
             contains("steps is 200 there and 10 here"));
  CHECK_THAT(open_error(StudyCall({"--out", run.out.c_str(), "--resume", "--dtype=bf16"})),
             contains("dtype is \"fp32\" there and \"bf16\" here"));
  CHECK_THAT(open_error(StudyCall({"--out", run.out.c_str(), "--resume"}, "other")),
             contains("belongs to study, not to other"));
}

TEST_CASE("an invalid run.json is an error and is not changed", "[experiments]") {
  const FinishedRun run;
  for (const char* content : {"", "{\"experiment\": \"stu", "[]", "{}", "{\"experiment\": 1, \"settings\": {}}",
                              "{\"experiment\": \"study\", \"settings\": 1}"}) {
    put(run.file("run.json"), content);
    for (const char* flag : {"--resume", "--overwrite"}) {
      CHECK_THAT(open_error(StudyCall({"--out", run.out.c_str(), flag})),
                 contains("run.json does not describe a study"));
      CHECK(read_file(run.file("run.json")) == content);
      CHECK(fs::exists(run.file("results.csv")));
    }
  }
}

TEST_CASE("overwriting deletes a study's files even if its settings differ", "[experiments]") {
  const FinishedRun run;
  StudyCall({"--out", run.out.c_str(), "--overwrite", "--steps=10"}).open();
  CHECK(names_in(run.out) == std::set<std::string>{"run.json"});
  CHECK(nlohmann::json::parse(read_file(run.file("run.json")))["settings"]["steps"] == 10);
}

TEST_CASE("overwriting deletes a study's figures and event files and no other files", "[experiments]") {
  const FinishedRun run;
  run.add_trial();
  write_figures(run.out, {{"overview", "<svg/>", "a,b\n"}});
  fs::create_directories(run.file("tensorboard/pre-seed-0"));
  for (const char* file : {"comparisons.csv", "tensorboard/pre-seed-0/events.out.tfevents.0.plumb"})
    put(run.file(file));
  for (const char* foreign :
       {"figures/notes.txt", "figures/paper.svg", "figures/mine/table.csv", "weights/mine/best.safetensors",
        "tensorboard/pre-seed-0/mine.svg", "tensorboard/pre-seed-1/events.out.tfevents.0.plumb"}) {
    const bool has_folder = fs::exists(fs::path(run.file(foreign)).parent_path());
    fs::create_directories(fs::path(run.file(foreign)).parent_path());
    put(run.file(foreign));
    CHECK_THAT(open_error(StudyCall({"--out", run.out.c_str(), "--overwrite"})),
               contains("also holds " + fs::path(foreign).begin()->string()));
    CHECK(fs::exists(run.file(foreign)));
    CHECK(fs::exists(run.file("figures/overview.svg")));
    CHECK(fs::exists(run.file("tensorboard/pre-seed-0/events.out.tfevents.0.plumb")));
    has_folder ? fs::remove(run.file(foreign)) : fs::remove_all(fs::path(run.file(foreign)).parent_path());
  }
  StudyCall({"--out", run.out.c_str(), "--overwrite"}).open();
  CHECK_FALSE(fs::exists(run.file("figures")));
  CHECK_FALSE(fs::exists(run.file("tensorboard")));
  CHECK_FALSE(fs::exists(run.file("comparisons.csv")));
}

TEST_CASE("new figures replace those of an earlier call and other files stay", "[experiments]") {
  const FinishedRun run;
  write_figures(run.out, {{"loss-depth-6", "<svg/>", "a\n"}, {"overview", "<svg/>", "a\n"}});
  put(run.file("figures/paper.svg"));
  write_figures(run.out, {{"loss-depth-6-lr-0-001", "<svg/>", "a\n"}, {"overview", "<svg/>", "b\n"}});
  CHECK(names_in(run.file("figures")) == std::set<std::string>{".figures", "loss-depth-6-lr-0-001.svg",
                                                               "loss-depth-6-lr-0-001.csv", "overview.svg",
                                                               "overview.csv", "paper.svg"});
  CHECK(read_file(run.file("figures/overview.csv")) == "b\n");
  put(run.file("figures/.figures"), "../run.json\n..\n\nnotes.txt\noverview.svg\n");  // a damaged list of figures
  put(run.file("figures/notes.txt"));
  write_figures(run.out, {{"ranking", "<svg/>", "a\n"}});
  CHECK(fs::exists(run.file("run.json")));
  CHECK(fs::exists(run.file("figures/notes.txt")));
  CHECK_FALSE(fs::exists(run.file("figures/overview.svg")));
}

TEST_CASE("the next call deletes temporary event files of a killed process", "[experiments]") {
  const FinishedRun run;
  fs::create_directories(run.file("tensorboard/pre-seed-0"));
  put(run.file("tensorboard/pre-seed-0/.events.out.tfevents.0.plumb.1-0.plumb-tmp"));
  StudyCall({"--out", run.out.c_str(), "--resume"}).open();
  CHECK(names_in(run.file("tensorboard/pre-seed-0")).empty());
}

TEST_CASE("overwriting deletes a study's weights and checkpoints and no other files", "[experiments]") {
  const FinishedRun run;
  run.add_trial();
  for (const char* folder : {"weights", "checkpoints"}) {
    fs::create_directory(run.file(folder));
    put(run.file(folder) / ".x.safetensors.1-0.plumb-tmp");
  }
  put(weights_file(run.out, run.trial()));
  for (const char* mark : {"", "-damaged", "-unfit", "-beef"})
    put(run.file(fmt::format("checkpoints/pre-seed-0-01234567{}.safetensors", mark).c_str()));
  // The trial of this checkpoint has not ended, so the ledger does not have it.
  write_checkpoint(checkpoint_file(run.out, run.trial("post"), "fedcba9876543210"),
                   {.key = "fedcba9876543210", .code = "c0de", .step = 3, .record = {.point = run.trial("post")}});
  for (const char* foreign :
       {"weights/notes.txt", "weights/post-seed-0.safetensors", "checkpoints/mine.safetensors",
        "checkpoints/pre-seed-0-01234567-mine.safetensors", "checkpoints/pre-seed-0-76543210.safetensors"}) {
    put(run.file(foreign));
    CHECK_THAT(open_error(StudyCall({"--out", run.out.c_str(), "--overwrite"})),
               contains("also holds " + std::string(foreign) + ","));
    CHECK(fs::exists(run.file("weights/pre-seed-0.safetensors")));
    fs::remove(run.file(foreign));
  }
  put(run.file("best.safetensors"));
  CHECK_THAT(open_error(StudyCall({"--out", run.out.c_str(), "--overwrite"})), contains("also holds best.safetensors"));
  fs::remove(run.file("best.safetensors"));
  StudyCall({"--out", run.out.c_str(), "--resume"}).open();
  CHECK(fs::exists(run.file("weights/pre-seed-0.safetensors")));
  StudyCall({"--out", run.out.c_str(), "--overwrite"}).open();
  CHECK(names_in(run.out) == std::set<std::string>{"run.json"});
}

TEST_CASE("overwriting refuses a folder with any other file", "[experiments]") {
  const FinishedRun run;
  put(run.file("notes.txt"));
  CHECK_THAT(open_error(StudyCall({"--out", run.out.c_str(), "--overwrite"})), contains("also holds notes.txt"));
  CHECK(read_file(run.file("results.csv")) == "old");
  fs::remove(run.file("notes.txt"));
  fs::remove(run.file("results.csv"));
  fs::create_directory(run.file("results.csv"));  // a folder with the name of a file of the study
  CHECK_THAT(open_error(StudyCall({"--out", run.out.c_str(), "--overwrite"})), contains("also holds results.csv"));
  CHECK(names_in(run.out).size() == 5);
}

TEST_CASE("overwriting deletes a link but not its target", "[experiments]") {
  const FinishedRun run;
  put(run / "mine.csv", "mine");
  fs::remove(run.file("results.csv"));
  fs::create_symlink(run / "mine.csv", run.file("results.csv"));
  StudyCall({"--out", run.out.c_str(), "--overwrite"}).open();
  CHECK(read_file(run / "mine.csv") == "mine");
  CHECK_FALSE(fs::exists(run.file("results.csv")));
}

TEST_CASE("overwriting deletes only files that the running study declares, whatever run.json says", "[experiments]") {
  const FinishedRun run;
  put(run / "mine.txt", "mine");
  auto description = nlohmann::json::parse(read_file(run.file("run.json")));
  for (const std::string& name : {std::string("../mine.txt"), (run / "mine.txt").string(), std::string("notes.txt")})
    description["outputs"].push_back(name);
  put(run.file("run.json"), description.dump());
  put(run.file("notes.txt"), "mine");
  CHECK_THAT(open_error(StudyCall({"--out", run.out.c_str(), "--overwrite"})), contains("also holds notes.txt,"));
  CHECK(read_file(run.file("results.csv")) == "old");
  fs::remove(run.file("notes.txt"));
  StudyCall({"--out", run.out.c_str(), "--overwrite"}).open();
  CHECK(read_file(run / "mine.txt") == "mine");
  CHECK(names_in(run.out) == std::set<std::string>{"run.json"});
}

TEST_CASE("a folder whose subfolders or own files are links or pipes is refused and nothing is changed",
          "[experiments]") {
  const FinishedRun run;
  run.add_trial();
  const fs::path outside = run / "outside";
  fs::create_directories(outside / "pre-seed-0");
  for (const char* name : {"pre-seed-0.safetensors", "pre-seed-0/events.out.tfevents.0.plumb", "run.json", "file"})
    put(outside / name, "mine");
  fs::create_directories(run.file("tensorboard"));
  fs::create_directories(run.file("figures"));
  fs::create_directories(run.file("checkpoints"));
  const bool pipe = GENERATE(false, true);
  for (const auto& [name, target] : {std::pair("weights", "outside"),
                                     {"checkpoints", "outside"},
                                     {"figures", "outside"},
                                     {"tensorboard", "outside"},
                                     {"tensorboard/pre-seed-0", "outside/pre-seed-0"},
                                     {"run.json", "outside/run.json"},
                                     {"ledger.jsonl", "outside/file"},
                                     {".lock", "outside/file"},
                                     {"figures/.figures", "outside/file"},
                                     {"checkpoints/pre-seed-0-01234567.safetensors", "outside/file"}}) {
    const fs::path place = run.file(name), kept = run / "kept";
    const bool replaces = fs::exists(place);
    if (replaces) fs::rename(place, kept);
    pipe ? void(::mkfifo(place.c_str(), 0600)) : fs::create_symlink(run / target, place);
    for (const char* flag : {"--overwrite", "--resume"}) {
      CHECK_THAT(open_error(StudyCall({"--out", run.out.c_str(), flag})),
                 contains(place.string() + (pipe ? " is not a f" : " is a link")));
      CHECK_THROWS_AS(StudyFolder::check_beforehand(StudyCall({"--out", run.out.c_str(), flag}).cli,
                                                    StudyCall({"--out", run.out.c_str(), flag}).options, {}),
                      UsageError);
    }
    CHECK_THROWS_AS(described(run.out), UsageError);
    fs::remove(place);
    if (replaces) fs::rename(kept, place);
  }
  CHECK(names_in(outside) == std::set<std::string>{"pre-seed-0.safetensors", "pre-seed-0", "run.json", "file"});
  CHECK(read_file(outside / "file") == "mine");
  CHECK(read_file(run.file("results.csv")) == "old");
  // The user may type the path of a link to the folder.
  fs::create_symlink(run.out, run / "link");
  StudyCall({"--out", (run / "link").c_str(), "--overwrite"}).open();
  CHECK(names_in(run.out) == std::set<std::string>{"run.json"});
}

TEST_CASE("files left by a killed process are ignored and deleted", "[experiments]") {
  const TemporaryFolder temporary;
  put(temporary / ".lock");
  put(temporary / ".run.json.1-0.plumb-tmp");
  const StudyFolder folder = StudyCall({"--out", temporary.path().c_str()}).open();
  CHECK(names_in(temporary.path()) == std::set<std::string>{".lock", "run.json"});
}

TEST_CASE("two processes cannot use one folder", "[experiments]") {
  const TemporaryFolder temporary;
  const StudyCall study({"--out", temporary.path().c_str(), "--resume", "--steps=7"});
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const StudyFolder folder = study.open();
    if (::write(ready[1], "x", 1) == 1) ::pause();
    ::_exit(0);
  }
  char byte;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK_THAT(test::error_of([&] { study.open(); }),
             contains("another process is writing " + temporary.path().string()));
  CHECK(names_in(temporary.path()) == std::set<std::string>{".lock", "run.json"});
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (const int fd : ready) ::close(fd);
  study.open();
  CHECK(names_in(temporary.path()) == std::set<std::string>{"run.json"});
}

TEST_CASE("a folder that cannot be created is an error with the system's reason", "[experiments]") {
  const TemporaryFolder temporary;
  put(temporary / "file");
  CHECK(test::error_of([&] {
          StudyCall({"--out", (temporary / "file/run").c_str()}).open();
        }) == "cannot create " + (temporary / "file/run").string() + ": Not a directory");
}
