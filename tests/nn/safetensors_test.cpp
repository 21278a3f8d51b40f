#include "nn/io/safetensors.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "core/atomic_file.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::test;
namespace fs = std::filesystem;

namespace {

const fs::path golden_dtypes = fs::path(test::source_dir()) / "tests/golden/dtypes.safetensors";

void write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// A file with this header and `data` zero bytes.
std::string file_bytes(const std::string& header, std::size_t data) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data, '\0');
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::memcmp(a.array().bytes(), b.array().bytes(), static_cast<std::size_t>(a.numel()) * size_of(a.dtype())) ==
             0;
}

}  // namespace

TEST_CASE("a file written by Python's safetensors is read in every dtype") {
  const nn::TensorFile file = nn::read_safetensors(golden_dtypes);
  const auto values = [&](const char* name) { return file.tensors.at(name).values(); };
  using Values = std::vector<double>;
  CHECK(file.tensors.size() == 8);
  CHECK(file.metadata == std::map<std::string, std::string>{{"made by", "safetensors"}, {"quoted", "a \"b\" \\ é"}});
  CHECK(file.tensors.at("f64").dtype() == DType::f64);
  CHECK(file.tensors.at("f64").shape() == Shape{2, 2});
  CHECK(values("f64") == Values{1, -0.1, 1e300, 5e-324});
  CHECK(file.tensors.at("f32").dtype() == DType::f32);
  CHECK(values("f32") == Values{0.5, -3, std::numeric_limits<float>::denorm_min()});
  CHECK(file.tensors.at("f16").dtype() == DType::f32);
  CHECK(values("f16") == Values{1.5, 0, 65504, 0x1p-24, -0x1p-15, -std::numeric_limits<double>::infinity()});
  CHECK(std::signbit(values("f16")[1]));
  CHECK(file.tensors.at("bf16").dtype() == DType::f32);
  CHECK(file.tensors.at("bf16").shape() == Shape{3, 1});
  CHECK(values("bf16") == Values{1, -2.5, 3.3895313892515355e38});
  CHECK(file.tensors.at("i64").array().data<std::int64_t>()[0] == -(std::int64_t{1} << 62));
  CHECK(values("u8") == Values{0, 7, 255});
  CHECK(file.tensors.at("scalar").shape() == Shape{});
  CHECK(file.tensors.at("scalar").item() == 4);
  CHECK(file.tensors.at("empty").shape() == Shape{0, 3});
  const DefaultsScope reference(reference_f64);
  CHECK(nn::read_safetensors(golden_dtypes).tensors.at("f32").device() == Device::reference);
}

TEST_CASE("bf16 is written as BF16 and read as f32") {
  const TemporaryFolder folder;
  nn::write_safetensors(
      folder / "a", {.tensors = {{"w", tensor({1, -2.5, 3.0625}, {3}, {DType::bf16, Device::cpu})}}, .metadata = {}});
  CHECK(fs::file_size(folder / "a") % 8 == 6);  // 3 elements of 2 bytes
  const Tensor back = nn::read_safetensors(folder / "a").tensors.at("w");
  CHECK(back.dtype() == DType::f32);
  CHECK(back.values() == std::vector<double>{1, -2.5, 3.0625});
}

TEST_CASE("written tensors are read back bit for bit and are aligned in the file") {
  const TemporaryFolder folder;
  nn::TensorFile file{.tensors = {{"a.odd", tensor({1, 2, -0.0}, {3}, cpu_f32)},
                                  {"b.f64", tensor({0.1, std::nan("1"), 1e-310}, {1, 3}, reference_f64)},
                                  {"c.u8", Tensor(array_from(std::vector<std::uint8_t>{1, 255, 0}, {3}, Device::cpu))},
                                  {"d.i64", integers({-5, 1ll << 60}, {2, 1})},
                                  {"e.scalar", tensor({7}, {}, cpu_f32)},
                                  {"f.empty", zeros({2, 0}, cpu_f32)},
                                  {"name \"é\"\n", ones({1}, cpu_f32)}},
                      .metadata = {{"note", "line\n\"two\""}}};
  nn::write_safetensors(folder / "a", file);
  const nn::TensorFile back = nn::read_safetensors(folder / "a");
  REQUIRE(back.tensors.size() == file.tensors.size());
  CHECK(back.metadata == file.metadata);
  for (const auto& [name, t] : file.tensors) {
    INFO(name);
    CHECK(same_bits(back.tensors.at(name), t));
  }
  const std::string bytes = read_file(folder / "a");
  CHECK(bytes[0] % 8 == 0);  // the length of the header
  CHECK(bytes.find("\"a.odd\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[40,52]}") != std::string::npos);
  nn::write_safetensors(folder / "b", back);
  CHECK(read_file(folder / "b") == bytes);

  nn::write_safetensors(folder / "none", {});
  CHECK(nn::read_safetensors(folder / "none").tensors.empty());
}

