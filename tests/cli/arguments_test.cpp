#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/command.h"
#include "support/catch.h"

namespace {

using namespace membill;
using namespace membill::cli;

using Texts = std::vector<std::string>;

std::vector<ArgumentSpec> test_arguments() { return {{"MODEL", "a model", false, {}}}; }

std::vector<OptionSpec> test_options() {
  return {{"--seq", Takes::value, "N", "tokens", "Test", {}},
          {"--set", Takes::values, "KEY=VALUE", "any key", "Test", {}},
          {"--strict", Takes::nothing, "", "a switch", "Test", {}},
          {"--compile", Takes::boolean, "", "a switch that may be off", "Test", {}}};
}

ExitCode no_run(const Arguments&, Output&) { return ExitCode::computed; }

const Command kTest{"test", "a command", test_arguments, test_options, {}, no_run};

struct Parsed {
  Arguments arguments;
  Texts problems;
};

Parsed parse(const Texts& words) {
  Problems problems;
  Parsed parsed{parse_arguments(kTest, words, problems), {}};
  for (const Problem& problem : problems.list()) parsed.problems.push_back(problem.key + " " + problem.message);
  return parsed;
}

TEST_CASE("a value is the next word or follows an equals sign") {
  CHECK(*parse({"--seq", "12"}).arguments.value("--seq") == "12");
  CHECK(*parse({"--seq=12"}).arguments.value("--seq") == "12");
  CHECK(*parse({"--seq", "-5 GiB"}).arguments.value("--seq") == "-5 GiB");
  CHECK(*parse({"--seq", "a=b"}).arguments.value("--seq") == "a=b");
  CHECK(*parse({"--seq=a=b"}).arguments.value("--seq") == "a=b");
  CHECK(*parse({"--seq", "[1,2]"}).arguments.value("--seq") == "[1,2]");
  CHECK(*parse({"--seq", "\"quoted\""}).arguments.value("--seq") == "\"quoted\"");
  CHECK(*parse({"--seq", "-"}).arguments.value("--seq") == "-");
}

TEST_CASE("a missing value is a problem wherever it is missing") {
  const Texts missing{"--seq needs a value"};
  CHECK(parse({"--seq"}).problems == missing);
  CHECK(parse({"--seq="}).problems == missing);
  CHECK(parse({"--seq", ""}).problems == missing);
  CHECK(parse({"--seq", "--strict"}).problems == missing);
  CHECK(parse({"--seq", "--strict"}).arguments.is_on("--strict"));
}

TEST_CASE("an option that takes one value is given once") {
  CHECK(parse({"--seq", "1", "--seq", "2"}).problems == Texts{"--seq is given more than once"});
  const Parsed twice = parse({"--set", "a=1", "--set", "b=2"});
  CHECK(twice.problems.empty());
  REQUIRE(twice.arguments.values("--set").size() == 2);
  CHECK(twice.arguments.values("--set")[1] == "b=2");
}

TEST_CASE("switches are on, and some may be off") {
  CHECK(parse({"--strict"}).arguments.is_on("--strict"));
  CHECK_FALSE(parse({}).arguments.is_on("--strict"));
  CHECK(*parse({"--compile"}).arguments.value("--compile") == "true");
  CHECK(*parse({"--compile", "false"}).arguments.value("--compile") == "false");
  CHECK(*parse({"--compile=false"}).arguments.value("--compile") == "false");
  CHECK(*parse({"--no-compile"}).arguments.value("--compile") == "false");
  CHECK(parse({"--compile", "model"}).arguments.positionals == Texts{"model"});
  CHECK(parse({"--strict", "true"}).arguments.positionals == Texts{"true"});
  CHECK(parse({"--strict=no"}).problems == Texts{"--strict takes no value but true or false"});
  CHECK(parse({"--strict=false"}).problems == Texts{"--strict takes no value"});
  CHECK(parse({"--no-strict"}).problems.size() == 1);
  CHECK(parse({"--compile", "--no-compile"}).problems.size() == 1);
}

TEST_CASE("arguments stand anywhere, and two dashes end the options") {
  CHECK(parse({"a", "--seq", "1"}).arguments.positionals == Texts{"a"});
  CHECK(parse({"--seq", "1", "a"}).arguments.positionals == Texts{"a"});
  CHECK(parse({"-"}).arguments.positionals == Texts{"-"});
  CHECK(parse({"--", "--seq"}).arguments.positionals == Texts{"--seq"});
  CHECK(parse({"--", "--"}).arguments.positionals == Texts{"--"});
  CHECK(parse({"a", "b"}).problems == Texts{"'b' is one argument too many"});
}

TEST_CASE("an unknown option is named with its nearest, and its value is not taken for an argument") {
  Problems problems;
  const Texts words{"--sek", "12", "--strickt", "-q"};
  const Arguments arguments = parse_arguments(kTest, words, problems);
  REQUIRE(problems.list().size() == 3);
  CHECK(to_text(problems.list()[0]) == "command line: --sek: is not an option of membill test (--seq)");
  CHECK(to_text(problems.list()[1]) == "command line: --strickt: is not an option of membill test (--strict)");
  CHECK(problems.list()[2].key == "-q");
  CHECK(arguments.positionals.empty());
}

}  // namespace
