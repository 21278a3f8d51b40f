// A reader for data files, plain or gzip.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plumb::lab {

// Reads a data file from its start. Content in gzip format is decompressed, whatever the name of the file. The memory
// use depends on the bytes that are read, not on the sizes in a file header. A compressed file has at most
// most_memory() bytes of content. All functions throw Error for a file that cannot be read; the message is one line
// that begins with the path.
class InputFile {
 public:
  // Throws Error if the file does not exist, is a folder or a device, is empty, or cannot be read.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }

  // The number of bytes of content read so far.
  std::uint64_t position() const { return position_; }

  // The number of bytes of the whole content, or no value if the file is compressed.
  std::optional<std::uint64_t> size() const;

  // The most bytes that a reader should make of the file: 64 for each byte on disk, or 256 MiB if that is more. A
  // published data set has about 10 bytes for each compressed byte.
  std::uint64_t most_memory() const;

  // Fills `into` and returns the number of bytes read. This number is smaller than `into` only at the end of the
  // content. Throws Error if the compressed data are damaged, cut off, followed by other bytes or too large.
  std::size_t read(std::span<std::uint8_t> into);

  // Appends `count` bytes of content to `to`. Throws Error if the content ends earlier; the message calls the missing
  // bytes `what`. If the file is not compressed, the size is checked before memory is allocated.
  void append(std::vector<std::uint8_t>& to, std::uint64_t count, const std::string& what);

  // Throws Error if the content does not end here. The message calls the content that was read `what`.
  void expect_end(const std::string& what);

 private:
  struct Stream;
  std::size_t read_plain(std::span<std::uint8_t> into);
  std::size_t read_gzip(std::span<std::uint8_t> into);

  std::string path_;
  std::unique_ptr<Stream> stream_;
  std::uint64_t position_ = 0;
};

// The path folder/name if this file exists, or else the path folder/name.gz if this file exists, or else no value.
std::optional<std::string> find_data_file(const std::string& folder, const std::string& name);

}  // namespace plumb::lab
