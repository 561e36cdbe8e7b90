// Every command of README.md is run again; the output that it shows must be what the program prints now. scripts/readme --update
// writes it.
//
// A block of kind `console` holds command lines behind "$ ", each followed by its output; a last line "(exit status N)" shows a status
// other than 0.
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/command.h"
#include "support/places.h"

namespace {

namespace fs = std::filesystem;
using namespace membill::test;

const fs::path kRoot = membill::test::in_source();

// What a reader of the block sees below the command.
std::string shown(const std::string& command) {
  const CommandResult result = run_command(command, kRoot);
  std::string text = result.out + result.err;
  if (result.status != 0) text += "(exit status " + std::to_string(result.status) + ")\n";
  return text;
}

struct Run {
  std::string command;
  std::string output;
};

// The text with every command's output replaced by `output_of` it; the runs that the text shows go to `runs`.
template <typename OutputOf>
std::string replayed(const std::string& text, std::vector<Run>& runs, const OutputOf& output_of) {
  std::string result;
  std::istringstream lines(text);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "```console") inside = true;
    if (line == "```") inside = false;
    const bool is_command = inside && line.rfind("$ ", 0) == 0;
    if (is_command) runs.push_back({line.substr(2), {}});
    const bool is_output = inside && !is_command && line != "```console";
    if (is_output && runs.empty()) throw std::runtime_error("output without a command: " + line);
    if (is_output) runs.back().output += line + "\n";
    if (!is_output) result += line + "\n";
    if (is_command) result += output_of(runs.back().command);
  }
  return result;
}

TEST_CASE("every command of the README prints what the README shows") {
  const fs::path path = kRoot / "README.md";
  const std::string text = read_whole_file(path);
  std::vector<Run> runs;
  const std::string now = replayed(text, runs, shown);
  REQUIRE(runs.size() >= 5);
  if (rewriting_goldens()) {
    std::ofstream(path, std::ios::binary) << now;
    return;
  }
  for (const Run& run : runs) {
    INFO("$ " << run.command);
    CHECK(run.output == shown(run.command));
  }
}

}  // namespace
