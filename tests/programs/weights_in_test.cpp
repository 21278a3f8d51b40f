// Tests of programs that read trained weights: evaluation on images, further training, and pictures.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "experiments/vision/data/batch.h"
#include "experiments/vision/data/glyphs.h"
#include "experiments/vision/data/image_file.h"
#include "experiments/vision/data/image_folder.h"
#include "experiments/vision/data/loader.h"
#include "experiments/vision/data/split.h"
#include "plumb/plumb.h"
#include "tests/programs/program.h"
#include "tests/vision/data/data_files.h"

using namespace plumb;
using namespace plumb::test;
namespace fs = std::filesystem;

namespace {

// Writes glyphs as image files of two classes. Each class has `count` images in train/ and two in val/.
void write_glyphs(const fs::path& root, int count) {
  const vision::ImageSet set = vision::make_glyphs(vision::GlyphSplit::train, 400);
  for (const int label : {2, 5}) {
    int written = 0;
    for (std::int64_t i = 0; i < set.size() && written < count + 2; ++i) {
      if (set.labels[static_cast<std::size_t>(i)] != label) continue;
      const std::string bytes = vision::png(vision::original(set, i));
      write_bytes(root / (written < count ? "train" : "val") / (label == 2 ? "two" : "five") / fmt::format("{}.png", i),
                  {bytes.begin(), bytes.end()});
      ++written;
    }
  }
}

std::string cait_file(const fs::path& path, std::int64_t classes = 4) {
  const nn::CaiT model(
      {.image = 16, .patch = 4, .classes = classes, .dim = 16, .depth = 2, .heads = 2, .init = 0.5, .seed = 5});
  nn::save_weights(model, path, nn::timm_cait());
  return path.string();
}

std::string vit_file(const fs::path& path, const char* gate = "pre") {
  const nn::ViT model({.image = 16,
                       .patch = 4,
                       .classes = 4,
                       .dim = 64,
                       .depth = 2,
                       .heads = 2,
                       .method = gate,
                       .pool = nn::Pool::token,
                       .seed = 5});
  nn::save_weights(model, path, nn::timm_vit());
  return path.string();
}

// The expected scores, computed from the logits of the model.
struct ByHand {
  double loss = 0;
  int right = 0, among = 0;
  std::map<std::int64_t, std::vector<double>> losses;              // key: class
  std::map<std::pair<std::int64_t, std::int64_t>, int> confusion;  // key: (label, predicted class)
};

ByHand by_hand(const nn::Classifier& model, const vision::ImageSet& set, const vision::Normalization& normalization) {
  const NoGrad no_grad;
  ByHand result;
  for (std::int64_t i = 0; i < set.size(); ++i) {
    const std::vector<double> logits =
        model(vision::to_tensors(vision::evaluation_batch(set, normalization, i, 1), set).images).values();
    const std::int64_t label = set.labels[static_cast<std::size_t>(i)];
    const double mine = logits[static_cast<std::size_t>(label)];
    double sum = 0;
    int above = 0;
    for (const double v : logits) sum += std::exp(v), above += v > mine;
    const double loss = std::log(sum) - mine;
    result.loss += loss / static_cast<double>(set.size()), result.losses[label].push_back(loss);
    result.right += above == 0, result.among += above < 5;
    ++result.confusion[{label, std::ranges::max_element(logits) - logits.begin()}];
  }
  return result;
}

void check_scores(const nlohmann::json& scores, const ByHand& expected, std::int64_t images) {
  const double n = static_cast<double>(images);
  CHECK(scores["images"] == images);
  CHECK(std::abs(scores["loss"].get<double>() - expected.loss) < 1e-5);
  CHECK(scores["right"] == expected.right);
  CHECK(std::abs(scores["accuracy"].get<double>() - expected.right / n) < 1e-12);
  CHECK(std::abs(scores["accuracy_5"].get<double>() - expected.among / n) < 1e-12);
  REQUIRE(scores["classes"].size() == expected.losses.size());
  for (const auto& of : scores["classes"]) {
    const std::int64_t label = of["class"];
    const std::vector<double>& losses = expected.losses.at(label);
    CHECK(of["images"] == losses.size());
    CHECK(std::abs(of["loss"].get<double>() -
                   std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size())) < 1e-5);
    const auto right = expected.confusion.find({label, label});
    CHECK(of["right"] == (right == expected.confusion.end() ? 0 : right->second));
  }
  const auto& confusion = scores["confusion"];
  int sum = 0;
  for (std::size_t row = 0; row < confusion["classes"].size(); ++row)
    for (std::size_t column = 0; column < confusion["classes"].size(); ++column) {
      const auto found = expected.confusion.find({confusion["classes"][row], confusion["classes"][column]});
      const int count = confusion["counts"][row][column];
      CHECK(count == (found == expected.confusion.end() ? 0 : found->second));
      sum += count;
    }
  CHECK(sum == images);
}

