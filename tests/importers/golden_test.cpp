// Real job files of each format against the plan that they come to: model, machine, every field that differs from membill's defaults,
// the keys that no table knows, and what was assumed. The files' origins are in tests/data/importers/sources.jsonl. When a reader has
// changed on purpose, MEMBILL_UPDATE=1 writes the plans anew.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "io/importers/importer.h"
#include "membill/catalog.h"
#include "support/catch.h"
#include "support/places.h"

namespace membill::importers_test {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = test::in_source("tests/data/importers");

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::map<std::string, std::string> fields_of(const TrainingPlan& plan) {
  std::map<std::string, std::string> fields;
  for (const PlanField& field : write_plan_fields(plan)) fields[field.key] = field.json;
  return fields;
}

// What an import comes to, one line a fact.
std::string described(const io::JobFile& job, const TrainingPlan& plan, const Problems& problems) {
  std::string text = "format: " + job.format + "\n";
  if (job.model) text += "model: " + *job.model + "\n";
  if (job.config) text += "model: described by the job\n";
  if (job.hardware.count) text += "cards: " + std::to_string(*job.hardware.count) + "\n";
  if (job.hardware.nodes) text += "nodes: " + std::to_string(*job.hardware.nodes) + "\n";
  const std::map<std::string, std::string> defaults = fields_of({});
  for (const PlanField& field : write_plan_fields(plan)) {
    const auto usual = defaults.find(field.key);
    if (usual == defaults.end() || usual->second != field.json) text += field.key + ": " + field.json + "\n";
  }
  for (const io::KeyRecord& record : job.records) {
    if (record.state == io::KeyState::unknown) text += "unknown: " + record.key + "\n";
  }
  for (const std::string& assumption : job.assumptions) text += "assumed: " + assumption + "\n";
  for (const std::string& warning : job.warnings) text += "warning: " + warning + "\n";
  for (const Problem& problem : problems.list()) text += "problem: " + to_text(problem) + "\n";
  return text;
}

std::vector<fs::path> job_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".plan" && extension != ".jsonl") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string imported(const fs::path& path) {
  Problems problems;
  TrainingPlan plan;
  const io::JobFile job = io::import_job(path.string(), {}, problems);
  read_plan(job.plan, job.file, plan, problems);
  return described(job, plan, problems);
}

}  // namespace

TEST_CASE("real job files come to the plans beside them") {
  const std::vector<fs::path> files = job_files();
  REQUIRE(files.size() >= 20);
  for (const fs::path& file : files) {
    INFO(file.filename().string());
    const fs::path golden = file.string() + ".plan";
    const std::string actual = imported(file);
    if (std::getenv("MEMBILL_UPDATE") != nullptr) std::ofstream(golden, std::ios::binary) << actual;
    CHECK(actual == text_of(golden));
  }
}

TEST_CASE("every key of a real job file has a record") {
  for (const fs::path& file : job_files()) {
    Problems problems;
    const io::JobFile job = io::import_job(file.string(), {}, problems);
    INFO(file.filename().string());
    CHECK_FALSE(job.format.empty());
    CHECK_FALSE(job.records.empty());
  }
}

}  // namespace membill::importers_test
