// Experiments with a loop of their own: seeds that diverge; and when a training has diverged.
#include "experiments/common/experiment.h"

#include <fcntl.h>
#include <unistd.h>

#include "autograd/autograd.h"
#include "core/atomic_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::test;

namespace {

// What a function writes to a file descriptor meanwhile.
template <class F>
std::string written_to(int descriptor, const std::filesystem::path& file, F&& function) {
  std::fflush(nullptr);
  const int kept = ::dup(descriptor), sink = ::open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  ::dup2(sink, descriptor);
  function();
  std::fflush(nullptr);
  ::dup2(kept, descriptor);
  ::close(kept);
  ::close(sink);
  return read_file(file);
}

// A step whose loss and gradient are these.
Gradients step_with(double loss, double gradient) {
  const Tensor x = variable(tensor({0.0}, {1}));
  return backward(sum(x * gradient + loss));
}

}  // namespace

TEST_CASE("a training has diverged when a number is not finite, or the loss stays above ten times ln C") {
  const DefaultsScope f64({.dtype = DType::f64, .device = Device::reference});
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [loss, gradient] : {std::pair{infinity, 1.0}, {std::nan(""), 1.0}, {1.0, infinity}})
    CHECK(DivergenceWatch(10).diverged(step_with(loss, gradient)));
  DivergenceWatch watch(10);
  const double limit = 10 * std::log(10.0);
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (int step = 0; step < 19; ++step) CHECK_FALSE(watch.diverged(step_with(limit + 0.1, 1)));
    if (repeat == 0) CHECK_FALSE(watch.diverged(step_with(limit - 0.1, 1)));  // counts anew
  }
  CHECK(watch.diverged(step_with(limit + 0.1, 1)));
  CHECK(watch.reason([] { return Tensor(); }) == "loss above 23.03, ten times ln(10), for 20 steps");

  DivergenceWatch finite(10);
  CHECK(finite.diverged(step_with(infinity, 1)));
  const Tensor zero = variable(tensor({0.0}, {1}));
  CHECK_THAT(finite.reason([&] { return sum(log(zero)); }), contains("log"));
}

TEST_CASE("seeds that diverge are marked, counted, and left out of the statistics, after a resume as before") {
  const TemporaryFolder folder;
  const std::string out = (folder / "run").string();
  int bodies = 0, status = -1;
  const auto run = [&](std::vector<const char*> more) {
    std::vector<const char*> arguments{"study", "--seeds", "0..3", "--steps", "3", "--no-progress", "--out", out.c_str()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::string table;
    const std::string progress = written_to(STDERR_FILENO, folder / "err", [&] {
      table = written_to(STDOUT_FILENO, folder / "out", [&] {
        status = experiment(static_cast<int>(arguments.size()), arguments.data(), {.name = "study", .summary = "A study."}, [&](Run& r) {
          ++bodies;
          if (r.seed() == 2) r.note("a note");
          r.log({{"loss", r.seed() == 1   ? std::nan("")
                          : r.seed() == 3 ? 4.0
                                          : 2.0},
                 {"odd", r.seed() == 2   ? -std::nan("")
                         : r.seed() == 1 ? 100
                                         : 1}});
          if (r.seed() == 1) r.diverged(5, "because");
        });
      });
    });
    return std::pair{table, progress};
  };
  const auto [table, progress] = run({});
  INFO(progress << table);
  CHECK(status == 0);
  CHECK_THAT(progress,
             contains("seed 1") && contains("diverged at step 5: because") && contains("a note\n") && contains("odd not finite") && !contains("nan"));
  CHECK_THAT(table, contains("diverged             1 of 4 seeds: seed 1 at step 5\n") && contains("2.6667 ") && contains("n = 3") &&
                        contains(" 1 ± 0  n = 2") && !contains("nan"));
  CHECK(read_file(folder / "run/results.csv") == "seed,loss,odd,diverged_at\n0,2,1,\n1,,100,5\n2,2,,\n3,4,1,\n");
  CHECK_THAT(read_file(folder / "run/metrics.jsonl"), contains("{\"seed\":1,\"step\":5,\"diverged_at\":5,\"divergence\":\"because\"}\n"));
  const auto again = run({"--resume"});
  CHECK(status == 0);
  CHECK(bodies == 4);
  CHECK(again.first == table);
  CHECK(read_file(folder / "run/results.csv") == "seed,loss,odd,diverged_at\n0,2,1,\n1,,100,5\n2,2,,\n3,4,1,\n");
}

TEST_CASE("the table shows the values asked for, or a handful and how many more there are") {
  const TemporaryFolder folder;
  const std::string out = (folder / "run").string();
  const auto table = [&](const std::vector<std::string>& show, int values) {
    const char* arguments[] = {"/somewhere/my_study", "--seeds", "0..1", "--steps", "1", "--no-progress", "--overwrite", "--out", out.c_str()};
    std::string text;
    const std::string progress = written_to(STDERR_FILENO, folder / "err", [&] {
      text = written_to(STDOUT_FILENO, folder / "out", [&] {
        CHECK(experiment(9, arguments, {.name = "study", .summary = "A study.", .show = show}, [&](Run& r) {
                for (int i = 0; i < values; ++i) r.log({{"v" + std::to_string(i), i}});
              }) == 0);
      });
    });
    CHECK((progress.find("v8") != std::string::npos) == (show.size() == 2));
    return text;
  };
  const std::string few = table({}, 8), many = table({}, 12), asked = table({"v8", "absent"}, 12);
  CHECK_THAT(few, contains("v7 ") && !contains("more value"));
  CHECK_THAT(many, contains("v7 ") && !contains("v8 ") && contains("4 more values in " + out + "/results.csv"));
  CHECK_THAT(asked, contains("v8 ") && !contains("v7 ") && contains("never logged") && contains("11 more values in"));
  CHECK_THAT(asked, contains("data: glyphs, 12800 training images, 2000 validation images: the made test set"));
  // The program that ran is recorded, the experiment's name decides.
  const std::string run = read_file(folder / "run/run.json");
  CHECK_THAT(run, contains("\"experiment\": \"study\"") && contains("\"command_line\": \"my_study --seeds 0..1") &&
                      contains("\"data\": \"glyphs, 12800 training images"));
  const char* help[] = {"/somewhere/my_study", "--help"};
  CHECK_THAT(written_to(STDOUT_FILENO, folder / "out", [&] { experiment(2, help, {.name = "study", .summary = "A study."}, [](Run&) {}); }),
             contains("Usage: my_study [options]"));
}

TEST_CASE("a seed diverges once, and its mark is not logged by hand") {
  const TemporaryFolder folder;
  const std::string out = (folder / "run").string();
  const char* arguments[] = {"study", "--steps", "1", "--no-progress", "--overwrite", "--out", out.c_str()};
  const auto error = [&](const std::function<void(Run&)>& body) {
    int status = 0;
    const std::string text =
        written_to(STDERR_FILENO, folder / "err", [&] { status = experiment(7, arguments, {.name = "study", .summary = "A study."}, body); });
    CHECK(status == 1);
    return text;
  };
  CHECK_THAT(error([](Run& r) { r.log({{"diverged_at", 1}}); }), contains("expected a name other than seed, step, diverged_at and divergence"));
  CHECK_THAT(error([](Run& r) {
               r.diverged(1, "a");
               r.diverged(2, "b");
             }),
             contains("[diverged] expected one divergence a seed, got a second at step 2"));
}
