#include "experiments/vision/data/cifar.h"

#include <algorithm>

#include "core/error.h"
#include "experiments/lab/data/input_file.h"

namespace plumb::vision {
namespace {

constexpr std::size_t pixels_per_image = 3 * 32 * 32;  // InputFile::most_memory() limits their number

struct Format {
  const char* name;
  const char* other;
  std::vector<int> label_counts;  // number of labels for each label byte; the last byte is the label of the image

  std::size_t record() const { return label_counts.size() + pixels_per_image; }
};

void check_whole(const InputFile& file, std::uint64_t bytes, const Format& format) {
  const std::size_t record = format.record();
  check(bytes % record == 0,
        "{}: expected {} records of {} bytes, got {} bytes: {} records and {} bytes; is the file cut off, or {}?",
        file.path(), format.name, record, bytes, bytes / record, bytes % record, format.other);
}

void append_records(const std::string& path, const Format& format, ImageSet& set) {
  InputFile file(path);
  if (const auto bytes = file.size()) {
    check_whole(file, *bytes, format);
    set.pixels.reserve(set.pixels.size() + static_cast<std::size_t>(*bytes / format.record()) * pixels_per_image);
  }
  std::vector<std::uint8_t> record(format.record());
  for (std::uint64_t index = 0;; ++index) {
    const std::size_t got = file.read(record);
    check_whole(file, file.position(), format);
    if (got == 0) break;
    for (std::size_t i = 0; i < format.label_counts.size(); ++i)
      check(record[i] < format.label_counts[i], "{}: record {}: expected a {} label in 0..{}, got {}; is the file {}?",
            path, index, format.name, format.label_counts[i] - 1, record[i], format.other);
    const auto pixels = record.begin() + static_cast<std::ptrdiff_t>(format.label_counts.size());
    set.labels.push_back(*(pixels - 1));
    set.pixels.insert(set.pixels.end(), pixels, record.end());
  }
  check(file.position() > 0, "{}: expected at least one record of {} bytes, got none", path, format.record());
}

ImageSet read_records(const std::vector<std::string>& paths, const Format& format) {
  ImageSet set{3, 32, 32, format.label_counts.back(), {}, {}};
  for (const std::string& path : paths) append_records(path, format, set);
  return set;
}

}  // namespace

ImageSet read_cifar10(const std::vector<std::string>& paths) {
  return read_records(paths, {"CIFAR-10", "CIFAR-100", {10}});
}
ImageSet read_cifar100(const std::vector<std::string>& paths) {
  return read_records(paths, {"CIFAR-100", "CIFAR-10", {20, 100}});
}

}  // namespace plumb::vision
