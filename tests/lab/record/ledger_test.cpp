#include "experiments/lab/record/ledger.h"

#include <fstream>

#include "core/atomic_file.h"
#include "experiments/lab/hash.h"
#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::lab;
using plumb::test::contains;
using plumb::test::error_of;
using plumb::test::TemporaryFolder;

namespace {

LedgerEntry entry(const std::string& key, double loss, const std::string& code = "c0de") {
  return {key,
          code,
          "a machine",
          {.point = {{"gate", "pre"}, {"seed", 1}},
           .values = {{"loss", loss}},
           .metrics = {{.step = 0, .values = {{"loss", 1}}}}}};
}

}  // namespace

TEST_CASE("A ledger keeps all appended entries and finds the last entry of a key and code") {
  const TemporaryFolder folder;
  const auto file = folder / "ledger.jsonl";
  {
    Ledger ledger(file);
    CHECK(ledger.entries().empty());
    ledger.append(entry("a", 1));
    ledger.append(entry("b", 2));
    ledger.append(entry("a", 3));
    ledger.append(entry("a", 4, "other"));
  }
  const Ledger ledger(file);
  REQUIRE(ledger.entries().size() == 4);
  CHECK(ledger.damaged().empty());
  CHECK(ledger.find("a", "c0de")->record.value("loss") == 3);
  CHECK(ledger.find("a", "other")->record.value("loss") == 4);
  CHECK(ledger.find("b", "other") == nullptr);
  CHECK(ledger.codes() == std::vector<std::string>{"c0de", "other"});
  CHECK(to_json(ledger.entries()[1].record) == to_json(entry("b", 2).record));
}

TEST_CASE("A damaged line is reported by its number and does not affect other lines") {
  const TemporaryFolder folder;
  const auto file = folder / "ledger.jsonl";
  {
    Ledger ledger(file);
    for (const char* key : {"a", "b", "c"}) ledger.append(entry(key, 0.5));
  }
  const std::string whole = read_file(file);
  const std::size_t second = whole.find('\n') + 1, third = whole.find('\n', second) + 1;
  // The loop changes every seventh byte of the second line, one byte at a time.
  for (std::size_t at = second; at + 1 < third; at += 7) {
    std::string text = whole;
    text[at] = text[at] == '7' ? '8' : '7';
    { std::ofstream(file, std::ios::binary) << text; }
    Ledger ledger(file);
    INFO(text);
    REQUIRE(ledger.damaged().size() == 1);
    CHECK_THAT(ledger.damaged()[0], contains("ledger.jsonl, line 2: "));
    CHECK(ledger.find("a", "c0de"));
    CHECK(ledger.find("c", "c0de"));
    CHECK_FALSE(ledger.find("b", "c0de"));
  }
  // The loop cuts the file within its last line, as if the process had been killed. The next entry then begins a new
  // line.
  for (std::size_t length = third; length < whole.size(); length += 5) {
    { std::ofstream(file, std::ios::binary) << whole.substr(0, length); }
    Ledger(file).append(entry("d", 1));
    const Ledger ledger(file);
    CHECK(ledger.find("a", "c0de"));
    CHECK(ledger.find("b", "c0de"));
    CHECK(ledger.find("d", "c0de"));
    CHECK(ledger.damaged().size() == (length == third || length + 1 == whole.size() ? 0 : 1));
  }
}

TEST_CASE("A ledger that is a link is not written through") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "target", "mine");
  std::filesystem::create_symlink("target", folder / "ledger.jsonl");
  Ledger ledger(folder / "ledger.jsonl");
  CHECK_THAT(error_of([&] { ledger.append(entry("a", 1)); }), contains("cannot write") && contains("ledger.jsonl"));
  CHECK(read_file(folder / "target") == "mine");
}

TEST_CASE("A full disk leaves the ledger unchanged") {
  const TemporaryFolder folder;
  const auto file = folder / "ledger.jsonl";
  Ledger ledger(file);
  ledger.append(entry("a", 1));
  const std::string before = read_file(file);
  std::string error;
  {
    const test::FileSizeLimit limit(before.size() + 20);
    error = error_of([&] { ledger.append(entry("b", 2)); });
  }
  CHECK_THAT(error, contains("cannot write " + file.string() + ": File too large"));
  CHECK(read_file(file) == before);
  CHECK(ledger.entries().size() == 1);
  ledger.append(entry("b", 2));
  CHECK(Ledger(file).entries().size() == 2);
}

TEST_CASE("A hash depends on every byte and on the order of the parts and on their boundaries") {
  CHECK(hash_of("a").size() == 16);
  CHECK(hash_of("abc") == hash_of("abc"));
  std::vector<std::string> seen;
  for (const std::string& text : {std::string(), std::string("a"), std::string("b"), std::string("ab"),
                                  std::string("ba"), std::string("12345678"), std::string("12345678\0", 9),
                                  std::string("\0", 1), std::string(16, '\0'), std::string(8, '\0')}) {
    CHECK(std::find(seen.begin(), seen.end(), hash_of(text)) == seen.end());
    seen.push_back(hash_of(text));
  }
  Hash one, two;
  one.add("ab"), one.add("c");
  two.add("a"), two.add("bc");
  CHECK(one.text() != two.text());
}
