// Tests of bin/detr as a program: it learns, resumes, and finds objects in images with saved weights.
#include <atomic>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "experiments/programs.h"
#include "experiments/vision/data/image_file.h"
#include "experiments/vision/data/shapes.h"
#include "experiments/vision/problem/detection_problem.h"
#include "nn/io/detr_card.h"
#include "tests/lab/study/epsilon_study.h"
#include "tests/support/interrupt.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

namespace {

const Words small{"--dim",     "8", "--heads",    "2",   "--hidden",      "8", "--encoder",   "1", "--decoder", "1",
                  "--queries", "3", "--backbone", "4,4", "--train-count", "8", "--val-count", "4", "--batch",   "4",
                  "--steps",   "6", "--warmup",   "1",   "--no-progress"};

Ended call_detr(const TemporaryFolder& folder, const Words& words) { return call(folder.path(), detr, words, "detr"); }

std::pair<std::string, std::string> files(const TemporaryFolder& folder, const std::string& out) {
  return {timeless(file(folder, out + "/results.csv")), file(folder, out + "/metrics.jsonl")};
}

}  // namespace

TEST_CASE("a DETR learns to find the objects of sixteen images", "[long]") {
  const TemporaryFolder folder;
  const DetectionSet images = make_shapes(ShapeSplit::train, 16);
  write_coco(images, folder / "shapes");
  // The networks are judged on the images that they train on: this is a test of the code, not of a method.
  const Ended e = call_detr(folder, {"--data",
                                     "coco",
                                     "--train-annotations",
                                     "shapes/instances.json",
                                     "--train-images",
                                     "shapes/images",
                                     "--val-annotations",
                                     "shapes/instances.json",
                                     "--val-images",
                                     "shapes/images",
                                     "--mirror",
                                     "0",
                                     "--batch",
                                     "16",
                                     "--forms",
                                     "none",
                                     "--gates",
                                     "pre,post",
                                     "--steps",
                                     "200",
                                     "--lr",
                                     "1e-3",
                                     "--no-progress",
                                     "--json",
                                     "--out",
                                     "a"});
  INFO(e.err);
  REQUIRE(e.status == 0);
  for (const auto& row : nlohmann::json::parse(e.out)["trials"]) {
    INFO(row.dump());
    CHECK(row["val_ap_50"].get<double>() >= 0.9);
  }
}

TEST_CASE("parallel jobs and shards of detectors give the same bytes except for times") {
  const TemporaryFolder folder;
  const Words arms = with(small, {"--forms", "none,drop_key", "--drop-key-schedules", "constant", "--seeds", "0,1"});
  const auto run = [&](const std::string& out, const Words& more) {
    const Ended e = call_detr(folder, with(with(arms, more), {"--out", out}));
    INFO(e.err);
    REQUIRE(e.status == 0);
    return files(folder, out);
  };
  const auto alone = run("alone", {"--threads", "1"});
  CHECK(run("jobs", {"--jobs", "3", "--threads", "3"}) == alone);
  std::multiset<std::string> rows;
  for (const char* shard : {"1/2", "2/2"}) {
    std::istringstream lines(run(std::string("shard") + shard[0], {"--shard", shard}).first);
    for (std::string row; std::getline(lines, row);) rows.insert(row);
  }
  std::istringstream lines(alone.first);
  for (std::string row; std::getline(lines, row);) CHECK(rows.contains(row));
  CHECK(rows.size() == 6);  // four trials, and the names of the columns twice
}

TEST_CASE("files are for the data of COCO, and the settings of a folder with other data can be read again") {
  const TemporaryFolder folder;
  const auto error = [&](const Words& words) { return call_detr(folder, with(small, words)).err; };
  CHECK_THAT(error({"--val-images", "val"}), contains("--val-images applies only to --data coco"));
  CHECK_THAT(error({"--data", "coco", "--train-annotations", "train.json", "--train-images", "train",
                    "--val-annotations", "val.json"}),
             contains("--data coco needs --val-images"));
  REQUIRE(call_detr(folder, with(small, {"--forms", "none", "--out", "a"})).status == 0);
  const auto settings = nlohmann::json::parse(file(folder, "a/run.json"))["settings"];
  CHECK(settings["val_images"] == "");
  write_file_atomically(folder / "settings.json", settings.dump());
  const Ended e = call_detr(folder, {"--config", "settings.json", "--out", "a", "--resume"});
  INFO(e.err);
  CHECK(e.status == 0);
}

