// A data file read from its start, decompressed on the way when its content is gzip (whatever its name). Memory grows
// with the bytes that really arrive, never with what a header promises. Every error is one line that begins with the
// file's path.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plumb::lab {

class InputFile {
 public:
  // Error when there is no such file, when it is a folder, a device or empty, or cannot be read.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }

  // Bytes of content read so far.
  std::uint64_t position() const { return position_; }

  // Bytes of content in all: known beforehand only when it is not compressed.
  std::optional<std::uint64_t> size() const;

  // Fills `into` and returns how many bytes came: fewer only at the end of the content. Error when the compressed data
  // are damaged or cut off, or are followed by something else.
  std::size_t read(std::span<std::uint8_t> into);

  // Appends `count` bytes to `to`; `what` names them in the error when the content ends before. Of an uncompressed file
  // the size is checked before anything is allocated.
  void append(std::vector<std::uint8_t>& to, std::uint64_t count, const std::string& what);

  // Error when there is more content; `what` says what has been read.
  void expect_end(const std::string& what);

 private:
  struct Stream;
  std::size_t read_plain(std::span<std::uint8_t> into);
  std::size_t read_gzip(std::span<std::uint8_t> into);

  std::string path_;
  std::unique_ptr<Stream> stream_;
  std::uint64_t position_ = 0;
};

// folder/name, or folder/name.gz when only that exists; nothing when neither does.
std::optional<std::string> find_data_file(const std::string& folder, const std::string& name);

}  // namespace plumb::lab
