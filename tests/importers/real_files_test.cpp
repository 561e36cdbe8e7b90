// Public job files by the hundred, which are not part of this repository: MEMBILL_REAL_FILES names a folder with one folder of files for
// each kind, and launch-flags.jsonl. tests/importers/real_files runs this and prints the table.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "cli/run.h"
#include "io/importers/importer.h"
#include "io/importers/shell_words.h"
#include "io/json_reader.h"
#include "launch_facts.h"
#include "membill/catalog.h"
#include "support/catch.h"

namespace membill::importers_test {
namespace {

namespace fs = std::filesystem;

// What became of the files of one kind.
struct Tally {
  int files = 0;
  int read = 0;    // a complete plan: nothing wrong in the file, and every field of the plan understood
  int billed = 0;  // of these, by `check` on one large card for each process that the job says, one where it says none
  int lent_model = 0;     // of the billed, those that name no model: a small one is given beside them
  int without_model = 0;  // not billed: their model is among no presets
  int no_job = 0;         // refused as no job at all
  int incomplete = 0;     // refused for a file that they name and that is not there
  int commands = 0;       // launch commands after -- that come to what their script comes to
  std::map<std::string, int> unknown_keys;
  std::vector<std::string> refused, not_billed, differing;  // "file: why"
};

std::string first_problem(const Problems& problems) {
  return problems.empty() ? std::string() : to_text(problems.list().front());
}

// One line: why the job is refused; empty when it is read.
std::string import_problem(const std::string& path, Tally& tally) {
  Problems problems;
  TrainingPlan plan;
  try {
    const io::JobFile job = io::import_job(path, {}, problems);
    read_plan(job.plan, job.file, plan, problems);
    for (const io::KeyRecord& record : job.records) {
      if (record.state == io::KeyState::unknown) ++tally.unknown_keys[record.key];
    }
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem);
  }
  return first_problem(problems);
}

bool says(const cli::Outcome& outcome, const char* text) {
  return std::any_of(outcome.messages.begin(), outcome.messages.end(),
                     [&](const std::string& message) { return message.find(text) != std::string::npos; });
}

bool is_billed(const cli::Outcome& outcome) {
  return outcome.code == cli::ExitCode::computed || outcome.code == cli::ExitCode::does_not_fit;
}

cli::Outcome check(std::vector<std::string> words, bool lend_model) {
  std::vector<std::string> all{"check", "--gpu", "h200-141gb"};
  if (lend_model) all.insert(all.end(), {"--model", "llama-3.2-1b"});
  all.insert(all.end(), std::make_move_iterator(words.begin()), std::make_move_iterator(words.end()));
  return cli::run(all);
}

void add_bill(const std::string& path, const std::string& name, Tally& tally) {
  cli::Outcome outcome = check({path}, false);
  if (says(outcome, "model: is missing")) {
    outcome = check({path}, true);
    tally.lent_model += is_billed(outcome) ? 1 : 0;
  }
  if (is_billed(outcome)) {
    ++tally.billed;
  } else if (says(outcome, "is no preset and no file") || says(outcome, "is no file and no preset")) {
    ++tally.without_model;
  } else {
    tally.not_billed.push_back(name + ": " + outcome.messages.front());
  }
}

void add_file(const fs::path& path, const std::string& name, Tally& tally) {
  ++tally.files;
  const std::string problem = import_problem(path.string(), tally);
  if (!problem.empty()) {
    tally.no_job += problem.find("is of no known format") != std::string::npos ? 1 : 0;
    tally.incomplete += problem.find("is no file here") != std::string::npos ? 1 : 0;
    return tally.refused.push_back(name + ": " + problem);
  }
  ++tally.read;
  add_bill(path.string(), name, tally);
}

// The command that a script ends with, after its environment, comes to what the script comes to.
void add_command(const fs::path& script, const Value& row, const std::string& name, Tally& tally) {
  std::ifstream file(script);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::vector<io::ShellCommand> commands = io::split_script(text);
  if (commands.empty()) return;
  std::vector<std::string> words{"--"};
  for (const auto& [variable, value] : row.find("environment")->entries()) {
    const std::string* found = commands.back().variables.find(variable);
    if (found != nullptr) words.push_back(variable + "=" + *found);
  }
  words.insert(words.end(), commands.back().words.begin(), commands.back().words.end());
  const cli::Outcome by_script = check({script.string()}, false), by_words = check(words, false);
  const bool same = by_script.code == by_words.code && by_script.out == by_words.out;
  tally.commands += same ? 1 : 0;
  if (!same) tally.differing.push_back(name + ": " + (by_words.messages.empty() ? by_words.out : by_words.messages[0]));
}

std::map<std::string, Tally> survey(const fs::path& folder) {
  std::map<std::string, Tally> tallies;
  for (const auto& kind : fs::directory_iterator(folder)) {
    const std::string name = kind.path().filename().string();
    if (!kind.is_directory() || name == "hf-config.json") continue;
    for (const auto& file : fs::directory_iterator(kind.path()))
      add_file(file.path(), file.path().filename().string(), tallies[name]);
  }
  const fs::path scratch = fs::temp_directory_path() / ("membill-real-" + std::to_string(std::rand()));
  fs::create_directory(scratch);
  std::ifstream facts(folder / "launch-flags.jsonl");
  for (std::string line; std::getline(facts, line);) {
    const Value row = io::parse_json(line, "launch-flags.jsonl");
    std::ofstream(scratch / "run.sh") << script_of(row);
    const std::string name = row.find("repo")->as_string() + "/" + row.find("path")->as_string();
    Tally& tally = tallies[row.find("format")->as_string()];
    add_file(scratch / "run.sh", name, tally);
    add_command(scratch / "run.sh", row, name, tally);
  }
  fs::remove_all(scratch);
  return tallies;
}

void print_list(const char* title, const std::string& kind, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) std::printf("%s %s: %s\n", title, kind.c_str(), line.c_str());
}

