#include "experiments/report/report.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "core/atomic_file.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/run/stored_run.h"

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;

// Copies the ledger of `folder` to FOLDER/NAME.jsonl and its description to FOLDER/NAME.json, where FOLDER is `to`.
// Leaves out the values of single steps and the attachments of figures.
void keep(const fs::path& folder, StudyDescription run, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to, error);
  check(!error, "cannot create {}: {}", to.string(), error.message());
  const fs::path name = folder.filename().empty() ? folder.parent_path().filename() : folder.filename();
  const fs::path ledger = to / (name.string() + ".jsonl");
  const Ledger all(folder / Ledger::file_name);
  std::vector<LedgerEntry> entries;
  for (const LedgerEntry& e : all.entries()) {
    if (all.find(e.key, e.code) != &e) continue;
    entries.push_back(e);
    entries.back().record.metrics.clear(), entries.back().record.attachments.clear();
  }
  run.program = fs::path(run.program).filename().string();
  fs::remove(ledger, error);
  Ledger(ledger).append_all(std::move(entries));
  write_file_atomically(description_of(ledger), run.text());
}

// The command, the data, the machine and the version of a study, as Markdown.
std::string provenance(const StudyDescription& run, const Ledger& ledger) {
  double seconds = 0;
  for (const LedgerEntry& e : ledger.entries()) seconds += e.record.seconds;
  return fmt::format(
      "    {}\n\n{}. {} trials, {:.1f} hours of training steps in total, on {}; {} ({}), started {}.\n\n",
      run.command_line, run.facts.data.text, ledger.entries().size(), seconds / 3600, run.facts.machine.device,
      run.version, run.commit, run.started.substr(0, 10));
}

// The tables of a kept ledger, as Markdown. The program of the study writes the tables into a temporary folder.
std::string markdown_of(const fs::path& ledger, const StudyDescription& run, const std::vector<std::string>& words) {
  std::string pattern = (fs::temp_directory_path() / "plumb-report-XXXXXX").string();
  check(::mkdtemp(pattern.data()), "cannot create a folder like {}: {}", pattern, std::strerror(errno));
  const fs::path folder = pattern;
  const auto gone = [&](int*) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  };
  int nothing = 0;
  const std::unique_ptr<int, decltype(gone)> afterwards(&nothing, gone);
  fs::copy_file(ledger, folder / Ledger::file_name);
  fs::copy_file(description_of(ledger), folder / "run.json");
  check(run_program(folder, run, words, Tables::not_printed) == 0, "{}: its program failed, so there are no tables",
        ledger.string());
  const fs::path found = fs::path(ledger).replace_extension(".md");
  return fmt::format("## {}\n\n{}{}{}", ledger.stem().string(), provenance(run, Ledger(ledger)),
                     read_file(folder / "results.md"), fs::exists(found) ? "\n" + read_file(found) : "");
}

}  // namespace
}  // namespace plumb::lab

int plumb::lab::report(int argc, const char* const* argv) {
  return exit_status([&] {
    std::vector<std::string> folders;
    std::string markdown_file, kept, accept_code;
    Cli cli(
        "report",
        "Writes the tables and reports of studies again, from their ledgers. Kept ledgers make a Markdown document: "
        "each NAME.jsonl becomes a section, which ends with the text of NAME.md; the text of a FILE.md is inserted "
        "at its position among the arguments.");
    cli.words("DIR..", &folders);
    cli.option("--markdown", &markdown_file, "Also write the tables to this file as Markdown").value_name("FILE");
    cli.option("--keep", &kept,
               "Copy ledger and settings of each DIR to this folder as NAME.jsonl and NAME.json, without the values of "
               "steps")
        .value_name("FOLDER");
    declare_accept_code(cli, accept_code);
    cli.example("runs/whole --markdown table.md");
    cli.example("runs/layerscale_init --keep docs/results");
    cli.example("docs/results/about.md docs/results/*.jsonl --markdown docs/results.md");
    if (cli.parse(argc, argv) == Action::done) return 0;
    usage_check(!folders.empty(), "expected {} DIR.. [--markdown FILE]; see --help", cli.program());
    std::vector<std::optional<StudyDescription>> runs;  // an empty entry is a Markdown file
    for (const std::string& folder : folders) {
      const bool text = fs::path(folder).extension() == ".md";
      usage_check(!(text || is_kept(folder)) || !markdown_file.empty(),
                  "{} is part of a document; give --markdown FILE", folder);
      usage_check(!(text || is_kept(folder)) || kept.empty(), "--keep expects run folders, got {}", folder);
      runs.push_back(text ? std::nullopt : std::optional(described(folder)));
    }
    std::string markdown;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const fs::path folder = folders[i];
      if (i > 0) markdown += "\n";
      if (!runs[i]) {
        markdown += read_file(folder);
      } else if (is_kept(folder)) {
        markdown += markdown_of(folder, *runs[i], rebuild_words(accept_code));
      } else {
        if (const int status = run_program(folder, *runs[i], rebuild_words(accept_code)); status != 0) return status;
        if (!kept.empty()) keep(folder, *runs[i], kept);
        if (runs.size() > 1) markdown += fmt::format("## {}\n\n", folder.string());
        markdown += read_file(folder / "results.md");
      }
    }
    if (!markdown_file.empty()) write_file_atomically(markdown_file, markdown);
    return 0;
  });
}
