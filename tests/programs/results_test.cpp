// Tests of kept ledgers, and of the document that is made from the ledgers in the repository.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "core/atomic_file.h"
#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;
namespace fs = std::filesystem;

TEST_CASE("report writes the tables of a kept ledger with their provenance and the note of the ledger") {
  const TemporaryFolder folder;
  const Finished made = run(folder.path(), program("norm_placement") +
                                               " --gates pre,post --depths 12 --warmups 0,60 --steps 100 --batch 16 "
                                               "--dim 16 --lrs 0.003 --seeds 0,1 --no-progress --out runs/a");
  INFO(made.err);
  REQUIRE(made.status == 0);
  REQUIRE(run(folder.path(), program("report") + " runs/a --keep kept").status == 0);
  const std::string ledger = slurp(folder / "kept/a.jsonl"), description = slurp(folder / "kept/a.json");
  CHECK(std::ranges::count(ledger, '\n') == 8);
  CHECK_THAT(ledger, !contains("grad_norm") && contains("train_loss"));
  CHECK_THAT(description, contains("\"program\": \"norm_placement\"") && !contains(folder.path().string()) &&
                              contains("\"rule\": \"bets\"") && contains("\"claims\": ["));
  const std::string tables = slurp(folder / "runs/a/results.md");
  CHECK_THAT(tables, contains("Where should the norm be") && contains("| claim | source | measure | verdict | why |"));
  fs::remove_all(folder / "runs");

  const auto document = [&](const std::string& files) {
    const Finished f = run(folder.path(), program("report") + " " + files + " --markdown all.md");
    INFO(f.err);
    CHECK(f.status == 0);
    return slurp(folder / "all.md");
  };
  const std::string plain = document("kept/a.jsonl");
  CHECK(plain.starts_with("## a\n\n    norm_placement --gates pre,post"));
  CHECK_THAT(plain, contains("glyphs, 12800 training images") && contains(" 8 trials, 0.0 hours of "));
  CHECK(plain.ends_with(tables));
  write_file_atomically(folder / "kept/a.notes.md", "Looked into: nothing.\n");
  CHECK(document("kept/a.jsonl").ends_with(tables + "\nLooked into: nothing.\n"));
  REQUIRE(run(folder.path(), program("report") + " kept/a.jsonl --markdown again.md").out.empty());

  // With a text, each ledger gets a page, and the words in braces get answers.
  const auto answer_to = [&](const std::string& words) {
    write_file_atomically(folder / "kept/answers.md", "# Results\n\nA " + words + " Z\n");
    const std::string all = document("kept/answers.md kept/a.jsonl");
    return all.substr(all.find("A ") + 2, all.find(" Z\n") - all.find("A ") - 2);
  };
  for (const char* cell : {"| pre | 12 | 0 | 0.003 | ", "| post | 12 | 60 | 0.003 | "}) {
    std::istringstream words(tables.substr(tables.find(cell)));
    std::string text;  // | gate | depth | warmup | lr | train_loss | val_loss | val_accuracy | n |
    std::vector<std::string> cells;
    while (std::getline(words, text, '|')) cells.push_back(text);
    const std::string arm = "a" + cells.at(1) + "warmup" + cells.at(3) + "12}";
    CHECK(" " + answer_to("{val_loss " + arm) + " " == cells.at(6));
    CHECK(" " + answer_to("{val_accuracy " + arm) + " " == cells.at(7));
    CHECK(answer_to("{failed " + arm) == "0 of 2");
    CHECK(answer_to("{rates " + arm) == "0.003");
  }
  const std::string methods = answer_to("{methods a 12 here}"), best = answer_to("{best a 12}");
  CHECK_THAT(methods, contains("\n| pre warmup 0 here | ") && contains(" | 0 of 2 | 0.003 |\n"));
  const std::string first = best.substr(0, best.find(','));
  CHECK_THAT(methods, contains("---: |\n| " + first + " here | " + best.substr(first.size() + 2, 4)));
  CHECK(answer_to("{decided}") == "No claim is decided so far.\n");
  CHECK_THAT(answer_to("{studies}"),
             contains("- [a](kept/a.md): 0 of 2 comparisons decided; 4 arms, mean accuracies "));
  const std::string answered = document("kept/answers.md kept/a.jsonl");
  CHECK(answered.starts_with("# Results\n\nA "));
  CHECK_THAT(answered, contains("\n\n## Trials\n\n") && contains("\n| [a](kept/a.md) | 8 | 0.0 | ") &&
                           contains("\n| all | 8 | 0.0 |"));
  const std::string page = slurp(folder / "kept/a.md");
  CHECK(page.starts_with("# a\n\n    norm_placement --gates pre,post"));
  CHECK_THAT(page, contains("![a](a.svg)") && contains(tables));
  CHECK(page.ends_with("\nLooked into: nothing.\n"));
  CHECK(slurp(folder / "kept/a.svg").starts_with("<svg "));
  // A claim that run.json does not have was added later.
  const std::string planned = slurp(folder / "kept/a.json"),
                    claim = "depth 12: post-norm trains better with a warm-up than without";
  std::string later = planned;
  for (auto found = later.find(claim); found != later.npos; found = later.find(claim)) later[found] = 'D';
  write_file_atomically(folder / "kept/a.json", later);
  CHECK_THAT((document("kept/answers.md kept/a.jsonl"), slurp(folder / "kept/a.md")), contains("undecided (post hoc)"));
  write_file_atomically(folder / "kept/a.json", planned);
  for (const auto& [words, error] :
       {std::pair("{best b 12}", "no ledger has the name 'b'"),
        {"{best a 13}", "a has no trials at depth 13"},
        {"{best a deep}", "expected a depth, got 'deep'"},
        {"{failed a rezero warmup 0 12}", "a has no trials of rezero warmup 0 at depth 12"},
        {"{val_acuracy a pre warmup 0 12}", "the trials of a have not measured val_acuracy"},
        {"{methods a 12; a 12}", "the table has two rows pre warmup 60 at depth 12"},
        {"{methods a 12; time a}", "a has no trials of pre at depth 12"},
        {"{better}", "expected words such as 'val_accuracy LEDGER METHOD DEPTH', got"},
        {"{decided", "the text has a '{' without a '}'"}}) {
    write_file_atomically(folder / "kept/answers.md", words);
    const Finished f = run(folder.path(), program("report") + " kept/answers.md kept/a.jsonl --markdown x.md");
    CHECK(f.status == 1);
    CHECK_THAT(f.err, contains(error));
  }

  const auto refused = [&](const std::string& words, const std::string& text) {
    const Finished f = run(folder.path(), program("report") + " " + words);
    CHECK(f.status == 2);
    CHECK_THAT(f.err, contains(text));
  };
  refused("kept/a.jsonl", "kept/a.jsonl is part of a document; give --markdown FILE");
  refused("kept/answers.md", "kept/answers.md is part of a document");
  refused("kept/b.jsonl --markdown x.md", "kept/b.jsonl: no such file");
  refused("kept/answers.md --markdown x.md", "a document with pages needs kept ledgers NAME.jsonl");
  fs::create_directory(folder / "other");
  for (const char* ending : {".json", ".jsonl"}) fs::copy(folder / ("kept/a" + std::string(ending)), folder / "other");
  refused("kept/answers.md kept/a.jsonl other/a.jsonl --markdown x.md", "must be in one folder");
  write_file_atomically(folder / "kept/b.jsonl", "");
  refused("kept/b.jsonl --markdown x.md", "has no description kept/b.json");
  refused("kept/a.jsonl --keep elsewhere --markdown x.md", "--keep expects run folders, got kept/a.jsonl");
  write_file_atomically(folder / "kept/a.jsonl", "nonsense\n");
  const Finished damaged = run(folder.path(), program("report") + " kept/a.jsonl --markdown x.md");
  CHECK_THAT(damaged.err, contains("ledger.jsonl, line 1"));
}