TEST_CASE("a detector that was interrupted resumes with the same batches, drops and statistics") {
  const TemporaryFolder folder;
  std::atomic<int> steps = 0;
  int stop_at = -1;
  const auto main = [&](int argc, const char* const* argv) {
    DetectionOptions data{.train_count = 12, .val_count = 4};
    nn::DetrOptions o{.classes = 3,
                      .backbone = {4, 6},
                      .dim = 8,
                      .heads = 2,
                      .encoder = 1,
                      .decoder = 1,
                      .hidden = 8,
                      .queries = 5,
                      .dropout = 0.1,
                      .cross_attention = {.drop_key = {.rate = 0.3}, .dropout = 0.1}};
    lab::Study study("detectors", "Resumes.");
    study.problem([&](const StudyOptions& s) { return std::make_unique<DetectionProblem>(data, o, s); });
    return study.run(argc, argv, [&](lab::Trial& trial) {
      o.seed = trial.seed();
      nn::Detr model(o);
      trial.train(model, {.before = [&](std::int64_t) {
                    if (++steps == stop_at) interrupted_by(SIGINT);
                  }});
    });
  };
  const Words words{"--batch", "4", "--steps", "12", "--warmup", "2", "--no-progress", "--save-weights", "--out"};
  REQUIRE(call(folder.path(), main, with(words, {"whole"})).status == 0);
  steps = 0, stop_at = 7;
  REQUIRE(call(folder.path(), main, with(words, {"a"})).status == 130);
  CHECK(!checkpoint_in(folder / "a").empty());
  stop_at = -1;
  REQUIRE(call(folder.path(), main, with(words, {"a", "--resume"})).status == 0);
  CHECK(files(folder, "a") == files(folder, "whole"));
  for (const auto& entry : std::filesystem::directory_iterator(folder / "whole/weights"))
    CHECK(read_file(entry.path()) == file(folder, "a/weights/" + entry.path().filename().string()));
}

TEST_CASE("saved weights find objects in an image, and in a folder with a damaged file") {
  const TemporaryFolder folder;
  const Ended trained =
      call_detr(folder, with(small, {"--forms", "none", "--gates", "layerscale", "--save-weights", "--out", "a"}));
  INFO(trained.err);
  REQUIRE(trained.status == 0);
  const std::filesystem::path weights = std::filesystem::directory_iterator(folder / "a/weights")->path();
  // The folder has the same photograph twice, with other sides than the training images, and a file that is no image.
  Pixels photograph{3, 90, 140, std::vector<std::uint8_t>(3 * 90 * 140, 77)};
  std::filesystem::create_directories(folder / "photos/more");
  write_file_atomically(folder / "photos/one.png", png(photograph));
  write_file_atomically(folder / "photos/more/one.png", png(photograph));
  write_file_atomically(folder / "photos/damaged.jpg", "no image");

  const Words find{"--weights", weights.string(), "--score", "0"};
  const Ended one = call_detr(folder, with(find, {"--image", "photos/one.png", "--out", "b"}));
  INFO(one.err);
  CHECK(one.status == 0);
  CHECK_THAT(one.out, contains("photos/one.png: 3 objects with a score of at least 0\n") && contains(" pixels at ("));
  CHECK_THAT(one.err, contains("pictures: b"));
  const std::string picture = file(folder, "b/one.svg");
  CHECK_THAT(picture, contains("viewBox=\"0 0 560 360\"") && contains("<image ") && contains("</text></svg>"));

  const Ended all = call_detr(folder, with(find, {"--image", "photos", "--json", "--out", "c"}));
  CHECK(all.status == 1);
  CHECK_THAT(all.err, contains("error: photos/damaged.jpg"));
  const auto list = nlohmann::json::parse(all.out);
  REQUIRE(list.size() == 2);
  for (const auto& image : list) {
    CHECK(image["width"] == 140);
    CHECK(image["objects"].size() == 3);
    CHECK(std::filesystem::exists(folder / image["picture"].get<std::string>()));
    double last = 1;
    for (const auto& o : image["objects"]) {
      CHECK((o["class"] == "circle" || o["class"] == "square" || o["class"] == "triangle"));
      CHECK((o["score"].get<double>() <= last && o["score"].get<double>() > 0));
      last = o["score"];
    }
  }
  CHECK(list[0]["objects"] == list[1]["objects"]);  // the same image at two paths
  // The boxes are those of the network for the image as in the training, in pixels of the file.
  const auto [card, network] = nn::load_detr(weights);
  CHECK(card.largest_image == 64);
  const NoGrad no_grad;
  const Normalization pixels{{card.mean.begin(), card.mean.end()}, {card.std.begin(), card.std.end()}};
  const auto found = found_objects(network->detect(batch_of(fitted(photograph, 64), pixels).images)).front();
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& o = list[0]["objects"][i];
    CHECK(o["label"] == found[i].label);
    CHECK(o["box"][0].get<double>() == Approx(140 * found[i].box.x0));
    CHECK(o["box"][1].get<double>() == Approx(90 * found[i].box.y0));
    CHECK(o["box"][2].get<double>() == Approx(140 * found[i].box.width()));
    CHECK(o["box"][3].get<double>() == Approx(90 * found[i].box.height()));
  }
  CHECK_THAT(picture, contains(fmt::format("<rect x=\"{:.1f}\"", 560 * std::clamp(found[0].box.x0, 0.0, 1.0))));
  CHECK(list[0]["picture"] != list[1]["picture"]);

  const Ended none = call_detr(
      folder, {"--weights", weights.string(), "--score", "1", "--image", "photos/one.png", "--json", "--out", "d"});
  CHECK(nlohmann::json::parse(none.out)[0]["objects"].empty());
}

