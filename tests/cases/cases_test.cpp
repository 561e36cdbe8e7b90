// Runs every golden of tests/cases/*.case. MEMBILL_REWRITE=1 writes what the program prints now into the files; review the difference.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cases/case_file.h"
#include "cli/command.h"
#include "support/catch.h"

namespace {

namespace fs = std::filesystem;
using namespace membill::test;

const fs::path kFolder = fs::path(MEMBILL_SOURCE_DIR) / "tests/cases";

bool rewriting() {
  const char* value = std::getenv("MEMBILL_REWRITE");
  return value != nullptr && std::string(value) == "1";
}

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<fs::path> case_files() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".case") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// What holds for every run, whatever it is asked.
void check_manners(const Result& result) {
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
    CaseFile file = parse_cases(read_all(path));
    CHECK_FALSE(file.cases.empty());
    for (Case& one : file.cases) {
      const Result result = run_command(one.command);
      INFO(path.filename().string() << ": $ " << one.command);
      check_manners(result);
      if (rewriting()) {
        one.expected = result;
      } else {
        CHECK(format_result(result) == format_result(one.expected));
      }
    }
    if (rewriting()) std::ofstream(path, std::ios::binary) << format_cases(file);
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
  for (const fs::path& path : case_files()) all += read_all(path);
  for (const membill::cli::Command& command : membill::cli::commands()) {
    INFO(command.name);
    CHECK(all.find("$ membill " + std::string(command.name)) != std::string::npos);
  }
}

}  // namespace
