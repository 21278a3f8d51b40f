// report DIR..: writes the tables and reports of studies again, from their ledgers. With --markdown FILE the tables are
// also written as Markdown.
#include "experiments/programs.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "core/atomic_file.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/plot/text.h"
#include "experiments/lab/plot/text_table.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/run/files.h"
#include "experiments/lab/run/stored_run.h"
#include "experiments/report/results_page.h"
#include "experiments/studies.h"

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
    entries.back().record.weights_saved.reset();  // the weights stay in `folder`
  }
  run.program = fs::path(run.program).filename().string();
  fs::remove(ledger, error);
  Ledger(ledger).append_all(std::move(entries));
  write_file_atomically(description_of(ledger), run.text());
}

// Where the trials of a kept ledger come from. A ledger can have trials of other code than its run.json names, if
// --accept-code took them over.
struct Provenance {
  std::size_t trials = 0;
  double seconds = 0;  // of training steps
  std::string machine = {}, commit = {}, started = {};

  Provenance(const StudyDescription& run, const Ledger& ledger)
      : trials(ledger.entries().size()),
        machine(run.facts.machine.device),
        commit(run.commit),
        started(run.started.substr(0, 10)) {
    std::size_t others = 0;
    for (const LedgerEntry& e : ledger.entries()) {
      seconds += e.record.seconds;
      if (e.code != run.facts.code) ++others;
    }
    if (others > 0) commit += fmt::format("; {} trials of other code", others);
  }
};

// The command, the data, the machine and the version of a study, as Markdown.
std::string provenance(const StudyDescription& run, const Ledger& ledger) {
  const Provenance p(run, ledger);
  return fmt::format(
      "    {}\n\n{}\n\n", run.command_line,
      escape_markdown(fmt::format("{}. {} trials, {:.1f} hours of training steps in total, on {}; {} ({}), started {}.",
                                  run.facts.data.text, p.trials, p.seconds / 3600, p.machine, run.version, p.commit,
                                  p.started)));
}

// A table of several kept ledgers, as Markdown. Each ledger has the link to its page.
std::string table_of_trials(const std::vector<std::pair<std::string, Provenance>>& ledgers) {
  using enum TextTable::Align;
  TextTable table;
  table.column("page", left);
  for (const char* column : {"trials", "hours of training steps"}) table.column(column, right);
  for (const char* column : {"commit", "started"}) table.column(column, left);
  std::size_t trials = 0;
  double seconds = 0;
  for (const auto& [page, p] : ledgers) {
    trials += p.trials, seconds += p.seconds;
    table.row({page, std::to_string(p.trials), fmt::format("{:.1f}", p.seconds / 3600), escape_markdown(p.commit),
               escape_markdown(p.started)});
  }
  table.row({"all", std::to_string(trials), fmt::format("{:.1f}", seconds / 3600), "", ""});
  return "## Trials\n\nThe hours of trials that trained at the same time (`--jobs`) are added. Each page names its "
         "machine.\n\n" +
         table.markdown();
}

// The tables of a kept ledger, as Markdown, and a chart: the overview, a ranking, or the chart of a search.
struct TablesAndChart {
  std::string markdown, svg;
};

// The chart that stands for a study. `figures` is the folder of its charts.
std::string chart_of(const fs::path& figures) {
  std::vector<fs::path> found;
  if (fs::exists(figures))
    for (const auto& entry : fs::directory_iterator(figures)) found.push_back(entry.path());
  std::ranges::sort(found);
  for (const char* name : {"overview", "ranking", "share-by-depth", "edges"})
    for (const fs::path& file : found)
      if (file.extension() == ".svg" && file.filename().string().starts_with(name)) return read_file(file);
  return "";
}

// The study writes the tables into a temporary folder, which `read` gets.
TablesAndChart tables_of(const fs::path& ledger, const StudyDescription& run, const std::string& program,
                         const std::vector<std::string>& words, const std::function<void(const fs::path&)>& read) {
  std::string pattern = (fs::temp_directory_path() / "plumb-report-XXXXXX").string();
  const bool made = ::mkdtemp(pattern.data());
  check(made, "cannot create a folder like {}: {}", pattern, std::strerror(errno));
  const fs::path folder = pattern;
  const auto gone = [&](int*) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  };
  int nothing = 0;
  const std::unique_ptr<int, decltype(gone)> afterwards(&nothing, gone);
  fs::copy_file(ledger, folder / Ledger::file_name);
  fs::copy_file(description_of(ledger), folder / "run.json");
  check(call_study(ledger, folder, run, program, words, Tables::not_printed) == 0,
        "{}: its study failed, so there are no tables", ledger.string());
  read(folder);
  return {read_file(folder / "results.md"), chart_of(folder / "figures")};
}

// The text below the tables of a kept ledger NAME.jsonl: the content of NAME.notes.md, if there is such a file.
std::string notes_of(const fs::path& ledger) {
  const fs::path notes = fs::path(ledger).replace_extension(".notes.md");
  check_plain(notes);
  return fs::exists(notes) ? "\n" + read_file(notes) : "";
}

