// fuzz_readers: gives seeds, kept findings and seeded mutations of them to the readers of bytes from outside.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>

#include "core/atomic_file.h"
#include "core/backend.h"
#include "core/error.h"
#include "tests/fuzz/readers.h"
#include "tests/support/paths.h"

using namespace plumb;
using test::Bytes;
using test::FuzzedReader;

namespace {

constexpr const char* usage =
    "usage: fuzz_readers [READER [FILE..]] [--runs N] [--seed N] [--write-seeds FOLDER]\n"
    "Without a FILE: the seeds and findings (tests/fuzz/findings) of the reader, or of all readers, and N mutations\n"
    "[2000]. A mutation depends only on its number and on --seed [1]. With files: these files. An input that is a\n"
    "finding is written to fuzz-READER-NUMBER in the current folder.\n";

constexpr unsigned longest_run = 20;                         // seconds of one input
constexpr std::int64_t most_memory = std::int64_t{3} << 30;  // bytes of a process after all inputs

struct Settings {
  std::size_t runs = 2000;
  std::uint64_t seed = 1;
};

// A mutation of a corpus file: up to eight changes of bytes, numbers, parts and order.
Bytes mutated(const std::vector<Bytes>& corpus, std::uint64_t seed, std::size_t number) {
  std::mt19937_64 random(seed * 1'000'003 + number);
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random() % n); };
  Bytes bytes = corpus[below(corpus.size())];
  const auto at = [&](std::size_t i) { return bytes.begin() + static_cast<std::ptrdiff_t>(i); };
  for (std::size_t changes = 1 + below(8); changes > 0; --changes) {
    const std::size_t i = below(bytes.size() + 1), n = std::min(1 + below(16), bytes.size() - i);
    switch (below(8)) {
      case 0:
        if (i < bytes.size()) bytes[i] ^= static_cast<std::uint8_t>(1u << below(8));
        break;
      case 1:
        if (i < bytes.size()) bytes[i] = static_cast<std::uint8_t>(random());
        break;
      case 2:
        bytes.erase(at(i), at(i + n));
        break;
      case 3:
        bytes.insert(at(i), 1 + below(16), static_cast<std::uint8_t>(random()));
        break;
      case 4: {  // a part occurs twice
        const Bytes part(at(i), at(i + n));
        bytes.insert(at(below(bytes.size() + 1)), part.begin(), part.end());
        break;
      }
      case 5: {  // a part of another file
        const Bytes& other = corpus[below(corpus.size())];
        const std::size_t from = below(other.size());
        const std::size_t count = std::min(1 + below(64), other.size() - from);
        bytes.insert(at(i), other.data() + from, other.data() + from + count);
        break;
      }
      case 6: {  // a number of 1, 2, 4 or 8 bytes that is an edge of its type, in either order of bytes
        constexpr std::uint64_t edges[] = {0,
                                           1,
                                           0x7f,
                                           0x80,
                                           0xff,
                                           0x7fff,
                                           0xffff,
                                           0x7fffffff,
                                           0x80000000,
                                           0xffffffff,
                                           0x7fffffffffffffff,
                                           0x8000000000000000,
                                           0xffffffffffffffff};
        const std::uint64_t value = edges[below(std::size(edges))];
        const std::size_t size = std::size_t{1} << below(4), swap = below(2);
        for (std::size_t k = 0; k < size && i + k < bytes.size(); ++k)
          bytes[i + k] = static_cast<std::uint8_t>(value >> 8 * (swap ? size - 1 - k : k));
        break;
      }
      default: {  // a number or a mark of a text
        constexpr const char* texts[] = {"-1",
                                         "0",
                                         "1e999",
                                         "18446744073709551616",
                                         "9223372036854775808",
                                         "null",
                                         "\"",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         ":",
                                         "\\u0000",
                                         "\n",
                                         "..",
                                         "/",
                                         "true",
                                         "1e-320"};
        const std::string_view text = texts[below(std::size(texts))];
        bytes.insert(at(i), text.begin(), text.end());
      }
    }
  }
  return bytes;
}

struct Corpus {
  std::vector<Bytes> files;
  std::size_t seeds = 0;  // the first files; the others are findings
};

Corpus corpus_of(const FuzzedReader& reader) {
  Corpus corpus{.files = reader.seeds()};
  corpus.seeds = corpus.files.size();
  std::vector<std::filesystem::path> findings;
  const std::string folder = test::source_dir() + "/tests/fuzz/findings/" + reader.name;
  if (std::filesystem::exists(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder)) findings.push_back(entry.path());
  std::ranges::sort(findings);
  for (const auto& path : findings) {
    const std::string content = read_file(path);
    corpus.files.emplace_back(content.begin(), content.end());
  }
  check(!corpus.files.empty(), "the reader {} has no seeds", reader.name);
  return corpus;
}

