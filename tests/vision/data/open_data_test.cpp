#include "experiments/vision/data/open_data.h"

#include "tests/vision/data/data_files.h"

using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;
namespace fs = std::filesystem;

namespace {

// Writes a small set in the format of MNIST. Sets with different `first_label` have different pixels and first labels.
void write_idx_set(const fs::path& dir, std::uint8_t first_label, bool packed) {
  const auto put = [&](const std::string& name, const Bytes& bytes) {
    write_bytes(dir / (packed ? name + ".gz" : name), packed ? gzip(bytes) : bytes);
  };
  put("train-images-idx3-ubyte", idx_file({3, 28, 28}, some_pixels(3 * 784, first_label)));
  put("train-labels-idx1-ubyte", idx_file({3}, {first_label, 1, 2}));
  put("t10k-images-idx3-ubyte", idx_file({1, 28, 28}, some_pixels(784, first_label + 100u)));
  put("t10k-labels-idx1-ubyte", idx_file({1}, {first_label}));
}

}  // namespace

TEST_CASE("The data sets are listed and the generated ones need no folder") {
  CHECK(data_set_names() == std::vector<std::string>{"glyphs", "glyphs-clutter", "glyphs-few", "fashion-mnist", "mnist",
                                                     "cifar-10", "cifar-100", "image-folder"});
  const ImageData data = open_data("glyphs", "");
  CHECK(data.name == "glyphs");
  CHECK(data.train.size() == 12'800);
  CHECK(data.validation.size() == 2'000);
  CHECK(open_data("glyphs-few", "").name == "glyphs-few");
  CHECK(open_data("glyphs-clutter", "").name == "glyphs-clutter");
  for (const char* name : {"glyphs", "glyphs-clutter", "glyphs-few", "mnist"}) CHECK_FALSE(mirrors_keep_class(name));
  CHECK(mirrors_keep_class("cifar-100"));
}

TEST_CASE("An unknown data set causes a UsageError with the nearest name") {
  CHECK_THROWS_AS(open_data("cifar10", "/"), plumb::UsageError);
  CHECK_THAT(error_of([] { open_data("cifar10", "/"); }),
             contains("unknown data set 'cifar10'; did you mean 'cifar-10'?"));
  CHECK_THAT(error_of([] { open_data("imagenet", "/"); }), contains("unknown data set 'imagenet'; known: glyphs, "));
}

TEST_CASE("IDX sets are found in their folder and from its parent both plain and compressed") {
  for (const bool packed : {false, true}) {
    const TemporaryFolder folder;
    write_idx_set(folder / "fashion-mnist", 5, packed);
    for (const std::string& dir :
         {(folder / "fashion-mnist").string(), folder.path().string(), folder.path().string() + "/"}) {
      const ImageData data = open_data("fashion-mnist", dir);
      CHECK(data.name == "fashion-mnist");
      CHECK(data.train.labels == std::vector<std::int32_t>{5, 1, 2});
      CHECK(data.validation.labels == std::vector<std::int32_t>{5});
      CHECK(data.train.height == 32);
    }
  }
}

TEST_CASE("Sets with the same file names are distinguished by their folder") {
  const TemporaryFolder folder;
  write_idx_set(folder.path(), 3, false);
  write_idx_set(folder / "fashion-mnist", 5, false);
  write_idx_set(folder / "MNIST" / "raw", 7, true);
  CHECK(open_data("fashion-mnist", folder.path()).train.labels[0] == 5);
  CHECK(open_data("mnist", folder.path()).train.labels[0] == 7);
  fs::remove_all(folder / "MNIST");
  CHECK(open_data("mnist", folder.path()).train.labels[0] == 3);
}

TEST_CASE("CIFAR-10 reads the training batches that exist in order") {
  const TemporaryFolder folder;
  const fs::path dir = folder / "cifar-10-batches-bin";
  write_bytes(dir / "data_batch_4.bin.gz", gzip(cifar_record({4})));
  write_bytes(dir / "data_batch_2.bin", cifar_record({2}));
  write_bytes(dir / "test_batch.bin", cifar_record({7}));
  for (const fs::path& given : {dir, folder.path()}) {
    const ImageData data = open_data("cifar-10", given);
    CHECK(data.train.labels == std::vector<std::int32_t>{2, 4});
    CHECK(data.validation.labels == std::vector<std::int32_t>{7});
  }
}

TEST_CASE("CIFAR-100 is found under both names of its folder") {
  for (const char* name : {"cifar-100-binary", "cifar-100"}) {
    const TemporaryFolder folder;
    write_bytes(folder / name / "train.bin", cifar_record({1, 50}));
    write_bytes(folder / name / "test.bin", cifar_record({2, 60}));
    CHECK(open_data("cifar-100", folder.path()).train.labels[0] == 50);
    CHECK(open_data("cifar-100", folder / name).validation.labels[0] == 60);
  }
}

TEST_CASE("The error of a missing folder or file names the expected files and --data-dir") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(open_data("mnist", ""), plumb::UsageError);
  CHECK_THAT(error_of([] { open_data("mnist", ""); }),
             contains("mnist needs --data-dir: the folder with train-images-idx3-ubyte, "));
  const std::string absent = folder / "absent";
  const std::string no_folder = data_error_of(absent, [&] { open_data("cifar-100", absent); });
  CHECK_THAT(
      no_folder,
      contains("no such folder; --data-dir expects the folder of cifar-100 with train.bin, test.bin (plain or .gz)"));
  const std::string here = folder.path();
  CHECK_THAT(data_error_of(here, [&] { open_data("cifar-10", here); }),
             contains("cifar-10-batches-bin/ or cifar-10/, got none; --data-dir expects the folder with "
                      "data_batch_1.bin ... data_batch_5.bin, test_batch.bin"));
  const std::string file = write_bytes(folder / "file", {1});
  CHECK_THAT(data_error_of(file, [&] { open_data("mnist", file); }), contains("expected a folder, got a file"));
}

TEST_CASE("The error of an incomplete set names the missing file") {
  const TemporaryFolder folder;
  const std::string dir = folder.path();
  write_idx_set(dir, 1, false);
  for (const char* name :
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    fs::rename(folder / name, folder / "away");
    CHECK_THAT(data_error_of(dir, [&] { open_data("mnist", dir); }), contains(std::string(name) + " is missing"));
    fs::rename(folder / "away", folder / name);
  }
  write_bytes(folder / "test_batch.bin", cifar_record({7}));
  CHECK_THAT(data_error_of(dir, [&] { open_data("cifar-10", dir); }), contains("data_batch_1.bin is missing"));
}

TEST_CASE("The error names a folder that has the name of a data file") {
  const TemporaryFolder folder;
  const std::string dir = folder.path();
  write_idx_set(dir, 1, false);
  fs::remove(folder / "t10k-labels-idx1-ubyte");
  fs::create_directory(folder / "t10k-labels-idx1-ubyte");
  CHECK_THAT(data_error_of(folder / "t10k-labels-idx1-ubyte", [&] { open_data("mnist", dir); }),
             contains("expected a file, got a folder"));
}

TEST_CASE("Training and validation images of different sizes are refused") {
  const TemporaryFolder folder;
  const std::string dir = folder.path();
  write_idx_set(dir, 1, false);
  write_bytes(folder / "t10k-images-idx3-ubyte", idx_file({1, 40, 40}, some_pixels(1600)));
  CHECK_THAT(data_error_of(dir, [&] { open_data("mnist", dir); }), contains("got 32x32 and 40x40"));
}

TEST_CASE("The published data sets can be opened from their parent folder") {
  const fs::path real = outside_data() / "data";
  if (!fs::exists(real / "fashion-mnist" / "train-images-idx3-ubyte.gz"))
    PLUMB_SKIP("no Fashion-MNIST in " + real.string());
  const ImageData data = open_data("fashion-mnist", real);
  CHECK(data.train.size() == 60'000);
  CHECK(data.validation.size() == 10'000);
  const Normalization n = normalization_of(data.train);
  CHECK(n.mean[0] ==
        Approx(0.2860406 * 784 / 1024).margin(1e-5));  // the known mean of the 28 x 28 images, with the border of zeros
}

TEST_CASE("The published CIFAR-100 can be opened from a folder of .gz files") {
  const fs::path real = outside_data() / "data" / "cifar-100";
  if (!fs::exists(real / "train.bin.part1of5.gz")) PLUMB_SKIP("no CIFAR-100 in " + real.string());
  const TemporaryFolder folder;
  fs::create_symlink(fs::absolute(real / "train.bin.part1of5.gz"), folder / "train.bin.gz");
  fs::create_symlink(fs::absolute(real / "test.bin.gz"), folder / "test.bin.gz");
  const ImageData data = open_data("cifar-100", folder.path());
  CHECK(data.train.size() == 10'000);
  CHECK(data.train.labels[0] == 19);  // class 19 is cattle
  CHECK(data.train.pixels[0] == 255);
}