TEST_CASE("docs/results.md and its pages equal those made of the ledgers, and docs/results.md is short") {
  const fs::path source = plumb::test::source_dir();
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(source / "docs/results"))
    if (entry.path().extension() == ".jsonl") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  REQUIRE_FALSE(names.empty());
  std::string words;
  for (const std::string& name : names) words += " docs/results/" + name + ".jsonl";
  const TemporaryFolder folder;
  fs::create_directory(folder / "docs");
  fs::copy(source / "docs/results", folder / "docs/results");
  for (const std::string& name : names) fs::remove(folder / ("docs/results/" + name + ".md"));
  const Finished f =
      run(folder.path(), program("report") + " docs/results/answers.md" + words + " --markdown docs/results.md");
  INFO(f.err);
  REQUIRE(f.status == 0);
  INFO(
      "to update them, run: build/release/bin/report docs/results/answers.md docs/results/*.jsonl --markdown "
      "docs/results.md");
  const auto same = [&](const std::string& file) { return slurp(folder / file) == slurp(source / file); };
  CHECK(same("docs/results.md"));
  for (const std::string& name : names) {
    INFO(name);
    CHECK((same("docs/results/" + name + ".md") && same("docs/results/" + name + ".svg")));
  }
  const std::string text = slurp(source / "docs/results.md");
  CHECK_THAT(text, contains("\n| **better** | depth 48: layerscale against pre | 12:0 | -1.2 (") &&
                       contains("\n| **better** | depth 48: skipinit against pre | 12:0 | -1 ("));
  std::istringstream cells(text);
  static const std::regex word(R"(\S*\w\S*)");  // not the bars of tables
  CHECK(std::distance(std::sregex_iterator(text.begin(), text.end(), word), {}) <= 2000);
  for (std::string cell; std::getline(cells, cell, '|');)
    if (cell.starts_with(' ') && cell.ends_with(' ')) CHECK(cell.size() <= 200);
}
