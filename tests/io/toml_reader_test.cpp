// TOML into a Value.
#include "io/toml_reader.h"

#include <string>

#include "membill/problem.h"
#include "support/catch.h"

namespace membill::io_test {
namespace {

std::string toml_error(const std::string& text) {
  try {
    (void)io::parse_toml(text, "a.toml");
  } catch (const InputError& error) {
    return to_text(error.problems().front());
  }
  return "none";
}

}  // namespace

TEST_CASE("TOML's tables, lists and scalars come in the order of the file") {
  const Value root = io::parse_toml(
      "title = 'a'\n[training]\nseq_len = 8_192\nlr = 3e-4\ncompile = false\n[model]\nconverters = [\"float8\", 'mx']\n"
      "moe.experts = 8\nmade = 1979-05-27\n",
      "a.toml");
  REQUIRE(root.is_map());
  REQUIRE(root.entries().size() == 3);
  CHECK(root.entries()[1].first == "training");
  CHECK(root.entries()[2].first == "model");
  const Value& training = *root.find("training");
  CHECK(training.find("seq_len")->as_int() == 8192);
  CHECK(training.find("seq_len")->line == 3);
  CHECK(training.find("lr")->as_real() == 3e-4);
  CHECK_FALSE(training.find("compile")->as_bool());
  const Value& model = *root.find("model");
  CHECK(model.find("converters")->items()[1].as_string() == "mx");
  CHECK(model.find("moe")->find("experts")->as_int() == 8);
  CHECK(model.find("made")->as_string() == "1979-05-27");
}

TEST_CASE("what is no TOML is refused with its place") {
  CHECK(toml_error("a = 1\na = 2\n").starts_with("a.toml: line 2, column "));
  CHECK(toml_error("[training\n").starts_with("a.toml: line 1, column "));
  CHECK(toml_error("\u022dJ").starts_with("a.toml: line 1, column "));
  CHECK(toml_error("[)").starts_with("a.toml: line 1, column "));
  CHECK(toml_error("a = 99999999999999999999\n").starts_with("a.toml: line 1, column "));
  CHECK(toml_error("x = 1\nlr = nan\n") == "a.toml: lr: line 2 is no finite number");
  CHECK(toml_error("a = " + std::string(70, '[') + std::string(70, ']') + "\n").find("is nested deeper than 64") !=
        std::string::npos);
  CHECK(toml_error("a = " + std::string(100'000, '[')).starts_with("a.toml: line 1, column "));
}

TEST_CASE("TOML is known by its file's name or by a table's header") {
  CHECK(io::is_toml("", "job.toml"));
  CHECK(io::is_toml("# torchtitan\n\n[model]\nname = 'llama3'\n", "-"));
  CHECK(io::is_toml("[[runs]]  # two\n", "job"));
  CHECK_FALSE(io::is_toml("[model]\n", "job.yaml"));
  CHECK_FALSE(io::is_toml("[1, 2]\n", "job"));
  CHECK_FALSE(io::is_toml("{\"a\": 1}", "job"));
  CHECK_FALSE(io::is_toml("model: a\n[b]\n", "job"));
}

}  // namespace membill::io_test