// A ViT for glyphs whose head has large weights, so that it predicts many classes.
std::unique_ptr<nn::Classifier> glyph_vit(const fs::path& path) {
  auto model = std::make_unique<nn::ViT>(nn::ViTOptions{.image = 32,
                                                        .patch = 16,
                                                        .classes = 10,
                                                        .dim = 64,
                                                        .depth = 1,
                                                        .heads = 2,
                                                        .method = "pre",
                                                        .pool = nn::Pool::token,
                                                        .seed = 5});
  for (const nn::Parameter& p : model->parameters())
    if (p.name == "head.weight") copy_into((p.value * 20).array(), p.value.array());
  nn::save_weights(*model, path, nn::timm_vit());
  model->eval();
  return model;
}

}  // namespace

TEST_CASE(
    "a data set is evaluated with the loss and accuracy and confusion of the logits and pictures of every class") {
  const TemporaryFolder folder;
  const auto model = glyph_vit(folder / "w");
  const vision::ImageData data = vision::with_validation_split(vision::glyphs(), 0.01);
  const std::string call = program("vit") + " --weights w --evaluate --data glyphs --validation-split 0.01 --out ";
  const Finished f = run(folder.path(), call + "e --json");
  INFO(f.err);
  REQUIRE(f.status == 0);
  const auto scores = nlohmann::json::parse(f.out);
  const ByHand expected = by_hand(*model, data.validation, vision::normalization_of(data.train));
  REQUIRE(data.validation.size() == 130);
  REQUIRE(expected.confusion.size() > 15);  // a smaller confusion matrix would test little
  check_scores(scores, expected, 130);
  CHECK(nlohmann::json::parse(slurp(folder / "e/evaluation.json")) == scores);

  std::map<std::int64_t, int> drawn;
  for (const auto& picture : scores["pictures"]) {
    ++drawn[picture["label"]];
    const vision::Pixels pixels = vision::read_image((folder / picture["picture"].get<std::string>()).string());
    CHECK((pixels.height == 192 && pixels.width == 2 * 192 + 2));
  }
  CHECK(scores["pictures"].size() == 32);
  REQUIRE(drawn.size() == 10);
  for (const auto& [label, count] : drawn) CHECK((count == 3 || count == 4));

  // scores.csv, classes.csv and report.html have the same numbers.
  const auto rows = rows_of(slurp(folder / "e/classes.csv"));
  REQUIRE(rows.size() == 10);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].at("class") == std::to_string(i));
    CHECK(std::stoi(rows[i].at("right")) == scores["classes"][i]["right"]);
    CHECK(std::stod(rows[i].at("loss")) == scores["classes"][i]["loss"]);
  }
  const auto matrix = rows_of(slurp(folder / "e/confusion.csv"));
  for (const auto& row : matrix)
    for (const auto& [column, count] : row)
      if (column != "class" && column != "name") {
        const auto found = expected.confusion.find({std::stoi(row.at("class")), std::stoi(column)});
        CHECK(std::stoi(count) == (found == expected.confusion.end() ? 0 : found->second));
      }
  CHECK(std::stod(rows_of(slurp(folder / "e/scores.csv")).at(0).at("loss")) == scores["loss"]);
  CHECK(rows_of(slurp(folder / "e/images.csv")).size() == 130);
  const std::string page = slurp(folder / "e/report.html");
  CHECK_THAT(page, contains("Confusion matrix") && contains("class 3, predicted class ") &&
                       contains("data:image/png;base64,") &&
                       contains(fmt::format("{:.4f} nats; chance is ln 10 = 2.3026", expected.loss)));
  CHECK(fs::exists(folder / "e/figures/confusion.svg"));
  const Finished text = run(folder.path(), call + "g");
  CHECK_THAT(text.out, contains(fmt::format("130 images of glyphs: {}: the likeliest class is right for {} (",
                                            data.validation_is, expected.right)) &&
                           contains("class    images  right  accuracy"));
}

