// Tests of kept ledgers, and of the document that is made from the ledgers in the repository.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb::test;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

}  // namespace

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
                              contains("\"looks\": [") && contains("\"claims\": ["));
  const std::string tables = slurp(folder / "runs/a/results.md");
  CHECK_THAT(tables, contains("Where should the norm be") && contains("| claim | source | verdict | why |"));
  fs::remove_all(folder / "runs");

  write(folder / "about.md", "# Results\n");
  const auto document = [&](const std::string& files) {
    const Finished f = run(folder.path(), program("report") + " " + files + " --markdown all.md");
    INFO(f.err);
    CHECK(f.status == 0);
    return slurp(folder / "all.md");
  };
  const std::string plain = document("about.md kept/a.jsonl");
  CHECK(plain.starts_with("# Results\n\n## a\n\n    norm_placement --gates pre,post"));
  CHECK_THAT(plain, contains("glyphs, 12800 training images") && contains(" 8 trials, 0.0 hours of "));
  CHECK(plain.ends_with(tables));
  write(folder / "kept/a.md", "Looked into: nothing.\n");
  CHECK(document("kept/a.jsonl").ends_with(tables + "\nLooked into: nothing.\n"));
  REQUIRE(run(folder.path(), program("report") + " kept/a.jsonl --markdown again.md").out.empty());

  const auto refused = [&](const std::string& words, const std::string& text) {
    const Finished f = run(folder.path(), program("report") + " " + words);
    CHECK(f.status == 2);
    CHECK_THAT(f.err, contains(text));
  };
  refused("kept/a.jsonl", "kept/a.jsonl is part of a document; give --markdown FILE");
  refused("about.md", "about.md is part of a document");
  refused("kept/b.jsonl --markdown x.md", "kept/b.jsonl: no such file");
  write(folder / "kept/b.jsonl", "");
  refused("kept/b.jsonl --markdown x.md", "has no description kept/b.json");
  refused("kept/a.jsonl --keep elsewhere --markdown x.md", "--keep expects run folders, got kept/a.jsonl");
  write(folder / "kept/a.jsonl", "nonsense\n");
  const Finished damaged = run(folder.path(), program("report") + " kept/a.jsonl --markdown x.md");
  CHECK_THAT(damaged.err, contains("ledger.jsonl, line 1"));
}

TEST_CASE("docs/results.md equals the document made of its ledgers") {
  const fs::path source = PLUMB_SOURCE_DIR;
  std::vector<std::string> ledgers;
  for (const auto& entry : fs::directory_iterator(source / "docs/results"))
    if (entry.path().extension() == ".jsonl") ledgers.push_back("docs/results/" + entry.path().filename().string());
  std::ranges::sort(ledgers);
  REQUIRE_FALSE(ledgers.empty());
  std::string words;
  for (const std::string& ledger : ledgers) words += " " + ledger;
  const TemporaryFolder folder;
  fs::create_directory(folder / "docs");
  fs::copy(source / "docs/results", folder / "docs/results");
  const Finished f =
      run(folder.path(), program("report") + " docs/results/about.md" + words + " --markdown results.md");
  INFO(f.err);
  REQUIRE(f.status == 0);
  INFO(
      "to update it, run: build/release/bin/report docs/results/about.md docs/results/*.jsonl --markdown "
      "docs/results.md");
  CHECK((slurp(folder / "results.md") == slurp(source / "docs/results.md")));
}
