#include "experiments/lab/record/ledger.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "core/one_line.h"
#include "experiments/lab/hash.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;

// The start of the last member of a line. The end of the line is: this mark, the hash of the text before the mark, "}
// and a line end.
constexpr std::string_view mark = ",\"sum\":\"";

// The line of an entry: {"key":..,"code":..,"arm":.., ...,"sum":".."}.
std::string line_of(const LedgerEntry& e) {
  const std::string head = Json{{"key", e.key}, {"code", e.code}, {"machine", e.machine}}.dump();
  const std::string object = head.substr(0, head.size() - 1) + "," + to_json(e.record).substr(1);
  const std::string body = object.substr(0, object.size() - 1);
  return fmt::format("{}{}{}\"}}\n", body, mark, hash_of(body));
}

LedgerEntry entry_from(std::string_view line) {
  const std::size_t end = line.rfind(mark);
  check(end != line.npos && line.substr(end + mark.size()) == hash_of(line.substr(0, end)) + "\"}",
        "expected a trial with a valid checksum, got {} bytes whose checksum is missing or wrong", line.size());
  const Json json = Json::parse(line);
  return {json.at("key"), printable(json.at("code").get<std::string>()),
          printable(json.at("machine").get<std::string>()), record_from_json(line)};
}

}  // namespace

Ledger::Ledger(std::filesystem::path file) : file_(std::move(file)) {
  if (!std::filesystem::exists(file_)) return;
  const std::string content = read_file(file_);
  std::string_view text = content;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    try {
      keep(entry_from(text.substr(0, end)));
    } catch (const std::exception& e) {
      damaged_.push_back(fmt::format("{}, line {}: {}", file_.string(), number, e.what()));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

const LedgerEntry* Ledger::find(std::string_view key, std::string_view code) const {
  const auto found = last_.find(fmt::format("{}/{}", key, code));
  return found == last_.end() ? nullptr : &entries_[found->second];
}

void Ledger::keep(LedgerEntry entry) {
  last_[fmt::format("{}/{}", entry.key, entry.code)] = entries_.size();
  entries_.push_back(std::move(entry));
}

const LedgerEntry* Ledger::find(const Point& point, std::string_view code) const {
  const auto found = std::find_if(entries_.rbegin(), entries_.rend(),
                                  [&](const LedgerEntry& e) { return e.code == code && e.record.point == point; });
  return found == entries_.rend() ? nullptr : &*found;
}

std::vector<std::string> Ledger::codes() const {
  std::vector<std::string> codes;
  for (const LedgerEntry& e : entries_)
    if (std::ranges::find(codes, e.code) == codes.end()) codes.push_back(e.code);
  return codes;
}

void Ledger::append(LedgerEntry entry) { append_all({std::move(entry)}); }

void Ledger::append_all(std::vector<LedgerEntry> entries) {
  const auto reason = [] { return std::string(std::strerror(errno)); };
  const int file = ::open(file_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  check(file >= 0, "cannot write {}: {}", file_.string(), reason());
  std::string error;
  const off_t end = ::lseek(file, 0, SEEK_END);
  char last = '\n';
  if (end > 0 && ::pread(file, &last, 1, end - 1) != 1) error = reason();
  std::string lines = last == '\n' ? "" : "\n";  // ends a line that a killed process has left incomplete
  for (const LedgerEntry& e : entries) lines += line_of(e);
  std::string_view rest = lines;
  while (error.empty() && !rest.empty()) {
    const ssize_t written = ::write(file, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) error = reason();
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
  if (error.empty() && ::fsync(file) != 0) error = reason();
  if (!error.empty() && ::ftruncate(file, end) != 0) error += "; the file now ends with an incomplete line";
  ::close(file);
  if (end == 0 && error.empty()) sync_folder_of(file_);  // the file is new
  check(error.empty(), "cannot write {}: {}", file_.string(), error);
  for (LedgerEntry& e : entries) {
    e.record = as_read(std::move(e.record));
    keep(std::move(e));
  }
}

}  // namespace plumb::lab
