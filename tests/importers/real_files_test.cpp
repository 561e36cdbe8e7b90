// Public job files by the hundred, which are not part of this repository: MEMBILL_REAL_FILES names a folder with one folder of files for
// each kind, and launch-flags.jsonl. tests/importers/real_files runs this and prints the table.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "cli/run.h"
#include "io/importers/importer.h"
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
  int read = 0;           // a complete plan: nothing wrong in the file, and every field of the plan understood
  int billed = 0;         // of these, by their own model
  int without_model = 0;  // of these, those whose model is not said or not among the presets
  int no_job = 0;         // refused as no job at all
  int incomplete = 0;     // refused for a file that they name and that is not there
  std::map<std::string, int> unknown_keys;
  std::vector<std::string> refused, not_billed;  // "file: why"
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

bool lacks_model(const std::vector<std::string>& messages) {
  return std::any_of(messages.begin(), messages.end(), [](const std::string& message) {
    return message.find("is no preset") != std::string::npos ||
           message.find("model: is missing") != std::string::npos ||
           message.find("is no file and no preset") != std::string::npos;
  });
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
  const cli::Outcome outcome = cli::run(std::vector<std::string>{"estimate", "--job", path.string()});
  if (outcome.code == cli::ExitCode::computed) {
    ++tally.billed;
  } else if (lacks_model(outcome.messages)) {
    ++tally.without_model;
  } else {
    tally.not_billed.push_back(name + ": " + outcome.messages.front());
  }
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
    add_file(scratch / "run.sh", row.find("repo")->as_string() + "/" + row.find("path")->as_string(),
             tallies[row.find("format")->as_string()]);
  }
  fs::remove_all(scratch);
  return tallies;
}

void print_list(const char* title, const std::string& kind, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) std::printf("%s %s: %s\n", title, kind.c_str(), line.c_str());
}

void print(const std::map<std::string, Tally>& tallies) {
  std::printf("%-26s %6s %6s %8s %7s %10s %8s %15s %11s\n", "kind", "files", "read", "refused", "no job", "part lacks",
              "billed", "model not known", "not billed");
  for (const auto& [kind, tally] : tallies) {
    std::printf("%-26s %6d %6d %8zu %7d %10d %8d %15d %11zu\n", kind.c_str(), tally.files, tally.read,
                tally.refused.size(), tally.no_job, tally.incomplete, tally.billed, tally.without_model,
                tally.not_billed.size());
  }
  for (const auto& [kind, tally] : tallies) {
    print_list("refused", kind, tally.refused);
    print_list("not billed", kind, tally.not_billed);
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
  int jobs = 0, read = 0;
  for (const auto& [kind, tally] : tallies) {
    if (kind.ends_with("-sh")) continue;
    jobs += tally.files - tally.no_job - tally.incomplete;
    read += tally.read;
  }
  std::printf("job files: %d of %d that are whole\n", read, jobs);
  CHECK(read * 100 >= jobs * 95);
}

}  // namespace membill::importers_test
