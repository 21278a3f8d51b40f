// A reader for data files, plain or gzip.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plumb::lab {

// Reads a data file from its start. If the content is gzip, whatever the name, it is decompressed. Memory use depends
// on the bytes that are read, not on the sizes in a file header. Errors are thrown as Error; the message is one line
// that begins with the path.
class InputFile {
 public:
  // Throws Error if the file does not exist, is a folder, a device or empty, or cannot be read.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }

  // The number of bytes of content read so far.
  std::uint64_t position() const { return position_; }

  // The number of bytes of the whole content; no value if the file is compressed.
  std::optional<std::uint64_t> size() const;

  // Fills `into` and returns the number of bytes read, which is smaller than `into` only at the end of the content.
  // Throws Error if the compressed data are damaged, cut off or followed by other bytes.
  std::size_t read(std::span<std::uint8_t> into);

  // Appends `count` bytes of content to `to`. Throws Error if the content ends earlier; the message names the bytes
  // with `what`. For an uncompressed file the size is checked before memory is allocated.
  void append(std::vector<std::uint8_t>& to, std::uint64_t count, const std::string& what);

  // Throws Error if there is more content. The message names the content read so far with `what`.
  void expect_end(const std::string& what);

 private:
  struct Stream;
  std::size_t read_plain(std::span<std::uint8_t> into);
  std::size_t read_gzip(std::span<std::uint8_t> into);

  std::string path_;
  std::unique_ptr<Stream> stream_;
  std::uint64_t position_ = 0;
};

// The path folder/name if it exists, otherwise folder/name.gz if it exists, otherwise no value.
std::optional<std::string> find_data_file(const std::string& folder, const std::string& name);

}  // namespace plumb::lab
