// .npy files: the bytes that NumPy writes, and the files that are refused.
#include <cmath>

#include "core/atomic_file.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::test;

namespace {

std::string header(const std::string& descr, const std::string& order, const std::string& shape) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, order, shape);
}

// Makes a file of version 1; its header is padded so that the elements begin at byte 64 or 128.
std::string file_of(std::string text, const std::string& elements, char version = 1) {
  const std::size_t before = version == 1 ? 10 : 12;
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  std::string content = "\x93NUMPY";
  content += {version, '\0', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  if (version > 1) content += {'\0', '\0'};
  return content + text + elements;
}

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

}  // namespace

TEST_CASE("save_npy writes the bytes that np.save writes, and load_npy reads them back") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.npy";
  const Tensor matrix = tensor({{1, 2, 3}, {4, 5, NAN}});
  save_npy(path, matrix);
  CHECK(read_file(path) == file_of(header("<f4", "False", "(2, 3)"), bytes_of({1, 2, 3, 4, 5, NAN})));
  save_npy(path, tensor({7}));
  CHECK(read_file(path) == file_of(header("<f4", "False", "(1,)"), bytes_of({7})));
  save_npy(path, tensor(7));
  CHECK(read_file(path) == file_of(header("<f4", "False", "()"), bytes_of({7})));
  for (const Tensor& x : {matrix, tensor({1, 2}, Defaults{DType::f64}), integers({{1}, {-2}}), matrix > 2, tensor(5),
                          zeros({0, 3}), zeros({1, 2, 1, 3})}) {
    save_npy(path, x);
    const Tensor y = load_npy(path);
    CHECK(y.dtype() == x.dtype());
    CHECK(y.shape() == x.shape());
    CHECK(same_bytes(y.array(), x.array()));
    CHECK(read_file(path).size() % 64 == x.array().size_in_bytes() % 64);
  }
  save_npy(path, tensor({1, 2}, Defaults{DType::f32, Device::reference}));
  CHECK(load_npy(path, Device::reference).device() == Device::reference);
}

TEST_CASE("load_npy reads column-major arrays, booleans, and headers of later versions") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.npy";
  write_file_atomically(path, file_of(header("<f4", "True", "(2, 3)"), bytes_of({1, 4, 2, 5, 3, 6}), 2));
  CHECK(load_npy(path).shape() == Shape{2, 3});
  CHECK(load_npy(path).values() == std::vector<double>{1, 2, 3, 4, 5, 6});
  write_file_atomically(
      path, file_of("{\"shape\": (2,), \"fortran_order\": False, \"descr\": \"|b1\"}", std::string("\1\0", 2), 3));
  CHECK(load_npy(path).dtype() == DType::u8);
  CHECK(load_npy(path).values() == std::vector<double>{1, 0});
}

TEST_CASE("save_npy and load_npy refuse wrong dtypes and damaged files") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.npy";
  const auto message = [&](const std::string& content) {
    write_file_atomically(path, content);
    return error_of([&] { static_cast<void>(load_npy(path)); });
  };
  const std::string good = file_of(header("<f4", "False", "(2,)"), bytes_of({1, 2}));
  CHECK_THAT(message("PK\3\4 and so on"),
             contains("[load_npy] expected a .npy file, which begins with \\x93NUMPY, got " + path.string()));
  CHECK_THAT(message(""), contains("[load_npy] expected a .npy file"));
  CHECK_THAT(message(good.substr(0, 40)), contains("expected a header of 118 bytes, got the end of"));
  CHECK_THAT(message(good.substr(0, good.size() - 1)),
             contains("[load_npy] expected 8 bytes of elements for f32 [2], got 7 in"));
  CHECK_THAT(message(good + "x"), contains("[load_npy] expected 8 bytes of elements for f32 [2], got 9 in"));
  CHECK_THAT(message(file_of(header("<f2", "False", "(2,)"), "1234")),
             contains("expected float32, float64, int64, uint8 or bool, little-endian, got '<f2' in"));
  CHECK_THAT(message(file_of(header(">f4", "False", "(1,)"), "1234")), contains("got '>f4' in"));
  CHECK_THAT(message(file_of(header("<f4", "False", "(-1,)"), "")),
             contains("[load_npy] expected the header of a .npy file, got an invalid one near \"-1,)"));
  CHECK_THAT(message(file_of(header("<f4", "maybe", "(1,)"), "1234")), contains("got an invalid one near \"maybe"));
  CHECK_THAT(message(file_of("{'descr': [('a', '<f4')], }", "")), contains("got an invalid one near \"[('a'"));
  CHECK_THAT(message(file_of("{'descr': '<f4'", "")), contains("[load_npy] expected the header"));
  std::string later = good;
  later[6] = 9;
  CHECK_THAT(message(later), contains("expected format version 1, 2 or 3 and a header, got version 9 in"));
  CHECK_THAT(error_of([&] { static_cast<void>(load_npy(folder.path() / "none.npy")); }), contains("none.npy"));
  CHECK_THAT(
      error_of([&] { save_npy(path, cast(ones({2}), DType::bf16)); }),
      contains("[save_npy] expected f32, f64, i64 or u8, got bf16, which NumPy does not have: cast() it to f32"));
  CHECK_THAT(error_of([&] { save_npy(path, Tensor()); }),
             contains("[save_npy] expected a tensor, got an undefined tensor"));
}
