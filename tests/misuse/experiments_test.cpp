// Mistakes with experiment programs: command lines, data, output folders. The programs run within the process of the
// test.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "core/atomic_file.h"
#include "experiments/programs.h"
#include "experiments/vision/data/open_data.h"
#include "experiments/vision/data/split.h"
#include "experiments/vision/study.h"
#include "nn/gates/gate.h"
#include "nn/gates/method.h"
#include "tests/misuse/misuse.h"
#include "tests/support/called.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;
namespace fs = std::filesystem;

namespace {

const Words tiny{"--gates", "pre", "--depths", "1", "--dim", "8", "--batch", "4", "--steps", "2", "--no-progress"};

// Checks that a call ended with this status and one line that contains `text`. The call must not have written a result.
void check_refused(const Ended& e, int status, const std::string& text) {
  INFO("stdout: " << e.out << "stderr: " << e.err);
  CHECK(e.status == status);
  CHECK(e.out.empty());
  CHECK(e.err.starts_with("error: "));
  CHECK(std::count(e.err.begin(), e.err.end(), '\n') == 1);
  CHECK(e.err.find(text) != std::string::npos);
  CHECK(e.err.find("internal error") == std::string::npos);
}

void refused(const Words& arguments, int status, const std::string& text, const Main& main = depth_stability) {
  const TemporaryFolder folder;
  check_refused(call(folder.path(), main, arguments), status, text);
  CHECK_FALSE(fs::exists(folder / "runs"));
}

// Checks that the call and the same call with --dry-run are refused with the same text.
void refused_also_dry(const TemporaryFolder& folder, const Words& arguments, int status, const std::string& text,
                      const Main& main = depth_stability) {
  check_refused(call(folder.path(), main, arguments), status, text);
  check_refused(call(folder.path(), main, with(arguments, {"--dry-run"})), status, text);
}

int own_experiment(int argc, const char* const* argv) {
  return vision::Study("mine", "Mine.", {.network = false, .optimization = false})
      .run(argc, argv, [](lab::Trial& trial) {
        trial.log({{"loss", 1}});
      });
}

}  // namespace

