#include "experiments/lab/report/tensorboard.h"

#include <array>
#include <bit>

#include "core/atomic_file.h"
#include "experiments/lab/run/files.h"

namespace plumb::lab {
namespace {

template <class T>
std::string little_endian(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> 8 * i & 255);
  return bytes;
}

// A field in protobuf's wire format is a key (field number and type), followed by the value.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value > 127; value >>= 7) bytes += static_cast<char>((value & 127) | 128);
  return bytes + static_cast<char>(value);
}
std::string key(int field, int type) { return varint(static_cast<std::uint64_t>(field << 3 | type)); }
std::string integer(int field, std::int64_t value) { return key(field, 0) + varint(static_cast<std::uint64_t>(value)); }
std::string real64(int field, double value) {
  return key(field, 1) + little_endian(std::bit_cast<std::uint64_t>(value));
}
std::string real32(int field, float value) {
  return key(field, 5) + little_endian(std::bit_cast<std::uint32_t>(value));
}
std::string bytes(int field, std::string_view value) {
  return key(field, 2) + varint(value.size()) + std::string(value);
}

// A masked checksum. The TFRecord format masks checksums because the data may contain checksums as well.
std::uint32_t masked_crc(std::string_view data) { return std::rotr(crc32c(data), 15) + 0xa282ead8u; }

std::string tf_record(const std::string& data) {
  const std::string length = little_endian(static_cast<std::uint64_t>(data.size()));
  return length + little_endian(masked_crc(length)) + data + little_endian(masked_crc(data));
}

// Field numbers: tensorflow.Event has wall_time 1, step 2, file_version 3, summary 5; Summary has value 1;
// Summary.Value has tag 1, simple_value 2.
std::string scalar(const std::string& tag, double value) {
  return bytes(1, bytes(1, tag) + real32(2, static_cast<float>(value)));
}
std::string event(double time, std::int64_t step, const std::string& scalars) {
  return tf_record(real64(1, time) + integer(2, step) + bytes(5, scalars));
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> t{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      t[i] = i;
      for (int bit = 0; bit < 8; ++bit) t[i] = t[i] >> 1 ^ (t[i] & 1 ? 0x82f63b78u : 0);
    }
    return t;
  }();
  std::uint32_t crc = 0xffffffffu;
  for (const char c : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(c)) & 255];
  return ~crc;
}

std::string event_file(const Record& record) {
  const double step_seconds = record.steps > 0 ? record.seconds / static_cast<double>(record.steps) : 0;
  std::string file = tf_record(real64(1, 0) + bytes(3, "brain.Event:2"));
  for (const StepValues& step : record.metrics) {
    std::string scalars;
    for (const auto& [name, value] : step.values) scalars += scalar(name, value);
    if (!step.ended.empty() && record.status == Status::diverged)
      scalars += scalar("diverged_at", static_cast<double>(step.step));
    if (!scalars.empty()) file += event(step_seconds * static_cast<double>(step.step), step.step, scalars);
  }
  std::string scalars;
  for (const auto& [name, value] : record.values) scalars += scalar("final/" + name, value);
  if (!scalars.empty()) file += event(record.seconds, record.steps, scalars);
  return file;
}

void write_event_files(const std::filesystem::path& folder, const std::vector<Record>& records, bool again) {
  for (const Record& record : records) {
    const std::filesystem::path file = event_file(folder, record.point);
    if (!again && std::filesystem::exists(file)) continue;
    std::filesystem::create_directories(file.parent_path());
    write_file_atomically(file, event_file(record));
  }
}

}  // namespace plumb::lab
