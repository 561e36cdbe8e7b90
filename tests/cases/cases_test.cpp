// Runs every golden of tests/cases/*.case. MEMBILL_REWRITE=1 writes what the program prints now into the files; review the difference.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cases/case_file.h"
#include "cli/command.h"
#include "support/catch.h"
#include "support/places.h"

namespace {

namespace fs = std::filesystem;
using namespace membill::test;

const fs::path kFolder = membill::test::in_source("tests/cases");

std::vector<fs::path> case_files() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".case") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// What holds for every run, whatever it is asked.
void check_manners(const CommandResult& result) {
  CHECK(result.status >= 0);
  CHECK(result.status <= 3);
  if (result.status >= 2) {
    CHECK(result.out.empty());
    CHECK_FALSE(result.err.empty());
  }
  std::set<std::string> seen;
  std::istringstream lines(result.err);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.rfind("membill: ", 0) == 0);
    CHECK(seen.insert(line).second);
  }
}

TEST_CASE("every golden case prints what its file says") {
  const std::vector<fs::path> files = case_files();
  REQUIRE_FALSE(files.empty());
  for (const fs::path& path : files) {
    CaseFile file = parse_cases(read_whole_file(path));
    CHECK_FALSE(file.cases.empty());
    for (Case& one : file.cases) {
      const CommandResult result = run_command(one.command, kFolder);
      INFO(path.filename().string() << ": $ " << one.command);
      check_manners(result);
      if (rewriting_goldens()) {
        one.expected = result;
      } else {
        CHECK(format_result(result) == format_result(one.expected));
      }
    }
    if (rewriting_goldens()) std::ofstream(path, std::ios::binary) << format_cases(file);
  }
}

TEST_CASE("a case file is written as it was read") {
  const std::string text =
      "# why\n\n$ membill --version\n| membill 0.1.0\n|\n| two lines\n| no newline\n| \\\n! membill: a note\n? 1\n# "
      "the end\n";
  CHECK(format_cases(parse_cases(text)) == text);
  const Case one = parse_cases(text).cases.at(0);
  CHECK(one.expected.out == "membill 0.1.0\n\ntwo lines\nno newline");
  CHECK(one.expected.err == "membill: a note\n");
  CHECK(one.expected.status == 1);
}

TEST_CASE("every command has a golden case") {
  std::string all;
  for (const fs::path& path : case_files()) all += read_whole_file(path);
  for (const membill::cli::Command& command : membill::cli::commands()) {
    INFO(command.name);
    CHECK(all.find("$ membill " + std::string(command.name)) != std::string::npos);
  }
}

}  // namespace
