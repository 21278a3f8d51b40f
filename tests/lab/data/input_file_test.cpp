#include "experiments/lab/data/input_file.h"

#include <unistd.h>

#include "tests/vision/data/data_files.h"

using namespace plumb::lab;
using namespace plumb::test;

namespace {

Bytes read_all(const std::string& path, std::size_t step) {
  InputFile file(path);
  Bytes all, part(step);
  while (const std::size_t got = file.read(part))
    all.insert(all.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(got));
  CHECK(file.position() == all.size());
  return all;
}

}  // namespace

TEST_CASE("A plain and a compressed file have the same content for reads of any size") {
  const TemporaryFolder folder;
  const Bytes content = some_pixels(300'000);
  const std::string plain = write_bytes(folder / "a", content), packed = write_bytes(folder / "a.gz", gzip(content));
  for (const std::size_t step : {std::size_t{1000}, std::size_t{65536}, std::size_t{70001}, std::size_t{1} << 20}) {
    CHECK(read_all(plain, step) == content);
    CHECK(read_all(packed, step) == content);
  }
  CHECK(InputFile(plain).size() == content.size());
  CHECK_FALSE(InputFile(packed).size().has_value());
}

TEST_CASE("The content of a file decides whether it is decompressed and not its name") {
  const TemporaryFolder folder;
  const Bytes content = some_pixels(1000);
  CHECK(read_all(write_bytes(folder / "packed", gzip(content)), 100) == content);
  CHECK(read_all(write_bytes(folder / "plain.gz", content), 100) == content);
}

TEST_CASE("Concatenated gzip files are read as one content as with gunzip") {
  const TemporaryFolder folder;
  const Bytes a = some_pixels(70'000, 1), b = some_pixels(90'000, 2);
  const std::string path = write_bytes(folder / "ab.gz", joined({gzip(a), gzip(b)}));
  CHECK(read_all(path, 4096) == joined({a, b}));
}

TEST_CASE("The error of a path that is not a readable file contains the path") {
  const TemporaryFolder folder;
  const std::string absent = folder / "absent", empty = write_bytes(folder / "empty", {}), here = folder.path();
  CHECK_THAT(data_error_of(absent, [&] { InputFile f(absent); }), contains("no such file"));
  CHECK_THAT(data_error_of(empty, [&] { InputFile f(empty); }), contains("empty"));
  CHECK_THAT(data_error_of(here, [&] { InputFile f(here); }), contains("expected a file, got a folder"));
  CHECK_THAT(data_error_of("/dev/null", [&] { InputFile f("/dev/null"); }), contains("regular file"));
  if (::geteuid() != 0) {
    const std::string locked = write_bytes(folder / "locked", {1});
    std::filesystem::permissions(locked, std::filesystem::perms::none);
    CHECK_THAT(data_error_of(locked, [&] { InputFile f(locked); }), contains("cannot be opened"));
  }
}

TEST_CASE("A file that is shorter than requested does not make the reader allocate the requested size") {
  const TemporaryFolder folder;
  const Bytes content = some_pixels(5000);
  for (const std::uint64_t promised : {std::uint64_t{5001}, std::uint64_t{1} << 33, std::uint64_t{1} << 60}) {
    Bytes to;
    const std::string plain = write_bytes(folder / "a", content), packed = write_bytes(folder / "a.gz", gzip(content));
    CHECK_THAT(data_error_of(plain, [&] { InputFile(plain).append(to, promised, "pixels"); }), contains("got 5000"));
    CHECK(to.capacity() == 0);
    CHECK_THAT(data_error_of(packed, [&] { InputFile(packed).append(to, promised, "pixels"); }), contains("got 5000"));
    CHECK(to.capacity() <= (1u << 20));
  }
}

TEST_CASE("append reads the requested bytes and leaves the rest") {
  const TemporaryFolder folder;
  const Bytes content = some_pixels(3'000'000);
  for (const std::string& path : {write_bytes(folder / "a", content), write_bytes(folder / "a.gz", gzip(content))}) {
    InputFile file(path);
    Bytes to{7};
    file.append(to, 10, "bytes");
    file.append(to, 2'999'980, "bytes");
    CHECK(to.size() == 2'999'991);
    CHECK(to[1] == content[0]);
    CHECK(to.back() == content[2'999'989]);
    CHECK_THAT(data_error_of(path, [&] { file.expect_end("2999990 bytes"); }), contains("after 2999990 bytes"));
    InputFile whole(path);
    whole.append(to, content.size(), "bytes");
    whole.expect_end("all");
  }
}

TEST_CASE("A flipped bit in gzip data causes an error or does not change the content") {
  const TemporaryFolder folder;
  const Bytes content = some_pixels(200), packed = gzip(content);
  int errors = 0;
  for (std::size_t bit = 16; bit < 8 * packed.size();
       ++bit) {  // begins after the first 16 bits, the magic number; without it the file is plain
    Bytes damaged = packed;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    const std::string path = write_bytes(folder / "damaged.gz", damaged);
    try {
      const Bytes got = read_all(path, 64);
      CHECK(got == content);  // the content does not depend on this bit, such as a bit of the time stamp
    } catch (const plumb::Error& e) {
      ++errors;
      CHECK_THAT(e.what(), contains(path));
    }
  }
  CHECK(errors > 1000);
}

TEST_CASE("Other bytes after the gzip data cause an error") {
  const TemporaryFolder folder;
  for (const Bytes& rest : {Bytes{0}, Bytes{0x1f}, Bytes{0x1f, 0x8b}, Bytes(1000, 0), Bytes(1000, 0x1f)}) {
    const std::string path = write_bytes(folder / "more.gz", joined({gzip(some_pixels(100)), rest}));
    const std::string message = data_error_of(path, [&] { read_all(path, 64); });
    if (rest[0] != 0x1f)
      CHECK_THAT(message, contains("expected the end of the file after its gzip data, got other bytes"));
    data_error_of(path, [&] {
      InputFile file(path);
      Bytes to;
      file.append(to, 100, "pixels");
      file.expect_end("pixels");
    });
  }
}

TEST_CASE("A plain data file is preferred to the same file with the ending .gz") {
  const TemporaryFolder folder;
  CHECK_FALSE(find_data_file(folder.path(), "x").has_value());
  write_bytes(folder / "x.gz", {1});
  CHECK(find_data_file(folder.path(), "x") == (folder / "x.gz").string());
  write_bytes(folder / "x", {1});
  CHECK(find_data_file(folder.path(), "x") == (folder / "x").string());
}

TEST_CASE("A compressed file whose content grows beyond 64 bytes for each byte and 256 MiB is refused") {
  const TemporaryFolder folder;
  const Bytes part = gzip(Bytes(1 << 24, 0));
  const auto read = [&](std::size_t parts) {
    const std::string path = write_bytes(folder / "a.gz", joined(std::vector<Bytes>(parts, part)));
    InputFile file(path);
    CHECK(file.most_memory() == 1 << 28);
    Bytes to(1 << 24);
    for (std::size_t i = 0; i < parts; ++i) file.read(to);
    return path;
  };
  read(16);
  CHECK_THAT(data_error_of((folder / "a.gz").string(), [&] { read(17); }),
             contains("expected at most 268435456 bytes of content in"));
  const Bytes large(5 << 20, 'x');
  CHECK(InputFile(write_bytes(folder / "large", large)).most_memory() == 64 * large.size());
}