TEST_CASE("folders are evaluated with labels by name or by order if the weights name no classes") {
  const TemporaryFolder folder;
  write_glyphs(folder / "images", 3);
  const std::string weights = cait_file(folder / "w", 2);
  const std::string call =
      program("vit") + " --model cait" + " --weights w --image-folder images --evaluate --json --out ";
  const Finished f = run(folder.path(), call + "e");
  INFO(f.err);
  REQUIRE(f.status == 0);
  const auto model = nn::make_model(nn::card_of(nn::read_safetensors(weights), weights));
  nn::load_pretrained(*model, nn::read_safetensors(weights), weights);
  model->eval();
  const auto expected_of = [&](bool five_is_first) {
    vision::ImageSet set{.channels = 3,
                         .height = 16,
                         .width = 16,
                         .classes = 2,
                         .files = vision::image_files((folder / "images/val").string())};
    for (const std::string& file : set.files) set.labels.push_back((file.find("/five/") != file.npos) != five_is_first);
    return by_hand(*model, set, vision::normalization_of(set, vision::NormalizationKind::imagenet));
  };
  check_scores(nlohmann::json::parse(slurp(folder / "e/evaluation.json")), expected_of(true), 4);
  // Each file is printed in the same form as without labels, and its loss is added.
  double sum = 0;
  for (const auto& image : nlohmann::json::parse(f.out)) {
    CHECK(image["label"] == (image["file"].get<std::string>().find("/five/") != std::string::npos ? 0 : 1));
    sum += image["loss"].get<double>();
    double before = 1, all = 0;
    CHECK(image["top"].size() == 2);  // both classes
    for (const auto& top : image["top"]) {
      const double probability = top["probability"];
      if (top["class"] == image["label"]) CHECK(probability == Approx(std::exp(-image["loss"].get<double>())));
      CHECK(probability <= before);
      before = probability, all += probability;
    }
    CHECK(all == Approx(1));
  }
  CHECK(std::abs(sum / 4 - expected_of(true).loss) < 1e-5);
  // If the classes have names, the names decide the labels.
  write_bytes(folder / "names", {'t', 'w', 'o', '\n', 'f', 'i', 'v', 'e', '\n'});
  REQUIRE(run(folder.path(), call + "n --class-names names").status == 0);
  check_scores(nlohmann::json::parse(slurp(folder / "n/evaluation.json")), expected_of(false), 4);
  // The folder of validation images may also be called validation/ instead of val/.
  fs::rename(folder / "images/val", folder / "images/validation");
  REQUIRE(run(folder.path(), call + "v").status == 0);
  CHECK(nlohmann::json::parse(slurp(folder / "v/evaluation.json"))["right"] ==
        nlohmann::json::parse(slurp(folder / "e/evaluation.json"))["right"]);
  fs::rename(folder / "images/validation", folder / "images/val");
  // The evaluation can use a share of the training images.
  REQUIRE(run(folder.path(), call + "s --validation-split 0.34").status == 0);
  CHECK(nlohmann::json::parse(slurp(folder / "s/evaluation.json"))["images"] == 2);
  // If the folders are not classes, the images have no labels and no scores.
  fs::create_directories(folder / "photos");
  fs::copy(folder / "images/val/two", folder / "photos/2024", fs::copy_options::recursive);
  const Finished photos = run(
      folder.path(), program("vit") + " --model cait" + " --weights w --image-folder photos --evaluate --json --out p");
  REQUIRE(photos.status == 0);
  CHECK_THAT(photos.err, contains("w has 2 classes, but photos has 1 folder: its images have no labels"));
  for (const auto& image : nlohmann::json::parse(photos.out))
    CHECK((image["label"].is_null() && image["loss"].is_null()));
  CHECK_FALSE(fs::exists(folder / "p/scores.csv"));
}

