// The ledger of a study folder, ledger.jsonl: the records of all trials that have ended. Each line is one JSON object
// with a checksum. Lines are appended, written to the disk at once, and never changed. All tables and reports are made
// from the ledger.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "experiments/lab/record/record.h"

namespace plumb::lab {

// One line of the ledger.
struct LedgerEntry {
  // A hash of experiment, settings, data and point: the inputs that decide the trial's result together with the code.
  std::string key;
  std::string code;          // hash of the code that computed the trial (build_info.h)
  std::string machine = {};  // the machine that computed the trial, with the instruction set
  Record record;
};

// Reads a ledger and appends entries to it.
class Ledger {
 public:
  static constexpr const char* file_name = "ledger.jsonl";

  // Reads the file if the file exists. A line counts as damaged if append() did not write it or if it was changed
  // later. Damaged lines are ignored, but stay in the file. Throws Error if the file cannot be read.
  explicit Ledger(std::filesystem::path file);

  const std::filesystem::path& path() const { return file_; }           // the path of the file
  const std::vector<LedgerEntry>& entries() const { return entries_; }  // in the order in which they were appended
  // One message for each damaged line, such as "runs/a/ledger.jsonl, line 7: ...".
  const std::vector<std::string>& damaged() const { return damaged_; }
  // The last entry with this key or this point that was computed by code with the hash `code`. The result is null if
  // the ledger has no such entry.
  const LedgerEntry* find(std::string_view key, std::string_view code) const;
  const LedgerEntry* find(const Point& point, std::string_view code) const;
  std::vector<std::string> codes() const;  // the different code hashes of all entries

  // Both functions append entries. When a call returns, the lines are on the disk. Both functions throw Error if the
  // lines cannot be written or if the file is a link; the file is then unchanged.
  void append(LedgerEntry entry);
  void append_all(std::vector<LedgerEntry> entries);

 private:
  void keep(LedgerEntry entry);

  std::filesystem::path file_;
  std::vector<LedgerEntry> entries_;
  std::unordered_map<std::string, std::size_t> last_;  // index of the last entry with a key and a code hash
  std::vector<std::string> damaged_;
};

}  // namespace plumb::lab