void print(const std::map<std::string, Tally>& tallies) {
  std::printf("%-26s %6s %6s %8s %7s %10s %8s %11s %15s %11s %9s\n", "kind", "files", "read", "refused", "no job",
              "part lacks", "billed", "model lent", "model not known", "not billed", "as words");
  for (const auto& [kind, tally] : tallies) {
    std::printf("%-26s %6d %6d %8zu %7d %10d %8d %11d %15d %11zu %9d\n", kind.c_str(), tally.files, tally.read,
                tally.refused.size(), tally.no_job, tally.incomplete, tally.billed, tally.lent_model,
                tally.without_model, tally.not_billed.size(), tally.commands);
  }
  for (const auto& [kind, tally] : tallies) {
    print_list("refused", kind, tally.refused);
    print_list("not billed", kind, tally.not_billed);
    print_list("other as words", kind, tally.differing);
    for (const auto& [key, count] : tally.unknown_keys)
      std::printf("unknown key %s: %s (%d files)\n", kind.c_str(), key.c_str(), count);
  }
}

}  // namespace

TEST_CASE("nearly all public job files are read") {
  const char* folder = std::getenv("MEMBILL_REAL_FILES");
  if (folder == nullptr) return;
  const std::map<std::string, Tally> tallies = survey(folder);
  print(tallies);
  int jobs = 0, read = 0, billed = 0, known = 0;
  for (const auto& [kind, tally] : tallies) {
    if (kind.ends_with("-sh")) continue;
    jobs += tally.files - tally.no_job - tally.incomplete;
    read += tally.read;
    billed += tally.billed;
    known += tally.read - tally.without_model;
  }
  std::printf("job files: %d of %d that are whole are read; %d of %d whose model is known are billed\n", read, jobs,
              billed, known);
  CHECK(read * 100 >= jobs * 95);
}

}  // namespace membill::importers_test