TEST_CASE("accuracy is reported if folders have names of classes and a broken image costs one line") {
  const TemporaryFolder folder;
  write_glyphs(folder / "images", 2);
  cait_file(folder / "w", 2);
  write_bytes(folder / "names.txt", {'f', 'i', 'v', 'e', '\r', '\n', 't', 'w', 'o', '\n', '\n'});
  const std::string call = program("vit") + " --model cait" +
                           " --weights w --image-folder images --class-names names.txt --evaluate --out e";
  const Finished whole = run(folder.path(), call);
  CHECK(whole.status == 0);
  CHECK_THAT(whole.out, contains("4 images in folders named as classes: the likeliest class is right for ") &&
                            contains("one of the 2 likeliest for 4 (100.0 %)") && contains(" %  five (0)\n"));
  // The number of images in val/ that the scores count as correct must equal the number in the printed lines.
  int right = 0;
  std::istringstream lines(whole.out);
  for (std::string line, file; std::getline(lines, line);)
    if (line.starts_with("images/")) {
      std::string first;
      std::getline(lines, first);
      right += first.find(line.find("/five/") != line.npos ? "five" : "two") != first.npos;
    }
  CHECK_THAT(whole.out, contains(fmt::format("the likeliest class is right for {} (", right)));
  CHECK_THAT(whole.err, contains("CaiT, 2 + 2 blocks, width 16, 2 heads, layerscale, 2 classes, images of 16 x 16"));
  write_bytes(folder / "images/val/two/broken.jpg", {'n', 'o'});
  CHECK_THAT(run(folder.path(), call).err, contains("--out e is not empty; choose a new folder for the pictures"));
  const Finished broken = run(folder.path(), call + "2");
  CHECK(broken.status == 1);
  CHECK_THAT(broken.err, contains("error: images/val/two/broken.jpg: expected a PNG or JPEG file, got other bytes"));
  CHECK_THAT(broken.out, contains("4 images in folders named as classes: the likeliest class is right for "));
}

