#include "core/nearest.h"

#include "tests/support/catch.h"

using namespace plumb;

TEST_CASE("edit distance counts insertions, deletions, replacements and swaps") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("rezero", "rezero") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("rezro", "rezero") == 1);
  CHECK(edit_distance("rezeroo", "rezero") == 1);
  CHECK(edit_distance("rexero", "rezero") == 1);
  CHECK(edit_distance("rezeor", "rezero") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("ca", "abc") == 3);  // optimal string alignment: no edit inside a swapped pair
}

TEST_CASE("edit distance ignores case and takes underscores as hyphens") {
  CHECK(edit_distance("Fashion_MNIST", "fashion-mnist") == 0);
  CHECK(edit_distance("CIFAR10", "cifar-10") == 1);
}

TEST_CASE("the nearest name is the intended one, or none") {
  const std::vector<std::string> names{"glyphs", "fashion-mnist", "mnist", "cifar-10", "cifar-100"};
  CHECK(nearest_name("glyph", names) == "glyphs");
  CHECK(nearest_name("gylphs", names) == "glyphs");
  CHECK(nearest_name("cifar10", names) == "cifar-10");
  CHECK(nearest_name("cifar100", names) == "cifar-100");
  CHECK(nearest_name("cifar", names) == "cifar-10");
  CHECK(nearest_name("fashion", names) == "fashion-mnist");
  CHECK(nearest_name("MNIST", names) == "mnist");
  CHECK(nearest_name("imagenet", names).empty());
  CHECK(nearest_name("c", names).empty());
  CHECK(nearest_name("", names).empty());
  CHECK(nearest_name("glyphs", {}).empty());
}

TEST_CASE("the first of equally near names is suggested") { CHECK(nearest_name("abx", {"abc", "abd"}) == "abc"); }

TEST_CASE("the message about an unknown name has the nearest name, or ten names and the number of the others") {
  std::vector<std::string> names{"post", "pre", "rezero"};
  CHECK(suggest_name("rezro", names) == "did you mean 'rezero'?");
  CHECK(suggest_name("qqqqqqqq", names) == "known: post, pre, rezero");
  while (names.size() < 10) names.push_back("x" + std::to_string(names.size()));
  CHECK(suggest_name("qqqqqqqq", names) == "known: post, pre, rezero, x3, x4, x5, x6, x7, x8, x9");
  names.insert(names.end(), {"y1", "y2"});
  CHECK(suggest_name("qqqqqqqq", names) == "known: post, pre, rezero, x3, x4, x5, x6, x7, x8, x9 and 2 more");
}
