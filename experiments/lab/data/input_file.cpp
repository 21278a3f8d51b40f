#include "experiments/lab/data/input_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/error.h"

namespace plumb::lab {
namespace fs = std::filesystem;

struct InputFile::Stream {
  std::FILE* file = nullptr;
  std::uint64_t bytes = 0;  // size of the file on disk
  bool gzip = false;
  bool ended = false;  // whether the last gzip member is complete
  z_stream inflater{};
  std::array<std::uint8_t, 1 << 16> compressed;

  ~Stream() {
    if (gzip) ::inflateEnd(&inflater);
    if (file) std::fclose(file);
  }
};

InputFile::InputFile(std::string path) : path_(std::move(path)), stream_(std::make_unique<Stream>()) {
  std::error_code error;
  const fs::file_status status = fs::status(path_, error);
  check(status.type() != fs::file_type::not_found, "{}: no such file", path_);
  check(!error, "{}: cannot be looked up: {}", path_, error.message());
  check(!fs::is_directory(status), "{}: expected a file, got a folder", path_);
  check(fs::is_regular_file(status), "{}: expected a regular file, got a device, pipe or socket", path_);
  stream_->file = std::fopen(path_.c_str(), "rb");
  check(stream_->file != nullptr, "{}: cannot be opened: {}", path_, std::strerror(errno));
  stream_->bytes = fs::file_size(path_, error);
  check(!error, "{}: its size cannot be read: {}", path_, error.message());
  check(stream_->bytes > 0, "{}: the file is empty; was its download or copy cut off?", path_);

  // The magic number of gzip, 1f 8b, is not the beginning of any other format: IDX begins with 00 00, CIFAR-10 with a
  // label below 10 and CIFAR-100 with a label below 20.
  std::array<std::uint8_t, 2> magic{};
  const bool gzip = read_plain(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  std::rewind(stream_->file);
  if (!gzip) return;
  check(::inflateInit2(&stream_->inflater, 15 + 16) == Z_OK, "{}: zlib cannot be initialised", path_);
  stream_->gzip = true;
}

InputFile::~InputFile() = default;

std::optional<std::uint64_t> InputFile::size() const {
  if (stream_->gzip) return std::nullopt;
  return stream_->bytes;
}

std::uint64_t InputFile::most_memory() const { return std::max(std::uint64_t{1} << 28, 64 * stream_->bytes); }

std::size_t InputFile::read(std::span<std::uint8_t> into) {
  const std::size_t count = stream_->gzip ? read_gzip(into) : read_plain(into);
  position_ += count;
  return count;
}

std::size_t InputFile::read_plain(std::span<std::uint8_t> into) {
  const std::size_t count = into.empty() ? 0 : std::fread(into.data(), 1, into.size(), stream_->file);
  check(!std::ferror(stream_->file), "{}: cannot be read: {}", path_, std::strerror(errno));
  return count;
}

std::size_t InputFile::read_gzip(std::span<std::uint8_t> into) {
  Stream& s = *stream_;
  std::size_t filled = 0;
  while (filled < into.size()) {
    if (s.inflater.avail_in == 0) {
      s.inflater.next_in = s.compressed.data();
      s.inflater.avail_in = static_cast<uInt>(read_plain(s.compressed));
    }
    if (s.inflater.avail_in == 0) {
      check(s.ended, "{}: the gzip data are cut off after {} content bytes; copy or download the file again", path_,
            position_ + filled);
      break;
    }
    if (s.ended) {  // gzip files may be concatenated; the content is the content of all members
      check(*s.inflater.next_in == 0x1f, "{}: expected the end of the file after its gzip data, got other bytes",
            path_);
      ::inflateReset(&s.inflater);
      s.ended = false;
    }
    const std::size_t room = std::min<std::size_t>(into.size() - filled, 1u << 30);
    s.inflater.next_out = into.data() + filled;
    s.inflater.avail_out = static_cast<uInt>(room);
    const int result = ::inflate(&s.inflater, Z_NO_FLUSH);
    filled += room - s.inflater.avail_out;
    check(result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR,
          "{}: the gzip data are damaged after {} content bytes ({})", path_, position_ + filled,
          s.inflater.msg ? s.inflater.msg : ::zError(result));
    check(position_ + filled <= most_memory(),
          "{}: expected at most {} bytes of content in {} compressed bytes, got more", path_, most_memory(), s.bytes);
    s.ended = result == Z_STREAM_END;
  }
  return filled;
}

void InputFile::append(std::vector<std::uint8_t>& to, std::uint64_t count, const std::string& what) {
  const std::optional<std::uint64_t> all = size();
  check(!all || count <= *all - std::min(*all, position_),
        "{}: expected {} bytes of {} from byte {} on, got {}: the file is cut off or its header is wrong", path_, count,
        what, position_, *all - std::min(*all, position_));
  std::uint64_t left = count;
  // For compressed data, the number of bytes to read doubles with each step. The allocated memory then stays in
  // proportion to the bytes already read.
  std::uint64_t step = all ? count : std::uint64_t{1} << 20;
  while (left > 0) {
    const auto ask = static_cast<std::size_t>(std::min(left, step));
    const std::size_t old = to.size();
    to.resize(old + ask);
    const std::size_t got = read({to.data() + old, ask});
    left -= got;
    check(got == ask, "{}: expected {} bytes of {}, got {}: the file is cut off or its header is wrong", path_, count,
          what, count - left);
    step *= 2;
  }
}

void InputFile::expect_end(const std::string& what) {
  std::array<std::uint8_t, 1> extra{};
  if (const std::optional<std::uint64_t> all = size())
    check(position_ >= *all, "{}: expected the end of the file after {} at byte {}, got {} bytes more", path_, what,
          position_, *all - position_);
  const std::uint64_t end = position_;
  check(read(extra) == 0, "{}: expected the end of the content after {} at byte {}, got more", path_, what, end);
}

std::optional<std::string> find_data_file(const std::string& folder, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    const fs::path path = fs::path(folder) / (name + ending);
    std::error_code ignored;
    if (fs::exists(path, ignored)) return path.string();
  }
  return std::nullopt;
}

}  // namespace plumb::lab