TEST_CASE("training of weights continues with a new head and resized positions and new gates at 1") {
  const TemporaryFolder folder;
  write_glyphs(folder / "images", 8);
  vit_file(folder / "w");
  const std::string call = program("vit") +
                           " --weights w --image-folder images --image-size 32 --batch 8 --fine-tune --steps 3 "
                           "--warmup 0 --no-progress --save-weights ";
  const Finished f = run(folder.path(), call + "--gate layerscale --out a");
  INFO(f.err);
  REQUIRE(f.status == 0);
  CHECK_THAT(
      f.err,
      contains("w: loaded; positions resized from 4 x 4 patches; new: head.weight, head.bias, blocks.0.ls1.gamma") &&
          contains("the model does not compute the same function as the file's network: the head is new; positions of "
                   "4 x 4 patches are "
                   "resized to 8 x 8; heads, GELU, eps, pooling are not in the file; taken: heads 2, GELU erf, eps "
                   "1e-06, pooling token\n"));
  CHECK_THAT(f.out, contains("image-folder, 16 training images, 4 validation images: the images in val/; 2 classes"));
  // The saved weights describe the model. The evaluation uses the image size and the class names in the weights file.
  const Finished again =
      run(folder.path(),
          program("vit") + " --weights a/weights/seed-0.safetensors --image-folder images/val --evaluate --out e");
  INFO(again.err);
  REQUIRE(again.status == 0);
  CHECK_THAT(again.err, contains("ViT, 2 blocks, width 64, 2 heads, layerscale:init=1, 2 classes, images of 32 x 32"));
  CHECK_THAT(again.out, contains("4 images in folders named as classes: the likeliest class is right for ") &&
                            contains("%  five (0)\n"));
  const nn::ModelCard card = nn::card_of(nn::read_safetensors(folder / "a/weights/seed-0.safetensors"), "w");
  CHECK(std::abs(card.mean.at(0) - 0.485) < 1e-6);
  const Finished config = run(folder.path(), call + "--gate layerscale --print-config");
  CHECK_THAT(config.out, contains("\"init\": 1") && contains("new LayerScales in trained weights start at 1"));

  // The tables and the report of such a study can be made again, and its configuration can be read back.
  const std::string before = slurp(folder / "a/results.csv");
  CHECK(run(folder.path(), program("report") + " a").status == 0);
  CHECK(slurp(folder / "a/results.csv") == before);
  CHECK(run(folder.path(), program("vit") + " --config a/run.json --print-config").status == 0);
  const Finished moved =
      run(folder.path(), program("vit") + " --config a/run.json --image-folder elsewhere --print-config");
  CHECK_THAT(moved.out, contains("\"data_dir\": \"elsewhere\""));
  // Different weights in a file of the same name are detected.
  const std::string good = slurp(folder / "w");
  std::string other = good;
  other.back() ^= 1;
  write_bytes(folder / "w", {other.begin(), other.end()});
  CHECK_THAT(run(folder.path(), call + "--gate layerscale --out a --resume --seeds 0,1").err,
             contains("but the study began with"));
  write_bytes(folder / "w", {good.begin(), good.end()});
  CHECK(run(folder.path(), call + "--gate layerscale --out a --resume --seeds 0,1").status == 0);

  cait_file(folder / "c");
  const Finished cait = run(
      folder.path(),
      program("vit") + " --model cait" +
          " --weights c --image-folder images --image-size 16 --batch 8 --fine-tune --steps 2 --no-progress --out b");
  INFO(cait.err);
  CHECK(cait.status == 0);
  CHECK_THAT(cait.err,
             contains("c: loaded; new: head.weight, head.bias; the model does not compute the same function "
                      "as the file's network: the head is new; GELU, eps are not in the file; taken: GELU erf, "
                      "eps 1e-06"));
}

TEST_CASE("gates in a file are not set from data again and sizes and talking heads come from the file") {
  const TemporaryFolder folder;
  write_glyphs(folder / "images", 4);
  nn::ViT model({.image = 16,
                 .patch = 4,
                 .classes = 2,
                 .dim = 64,
                 .depth = 1,
                 .heads = 1,
                 .method = "act_norm",
                 .pool = nn::Pool::token,
                 .seed = 5});
  for (const nn::Parameter& p : model.parameters())
    if (p.role == nn::Role::gate) copy_into(full(p.value.shape(), 0.25).array(), p.value.array());
  nn::save_weights(model, folder / "w", nn::timm_vit(), nn::metadata_of(*nn::card_of(model)));
  const Finished f =
      run(folder.path(), program("vit") +
                             " --weights w --image-folder images --batch 8 --fine-tune --steps 1 --warmup 0 --lr 1e-12 "
                             "--no-progress --save-weights --out a");
  INFO(f.err);
  REQUIRE(f.status == 0);
  const nn::TensorFile after = nn::read_safetensors(folder / "a/weights/seed-0.safetensors");
  for (const char* name : {"blocks.0.gate1.scale", "blocks.0.gate2.shift"})
    for (const double v : after.tensors.at(name).values()) CHECK(std::abs(v - 0.25) < 1e-6);
  // 16 patches and the class token, as for the file's images of 16 pixels.
  CHECK(after.tensors.at("pos_embed").dim(1) == 17);

  nn::CaiTOptions o{.image = 16,
                    .patch = 4,
                    .classes = 2,
                    .dim = 16,
                    .depth = 1,
                    .heads = 2,
                    .method = "pre",
                    .norm_eps = 0.5,
                    .seed = 5};
  o.head_mix = nn::HeadMix::none;
  const nn::CaiT plain(o);
  nn::save_weights(plain, folder / "c", nn::timm_cait(), nn::metadata_of(*nn::card_of(plain)));
  const Finished config = run(folder.path(), program("vit") + " --model cait" +
                                                 " --weights c --image-folder images --fine-tune --print-config");
  CHECK_THAT(config.out, contains("\"norm_eps\": 0.5,") && contains("\"talking_heads\": \"none\"") &&
                             contains("\"init\": 1") && contains("new LayerScales in trained weights start at 1") &&
                             contains("\"image_size\": 16,"));
}

