// Tests of kept ledgers, and of the document that is made from the ledgers in the repository.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/atomic_file.h"
#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;
namespace fs = std::filesystem;

TEST_CASE("report writes the tables of a kept ledger with their provenance and the note of the ledger") {
  const TemporaryFolder folder;
  const Finished made = run(folder.path(), program("norm_placement") +
                                               " --gates pre,post --depths 12 --warmups 0,60 --steps 60 --batch 4 "
                                               "--dim 8 --seeds 0,1 --no-progress --out runs/a");
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

  // With a text, each ledger gets a page, and the questions in the text get verdicts.
  const std::string head = "| ledger | claim | what flips it |\n| --- | --- | --- |\n",
                    claim = "depth 12: post-norm trains better with a warm-up than without";
  write_file_atomically(
      folder / "kept/questions.md",
      "# Results\n\n" + head + "| b | deeper | time |\n| – | wider | |\n| a | " + claim + " | luck |\n\nThe end.\n");
  const std::string answered = document("kept/questions.md kept/a.jsonl");
  CHECK(answered.starts_with("# Results\n\n| verdict | question | effect | failed seeds | what flips it | page |\n"));
  CHECK_THAT(answered, contains("\n\nThe end.\n\n## Trials\n\n") && contains("\n| [a](kept/a.md) | 8 | 0.0 | ") &&
                           contains("\n| all | 8 | 0.0 |"));
  const auto at = [&](const std::string& words) { return answered.find(words); };
  CHECK(at("| **undecided** | " + claim + " (Vaswani et al. 2017; Liu et al. 2020, Admin) | train_loss: ") <
        answered.size());
  CHECK(at("| luck | [a](kept/a.md) |\n| **not run under this protocol** | deeper |  |  | time | b |\n") <
        answered.size());
  CHECK(at("| **not run under this protocol** |") < at("| **cannot be asked at this size** | wider |"));
  const std::string page = slurp(folder / "kept/a.md");
  CHECK(page.starts_with("# a\n\n    norm_placement --gates pre,post"));
  CHECK_THAT(page, contains("![a](a.svg)") && contains(tables));
  CHECK(page.ends_with("\nLooked into: nothing.\n"));
  CHECK(slurp(folder / "kept/a.svg").starts_with("<svg "));
  // A claim that run.json does not have was added later.
  const std::string planned = slurp(folder / "kept/a.json");
  std::string later = planned;
  for (auto found = later.find(claim); found != later.npos; found = later.find(claim)) later[found] = 'D';
  write_file_atomically(folder / "kept/a.json", later);
  CHECK_THAT(document("kept/questions.md kept/a.jsonl"), contains("| **post hoc: undecided** | " + claim));
  write_file_atomically(folder / "kept/a.json", planned);
  write_file_atomically(folder / "kept/questions.md", head + "| a | two cells |\n");
  const Finished cells = run(folder.path(), program("report") + " kept/questions.md kept/a.jsonl --markdown x.md");
  CHECK(cells.status == 1);
  CHECK_THAT(cells.err, contains("expected the cells ledger, claim and what flips it, got: | a | two cells |"));
  write_file_atomically(folder / "kept/questions.md", head + "| a | no such claim | luck |\n");
  const Finished unknown = run(folder.path(), program("report") + " kept/questions.md kept/a.jsonl --markdown x.md");
  CHECK(unknown.status == 1);
  CHECK_THAT(unknown.err, contains("a has no claim 'no such claim'; its results.md lists its claims"));

  const auto refused = [&](const std::string& words, const std::string& text) {
    const Finished f = run(folder.path(), program("report") + " " + words);
    CHECK(f.status == 2);
    CHECK_THAT(f.err, contains(text));
  };
  refused("kept/a.jsonl", "kept/a.jsonl is part of a document; give --markdown FILE");
  refused("kept/questions.md", "kept/questions.md is part of a document");
  refused("kept/b.jsonl --markdown x.md", "kept/b.jsonl: no such file");
  refused("kept/questions.md --markdown x.md", "a document with pages needs kept ledgers NAME.jsonl");
  fs::create_directory(folder / "other");
  for (const char* ending : {".json", ".jsonl"}) fs::copy(folder / ("kept/a" + std::string(ending)), folder / "other");
  refused("kept/questions.md kept/a.jsonl other/a.jsonl --markdown x.md", "must be in one folder");
  write_file_atomically(folder / "kept/b.jsonl", "");
  refused("kept/b.jsonl --markdown x.md", "has no description kept/b.json");
  refused("kept/a.jsonl --keep elsewhere --markdown x.md", "--keep expects run folders, got kept/a.jsonl");
  write_file_atomically(folder / "kept/a.jsonl", "nonsense\n");
  const Finished damaged = run(folder.path(), program("report") + " kept/a.jsonl --markdown x.md");
  CHECK_THAT(damaged.err, contains("ledger.jsonl, line 1"));
}

TEST_CASE("docs/results.md and its pages equal those made of the ledgers, in at most 40 rows") {
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
      run(folder.path(), program("report") + " docs/results/questions.md" + words + " --markdown docs/results.md");
  INFO(f.err);
  REQUIRE(f.status == 0);
  INFO(
      "to update them, run: build/release/bin/report docs/results/questions.md docs/results/*.jsonl --markdown "
      "docs/results.md");
  const auto same = [&](const std::string& file) { return slurp(folder / file) == slurp(source / file); };
  CHECK(same("docs/results.md"));
  for (const std::string& name : names) {
    INFO(name);
    CHECK(same("docs/results/" + name + ".md"));
    CHECK(same("docs/results/" + name + ".svg"));
  }
  const std::string text = slurp(source / "docs/results.md");
  int rows = 0;
  for (std::size_t at = text.find("\n| **"); at != std::string::npos; at = text.find("\n| **", at + 1)) ++rows;
  CHECK(rows > 10);
  CHECK(rows <= 40);
}