TEST_CASE("errors of a search for objects say what is missing") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "cat.png", png({3, 4, 4, std::vector<std::uint8_t>(48, 9)}));
  const auto error = [&](const Words& words) {
    const Ended e = call_detr(folder, words);
    CHECK(e.status != 0);
    CHECK(e.out.empty());
    return e.err;
  };
  CHECK_THAT(error({"--image", "cat.png"}), contains("--image needs --weights FILE"));
  CHECK_THAT(error({"--weights", "w"}), contains("--weights needs --image PATH"));
  CHECK_THAT(error({"--score", "0.3"}), contains("--score is for --weights"));
  CHECK_THAT(error({"--weights", "w", "--image", "cat.png", "--resume"}),
             contains("--resume is for training and does not go with --weights"));
  CHECK_THAT(error({"--weights", "w", "--image", "cat.png"}), contains("error: w: expected a safetensors file"));
  for (const char* option : {"--dry-run", "--save-weights"})
    CHECK_THAT(error({"--weights", "w", "--image", "cat.png", option}), contains("is for training"));
  CHECK_THAT(error({"--weights", "w", "--image", "cat.png", "--out", "cat.png"}), contains("is not an empty folder"));
  CHECK_THAT(error({"--weights", "w", "--image", "dog.png"}), contains("dog.png"));
  nn::save_weights(nn::Linear({.in = 1, .out = 1}), folder / "linear");
  CHECK_THAT(error({"--weights", "linear", "--image", "cat.png"}),
             contains("linear: expected weights with Plumb's description of a Detr"));
}

TEST_CASE("the published setting of detr names the source of each value") {
  const TemporaryFolder folder;
  const Ended e = call_detr(folder, {"--preset", "paper", "--train-annotations", "a", "--train-images", "b",
                                     "--val-annotations", "c", "--val-images", "d", "--print-config"});
  REQUIRE(e.status == 0);
  std::istringstream lines(e.out);
  int sourced = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  \"")) continue;
    const std::string key = line.substr(3, line.find('"', 3) - 3);
    INFO(line);
    if (std::set<std::string>{"deterministic", "threads", "jobs", "shard", "checkpoint_every", "until_decided",
                              "preset"}
            .contains(key))
      continue;
    CHECK(line.ends_with("]"));
    ++sourced;
  }
  CHECK(sourced > 35);
}
