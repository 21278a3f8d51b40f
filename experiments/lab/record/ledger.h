// The ledger of a study folder, ledger.jsonl: the records of all trials that have ended. Each line is one JSON object
// with a checksum. Lines are appended and synced to the disk, and never changed. All tables and reports are made from
// the ledger.
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
  // A hash of everything that decides the trial's result except the code: experiment, settings, data and point.
  std::string key;
  std::string code;          // hash of the code that computed the trial (build_info.h)
  std::string machine = {};  // the machine that computed the trial, with its instruction set
  Record record;
};

// Reads a ledger and appends entries to it.
class Ledger {
 public:
  static constexpr const char* file_name = "ledger.jsonl";

  // Reads the file if it exists. A line that append() did not write or that was changed is damaged: it is ignored, but
  // stays in the file. Throws Error if the file cannot be read.
  explicit Ledger(std::filesystem::path file);

  const std::filesystem::path& path() const { return file_; }
  const std::vector<LedgerEntry>& entries() const { return entries_; }  // in the order in which they were appended
  // A message for each damaged line: "runs/a/ledger.jsonl, line 7: ...".
  const std::vector<std::string>& damaged() const { return damaged_; }
  // The last entry that code with the hash `code` computed, with this key or of this point; null if there is none.
  const LedgerEntry* find(std::string_view key, std::string_view code) const;
  const LedgerEntry* find(const Point& point, std::string_view code) const;
  std::vector<std::string> codes() const;  // the hashes of the code of all entries, each once

  // Append entries. When they return, the lines are on the disk. Throw Error if the lines cannot be written; the file
  // then is unchanged.
  void append(LedgerEntry entry);
  void append_all(std::vector<LedgerEntry> entries);

 private:
  void keep(LedgerEntry entry);

  std::filesystem::path file_;
  std::vector<LedgerEntry> entries_;
  std::unordered_map<std::string, std::size_t> last_;  // index of the last entry, by key and code
  std::vector<std::string> damaged_;
};

}  // namespace plumb::lab
