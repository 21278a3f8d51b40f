#include "experiments/vision/data/idx.h"

#include "tests/vision/data/data_files.h"

using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

namespace {

struct Pair {
  TemporaryFolder folder;
  Bytes images = idx_file({3, 4, 5}, some_pixels(60)), labels = idx_file({3}, {9, 0, 4});

  std::string images_path() const { return folder / "images"; }
  std::string labels_path() const { return folder / "labels"; }
  ImageSet read() const {
    write_bytes(images_path(), images);
    write_bytes(labels_path(), labels);
    return read_idx(images_path(), labels_path());
  }
};

Bytes cut(const Bytes& bytes, std::size_t length) {
  return Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
}

}  // namespace

TEST_CASE("IDX images are read in order and centred in 32x32 pixels") {
  const Pair pair;
  const ImageSet set = pair.read();
  CHECK(set.size() == 3);
  CHECK(set.channels == 1);
  CHECK(set.height == 32);
  CHECK(set.width == 32);
  CHECK(set.classes == 10);
  CHECK(set.labels == std::vector<std::int32_t>{9, 0, 4});
  const Bytes pixels = some_pixels(60);
  Bytes expected(3 * 1024, 0);
  for (std::size_t n = 0; n < 3; ++n)
    for (std::size_t y = 0; y < 4; ++y)
      for (std::size_t x = 0; x < 5; ++x) expected[n * 1024 + (14 + y) * 32 + 13 + x] = pixels[n * 20 + y * 5 + x];
  CHECK(set.pixels == expected);
}

TEST_CASE("Compressed IDX files have the same content") {
  Pair pair;
  const ImageSet plain = pair.read();
  pair.images = gzip(pair.images);
  pair.labels = gzip(pair.labels);
  const ImageSet packed = pair.read();
  CHECK(packed.pixels == plain.pixels);
  CHECK(packed.labels == plain.labels);
}

TEST_CASE("An IDX file that is cut off at any byte causes an error with its path") {
  const Pair whole;
  for (const bool packed : {false, true}) {
    Pair pair;
    const Bytes images = packed ? gzip(whole.images) : whole.images,
                labels = packed ? gzip(whole.labels) : whole.labels;
    pair.labels = labels;
    for (std::size_t length = 0; length < images.size(); ++length) {
      pair.images = cut(images, length);
      data_error_of(pair.images_path(), [&] { pair.read(); });
    }
    pair.images = images;
    for (std::size_t length = 0; length < labels.size(); ++length) {
      pair.labels = cut(labels, length);
      data_error_of(pair.labels_path(), [&] { pair.read(); });
    }
  }
}

TEST_CASE("Any flipped bit in an IDX header causes an error") {
  const Pair whole;
  for (const bool packed : {false, true}) {
    Pair pair;
    for (std::size_t bit = 0; bit < 8 * 16; ++bit) {
      Bytes damaged = whole.images;
      damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
      pair.images = packed ? gzip(damaged) : damaged;
      data_error_of(pair.images_path(), [&] { pair.read(); });
    }
    pair.images = whole.images;
    for (std::size_t bit = 0; bit < 8 * 8; ++bit) {
      Bytes damaged = whole.labels;
      damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
      pair.labels = packed ? gzip(damaged) : damaged;
      data_error_of(pair.labels_path(), [&] { pair.read(); });
    }
  }
}