TEST_CASE("constants of methods are used and saved and read back and requested if an older file lacks them") {
  const TemporaryFolder folder;
  write_glyphs(folder / "images", 4);
  const std::string train =
      program("vit") +
      " --image-folder images --image-size 16 --patch 4 --dim 16 --depth 4 --batch 8 --steps 2 --warmup 0 "
      "--no-progress --save-weights ";
  const auto ran = [&](const std::string& command) {
    const Finished f = run(folder.path(), command);
    INFO(command << "\n" << f.err);
    CHECK(f.status == 0);
    return f;
  };
  ran(train + "--gate mix_ln:post_share=0.75 --out a");
  const std::string mine = "a/weights/seed-0.safetensors";
  CHECK(std::get<nn::ViTOptions>(nn::card_of(nn::read_safetensors(folder / mine), "w").options).method->text() ==
        "mix_ln:post_share=0.75");
  const Finished seen = ran(program("vit") + " --weights " + mine + " --image-folder images --evaluate --json --out e");
  CHECK_THAT(seen.err, contains("1 head, mix_ln:post_share=0.75, 2 classes") ||
                           contains("2 heads, mix_ln:post_share=0.75, 2 classes"));
  CHECK_THAT(seen.err, contains("; the model computes the same function as the file's network\n"));
  CHECK_THAT(ran(program("attention_maps") + " --weights " + mine + " --image images/val --out m").err,
             contains(mine + ": the model computes the same function as the file's network\n"));

  // The same file in the format that older versions wrote.
  nn::TensorFile old = nn::read_safetensors(folder / mine);
  std::string& text = old.metadata.at("plumb");
  text.replace(text.find(":post_share=0.75"), 16, "");
  nn::write_safetensors(folder / "old", old);
  for (const std::string& command : {program("vit") + " --image-folder images --evaluate --out f",
                                     program("attention_maps") + " --image images --out f"}) {
    const Finished lacking = run(folder.path(), command + " --weights old");
    CHECK(lacking.status == 1);
    CHECK_THAT(lacking.err, contains("old: its metadata, from an older version, lacks the constant post_share") &&
                                contains("--gate mix_ln:post_share=0.25 in programs"));
    ran(command + " --weights old --gate mix_ln:post_share=0.75");
    fs::remove_all(folder / "f");
  }
  CHECK_THAT(ran(train + "--weights " + mine + " --fine-tune --out b").err,
             contains("loaded; the model computes the same function as the file's network\n"));

  // The initial value of LayerScale, given as a constant of the method or as --init.
  vit_file(folder / "w");
  const std::string tune =
      program("vit") + " --weights w --image-folder images --batch 8 --fine-tune --steps 1 --warmup 0 --no-progress ";
  CHECK_THAT(ran(tune + "--gate layerscale:init=1e-5 --out c").err,
             contains("gates are new: blocks.0.ls1.gamma starts at 1e-05"));
  const Finished both = run(folder.path(), tune + "--gate layerscale:init=1e-5 --init 0.5 --out d");
  CHECK(both.status == 2);
  CHECK_THAT(both.err, contains("--init 0.5 and --gate layerscale:init=1e-5 give different initial values"));
}