TEST_CASE("misuse: sizes beyond any machine") {
  refused({"--dim", "1099511627776"}, 2, "--dim expects an integer in [1, 1048576]");
  refused({"--depths", "4611686018427387904"}, 2, "--depths");
  refused({"--heads", "9223372036854775807"}, 2, "--heads");
  refused({"--dim", "1099511627776"}, 2, "--dim", passport);
  refused({"--width", "1099511627776"}, 2, "--width", deep_mlp);
}
TEST_CASE("misuse: an unknown name that is near no other is answered with ten of many") {
  const TemporaryFolder folder;
  const Ended many = call(folder.path(), depth_stability, {"--gates", "qqqqqqqqqqqq"});
  check_refused(many, 2, "known: post, pre, rezero");
  CHECK_THAT(many.err, contains(" more\n"));
  CHECK(std::count(many.err.begin(), many.err.end(), ',') == 9);
  refused({"--data", "imagenet"}, 2,
          "known: glyphs, glyphs-clutter, glyphs-few, fashion-mnist, mnist, cifar-10, cifar-100, image-folder");
}
TEST_CASE("misuse: options that exclude each other") {
  refused({"--dim", "63"}, 2, "--dim 63 is not a multiple of --heads 2");
  refused({"--patch", "5"}, 2, "--patch 5 does not divide the image side 32");
  refused({"--resume"}, 2, "--resume needs --out DIR");
  refused({"--profile", "--steps", "2"}, 2, "--profile times the steps 3 to 7");
  refused({"--drop-key", "0.3", "--drop-key-shape", "block", "--drop-key-window", "9"}, 2, "window");
}
TEST_CASE("misuse: options of dropping without a rate") {
  refused({"--drop-key-shape", "block"}, 2, "--drop-key-shape has no effect without --drop-key; give --drop-key RATE");
  refused({"--drop-key-schedule", "decreasing", "--drop-key", "0"}, 2, "--drop-key-schedule has no effect");
  refused({"--drop-key", "0.1", "--drop-key-window", "5"}, 2, "--drop-key-window has no effect on single keys");
  refused({"--drop-path-form", "original"}, 2, "--drop-path-form has no effect without --drop-path");
}
TEST_CASE("misuse: a batch larger than the data") {
  const TemporaryFolder folder;
  for (const Main& main : {Main(depth_stability), Main(passport), Main(deep_mlp), Main(own_experiment)})
    refused_also_dry(folder, {"--batch", "100000"}, 1,
                     "--batch 100000 is more than the 12800 training images of glyphs", main);
  refused_also_dry(folder, {"--batch", "12800", "--validation-split", "0.5"}, 1,
                   "6400 training images of glyphs that --validation-split 0.5 leaves");
  CHECK_FALSE(fs::exists(folder / "runs"));
}
TEST_CASE("misuse: a data set without its files") {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  fs::create_directory(folder / "empty");
  for (const Main& main : {Main(depth_stability), Main(passport), Main(deep_mlp), Main(own_experiment)}) {
    refused_also_dry(folder, {"--data", "fashion-mnist"}, 2, "fashion-mnist needs --data-dir", main);
    refused_also_dry(folder, {"--data", "mnist", "--data-dir", "nowhere"}, 1, "nowhere: no such folder", main);
  }
  refused_also_dry(folder, {"--data", "mnist", "--data-dir", "file"}, 1, "file: expected a folder, got a file");
  refused_also_dry(folder, {"--data", "cifar-10", "--data-dir", "empty"}, 1, "empty: expected files of cifar-10");
  CHECK_FALSE(fs::exists(folder / "runs"));
}
TEST_CASE("misuse: data files that are cut off or empty or unreadable or of another format") {
  const TemporaryFolder folder;
  const auto write = [&](const char* file, const std::string& bytes) {
    std::ofstream(folder / file, std::ios::binary) << bytes;
  };
  const std::string images("\0\0\x08\x03\0\0\0\x02\0\0\0\x1c\0\0\0\x1c", 16),
      labels("\0\0\x08\x01\0\0\0\x02\x01\x02", 10);
  write("train-labels-idx1-ubyte", labels);
  write("t10k-labels-idx1-ubyte", labels);
  write("t10k-images-idx3-ubyte", images + std::string(2 * 28 * 28, '\0'));
  const Words words{"--data", "mnist", "--data-dir", ".", "--batch", "1"};
  refused_also_dry(folder, words, 1, "train-images-idx3-ubyte is missing");
  write("train-images-idx3-ubyte", images + std::string(28 * 28, '\0'));
  refused_also_dry(folder, words, 1, "train-images-idx3-ubyte");
  write("train-images-idx3-ubyte", "");
  refused_also_dry(folder, words, 1, "the file is empty");
  write("train-images-idx3-ubyte", labels);
  refused_also_dry(folder, words, 1, "file of labels?");
  write("train-images-idx3-ubyte", images + std::string(2 * 28 * 28, '\0'));
  write("train-labels-idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\x02\x01\x0b", 10));
  refused_also_dry(folder, words, 1, "expected labels in 0..9, got 11 for image 1");
  fs::remove(folder / "train-labels-idx1-ubyte");
  fs::create_directory(folder / "train-labels-idx1-ubyte");
  refused_also_dry(folder, words, 1, "train-labels-idx1-ubyte");
}
TEST_CASE("misuse: validation shares that leave no images") {
  refused({"--validation-split", "1"}, 2, "--validation-split expects a number in [0, 1)");
  refused({"--validation-split", "-0.1"}, 2, "--validation-split");
  refused({"--validation-split", "half"}, 2, "--validation-split");
  const TemporaryFolder folder;
  refused_also_dry(folder, {"--validation-split", "1e-9"}, 1,
                   "[split] expected a share that leaves images in both parts");
  CHECK_REFUSED(split(open_data("glyphs", "").train, 2), "[split] expected a share above 0 and below 1, got 2");
}
TEST_CASE("misuse: an output folder that is a file or below a file or not a run folder") {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  fs::create_directory(folder / "mine");
  std::ofstream(folder / "mine/thesis.tex") << "x";
  refused_also_dry(folder, with(tiny, {"--out", "file"}), 2, "--out file is not a folder");
  refused_also_dry(folder, with(tiny, {"--out", "file/a"}), 1, "cannot create file/a");
  refused_also_dry(folder, with(tiny, {"--out", "mine"}), 2, "mine is not empty");
  refused_also_dry(folder, with(tiny, {"--out", "mine", "--overwrite"}), 2, "not a study folder");
  refused_also_dry(folder, with(tiny, {"--out", "mine", "--resume"}), 2, "not a study folder");
  // The folder is checked before the data are read.
  refused_also_dry(folder, with(tiny, {"--out", "mine", "--data", "mnist", "--data-dir", "."}), 2, "mine is not empty");
  CHECK(fs::exists(folder / "mine/thesis.tex"));
  std::ofstream(folder / "runs") << "x";
  refused_also_dry(folder, tiny, 1, "runs");
}
TEST_CASE("misuse: resuming with other settings or another experiment or damaged files") {
  const TemporaryFolder folder;
  const Words run = with(tiny, {"--out", "a"});
  REQUIRE(call(folder.path(), depth_stability, run).status == 0);
  refused_also_dry(folder, run, 2, "a is not empty; --resume");
  refused_also_dry(folder, with(run, {"--resume", "--weight-decay", "0.1"}), 2,
                   "has other settings: weight_decay is 0.05 there and 0.1 here");
  refused_also_dry(folder, with(run, {"--resume", "--validation-split", "0.1"}), 2,
                   "validation_split is 0.0 there and 0.1 here");
  refused_also_dry(folder, {"--resume", "--out", "a"}, 2, "belongs to depth_stability, not to passport", passport);
  std::ofstream(folder / "a/extra.txt") << "x";
  refused_also_dry(folder, with(run, {"--overwrite"}), 2, "a also holds extra.txt");
  fs::remove(folder / "a/extra.txt");
  std::ofstream(folder / "a/run.json") << "{";
  refused_also_dry(folder, with(run, {"--resume"}), 2, "run.json does not describe a study");
  refused_also_dry(folder, with(run, {"--resume"}), 2, "its trials are not lost");
  fs::remove(folder / "a/run.json");
  refused_also_dry(folder, with(run, {"--resume"}), 2, "Its ledger is not lost");
  // The remedy that the message names.
  REQUIRE(call(folder.path(), depth_stability, with(tiny, {"--out", "b"})).status == 0);
  fs::copy_file(folder / "b/run.json", folder / "a/run.json");
  CHECK_THAT(call(folder.path(), depth_stability, with(run, {"--resume", "--dry-run"})).out,
             contains("--resume skips 1 finished trial\n"));
}
TEST_CASE("misuse: values of a trial that cannot be logged") {
  const TemporaryFolder folder;
  const auto fails = [&](const std::function<void(lab::Trial&)>& body, const std::string& text) {
    const Ended e =
        call(folder.path(),
             [&](int argc, const char* const* argv) {
               return vision::Study("mine", "Mine.", {.network = false, .optimization = false}).run(argc, argv, body);
             },
             {"--out", "a", "--overwrite", "--steps", "1", "--no-progress"});
    CHECK(e.status == 1);
    INFO(e.err);
    CHECK(e.err.find(text) != std::string::npos);
    CHECK(e.err.find("internal error") == std::string::npos);
  };
  fails([](lab::Trial& trial) { trial.log({{"seed", 1}}); }, "[log] expected a name other than seed");
  fails([](lab::Trial& trial) { trial.log({{"a,b", 1}}); }, "without comma, quote and line end");
  fails([](lab::Trial& trial) { trial.log({{"", 1}}); }, "[log] expected a name");
  fails([](lab::Trial&) { throw 1; }, "not a std::exception");
}
TEST_CASE("misuse: a failing gate ends its trial but not the sweep") {
  struct OneToken : nn::Gate {
    Tensor combine(const Tensor& skip, const Tensor& branch) const override { return slice(skip + branch, 1, 0, 1); }
  };
  nn::register_method<OneToken>("one_token");
  const TemporaryFolder folder;
  const Ended e = call(folder.path(), depth_stability,
                       {"--gates", "one_token,pre", "--depths", "1", "--dim", "8", "--batch", "4", "--steps", "2",
                        "--no-progress", "--out", "a"});
  INFO(e.err);
  CHECK(e.status == 1);
  CHECK_THAT(e.err, contains("[gate] expected combine to return the shape of the stream") &&
                        contains("error: 1 of 2 trials failed"));
  CHECK_THAT(read_file(folder / "a/results.csv"), contains("pre,1,0.003,0,ok,2,"));
  CHECK(call(folder.path(), depth_stability, {"--gates", "one_token", "--check-gates"}).status == 1);
}
TEST_CASE("misuse: a full disk or a closed pipe for the result") {
  const TemporaryFolder folder;
  const Ended dry = call(
      folder.path(),
      [](int argc, const char* const* argv) {
        const int full = ::open("/dev/full", O_WRONLY);
        ::dup2(full, STDOUT_FILENO);
        ::close(full);
        return depth_stability(argc, argv);
      },
      with(tiny, {"--dry-run"}));
  CHECK(dry.status == 1);
  CHECK_THAT(dry.err, contains("error: cannot write the result"));
}