TEST_CASE("tensors of dtypes that Plumb does not read are skipped and named") {
  const TemporaryFolder folder;
  write(folder / "a", file_bytes(R"({"index":{"dtype":"I32","shape":[2],"data_offsets":[0,8]},)"
                                 R"("w":{"dtype":"F32","shape":[3],"data_offsets":[8,20]},)"
                                 R"("x":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[20,24]}})",
                                 24));
  const nn::TensorFile file = nn::read_safetensors(folder / "a");
  CHECK(file.tensors.size() == 1);
  CHECK(file.tensors.at("w").values() == std::vector<double>{0, 0, 0});
  CHECK(file.skipped == std::map<std::string, std::string>{{"index", "I32"}, {"x", "F8_E4M3"}});
  CHECK(nn::skipped_text(file) == "index (I32), x (F8_E4M3)");
  CHECK_NOTHROW(nn::check_not_skipped({{"w", ones({1})}}, file, "a"));
  CHECK(error_of([&] {
          nn::check_not_skipped({{"index", ones({1})}}, file, "a");
        }) == "a: expected dtype F64, F32, F16, BF16, I64 or U8 for \"index\", got I32");
}

TEST_CASE("files of many tensors are written and read in linear time") {
  const TemporaryFolder folder;
  nn::NamedTensors tensors;
  for (int i = 0; i < 60000; ++i) tensors[fmt::format("model.blocks.{}.mlp.fc1.weight{}", i / 12, i % 12)] = ones({1});
  std::map<std::string, std::string> metadata;
  for (int i = 0; i < 60000; ++i) metadata[fmt::format("key {}", i)] = "text";
  const auto start = std::chrono::steady_clock::now();
  nn::write_safetensors(folder / "a", {.tensors = tensors, .metadata = metadata});
  const nn::TensorFile back = nn::read_safetensors(folder / "a");
  CHECK((back.tensors.size() == 60000 && back.metadata == metadata));
  // On a busy machine of two cores: 4 s, and 29 s with sanitizers. With searches through lists of names, the test had
  // not ended after 115 s of processor time.
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
}

TEST_CASE("a file that cannot be written is left unchanged") {
  const TemporaryFolder folder;
  write(folder / "a", "old");
  CHECK_THAT(error_of([&] {
               nn::write_safetensors(folder / "a", {.tensors = {{"x", Tensor()}}, .metadata = {}});
             }),
             contains((folder / "a").string()) && contains("got \"x\", which is not defined"));
  CHECK_THAT(error_of([&] {
               nn::write_safetensors(folder / "a", {.tensors = {{"__metadata__", ones({1})}}, .metadata = {}});
             }),
             contains("names other than __metadata__"));
  CHECK_THAT(error_of([&] {
               nn::write_safetensors(folder / "a", {.tensors = {{"\xff", ones({1})}}, .metadata = {}});
             }),
             contains("in UTF-8"));
  const std::string nul("b\0c", 3);
  for (const nn::TensorFile& file : {nn::TensorFile{.tensors = {{nul, ones({1})}}, .metadata = {}},
                                     nn::TensorFile{.tensors = {}, .metadata = {{nul, "d"}}},
                                     nn::TensorFile{.tensors = {}, .metadata = {{"d", nul}}}})
    CHECK_THAT(error_of([&] { nn::write_safetensors(folder / "a", file); }),
               contains("without a NUL, got one after \"b\""));
  CHECK_THAT(error_of([&] { nn::write_safetensors(folder / "no" / "a", {}); }), contains("No such file or directory"));
  CHECK(read_file(folder / "a") == "old");
}