TEST_CASE("IDX errors state the expected and actual content and the likely cause") {
  Pair pair;
  const Bytes images = pair.images, labels = pair.labels;
  const auto image_error = [&](Bytes bytes) {
    pair.images = std::move(bytes);
    return data_error_of(pair.images_path(), [&] { pair.read(); });
  };
  CHECK_THAT(
      image_error(labels),
      contains(
          "expected IDX magic 0x00000803 (unsigned bytes, 3 dimensions), got 0x00000801; is this the file of labels?"));
  CHECK_THAT(image_error({'<', '!', 'D', 'O', 'C', 'T', 'Y', 'P', 'E'}), contains("got 0x3c21444f"));
  CHECK_THAT(image_error(cut(images, 10)), contains("header of 16 bytes, got 10"));
  CHECK_THAT(image_error(cut(images, 70)), contains("expected 60 bytes of 3 images of 4x5 from byte 16 on, got 54"));
  CHECK_THAT(image_error(idx_file({0, 28, 28}, {})), contains("at least one image"));
  CHECK_THAT(image_error(idx_file({3, 4, 0}, {})), contains("at least one pixel"));
  CHECK_THAT(image_error(idx_file({3, 4, 4}, some_pixels(60))), contains("got 12 bytes more"));
  CHECK_THAT(image_error(gzip(idx_file({3, 4, 4}, some_pixels(60)))),
             contains("expected the end of the content after 3 images of 4x4"));
  CHECK_THAT(image_error({}), contains("empty"));
  pair.images = images;
  const auto label_error = [&](Bytes bytes) {
    pair.labels = std::move(bytes);
    return data_error_of(pair.labels_path(), [&] { pair.read(); });
  };
  CHECK_THAT(
      label_error(images),
      contains(
          "expected IDX magic 0x00000801 (unsigned bytes, 1 dimension), got 0x00000803; is this the file of images?"));
  CHECK_THAT(label_error(idx_file({2}, {1, 2})),
             contains("expected 3 labels, one for each image of " + pair.images_path()));
  CHECK_THAT(label_error(idx_file({3}, {1, 10, 2})), contains("labels in 0..9, got 10 for image 1"));
}

TEST_CASE("An IDX header with huge sizes is refused before memory is allocated") {
  Pair pair;
  for (const std::vector<std::uint32_t>& sizes :
       {std::vector<std::uint32_t>{~0u, ~0u, ~0u}, {~0u, 1024, 1024}, {1, ~0u, 1}, {1u << 30, 28, 28}})
    for (const bool packed : {false, true}) {
      const Bytes file = idx_file(sizes, some_pixels(60));
      pair.images = packed ? gzip(file) : file;
      data_error_of(pair.images_path(), [&] { pair.read(); });
    }
}

TEST_CASE("IDX sizes whose product overflows to 0 are refused") {
  Pair pair;
  pair.images = idx_file({1u << 30, 1u << 30, 16}, {});  // the header claims 2^64 bytes
  CHECK_THAT(data_error_of(pair.images_path(), [&] { pair.read(); }),
             contains("at most 1024x1024, got a header with 1073741824x16"));
}

TEST_CASE("Reading stops early if a gzip file has much more data than the IDX header says") {
  Pair pair;
  pair.images = gzip(idx_file({3, 4, 5}, Bytes(64 << 20, 0)));
  CHECK(pair.images.size() < (1u << 17));
  CHECK_THAT(data_error_of(pair.images_path(), [&] { pair.read(); }), contains("got more"));
}

TEST_CASE("The published Fashion-MNIST files have the documented content") {
  const std::filesystem::path dir = outside_data() / "data" / "fashion-mnist";
  if (!std::filesystem::exists(dir / "t10k-images-idx3-ubyte.gz")) PLUMB_SKIP("no Fashion-MNIST in " + dir.string());
  const std::string images = dir / "t10k-images-idx3-ubyte.gz", labels = dir / "t10k-labels-idx1-ubyte.gz";
  const ImageSet packed = read_idx(images, labels);
  CHECK(packed.size() == 10'000);
  std::vector<int> counts(10, 0);
  for (const std::int32_t label : packed.labels) ++counts[static_cast<std::size_t>(label)];
  CHECK(counts == std::vector<int>(10, 1000));
  CHECK(packed.labels[0] == 9);  // label 9 is an ankle boot; label 2 of the next image is a pullover
  CHECK(packed.labels[1] == 2);

  const TemporaryFolder folder;
  const ImageSet plain =
      read_idx(write_bytes(folder / "images", gunzip(images)), write_bytes(folder / "labels", gunzip(labels)));
  CHECK(plain.pixels == packed.pixels);
  CHECK(plain.labels == packed.labels);
}

TEST_CASE("Tiny images that would take 1,024 times the memory of their file are refused") {
  constexpr std::uint32_t count = 300'000;
  Pair pair;
  pair.labels = idx_file({count}, Bytes(count, 0));
  for (const bool packed : {false, true}) {
    const Bytes file = idx_file({count, 1, 1}, Bytes(count, 0));
    pair.images = packed ? gzip(file) : file;
    CHECK_THAT(data_error_of(pair.images_path(), [&] { pair.read(); }),
               contains("expected images of at most 268435456 bytes in memory, got 300000 images of 1x1, which take "
                        "307200000 bytes"));
  }
}
