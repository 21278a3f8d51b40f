#include "experiments/lab/report/tensorboard.h"

#include <bit>
#include <cmath>
#include <map>

#include "core/atomic_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace plumb::lab;
using namespace plumb::test;

namespace {

// Reads a text piece by piece from its beginning.
struct ByteReader {
  std::string_view rest;

  std::string_view take(std::size_t count) {
    REQUIRE(count <= rest.size());
    const std::string_view front = rest.substr(0, count);
    rest.remove_prefix(count);
    return front;
  }
  template <class T>
  T number() {
    T value = 0;
    for (std::size_t i = 0; const char c : take(sizeof(T)))
      value |= static_cast<T>(static_cast<unsigned char>(c)) << 8 * i++;
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= std::uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
  }
};

std::uint32_t unmasked(std::uint32_t crc) { return std::rotl(crc - 0xa282ead8u, 15); }

// The scalars of an event file by step and tag. The first record of the file has the version of the format.
std::map<std::pair<std::uint64_t, std::string>, float> scalars_of(const std::string& file) {
  std::map<std::pair<std::uint64_t, std::string>, float> found;
  ByteReader in{file};
  for (bool first = true; !in.rest.empty(); first = false) {
    const std::string_view length = in.rest.substr(0, 8);
    const auto size = in.number<std::uint64_t>();
    CHECK(unmasked(in.number<std::uint32_t>()) == crc32c(length));
    const std::string_view data = in.take(size);
    CHECK(unmasked(in.number<std::uint32_t>()) == crc32c(data));
    if (first) {
      CHECK(data.substr(9) ==
            "\x1a\x0d"
            "brain.Event:2");
      continue;
    }
    ByteReader event{data};
    CHECK(event.varint() == (1 << 3 | 1));
    event.number<std::uint64_t>();
    CHECK(event.varint() == (2 << 3 | 0));
    const std::uint64_t step = event.varint();
    CHECK(event.varint() == (5 << 3 | 2));
    ByteReader summary{event.take(event.varint())};
    while (!summary.rest.empty()) {
      CHECK(summary.varint() == (1 << 3 | 2));
      ByteReader value{summary.take(summary.varint())};
      CHECK(value.varint() == (1 << 3 | 2));
      const std::string tag(value.take(value.varint()));
      CHECK(value.varint() == (2 << 3 | 5));
      found[{step, tag}] = std::bit_cast<float>(value.number<std::uint32_t>());
      CHECK(value.rest.empty());
    }
    CHECK(event.rest.empty());
  }
  return found;
}

Record logged_record() {
  return {.point = {{"gate", "pre"}, {"depth", std::int64_t{6}}, {"seed", std::int64_t{0}}},
          .steps = 300,
          .seconds = 30,
          .values = {{"train_loss", 0.25}},
          .metrics = {{.step = 0, .values = {{"loss", 2.5}}},
                      {.step = 299, .values = {{"loss", std::nan("")}, {"lr", 0.003}}}}};
}

}  // namespace

TEST_CASE("CRC-32C of the test vectors of RFC 3720") {
  CHECK(crc32c("123456789") == 0xe3069283u);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aau);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43u);
}

TEST_CASE("event files hold the logged values and the final values of a trial") {
  const auto scalars = scalars_of(event_file(logged_record()));
  REQUIRE(scalars.size() == 4);
  CHECK(scalars.at({0, "loss"}) == 2.5f);
  CHECK(std::isnan(scalars.at({299, "loss"})));
  CHECK(scalars.at({299, "lr"}) == 0.003f);
  CHECK(scalars.at({300, "final/train_loss"}) == 0.25f);
}

TEST_CASE("each trial has its own folder of event files that are rewritten only with the flag again") {
  const TemporaryFolder folder;
  const std::vector<Record> records{logged_record()};
  write_event_files(folder.path(), records, false);
  const std::filesystem::path file = folder / "tensorboard" / "pre-depth-6-seed-0" / "events.out.tfevents.0.plumb";
  CHECK(plumb::read_file(file) == event_file(records[0]));
  plumb::write_file_atomically(file, "older");
  write_event_files(folder.path(), records, false);
  CHECK(plumb::read_file(file) == "older");
  write_event_files(folder.path(), records, true);
  CHECK(plumb::read_file(file) == event_file(records[0]));
}
