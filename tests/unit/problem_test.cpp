#include "membill/problem.h"

#include <string>

#include "base/text.h"
#include "support/catch.h"

using namespace membill;

TEST_CASE("a problem is one line of its parts", "[problem]") {
  CHECK(to_text({"job.yaml", "batch", "needs a whole number", "8"}) == "job.yaml: batch: needs a whole number (8)");
  CHECK(to_text({"job.yaml", "", "is empty", ""}) == "job.yaml: is empty");
  CHECK(to_text({"", "--seq", "is too large", ""}) == "--seq: is too large");
  CHECK(to_text({"", "", "is too large", ""}) == "is too large");
}

TEST_CASE("a problem cannot command a terminal", "[problem]") {
  CHECK(to_text({"a\nb.yaml", "k\x1b[31m", "has a\ttab", "\x7f"}) == "a?b.yaml: k?[31m: has a?tab (?)");
  CHECK(to_text({"", "",
                 "\xC2\x9B"
                 "31m caf\xC3\xA9",
                 ""}) == "?31m caf\xC3\xA9");
  CHECK(to_text({"", "", std::string("nul\0byte", 8), ""}) == "nul?byte");
}

TEST_CASE("quotes are short", "[problem]") {
  CHECK(quoted("q_proj") == "'q_proj'");
  CHECK(quoted("a\nb") == "'a?b'");
  CHECK(quoted(std::string(61, 'x')) == "'" + std::string(60, 'x') + "...'");
  CHECK(quoted(std::string(59, 'x') + "\xC3\xA9" + "yy") == "'" + std::string(59, 'x') + "...'");
}

TEST_CASE("equal problems are held once", "[problem]") {
  Problems problems;
  CHECK(problems.empty());
  CHECK_NOTHROW(problems.throw_if_any());
  problems.add({"f", "k", "m", ""});
  problems.add({"f", "k", "m", ""});
  problems.add({"f", "k2", "m", ""});
  CHECK(problems.list().size() == 2);
  try {
    problems.throw_if_any();
    FAIL("nothing thrown");
  } catch (const InputError& error) {
    CHECK(error.problems() == problems.list());
    CHECK(std::string(error.what()) == "invalid input");
  }
}

TEST_CASE("no more problems are held than anyone reads", "[problem]") {
  Problems problems;
  for (int i = 0; i < 100'000; ++i) problems.add({"a.yaml", std::to_string(i), "is wrong", ""});
  REQUIRE(problems.list().size() == 101);
  CHECK(to_text(problems.list()[99]) == "a.yaml: 99: is wrong");
  CHECK(to_text(problems.list()[100]) == "a.yaml: has more problems: the first 100 are listed");
}

TEST_CASE("the nearest word is a likely slip", "[problem]") {
  const std::vector<std::string_view> words{"adamw", "adafactor", "lion", "q_proj", "paged-adamw-8bit"};
  CHECK(nearest_word("adamv", words) == "adamw");
  CHECK(nearest_word("ADAMW", words) == "adamw");
  CHECK(nearest_word("adma", words) == "");
  CHECK(nearest_word("adamw ", words) == "adamw");
  CHECK(nearest_word("loin", words) == "lion");
  CHECK(nearest_word("q-proj", words) == "q_proj");
  CHECK(nearest_word("paged_adam_8bit", words) == "paged-adamw-8bit");
  CHECK(nearest_word("shampoo", words) == "");
  CHECK(nearest_word("", words) == "");
  CHECK(nearest_word("x", {}) == "");
  CHECK(nearest_word(std::string(1'000'000, 'a'), words) == "");
}

TEST_CASE("text helpers", "[text]") {
  CHECK(to_kebab("AdamW_Torch") == "adamw-torch");
  CHECK(trim(" \ta b ") == "a b");
  CHECK(trim(" ") == "");
  CHECK(split("q_proj, v_proj", ',') == std::vector<std::string>{"q_proj", "v_proj"});
  CHECK(split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
  CHECK(split(" ", ',').empty());
  CHECK(join({"a", "b"}, ", ") == "a, b");
}
