#include "tests/fuzz/readers.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "autograd/npy.h"
#include "core/atomic_file.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/hash.h"
#include "experiments/lab/options/optimizer_options.h"
#include "experiments/lab/options/study_options.h"
#include "experiments/lab/record/checkpoint.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/record/study_description.h"
#include "experiments/vision/data/cifar.h"
#include "experiments/vision/data/coco.h"
#include "experiments/vision/data/idx.h"
#include "experiments/vision/data/image_file.h"
#include "experiments/vision/options/augment_options.h"
#include "experiments/vision/options/image_options.h"
#include "experiments/vision/options/network_options.h"
#include "nn/io/detr_card.h"
#include "nn/io/pretrained.h"
#include "plumb/plumb.h"
#include "tests/support/paths.h"
#include "tests/vision/data/data_files.h"

namespace plumb::test {
namespace {

namespace fs = std::filesystem;

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

// A file of this process with the given content, which the next call with the same name replaces.
std::string file_with(std::string_view content, const char* name = "input") {
  static std::unique_ptr<const TemporaryFolder> folder;
  if (!folder || folder->maker() != ::getpid()) folder = std::make_unique<const TemporaryFolder>();
  const fs::path path = *folder / name;
  std::ofstream out(path, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  check(out.flush().good(), "cannot write {}", path.string());
  return path.string();
}

template <class F>
void try_read(F&& read) {
  try {
    (void)read();
  } catch (const Error&) {
  } catch (const OutOfMemory&) {
  }
}

// ---- images

std::vector<Bytes> golden_images(const char* extension) {
  std::vector<Bytes> found;
  for (const auto& entry : fs::directory_iterator(source_dir() + "/tests/golden/images"))
    if (entry.path().extension() == extension) found.push_back(bytes_of(read_file(entry.path())));
  std::ranges::sort(found);
  return found;
}

std::vector<Bytes> jpeg_seeds() { return golden_images(".jpg"); }
std::vector<Bytes> png_seeds() { return golden_images(".png"); }

void fuzz_image(std::span<const std::uint8_t> bytes) {
  try_read([&] { return vision::read_image(file_with(text_of(bytes))); });
}

// The file with right checksums of its chunks, so that mutations reach the code behind the checksums.
Bytes with_png_checksums(Bytes png) {
  const auto big_endian = [&](std::size_t at) {
    return std::uint32_t{png[at]} << 24 | std::uint32_t{png[at + 1]} << 16 | std::uint32_t{png[at + 2]} << 8 |
           png[at + 3];
  };
  for (std::size_t at = 8; at + 12 <= png.size();) {
    const std::size_t size = big_endian(at), end = at + 8 + size;
    if (end + 4 > png.size()) break;
    const auto sum = static_cast<std::uint32_t>(::crc32(0, png.data() + at + 4, static_cast<uInt>(size + 4)));
    for (std::size_t i = 0; i < 4; ++i) png[end + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
    at = end + 4;
  }
  return png;
}

void fuzz_png(std::span<const std::uint8_t> bytes) {
  fuzz_image(bytes);
  fuzz_image(with_png_checksums({bytes.begin(), bytes.end()}));
}

// ---- sets of images

// An IDX file of digits. The content is as long as `sizes` say.
Bytes digits(const std::vector<std::uint32_t>& sizes) {
  std::size_t count = 1;
  for (const std::uint32_t size : sizes) count *= size;
  Bytes content(count);
  for (std::size_t i = 0; i < count; ++i) content[i] = static_cast<std::uint8_t>(i % 10);
  return idx_file(sizes, content);
}

void fuzz_idx(std::span<const std::uint8_t> bytes) {
  const std::string input = file_with(text_of(bytes));
  static const std::string images = file_with(text_of(digits({3, 4, 5})), "images"),
                           labels = file_with(text_of(digits({3})), "labels");
  try_read([&] { return vision::read_idx(input, labels); });
  try_read([&] { return vision::read_idx(images, input); });
}

std::vector<Bytes> idx_seeds() { return {digits({3, 4, 5}), digits({3}), gzip(digits({3, 4, 5})), gzip(digits({3}))}; }

void fuzz_cifar(std::span<const std::uint8_t> bytes) {
  const std::string input = file_with(text_of(bytes));
  try_read([&] { return vision::read_cifar10({input}); });
  try_read([&] { return vision::read_cifar100({input}); });
}

std::vector<Bytes> cifar_seeds() { return {Bytes(2 * 3073, 3), Bytes(2 * 3074, 5), gzip(Bytes(2 * 3073, 3))}; }

void fuzz_coco(std::span<const std::uint8_t> bytes) {
  const std::string input = file_with(text_of(bytes));
  try_read([&] { return vision::read_coco(input); });
  try_read([&] { return vision::read_coco_detections(input); });
}

std::vector<Bytes> coco_seeds() {
  const vision::Coco content{
      .images = {{1, "a.png", 8, 6}, {2, "b.jpg", 640, 480}},
      .categories = {{3, "disc"}, {7, "box"}},
      .annotations = {{.id = 1, .image = 1, .category = 3, .box = {1, 2, 3, 4}, .area = 12},
                      {.id = 2, .image = 2, .category = 7, .box = {0, 0, 640, 480}, .crowd = true}}};
  return {bytes_of(vision::coco_json(content)), bytes_of(vision::coco_json(std::vector<vision::CocoDetection>{
                                                    {1, 3, {1, 2, 3, 4}, 0.5}, {2, 7, {0, 0, 9, 9}, 1}}))};
}

// ---- tensors

// The text as the header of a safetensors file, whose first 8 bytes are the length of the header. Bytes after the last
// "}" are the tensors.
std::string with_header_length(std::string_view text) {
  const std::uint64_t length = text.rfind('}') == text.npos ? text.size() : text.rfind('}') + 1;
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file.append(text);
}

nn::TensorFile small_file() {
  return {.tensors = {{"a", random_normal({2, 3}, 0, "a")}, {"b.c", integers({1, 2})}}, .metadata = {{"key", "value"}}};
}

std::string safetensors_text(const nn::TensorFile& content) {
  const std::string path = file_with("", "seed");
  nn::write_safetensors(path, content);
  return read_file(path);
}

void fuzz_safetensors(std::span<const std::uint8_t> bytes) {
  const auto read = [](std::string_view content) {
    const std::string input = file_with(content);
    try_read([&] { return nn::card_of(nn::read_safetensors(input), input); });
  };
  read(text_of(bytes));
  if (!bytes.empty() && bytes.front() == '{') read(with_header_length(text_of(bytes)));
}

nn::ViTOptions small_vit() {
  return {.image = 8, .patch = 4, .classes = 3, .dim = 8, .depth = 2, .heads = 2, .method = "layerscale"};
}
nn::CaiTOptions small_cait() {
  nn::CaiTOptions o;
  o.image = 8, o.patch = 4, o.classes = 3, o.dim = 8, o.depth = 2, o.heads = 2, o.depth_token_only = 1;
  return o;
}
nn::DetrOptions small_detr() {
  nn::DetrOptions o;
  o.classes = 2, o.dim = 8, o.heads = 2, o.hidden = 8, o.queries = 2, o.backbone = {4};
  return o;
}

// The weights of a small network with its card.
nn::TensorFile file_of(const nn::Module& model, std::map<std::string, std::string> metadata) {
  return {.tensors = nn::weights(model), .metadata = std::move(metadata)};
}
const std::vector<nn::TensorFile>& small_models() {
  static const std::vector<nn::TensorFile> files = [] {
    const nn::ViT vit(small_vit());
    const nn::CaiT cait(small_cait());
    const nn::Detr detr(small_detr());
    return std::vector{file_of(vit, nn::metadata_of(*nn::card_of(vit))),
                       file_of(cait, nn::metadata_of(*nn::card_of(cait))),
                       file_of(detr, nn::metadata_of(nn::DetrCard{.options = small_detr()}))};
  }();
  return files;
}

std::vector<Bytes> safetensors_seeds() {
  const std::string file = safetensors_text(small_file());
  return {bytes_of(file), bytes_of(std::string_view(file).substr(8)), bytes_of(safetensors_text(small_models()[0])),
          bytes_of(std::string_view(safetensors_text(small_models()[0])).substr(8))};
}

// The bytes are a card in the metadata of a file with the weights of a small network.
void fuzz_card(std::span<const std::uint8_t> bytes) {
  for (nn::TensorFile file : small_models()) {
    file.metadata["plumb"] = text_of(bytes);
    try_read([&] { return nn::make_model(nn::card_of(file, "input")); });
    try_read([&] { return nn::Detr(nn::detr_card_of(file, "input").options).parameters().size(); });
  }
}

std::vector<Bytes> card_seeds() {
  std::vector<Bytes> seeds;
  for (const nn::TensorFile& file : small_models()) seeds.push_back(bytes_of(file.metadata.at("plumb")));
  return seeds;
}

void fuzz_npy(std::span<const std::uint8_t> bytes) {
  try_read([&] { return load_npy(file_with(text_of(bytes))); });
}

std::vector<Bytes> npy_seeds() {
  std::vector<Bytes> seeds;
  for (const Tensor& x : {random_normal({2, 3}, 0, "x"), integers({1, 2, 3}), tensor({1.5})}) {
    const std::string path = file_with("", "seed");
    save_npy(path, x);
    seeds.push_back(bytes_of(read_file(path)));
  }
  return seeds;
}

// ---- files of studies

lab::Record small_record() {
  return {.point = lab::Point{{"gate", "pre"}, {"depth", std::int64_t{2}}, {"lr", 0.003}, {"seed", std::int64_t{1}}},
          .steps = 2,
          .seconds = 0.5,
          .values = {{"train_loss", 1.5}, {"val_accuracy", 0.25}},
          .metrics = {{.step = 1, .values = {{"loss", 2.5}}}},
          .attachments = {R"({"a": [1, 2, {"b": null}]})"}};
}

// The bytes are a checkpoint; its checksum is made right, so that mutations reach the code behind it.
void fuzz_checkpoint(std::span<const std::uint8_t> bytes) {
  const auto read = [](std::string_view content) {
    const std::string input = file_with(content);
    try_read([&] { return lab::read_checkpoint(input); });
    try_read([&] {
      nn::TensorFile file = nn::read_safetensors(input);
      file.metadata["sum"] = lab::checksum_of_checkpoint(file);
      const std::string mended = file_with("", "mended");
      nn::write_safetensors(mended, file);
      return lab::read_checkpoint(mended);
    });
  };
  read(text_of(bytes));
  if (!bytes.empty() && bytes.front() == '{') read(with_header_length(text_of(bytes)));
}

std::vector<Bytes> checkpoint_seeds() {
  const std::string path = file_with("", "seed");
  lab::write_checkpoint(path, {.key = "k",
                               .code = "c",
                               .machine = "m",
                               .step = 2,
                               .record = small_record(),
                               .recent = {2.5, 1.5},
                               .reached = {{0.5, 1}},
                               .tensors = {{"model.w", ones({2})}}});
  const std::string file = read_file(path);
  return {bytes_of(file), bytes_of(std::string_view(file).substr(8))};
}

// A small training, which a checkpoint of another one of its kind continues.
struct SmallTraining {
  nn::Linear model{{.in = 2, .out = 1}};
  nn::AdamW optimizer{model.parameters(), {}};
  SmallTraining() {
    nn::initialize(model, 0);
    optimizer.step(backward(sum(model(ones({1, 2})))));
  }
};

// The bytes are a file of nn::save_checkpoint().
void fuzz_training(std::span<const std::uint8_t> bytes) {
  const auto read = [](std::string_view content) {
    try_read([&] {
      SmallTraining training;
      nn::load_checkpoint(file_with(content), training.model, training.optimizer);
      (void)nn::training_state(training.model, training.optimizer);
      return 0;
    });
  };
  read(text_of(bytes));
  if (!bytes.empty() && bytes.front() == '{') read(with_header_length(text_of(bytes)));
}

std::vector<Bytes> training_seeds() {
  const std::string path = file_with("", "seed");
  SmallTraining training;
  nn::save_checkpoint(path, training.model, training.optimizer);
  const std::string file = read_file(path);
  return {bytes_of(file), bytes_of(std::string_view(file).substr(8))};
}

// The bytes are lines of a ledger, first as they are, then with right checksums. Each object that is accepted must be
// one that the ledger can write and read again.
void fuzz_ledger(std::span<const std::uint8_t> bytes) {
  const auto read = [](std::string_view content) {
    const std::string input = file_with(content);
    try_read([&] {
      const lab::Ledger ledger(input);
      lab::Ledger again(file_with("", "again"));
      again.append_all(ledger.entries());
      const std::size_t written = lab::Ledger(again.path()).entries().size();
      if (written != ledger.entries().size()) throw std::logic_error("a trial that was read cannot be read again");
      return 0;
    });
  };
  read(text_of(bytes));
  std::string mended;
  for (std::string_view rest = text_of(bytes); !rest.empty();) {
    std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (const std::size_t sum = line.rfind(",\"sum\":\""); sum != line.npos) line.resize(sum);
    mended += fmt::format("{},\"sum\":\"{}\"}}\n", line, lab::hash_of(line));
  }
  read(mended);
}

std::vector<Bytes> ledger_seeds() {
  lab::Ledger ledger(file_with("", "seed"));
  ledger.append({"k", "c", "m", small_record()});
  lab::Record diverged = small_record();
  diverged.status = lab::Status::diverged, diverged.reason = "the loss is nan", diverged.diverges_from = 1;
  ledger.append({"l", "c", "m", diverged});
  return {bytes_of(read_file(ledger.path()))};
}

lab::StudyDescription small_study() {
  return {.experiment = "fuzz",
          .version = "1",
          .commit = "c",
          .build = "b",
          .program = "fuzz",
          .facts = {.machine = {.device = "d", .threads = 1},
                    .data = {.name = "glyphs",
                             .text = "glyphs, 10 images",
                             .validation_is = "v",
                             .hash = "1",
                             .further = R"({"validation_images":10,"image":[1,8,8],"classes":4})",
                             .measures = lab::measures_of_classification(4, 10)},
                    .code = "c",
                    .outputs = {"layers.csv"}},
          .command_line = "fuzz --out a",
          .started = "2026-01-01 00:00:00",
          .settings = {{{"steps", 3}, {"lr", 0.001}, {"data", "glyphs"}}},
          .fixed = {"lr"},
          .claims = {"a claim"},
          .rule = "bets"};
}

// Gives the arguments to a command line with the options of all studies.
void parse(std::vector<std::string> arguments) {
  lab::Cli cli("fuzz", "Fuzzed.");
  vision::NetworkOptions network;
  lab::OptimizationOptions optimization;
  lab::StudyOptions options;
  vision::ImageOptions images;
  vision::AugmentOptions augmentation;
  network.declare(cli), augmentation.declare(cli), images.declare(cli), optimization.declare(cli), options.declare(cli);
  cli.preset("quick", "a preset", {{"--steps 3"}});
  arguments.insert(arguments.begin(), "fuzz");
  arguments.push_back("--print-config");
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  static std::FILE* const nowhere = std::fopen("/dev/null", "w");
  try_read([&] { return cli.parse(static_cast<int>(argv.size()), argv.data(), nowhere); });
}

void fuzz_run_json(std::span<const std::uint8_t> bytes) {
  const std::string run = file_with(text_of(bytes), "run.json");
  try_read([&] {
    const lab::StudyDescription study = lab::StudyDescription::parse(std::string(text_of(bytes)), run);
    if (lab::StudyDescription::parse(study.text(), run).text() != study.text())
      throw std::logic_error("a description that was read is written differently");
    return 0;
  });
  parse({"--rebuild", "--out", fs::path(run).parent_path().string()});
}

std::vector<Bytes> run_json_seeds() { return {bytes_of(small_study().text())}; }

void fuzz_config(std::span<const std::uint8_t> bytes) { parse({"--config", file_with(text_of(bytes))}); }

std::vector<Bytes> config_seeds() {
  return {
      bytes_of("{\n  // a comment\n  \"preset\": \"quick\",\n  \"steps\": 3, \"lr\": 0.001, \"data\": \"glyphs\"\n}\n"),
      bytes_of(small_study().text())};
}

// The bytes are arguments, one a line.
void fuzz_command_line(std::span<const std::uint8_t> bytes) {
  std::vector<std::string> arguments;
  for (std::string_view rest = text_of(bytes); !rest.empty();) {
    arguments.emplace_back(rest.substr(0, rest.find('\n')));
    std::erase(arguments.back(), '\0');  // no argument of a program has this byte
    rest.remove_prefix(std::min(rest.find('\n') == rest.npos ? rest.size() : rest.find('\n') + 1, rest.size()));
  }
  std::erase_if(arguments, [](const std::string& a) { return a.starts_with("--conf"); });  // another reader
  parse(std::move(arguments));
}

std::vector<Bytes> command_line_seeds() {
  return {bytes_of("--steps\n10\n--seeds\n0..4,7\n--lr=1e-3\n--dim\n64"),
          bytes_of("--preset\nquick\n--warmup\n10\n--drop-path\n0.1\n--jobs\n2"),
          bytes_of("--data\nmnist\n--data-dir\nd\n--batch\n8\n--threads\n1\n--help"),
          bytes_of("--out\na\n--resume\n--shard\n1/3\n--augment\ndeit")};
}

constexpr FuzzedReader readers[] = {
    {"card", fuzz_card, card_seeds},
    {"checkpoint", fuzz_checkpoint, checkpoint_seeds},
    {"cifar", fuzz_cifar, cifar_seeds},
    {"coco", fuzz_coco, coco_seeds},
    {"command_line", fuzz_command_line, command_line_seeds},
    {"config", fuzz_config, config_seeds},
    {"idx", fuzz_idx, idx_seeds},
    {"jpeg", fuzz_image, jpeg_seeds},
    {"ledger", fuzz_ledger, ledger_seeds},
    {"npy", fuzz_npy, npy_seeds},
    {"png", fuzz_png, png_seeds},
    {"run_json", fuzz_run_json, run_json_seeds},
    {"safetensors", fuzz_safetensors, safetensors_seeds},
    {"training", fuzz_training, training_seeds},
};

}  // namespace

std::span<const FuzzedReader> fuzzed_readers() { return readers; }

const FuzzedReader& fuzzed_reader(const char* name) {
  std::string names;
  for (const FuzzedReader& reader : readers) {
    if (std::string_view(name) == reader.name) return reader;
    names += (names.empty() ? "" : ", ") + std::string(reader.name);
  }
  fail(fmt::format("expected one of the readers {}, got \"{}\"", names, name));
}

}  // namespace plumb::test