// Writes the page of a kept ledger, NAME.md and NAME.svg beside NAME.jsonl.
void write_page(const fs::path& ledger, const StudyDescription& run, const TablesAndChart& tables) {
  const std::string name = ledger.stem().string();
  if (!tables.svg.empty()) write_file_atomically(fs::path(ledger).replace_extension(".svg"), tables.svg);
  write_file_atomically(fs::path(ledger).replace_extension(".md"),
                        fmt::format("# {}\n\n{}{}{}{}", name, provenance(run, Ledger(ledger)),
                                    tables.svg.empty() ? "" : fmt::format("![{0}]({0}.svg)\n\n", name), tables.markdown,
                                    notes_of(ledger)));
}

// Throws UsageError unless the arguments of a document with pages are texts, and kept ledgers of one folder.
void check_document(const std::vector<std::string>& arguments) {
  std::optional<fs::path> folder;
  for (const fs::path argument : arguments) {
    if (argument.extension() == ".md") continue;
    usage_check(is_kept(argument), "{} is a run folder, which has no page in a document; copy it with --keep first",
                argument.string());
    const fs::path parent = fs::absolute(argument).parent_path();
    usage_check(!folder || *folder == parent,
                "the ledgers of a document with pages must be in one folder; got {} and {}",
                folder.value_or("").string(), parent.string());
    folder = parent;
  }
  usage_check(folder.has_value(), "a document with pages needs kept ledgers NAME.jsonl");
}

}  // namespace
}  // namespace plumb::lab

int plumb::lab::report(int argc, const char* const* argv) {
  return exit_status([&] {
    std::vector<std::string> folders;
    std::string markdown_file, kept, accept_code, program;
    Cli cli(
        "report",
        "Writes the tables and reports of studies again, from their ledgers. Kept ledgers make a Markdown document: "
        "each NAME.jsonl becomes a section, which ends with the text of NAME.notes.md. With a FILE.md among the "
        "arguments, the document is its text, with answers for the words in braces and a table of trials and "
        "hours at the end, and each NAME.jsonl gets a page NAME.md and a chart NAME.svg beside it.");
    cli.words("DIR..", &folders);
    cli.option("--markdown", &markdown_file, "Also write the tables to this file as Markdown").path("FILE");
    cli.option("--keep", &kept,
               "Copy ledger and settings of each DIR to this folder as NAME.jsonl and NAME.json, without the values of "
               "steps")
        .path("FOLDER");
    declare_accept_code(cli, accept_code);
    declare_program(cli, program);
    cli.examples({"runs/whole --markdown table.md", "runs/layerscale_init --keep docs/results",
                  "docs/results/presets/*.jsonl --markdown presets.md",
                  "docs/results/answers.md docs/results/*.jsonl --markdown docs/results.md"});
    if (const std::optional<int> status = cli.parse(argc, argv)) return *status;
    usage_check(!folders.empty(), "expected {} DIR.. [--markdown FILE]; see --help", cli.program());
    const std::vector<std::string> words = rebuild_words(accept_code);
    std::vector<std::optional<StudyDescription>> runs;  // an empty entry is a Markdown file
    for (const std::string& folder : folders) {
      const bool text = fs::path(folder).extension() == ".md";
      usage_check(!(text || is_kept(folder)) || !markdown_file.empty(),
                  "{} is part of a document; give --markdown FILE", folder);
      usage_check(!(text || is_kept(folder)) || kept.empty(), "--keep expects run folders, got {}", folder);
      runs.push_back(text ? std::nullopt : std::optional(described(folder)));
      if (!text) check_known(folder, *runs.back(), program, words);
    }
    const bool pages = std::ranges::any_of(runs, [](const auto& run) { return !run; });
    if (pages) check_document(folders);
    std::string markdown, text_of_page;
    std::vector<KeptStudy> studies;  // of a document with pages
    std::vector<std::pair<std::string, Provenance>> ledgers;
    const auto page_of = [&](const fs::path& ledger) {  // the link to the page of a ledger
      return fs::relative(fs::absolute(fs::path(ledger).replace_extension(".md")),
                          fs::absolute(fs::path(markdown_file)).parent_path())
          .string();
    };
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const fs::path folder = folders[i];
      if (!runs[i]) {
        text_of_page += (text_of_page.empty() ? "" : "\n") + read_file(folder);
        continue;
      }
      if (!markdown.empty()) markdown += "\n";
      if (is_kept(folder)) {
        const auto read_answers = [&](const fs::path& made) {
          if (pages) studies.emplace_back(folder, *runs[i], made, page_of(folder));
        };
        const TablesAndChart tables = tables_of(folder, *runs[i], program, words, read_answers);
        if (pages) {
          write_page(folder, *runs[i], tables);
          ledgers.emplace_back(fmt::format("[{}]({})", folder.stem().string(), page_of(folder)),
                               Provenance(*runs[i], Ledger(folder)));
        } else {
          markdown += fmt::format("## {}\n\n{}{}{}", folder.stem().string(), provenance(*runs[i], Ledger(folder)),
                                  tables.markdown, notes_of(folder));
        }
      } else {
        if (const int status = call_study(folder, folder, *runs[i], program, words); status != 0) return status;
        if (!kept.empty()) keep(folder, *runs[i], kept);
        if (runs.size() > 1) markdown += fmt::format("## {}\n\n", folder.string());
        markdown += read_file(folder / "results.md");
      }
    }
    if (pages) markdown = with_answers(text_of_page, studies) + "\n" + table_of_trials(ledgers);
    if (!markdown_file.empty()) write_output(markdown_file, markdown);
    return 0;
  });
}
