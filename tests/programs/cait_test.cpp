// Tests of bin/vit --model cait.
#include <nlohmann/json.hpp>

#include "plumb/plumb.h"
#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const std::string cait = program("vit") + " --model cait",
                  small_cait = cait + " --dim 8 --heads 2 --depth 2 --patch 16 --batch 4 --no-progress ";

std::string line_with(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find(part) != std::string::npos) return line;
  return {};
}

double l2(const Tensor& t) {
  double sum = 0;
  for (double v : t.values()) sum += v * v;
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE("a small CaiT preset trains and evaluates with the same bytes each time") {
  const TemporaryFolder folder;
  const Finished first = run(folder.path(), small_cait + "--steps 4 --preset cait-paper-s24 --seeds 0..1 --out a");
  INFO(first.err);
  REQUIRE(first.status == 0);
  CHECK_THAT(first.err, !contains("DropKey"));
  CHECK(slurp(folder.path() / "a/results.csv")
            .starts_with("seed,status,steps,seconds,train_loss,val_loss,val_accuracy,images_per_second,"
                         "target_entropy\n0,ok,4,"));
  CHECK_THAT(first.err, !contains("target_entropy"));
  const auto settings = nlohmann::json::parse(slurp(folder.path() / "a/run.json"))["settings"];
  CHECK(settings["dim"] == 8);
  CHECK(settings["drop_path"] == 0.1);  // the value comes from the preset
  CHECK(settings["init"] == 0.1);       // the value follows from the given depth
  REQUIRE(
      run(folder.path(), small_cait + "--steps 4 --preset cait-paper-s24 --seeds 0..1 --out b --threads 1 --checkpoint")
          .status == 0);
  CHECK(slurp(folder.path() / "a/metrics.jsonl") == slurp(folder.path() / "b/metrics.jsonl"));
  for (const char* other :
       {"--gate rezero", "--talking-heads identity", "--talking-heads none", "--drop-key 0.5", "--label-smoothing 0",
        "--attn-drop 0.5", "--drop-head 0.5", "--drop-path 0", "--drop-path-schedule linear --drop-path 0.9",
        "--optimizer sgd", "--schedule constant --lr 1e-3", "--weight-init xavier"}) {
    INFO(other);
    REQUIRE(run(folder.path(), small_cait + "--steps 4 --preset cait-paper-s24 --overwrite --out c " + other).status ==
            0);
    CHECK(slurp(folder.path() / "c/metrics.jsonl") !=
          slurp(folder.path() / "a/metrics.jsonl").substr(0, slurp(folder.path() / "c/metrics.jsonl").size()));
  }
}

TEST_CASE("the schedule warms up from the rate lr_start of the preset and ends at lr_end") {
  const TemporaryFolder folder;
  REQUIRE(run(folder.path(), small_cait + "--lr 1e-3 --warmup 2 --steps 6 --out a").status == 0);
  std::vector<double> rates;
  std::istringstream lines(slurp(folder.path() / "a/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);)
    if (const auto object = nlohmann::json::parse(line); object.contains("lr_now"))
      rates.push_back(object["lr_now"].get<double>());
  REQUIRE(rates.size() == 6);
  CHECK(rates[0] == Approx(1e-6));
  CHECK(rates[1] == Approx(5.005e-4));
  CHECK(rates[2] == Approx(1e-3));
  CHECK(rates[4] == Approx(5.05e-4));  // half way between the peak and the end
}

TEST_CASE("a CaiT describes its DropKey and logs its statistics every tenth step") {
  const TemporaryFolder folder;
  for (const std::string talking : {"", "--talking-heads cait "}) {
    const std::string command =
        cait +
        " --dim 8 --heads 2 --depth 2 --patch 8 --batch 4 --no-progress --steps 12 --seeds 0..1 --drop-key 0.3 " +
        (talking.empty() ? "--talking-heads none " : talking);
    const Finished f = run(folder.path(), command + "--overwrite --out a");
    INFO(f.err);
    REQUIRE(f.status == 0);
    const std::string said = line_with(f.err, "DropKey");
    CHECK_THAT(said, contains("DropKey: 0.3, constant, plain, per_entry; expected share of keys 0.3"));
    CHECK((said.find("--drop-key-sharing heads") != std::string::npos) == !talking.empty());
    CHECK(f.err.find("DropKey", f.err.find(said) + said.size()) ==
          std::string::npos);  // the line appears once, not once for each seed
    std::vector<std::size_t> logged;
    std::istringstream lines(slurp(folder.path() / "a/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);)
      if (const auto object = nlohmann::json::parse(line); object.contains("drop_ratio")) {
        logged.push_back(object["step"]);
        CHECK(std::abs(object["drop_ratio"].get<double>() - 0.3) < 0.1);
        CHECK(object["empty_rows"].get<double>() < 0.01);
      }
    CHECK(logged == std::vector<std::size_t>{0, 10, 0, 10});
  }
  const Finished wrong = run(folder.path(), small_cait + "--drop-key 0.3 --drop-key-shape block --out b");
  CHECK(wrong.status == 2);
  CHECK_THAT(wrong.err, contains("expected an odd window that fits into the grid of 2 x 2 patches, got 3"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "b"));
}

TEST_CASE("a CaiT that diverges is finished and counted and saves no weights") {
  const TemporaryFolder folder;
  const std::string command = small_cait + "--lr 1e30 --warmup 0 --steps 6 --seeds 0..1 --save-weights --out a";
  const Finished f = run(folder.path(), command);
  INFO(f.err << f.out);
  REQUIRE(f.status == 0);
  CHECK_THAT(line_with(f.err, "seed 0"), contains("diverged at step 1: ["));
  CHECK_THAT(f.out,
             contains("diverged             2 of 2 seeds: seed 0 at step 1, seed 1 at step 1") && !contains("nan"));
  CHECK_THAT(f.err, !contains("nan  "));
  const std::string results = slurp(folder.path() / "a/results.csv");
  CHECK_THAT(results,
             contains("seed,status,steps,seconds,train_loss,val_loss,val_accuracy,diverged_at\n0,diverged,1,") &&
                 contains(",1\n1,diverged,1,"));
  CHECK_THAT(slurp(folder.path() / "a/metrics.jsonl"), contains("\"diverged_at\":1,\"divergence\":\"["));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "a/weights/seed-0.safetensors"));
  const Finished resumed = run(folder.path(), command + " --resume");
  CHECK(resumed.status == 0);
  CHECK(resumed.out == f.out);
  CHECK(slurp(folder.path() / "a/results.csv") == results);
}

TEST_CASE("the weights of a CaiT are saved under timm's names and their average is evaluated") {
  const TemporaryFolder folder;
  const std::string command =
      small_cait + "--steps 4 --lr 1e-2 --warmup 0 --seeds 3 --save-weights --overwrite --out a";
  const auto weights = [&](const std::string& options) {
    const Finished f = run(folder.path(), command + options);
    INFO(f.err);
    REQUIRE(f.status == 0);
    return nn::read_safetensors(folder.path() / "a/weights/seed-3.safetensors").tensors;
  };
  const auto val_loss = [&] { return rows_of(slurp(folder.path() / "a/results.csv")).at(0).at("val_loss"); };
  const nn::NamedTensors plain = weights("");
  const std::string value = val_loss();
  CHECK(plain.at("patch_embed.proj.weight").shape() == Shape{8, 3, 16, 16});
  CHECK(plain.contains("blocks.1.gamma_2"));
  CHECK(plain.contains("blocks_token_only.0.gamma_1"));
  const nn::NamedTensors averaged = weights(" --ema-decay 0.99");
  CHECK(averaged.at("head.weight").values() != plain.at("head.weight").values());
  CHECK(val_loss() != value);
  // The averaged weights have moved by about a hundredth of the distance that the weights have moved.
  nn::CaiT fresh({.image = 32,
                  .patch = 16,
                  .channels = 3,
                  .classes = 10,
                  .dim = 8,
                  .depth = 2,
                  .heads = 2,
                  .init = 0.1,
                  .seed = 3});
  const Tensor start = nn::weights(fresh, nn::timm_cait()).at("head.weight").detach();
  const double far = l2(plain.at("head.weight") - start), near = l2(averaged.at("head.weight") - start);
  CHECK(far > 0.05);
  CHECK(near / far < 0.05);
  CHECK(near > 0);
}

TEST_CASE("print-config shows each constant with its source and can be read back") {
  const TemporaryFolder folder;
  const Finished f =
      run(folder.path(), cait + " --preset cait-paper-xxs36 --batch 128 --steps 800 --weight-decay 0.1 --print-config");
  INFO(f.err);
  REQUIRE(f.status == 0);
  CHECK_THAT(line_with(f.out, "\"dim\""), contains("192") && contains("[facebookresearch/deit, cait_models.py]"));
  CHECK_THAT(line_with(f.out, "\"init\""), contains("1e-06") && contains("1e-6 deeper; the released model has 1e-5]"));
  CHECK_THAT(line_with(f.out, "\"drop_path\""),
             contains("0.1") && contains("[reported in secondary texts, not verified]"));
  CHECK_THAT(line_with(f.out, "\"lr\""),
             contains("0.000125") && contains("[0.0005 x batch / 512; facebookresearch/deit, main.py]"));
  CHECK_THAT(line_with(f.out, "\"warmup\""), contains("10,") && contains("[5 of 400 epochs"));
  CHECK_THAT(line_with(f.out, "\"weight_decay\""), contains("0.1") && contains("[given; cait-paper-xxs36 sets 0.05]"));
  CHECK_THAT(line_with(f.out, "\"patch\""), contains("4") && contains("has 16 at 224 x 224]"));
  CHECK_THAT(line_with(f.out, "\"gate\""), contains("[Touvron et al. 2021]"));
  CHECK_THAT(line_with(f.out, "\"talking_heads\""), contains("[facebookresearch/deit, cait_models.py]"));
  CHECK_THAT(line_with(f.out, "\"drop_key\""), contains("[ours: CaiT has no DropKey]"));
  CHECK_THAT(line_with(f.out, "\"ema_decay\""),
             contains("\"ema_decay\": 0.0,") &&
                 contains("[ours: the decay 0.99996 of cait-paper-xxs36 is too slow for short training]"));
  CHECK_THAT(line_with(f.out, "\"schedule\""), contains("[ours: updated per step, starts after the warm-up;"));
  CHECK_THAT(line_with(f.out, "beta2"), contains("0.999") && contains("PyTorch's default"));
  CHECK_THAT(line_with(f.out, "  mixup  "), contains("0.8") && contains("[facebookresearch/deit, main.py]"));
  { std::ofstream(folder.path() / "c.json") << f.out; }
  // The configuration file names its preset. Without --preset, values are compared with this preset instead of the
  // default preset.
  const Finished again = run(folder.path(), cait + " --config c.json --print-config");
  CHECK_THAT(line_with(again.out, "\"dim\""), contains("[facebookresearch/deit, cait_models.py]"));
  CHECK_THAT(line_with(again.out, "\"preset\""), contains("cait-paper-xxs36"));
  CHECK_THAT(
      line_with(run(folder.path(), cait + " --config c.json --print-config --preset cait-timm-s24").out, "\"dim\""),
      contains("192") && contains("[given; cait-timm-s24 sets 384]"));
  CHECK(line_with(again.out, "\"weight_decay\"") == line_with(f.out, "\"weight_decay\""));
  CHECK(line_with(again.out, "\"init\"") == line_with(f.out, "\"init\""));
  CHECK_THAT(line_with(again.out, "\"lr\""), contains("0.000125"));
  CHECK_THAT(line_with(run(folder.path(), cait + " --depth 12 --print-config").out, "\"init\""),
             contains("0.1") && contains("[computed from --depth"));
  CHECK_THAT(line_with(run(folder.path(), cait + " --preset cait-timm-xxs36 --print-config").out, "\"init\""),
             contains("1e-05") && contains("[timm 1.0.31, cait.py, cait_xxs36]"));
  CHECK_THAT(
      line_with(run(folder.path(), cait + " --preset cait-timm-xxs36 --depth 36 --print-config").out, "\"init\""),
      contains("1e-05") && contains("[timm 1.0.31, cait.py, cait_xxs36]"));
  CHECK_THAT(line_with(run(folder.path(), cait + " --depth 30 --print-config").out, "\"init\""),
             contains("1e-06") && contains("[computed from --depth; our value between the published depths"));
}

TEST_CASE("preset-diff shows only the constants that differ") {
  const TemporaryFolder folder;
  const Finished f = run(folder.path(), cait + " --preset-diff cait-paper-xxs36 cait-timm-xxs36");
  INFO(f.err);
  REQUIRE(f.status == 0);
  CHECK_THAT(f.out, contains("init") && contains("1e-06") && contains("1e-05") && contains("drop_path") &&
                        contains("timm 1.0.31, cait.py"));
  CHECK(line_with(f.out, "dim").empty());
  CHECK(line_with(f.out, "weight_decay").empty());
  CHECK(run(folder.path(), cait + " --preset-diff cait-paper-xxs36,cait-timm-xxs36").out == f.out);
  CHECK_THAT(run(folder.path(), cait + " --preset-diff cait-timm-s36,cait-timm-m36").out,
             contains("768") && !contains("drop_path"));

  CHECK(run(folder.path(), cait + " --preset-diff cait-timm-s36 cait-timm-s36").out ==
        "cait-timm-s36 and cait-timm-s36 have the same constants\n");

  for (const auto& [arguments, message] :
       {std::pair{"--preset-diff cait-paper-xxs36", "--preset-diff: expected two presets, got 1"},
        {"--preset-diff cait-paper-xxs36 cait-tim-xxs36",
         "unknown preset 'cait-tim-xxs36'; did you mean 'cait-timm-xxs36'?"}}) {
    const Finished wrong = run(folder.path(), cait + " " + arguments);
    CHECK(wrong.status == 2);
    CHECK_THAT(wrong.err, contains(message));
  }
  const std::string list = run(folder.path(), cait + " --list-presets").out;
  CHECK(std::count(list.begin(), list.end(), '\n') == 24);
  const std::string help = run(folder.path(), cait + " --help").out;
  CHECK_THAT(help, contains("cait-timm-m48") && contains("--preset-diff A B"));
}

TEST_CASE("the model decides the defaults, and options and presets of the other model are refused") {
  const TemporaryFolder folder;
  const std::string vit = program("vit");
  { std::ofstream(folder.path() / "c.json") << R"({"model": "cait"})"; }
  const std::string as_cait = run(folder.path(), cait + " --print-config").out;
  CHECK_THAT(as_cait, contains("\"model\": \"cait\"") && contains("\"dim\": 192") && contains("\"steps\": 200,") &&
                          contains("\"label_smoothing\": 0.1,"));
  for (const char* same : {" --preset cait-paper-xxs24", " --config c.json"})
    CHECK(run(folder.path(), vit + same + " --print-config").out == as_cait);
  CHECK_THAT(run(folder.path(), vit + " --print-config").out,
             contains("\"model\": \"vit\"") && contains("\"dim\": 64") && contains("\"steps\": 300,") &&
                 contains("\"label_smoothing\": \"augment\",") && !contains("Further constants"));
  for (const auto& [arguments, message] :
       {std::pair{" --model vit --preset cait-timm-s24",
                  "--preset cait-timm-s24 is a CaiT, and the network is a ViT; leave it out"},
        {" --model cait --preset vit-tiny", "--preset vit-tiny is a ViT, and the network is a CaiT; leave it out"},
        {" --talking-heads none",
         "--talking-heads has no effect without --model cait; give --model cait, or leave it out"},
        {" --depth-token-only 3", "--depth-token-only has no effect without --model cait"},
        {" --model cait --pool token",
         "--pool has no effect with --model cait, whose head reads a class token; leave it out"}}) {
    const Finished wrong = run(folder.path(), vit + arguments);
    CHECK(wrong.status == 2);
    CHECK_THAT(wrong.err, contains(message));
  }
}