TEST_CASE("an evaluation uses the options of the network or refuses them and claims no function that it guesses") {
  const TemporaryFolder folder;
  write_glyphs(folder / "images", 1);
  vit_file(folder / "v"), cait_file(folder / "c");
  const nn::ViT own({.image = 16, .patch = 4, .classes = 4, .dim = 64, .depth = 2, .heads = 4, .method = "pre"});
  nn::save_weights(own, folder / "own", {}, nn::metadata_of(*nn::card_of(own)));
  int calls = 0;
  const auto called = [&](const std::string& command) {
    const std::string images =
        command.starts_with("attention_maps") ? " --image images/val" : " --image-folder images/val";
    return run(folder.path(), program(command) + images + fmt::format(" --out e{}", ++calls));
  };
  const auto says = [&](const std::string& command, const std::string& text) {
    const Finished f = called(command);
    INFO(command << "\n" << f.err);
    CHECK(f.status == 0);
    CHECK_THAT(f.err, contains(text));
  };
  const std::string unknown = "it is not known whether the model computes the same function as the file's network: ";
  says("vit --weights v --evaluate",
       unknown + "heads, GELU, eps, pooling are not in the file; taken: heads 2, GELU erf, eps 1e-06, pooling token\n");
  says("vit --weights v --evaluate --heads 4 --pool token",
       "width 64, 4 heads, pre, 4 classes, images of 16 x 16; " + unknown +
           "GELU, eps are not in the file; taken: GELU erf, eps 1e-06\n");
  says("attention_maps --weights v --heads 4", unknown + "GELU, eps, pooling are not in the file; taken: GELU erf, ");
  says("vit --model cait --weights c --evaluate --norm-eps 1e-5",
       unknown + "GELU is not in the file; taken: GELU erf\n");
  says("vit --weights own --evaluate --heads 4 --pool mean --depth 2", "; the model computes the same function");
  // Another eps gives other predictions.
  const auto loss = [&](const std::string& eps) {
    return nlohmann::json::parse(
               called("vit --model cait --weights c --evaluate --json --norm-eps " + eps).out)[0]["top"]
        .dump();
  };
  CHECK(loss("1e-6") != loss("0.5"));
  const auto refused = [&](const std::string& command, const std::string& text) {
    const Finished f = called(command);
    INFO(command << "\n" << f.err);
    CHECK(f.status == 2);
    CHECK_THAT(f.err, contains(text));
  };
  refused("vit --weights v --evaluate --pool mean",
          "--pool mean: v has token; give the same value or leave the option out");
  refused("vit --weights own --evaluate --heads 2", "--heads 2: own has 4");
  refused("vit --weights v --evaluate --depth 3", "--depth 3: v has 2");
  refused("vit --weights v --evaluate --gate layerscale", "--gate layerscale: v has pre");
  refused("vit --weights c --evaluate", "c is a CaiT; give --model cait");
  refused("attention_maps --weights own --heads 2", "--heads 2: own has 4");
  refused("attention_maps --weights own --gate post", "--gate post: own has pre");
}

