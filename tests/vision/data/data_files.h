// Writes small data files in the published formats, for the tests of the readers.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace plumb::test {

using Bytes = std::vector<std::uint8_t>;

inline std::string write_bytes(const std::filesystem::path& path, const Bytes& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
  return path.string();
}

inline Bytes read_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline Bytes joined(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// The bytes `content`, compressed as one gzip member.
inline Bytes gzip(Bytes content) {
  z_stream z{};
  if (::deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  Bytes out(::deflateBound(&z, static_cast<uLong>(content.size())) + 64);
  z.next_in = content.data();
  z.avail_in = static_cast<uInt>(content.size());
  z.next_out = out.data();
  z.avail_out = static_cast<uInt>(out.size());
  const int result = ::deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  ::deflateEnd(&z);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate");
  return out;
}

// The content of a gzip file. The gzip functions of zlib decompress the file.
inline Bytes gunzip(const std::filesystem::path& path) {
  gzFile file = ::gzopen(path.c_str(), "rb");
  Bytes out, part(1 << 20);
  for (int got = 0; file && (got = ::gzread(file, part.data(), static_cast<unsigned>(part.size()))) > 0;)
    out.insert(out.end(), part.begin(), part.begin() + got);
  if (file) ::gzclose(file);
  return out;
}

inline Bytes idx_file(const std::vector<std::uint32_t>& sizes, const Bytes& content) {
  Bytes out{0, 0, 8, static_cast<std::uint8_t>(sizes.size())};
  for (const std::uint32_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(size >> shift));
  out.insert(out.end(), content.begin(), content.end());
  return out;
}

inline void append_big_endian(Bytes& out, std::size_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(value >> shift));
}

// A segment of a JPEG file.
inline Bytes jpeg_segment(std::uint8_t kind, const Bytes& content) {
  Bytes out{0xff, kind};
  append_big_endian(out, content.size() + 2, 2);
  out.insert(out.end(), content.begin(), content.end());
  return out;
}

// A grey progressive JPEG with `side` x `side` pixels in `scans` scans without data, and `segments` after its start.
inline Bytes empty_jpeg(std::size_t side, int scans, const Bytes& segments = {}) {
  Bytes frame{8}, tables{0}, dc{0x00, 1}, ac{0x10, 1};
  for (int i = 0; i < 2; ++i) append_big_endian(frame, side, 2);
  frame.insert(frame.end(), {1, 1, 0x11, 0});
  tables.resize(65, 1);
  dc.resize(17), ac.resize(17);
  dc.push_back(0), ac.push_back(0xe0);
  std::vector<Bytes> parts{{0xff, 0xd8},
                           segments,
                           jpeg_segment(0xdb, tables),
                           jpeg_segment(0xc2, frame),
                           jpeg_segment(0xc4, dc),
                           jpeg_segment(0xc4, ac),
                           jpeg_segment(0xda, {1, 1, 0, 0, 0, 0})};
  for (int i = 1; i < scans; ++i) parts.push_back(jpeg_segment(0xda, {1, 1, 0, 1, 63, 0}));
  parts.push_back({0xff, 0xd9});
  return joined(parts);
}

// A segment of a JPEG file with an EXIF orientation, 1 to 8, in one of the two orders of bytes.
inline Bytes exif_segment(std::uint8_t orientation, bool little = true) {
  const Bytes start{'E', 'x', 'i', 'f', 0, 0},
      ii{'I', 'I', 42, 0,    8, 0, 0, 0, 2, 0, 0x10, 1,           2, 0, 1, 0, 0, 0, 0,
         0,   0,   0,  0x12, 1, 3, 0, 1, 0, 0, 0,    orientation, 0, 0, 0, 0, 0, 0, 0},
      mm{'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0};
  return jpeg_segment(0xe1, joined({start, little ? ii : mm}));
}

// `count` bytes that look like pixels. Each byte depends only on its index and on `seed`.
inline Bytes some_pixels(std::size_t count, std::uint32_t seed = 1) {
  Bytes out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>((i + seed) * 2654435761u >> 13);
  return out;
}

// A CIFAR record: first the label bytes, then 3072 pixel bytes.
inline Bytes cifar_record(const Bytes& labels, std::uint32_t seed = 1) {
  Bytes out = labels;
  const Bytes pixels = some_pixels(3072, seed);
  out.insert(out.end(), pixels.begin(), pixels.end());
  return out;
}

// The message of the plumb::Error that f() throws. The function checks that the message is one line and contains
// `path`.
template <class F>
std::string data_error_of(const std::string& path, F&& f) {
  std::string message;
  try {
    f();
    FAIL("expected an error about " << path << ", none came");
  } catch (const Error& e) {
    message = e.what();
  }
  CHECK(message.find('\n') == std::string::npos);
  CHECK_THAT(message, contains(path));
  return message;
}

}  // namespace plumb::test