TEST_CASE("the error for a damaged file gives its path, the expected and the found content") {
  const TemporaryFolder folder;
  const std::string w = R"("w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})";
  const auto entry = [](const char* dtype, const char* shape, const char* offsets) {
    return fmt::format(R"({{"w":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape, offsets);
  };
  const auto refuses = [&](const std::string& bytes, const std::string& message) {
    write(folder / "bad", bytes);
    const std::string error = error_of([&] { nn::read_safetensors(folder / "bad"); });
    CHECK_THAT(error, contains((folder / "bad").string() + ": ") && contains(message));
  };
  write(folder / "good", file_bytes("{" + w + "}  ", 24));
  CHECK(nn::read_safetensors(folder / "good").tensors.at("w").shape() == Shape{2, 3});

  refuses("", "at least 8 bytes, got 0");
  refuses("1234567", "at least 8 bytes, got 7");
  refuses(std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10),
          "expected a safetensors file, got one of another kind, or damaged");
  refuses("claim,source,verdict\n1,2,3\n",
          "expected a safetensors file, got one that begins with \"claim,source,verdict\"");
  refuses("a text that is longer than what is shown of it", "got one that begins with \"a text that is longer th\"");
  refuses("version https://git-lfs.github.com/spec/v1\noid",
          "got a Git LFS pointer: download the file with git lfs pull");
  refuses(std::string("\x89PNG\r\n\x1a\n\0\0", 10), "got one of another kind");
  refuses(file_bytes("{" + w + "}", 24).substr(0, 20),
          "as the file says, got a file of 20 bytes: it is probably cut off");
  refuses(file_bytes("", 0), "expected a header in JSON");
  refuses(file_bytes("{" + w, 24), "expected a header in JSON");
  refuses(file_bytes("[1]", 0), "expected a JSON object as header, got array");
  refuses(file_bytes("{\"\xff\":1}", 0), "expected a header in JSON");
  refuses(file_bytes("{" + w + "," + w + "}", 24), "expected each name once in the header, got \"w\" twice");
  refuses(file_bytes(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "got \"a\" twice");
  refuses(file_bytes(R"({"__metadata__":[]})", 0), "expected strings by name under __metadata__, got array");
  refuses(file_bytes(R"({"__metadata__":{"a":1}})", 0), "expected a string for __metadata__ \"a\", got number");
  refuses(file_bytes(R"({"w":3})", 0), "expected dtype, shape and data_offsets for \"w\", got number");
  refuses(file_bytes(R"({"w":{"shape":[1],"data_offsets":[0,4]}})", 4), "for \"w\", got none");
  for (const char* text : {"none", "I32 ", "", "ABCDEFGHIJKLMNOPQ", "\\u0000"})
    refuses(file_bytes(entry(text, "[4]", "[0,4]"), 4), "expected a dtype such as F32 for \"w\", got ");
  refuses(file_bytes(entry("I32", "[1]", "[4]"), 4), "expected a begin and an end for \"w\" I32, got [4]");
  refuses(file_bytes(entry("I32", "[1]", "[4,0]"), 4), "expected a begin and an end for \"w\" I32, got [4, 0]");
  refuses(file_bytes(entry("I32", "[1]", "[4,8]"), 8), "expected \"w\" to begin at byte 0");
  refuses(file_bytes(entry("I32", "[1]", "[0,4]"), 5), "expected 4 bytes of tensors, got 5");
  // Names and strings with a NUL, and names that occur twice, also in another spelling.
  const std::string no_nul = "expected names and metadata without a NUL, got one after \"a\"";
  const std::string value = R"(:{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  refuses(file_bytes(R"({"a\u0000b")" + value + "}", 1), no_nul);
  refuses(file_bytes(R"({"__metadata__":{"a\u0000b":"c"}})", 0), no_nul);
  refuses(file_bytes(R"({"__metadata__":{"b":"a\u0000"}})", 0), no_nul);
  refuses(file_bytes(R"({"a")" + value + R"(,"\u0061")" + value + "}", 1),
          "each name once in the header, got \"a\" twice");
  refuses(file_bytes(R"({"__metadata__":{"a":"1","\u0061":"2"}})", 0), "got \"a\" twice");
  refuses(file_bytes(R"({"__metadata__":{},"__metadat\u0061__":{}})", 0), "got \"__metadata__\" twice");
  refuses(file_bytes(entry("F32", "[-1]", "[0,4]"), 4), "integers of at least 0 as shape of \"w\"");
  refuses(file_bytes(entry("F32", "[1.5]", "[0,4]"), 4), "integers of at least 0 as shape of \"w\"");
  refuses(file_bytes(entry("F32", "1", "[0,4]"), 4), "integers of at least 0 as shape of \"w\"");
  refuses(file_bytes(R"({"w":{"dtype":"F32","shape":[1]}})", 4), "as data_offsets of \"w\"");
  refuses(file_bytes(entry("F32", "[1]", "[4]"), 4),
          "expected a begin and an end 4 bytes apart for \"w\" F32 [1], got [4]");
  refuses(file_bytes(entry("F32", "[2]", "[0,4]"), 4), "8 bytes apart for \"w\" F32 [2], got [0, 4]");
  refuses(file_bytes(entry("F32", "[1]", "[4,0]"), 4), "4 bytes apart");
  refuses(file_bytes(entry("U8", "[4294967296,4294967296]", "[0,0]"), 0),
          "fewer than 2^59 elements for \"w\", got [4294967296, 4294967296]");
  refuses(file_bytes(entry("U8", "[0,4294967296,4294967296]", "[0,0]"), 0), "fewer than 2^59 elements");
  refuses(file_bytes(entry("U8", "[18446744073709551615]", "[0,18446744073709551615]"), 0), "fewer than 2^59 elements");
  refuses(file_bytes(entry("F64", "[1,1,1,1,1,1,1,1,1]", "[0,8]"), 8), "expected at most 8 axes");
  refuses(file_bytes("{" + w + "}", 23), "expected 24 bytes of tensors, got 23");
  refuses(file_bytes("{" + w + "}", 25), "expected 24 bytes of tensors, got 25");
  refuses(file_bytes("{" + w + R"(,"v":{"dtype":"U8","shape":[4],"data_offsets":[20,24]}})", 24),
          "expected \"v\" to begin at byte 24");
  refuses(file_bytes("{" + w + R"(,"v":{"dtype":"U8","shape":[4],"data_offsets":[28,32]}})", 32),
          "expected \"v\" to begin at byte 24");
  refuses(file_bytes(entry("F32", "[1]", "[4,8]"), 8),
          "expected \"w\" to begin at byte 0, where the tensor before it ends, got 4");

  CHECK_THAT(error_of([&] { nn::read_safetensors(folder / "no"); }),
             contains("no: expected a safetensors file, got nothing at this path"));
  CHECK_THAT(error_of([&] { nn::read_safetensors(folder.path()); }), contains("something that is not a regular file"));
  CHECK_THAT(error_of([&] { nn::read_safetensors("/dev/zero"); }), contains("something that is not a regular file"));
}

TEST_CASE("a cut or damaged file leads to nothing worse than an error") {
  const TemporaryFolder folder;
  const std::string good = read_file(golden_dtypes);
  const auto try_to_read = [&](const std::string& bytes) {
    write(folder / "a", bytes);
    try {
      nn::read_safetensors(folder / "a");
      return true;
    } catch (const Error& e) {  // any other exception fails the test
      CHECK_THAT(e.what(), contains((folder / "a").string()));
      return false;
    }
  };
  CHECK(try_to_read(good));
  for (std::size_t length = 0; length < good.size(); ++length) CHECK_FALSE(try_to_read(good.substr(0, length)));
  std::uint64_t header = 0;
  std::memcpy(&header, good.data(), 8);
  for (std::size_t at = 0; at < 8 + header; ++at)
    for (const char c : {'\0', '0', '9', '"', '}', '[', ',', '\xff'}) {
      std::string bytes = good;
      bytes[at] = c;
      try_to_read(bytes);
    }
  for (std::size_t at = 8; at < 8 + header; at += 3) try_to_read(good.substr(0, at) + good.substr(at + 5));
}
