// ledger.jsonl: the trials of a run folder that have ended. One JSON object a line, appended, with a checksum, and
// synced; nothing in it is ever changed. All tables and reports are made from it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "experiments/lab/record/record.h"

namespace plumb::lab {

struct LedgerEntry {
  std::string key;   // hash of all that decides the trial's result but the code: experiment, settings, data, point
  std::string code;  // hash of the code that computed it (build_info.h)
  std::string machine = {};  // that it was computed on, with the instruction set
  Record record;
};

class Ledger {
 public:
  static constexpr const char* file_name = "ledger.jsonl";

  // Reads the file, if there is one. A line that is not what append() wrote is damaged: it stays where it is and counts
  // for nothing.
  explicit Ledger(std::filesystem::path file);

  const std::filesystem::path& path() const { return file_; }
  const std::vector<LedgerEntry>& entries() const { return entries_; }  // in the order in which they were appended
  const std::vector<std::string>& damaged() const { return damaged_; }  // "runs/a/ledger.jsonl, line 7: ..."
  const LedgerEntry* find(std::string_view key, std::string_view code) const;  // the last one; null if there is none
  const LedgerEntry* find(const Point& point, std::string_view code) const;    // the same, whatever its key
  std::vector<std::string> codes() const;                                      // each once

  // The lines are on the disk when this returns. Throws Error if they cannot be written; the file then is as it was.
  void append(LedgerEntry entry);
  void append_all(std::vector<LedgerEntry> entries);

 private:
  void keep(LedgerEntry entry);

  std::filesystem::path file_;
  std::vector<LedgerEntry> entries_;
  std::unordered_map<std::string, std::size_t> last_;  // by key and code: which entry
  std::vector<std::string> damaged_;
};

}  // namespace plumb::lab