TEST_CASE("weights that do not fit the other options are refused") {
  const TemporaryFolder folder;
  write_glyphs(folder / "images", 4);
  cait_file(folder / "c");
  vit_file(folder / "v");
  write_bytes(folder / "names", {'a', '\n'});
  const auto refused = [&](const std::string& command, int status, const std::string& text) {
    const Finished f = run(folder.path(), program(command));
    INFO(command);
    CHECK(f.status == status);
    CHECK_THAT(f.err, contains(text));
  };
  refused("vit --model cait --weights c", 2, "--weights: give either --evaluate or --fine-tune");
  refused("vit --model cait --evaluate", 2, "--evaluate needs --weights FILE");
  refused("vit --model cait --weights c --evaluate --fine-tune", 2,
          "--weights: give only one of --evaluate and --fine-tune");
  refused("vit --model cait --class-names names", 2, "--class-names is for --evaluate only");
  refused("vit --model cait --weights c --evaluate --image-folder images --steps 3", 2,
          "--steps is for training and does not go with --evaluate");
  refused("vit --image-size 64", 2, "--image-size applies only to an image folder");
  refused("vit --model cait --weights c --evaluate", 2,
          "--evaluate expects images: --image-folder DIR, or one file; or --data NAME");
  refused("vit --model cait --weights c --evaluate --data glyphs", 2, "c has 4 classes, but glyphs has 10");
  refused("vit --model cait --weights c --evaluate --image-folder images", 2, "c has 4 classes, but images/val has 2");
  cait_file(folder / "ten", 10);
  refused("vit --model cait --weights ten --evaluate --data glyphs", 2,
          "ten expects images of 3 channels and 16 x 16, but glyphs has 3 channels and 32 x 32");
  cait_file(folder / "two", 2);
  write_bytes(folder / "other", {'f', 'i', 'v', 'e', '\n', 's', 'i', 'x', '\n'});
  refused("vit --model cait --weights two --evaluate --image-folder images --class-names other", 2,
          "images/val: two has no class named two");
  refused("vit --model cait --weights v --fine-tune --image-folder images", 2, "v is a ViT; give --model vit");
  refused("vit --model cait --weights c --evaluate --image-folder images --image-size 30", 2,
          "--image-size 30 is not a multiple of the patch size of c, 4");
  refused("vit --model cait --weights c --evaluate --image-folder images --class-names names", 1,
          "names: expected 4 lines");
  refused("vit --image-folder images --data glyphs", 2, "leave out --data glyphs");
  refused(
      "vit --image-folder images/train", 1,
      "images/train: there are no validation images (it has no train/ and val/, so its folders are read as classes); "
      "give --validation-split 0.1");
  fs::create_directory(folder / "half"),
      fs::copy(folder / "images/train", folder / "half/train", fs::copy_options::recursive);
  refused("vit --image-folder half", 1,
          "half: there are no validation images (it has train/ but no val/); give --validation-split 0.1");
  refused("vit --model cait --weights c --evaluate --image-folder images --image-size native", 2,
          "--image-size native is for training");
  refused("vit --train-images 99999", 1, "expected 1 to 12800 training images of glyphs, got 99999");
}

TEST_CASE("attention_maps draws each image of files and of a data set") {
  const TemporaryFolder folder;
  write_glyphs(folder / "images", 1);
  cait_file(folder / "c");
  const Finished f =
      run(folder.path(), program("attention_maps") + " --weights c --image images/val --blocks 0,1 --query 3 --out a");
  INFO(f.err);
  REQUIRE(f.status == 0);
  CHECK(f.out == "a/index.html\n");
  const std::string page = slurp(folder / "a/index.html");
  CHECK_THAT(page, contains("block 1, by head") && contains("class attention 1, by head") && contains("rollout"));
  int pictures = 0;
  for (const auto& entry : fs::directory_iterator(folder / "a"))
    if (entry.path().extension() == ".png") ++pictures, vision::read_image(entry.path().string());
  CHECK(pictures == 4 * 6);  // the six pictures are: class token, rollout, two blocks, two blocks of class attention

  const nn::ViT small({.image = 32, .patch = 8, .classes = 10, .dim = 64, .depth = 1, .heads = 2, .method = "rezero"});
  nn::save_weights(small, folder / "own", {}, nn::metadata_of(*nn::card_of(small)));
  CHECK(run(folder.path(), program("attention_maps") + " --weights own --data glyphs --numbers 0,3 --out b").status ==
        0);
  const auto refused = [&](const std::string& words, const std::string& text) {
    const Finished g = run(folder.path(), program("attention_maps") + " " + words + " --out x");
    CHECK(g.status == 2);
    CHECK_THAT(g.err, contains(text));
  };
  refused("--weights c", "expected --weights FILE and either --image FILE or --data NAME");
  refused("--weights c --image images --blocks 2", "--blocks 2: c has only the blocks 0 to 1");
  refused("--weights c --image images --query 16", "--query 16: there are only the patches 0 to 15");
  refused("--weights c --data glyphs",
          "c needs images of 3 channels and 16 x 16 pixels; those of glyphs have 3 channels and 32 x 32 pixels");
  refused("--weights own --data glyphs --numbers 2000", "--numbers 2000: glyphs has only the images 0 to 1999");
}
