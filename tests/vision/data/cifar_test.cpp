#include "experiments/vision/data/cifar.h"

#include "tests/vision/data/data_files.h"

using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

TEST_CASE("CIFAR-10 records are read in order over all files") {
  const TemporaryFolder folder;
  const std::string a = write_bytes(folder / "a.bin", joined({cifar_record({3}, 1), cifar_record({9}, 2)}));
  const std::string b = write_bytes(folder / "b.bin", cifar_record({0}, 3));
  const ImageSet set = read_cifar10({a, b});
  CHECK(set.channels == 3);
  CHECK(set.height == 32);
  CHECK(set.width == 32);
  CHECK(set.classes == 10);
  CHECK(set.labels == std::vector<std::int32_t>{3, 9, 0});
  CHECK(set.pixels == joined({some_pixels(3072, 1), some_pixels(3072, 2), some_pixels(3072, 3)}));
}

TEST_CASE("CIFAR-100 images have the fine label") {
  const TemporaryFolder folder;
  const std::string path =
      write_bytes(folder / "train.bin", joined({cifar_record({19, 42}, 1), cifar_record({0, 99}, 2)}));
  const ImageSet set = read_cifar100({path});
  CHECK(set.classes == 100);
  CHECK(set.labels == std::vector<std::int32_t>{42, 99});
  CHECK(set.pixels == joined({some_pixels(3072, 1), some_pixels(3072, 2)}));
}

TEST_CASE("Compressed CIFAR files have the same content even if concatenated from parts") {
  const TemporaryFolder folder;
  const Bytes first = cifar_record({1}, 1), second = cifar_record({2}, 2);
  const ImageSet plain = read_cifar10({write_bytes(folder / "plain", joined({first, second}))});
  for (const Bytes& packed : {gzip(joined({first, second})), joined({gzip(first), gzip(second)})}) {
    const ImageSet set = read_cifar10({write_bytes(folder / "packed.gz", packed)});
    CHECK(set.pixels == plain.pixels);
    CHECK(set.labels == plain.labels);
  }
}

TEST_CASE("An incomplete CIFAR record causes an error that states the sizes") {
  const TemporaryFolder folder;
  const Bytes whole = joined({cifar_record({1}, 1), cifar_record({2}, 2)});
  for (const std::size_t length : {1u, 3072u, 3074u, 6145u}) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    for (const std::string& path :
         {write_bytes(folder / "cut.bin", cut), write_bytes(folder / "cut.bin.gz", gzip(cut))})
      CHECK_THAT(data_error_of(path, [&] { read_cifar10({path}); }),
                 contains(fmt::format("expected CIFAR-10 records of 3073 bytes, got {} bytes: {} records and {} bytes",
                                      length, length / 3073, length % 3073)));
  }
}

TEST_CASE("A CIFAR file of the other kind or of another format is refused") {
  const TemporaryFolder folder;
  const std::string ten = write_bytes(folder / "ten.bin", cifar_record({1})),
                    hundred = write_bytes(folder / "hundred.bin", cifar_record({1, 2}));
  CHECK_THAT(data_error_of(ten, [&] { read_cifar100({ten}); }), contains("or CIFAR-10?"));
  CHECK_THAT(data_error_of(hundred, [&] { read_cifar10({hundred}); }), contains("or CIFAR-100?"));
  const std::string wrong = write_bytes(folder / "wrong.bin", joined({cifar_record({9}), cifar_record({10})}));
  CHECK_THAT(data_error_of(wrong, [&] { read_cifar10({wrong}); }),
             contains("record 1: expected a CIFAR-10 label in 0..9, got 10"));
  const std::string coarse = write_bytes(folder / "coarse.bin", cifar_record({20, 0}));
  CHECK_THAT(data_error_of(coarse, [&] { read_cifar100({coarse}); }), contains("label in 0..19, got 20"));
  const std::string fine = write_bytes(folder / "fine.bin", cifar_record({19, 100}));
  CHECK_THAT(data_error_of(fine, [&] { read_cifar100({fine}); }), contains("label in 0..99, got 100"));
  const std::string empty = write_bytes(folder / "empty.bin", {}),
                    nothing = write_bytes(folder / "nothing.bin.gz", gzip({}));
  CHECK_THAT(data_error_of(empty, [&] { read_cifar10({empty}); }), contains("empty"));
  CHECK_THAT(data_error_of(nothing, [&] { read_cifar10({nothing}); }), contains("at least one record"));
}

TEST_CASE("The published CIFAR-100 test file has 100 images of each class") {
  const std::filesystem::path path = outside_data() / "data" / "cifar-100" / "test.bin.gz";
  if (!std::filesystem::exists(path)) PLUMB_SKIP("no " + path.string());
  const ImageSet set = read_cifar100({path});
  CHECK(set.size() == 10'000);
  std::vector<int> counts(100, 0);
  for (const std::int32_t label : set.labels) ++counts[static_cast<std::size_t>(label)];
  CHECK(counts == std::vector<int>(100, 100));
  const Normalization n = normalization_of(set);
  CHECK(n.mean[0] == Approx(0.507).margin(0.005));  // the published mean of the training set
  CHECK(n.mean[1] == Approx(0.487).margin(0.005));
  CHECK(n.mean[2] == Approx(0.441).margin(0.005));
}