// Calls `one` for each number below `count` in a child process, and prints a line for each input that is a finding: the
// child ends by a signal or an exception, runs too long or uses too much memory. Returns the number of findings. After
// a finding, a new child goes on with the next input.
int findings_of(const FuzzedReader& reader, std::size_t count, const std::function<Bytes(std::size_t)>& input) {
  auto* const current = static_cast<std::size_t*>(
      ::mmap(nullptr, sizeof(std::size_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  int findings = 0;
  for (std::size_t first = 0; first < count;) {
    *current = first;
    std::fflush(nullptr);
    const pid_t child = ::fork();
    check(child >= 0, "cannot start a process: {}", std::strerror(errno));
    if (child == 0) {
      for (std::size_t i = first; i < count; ++i) {
        *current = i;
        ::alarm(longest_run);
        try {
          reader.fuzz_one(input(i));
        } catch (const std::exception& e) {
          fmt::print("{}: an exception that is no plumb::Error: {}\n", reader.name, e.what());
          std::fflush(nullptr);
          ::_exit(1);
        }
      }
      ::alarm(0);
      std::exit(0);  // deletes the scratch folder
    }
    int status = 0;
    rusage use{};
    while (::wait4(child, &status, 0, &use) < 0 && errno == EINTR) {
    }
    const bool large = use.ru_maxrss * std::int64_t{1024} > most_memory;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !large) break;
    ++findings;
    const std::string file = fmt::format("fuzz-{}-{}", reader.name, *current);
    const Bytes bytes = input(*current);
    write_file_atomically(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    fmt::print("{}: input {} {}; see {}\n", reader.name, *current,
               WIFSIGNALED(status)        ? fmt::format("ended with signal {}", WTERMSIG(status))
               : WEXITSTATUS(status) != 0 ? fmt::format("ended with status {}", WEXITSTATUS(status))
                                          : fmt::format("or one before it used {} MB", use.ru_maxrss / 1024),
               file);
    first = *current + 1;
  }
  ::munmap(current, sizeof(std::size_t));
  return findings;
}

int run(const std::vector<std::string>& arguments) {
  Settings settings;
  std::vector<std::string> words;
  std::string seeds_folder;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& a = arguments[i];
    if (!a.starts_with("--")) {
      words.push_back(a);
      continue;
    }
    if (i + 1 == arguments.size() || (a != "--runs" && a != "--seed" && a != "--write-seeds"))
      return std::fputs(usage, stderr), 2;
    const std::string& value = arguments[++i];
    if (a == "--runs") settings.runs = std::strtoull(value.c_str(), nullptr, 10);
    if (a == "--seed") settings.seed = std::strtoull(value.c_str(), nullptr, 10);
    if (a == "--write-seeds") seeds_folder = value;
  }
  std::vector<const FuzzedReader*> readers;
  for (const FuzzedReader& reader : test::fuzzed_readers()) readers.push_back(&reader);
  if (!words.empty()) readers = {&test::fuzzed_reader(words.front().c_str())};

  int findings = 0;
  for (const FuzzedReader* const reader : readers) {
    if (words.size() > 1) {
      findings += findings_of(*reader, words.size() - 1, [&](std::size_t i) {
        const std::string content = read_file(words[i + 1]);
        return Bytes(content.begin(), content.end());
      });
      continue;
    }
    const Corpus corpus = corpus_of(*reader);
    const std::vector<Bytes>& files = corpus.files;
    if (!seeds_folder.empty()) {
      std::filesystem::create_directories(seeds_folder);
      for (std::size_t i = 0; i < files.size(); ++i)
        write_file_atomically(std::filesystem::path(seeds_folder) / fmt::format("{}-{}", reader->name, i),
                              {reinterpret_cast<const char*>(files[i].data()), files[i].size()});
      continue;
    }
    findings += findings_of(*reader, files.size() + settings.runs, [&](std::size_t i) {
      return i < files.size() ? files[i] : mutated(files, settings.seed, i - files.size());
    });
    fmt::print("{}: {} seeds, {} findings of earlier runs, {} mutations\n", reader->name, corpus.seeds,
               files.size() - corpus.seeds, settings.runs);
  }
  return findings > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  set_num_threads(1);  // a process with threads cannot fork children that start threads
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    fmt::print(stderr, "error: {}\n", e.what());
    return 2;
  }
}
