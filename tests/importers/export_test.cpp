// What is exported reads back as the same plan: real job files through their own formats and through membill's.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "io/exporters/exporter.h"
#include "io/importers/importer.h"
#include "membill/catalog.h"
#include "support/catch.h"
#include "support/places.h"

namespace membill::importers_test {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    const bool job = extension == ".yaml" || extension == ".yml" || extension == ".json" || extension == ".sh";
    if (job && entry.path().parent_path().filename() != "hf-config.json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The job in a file; false when it is refused.
bool read(const fs::path& file, std::string& format, io::ExportJob& job) {
  Problems problems;
  try {
    const io::JobFile read = io::import_job(file.string(), {}, problems);
    read_plan(read.plan, read.file, job.plan, problems);
    format = read.format;
    job.model = read.model.value_or("");
    job.preset = job.model;
    job.count = read.hardware.count.value_or(1);
    job.nodes = read.hardware.nodes.value_or(1);
  } catch (const InputError&) {
    return false;
  }
  return problems.empty();
}

std::vector<std::string> lost(const io::Exporter& exporter, const io::ExportJob& job) {
  Problems problems;
  const std::string text = io::export_text(exporter, job, problems);
  std::vector<std::string> lines;
  for (const Problem& problem : problems.list()) lines.push_back(to_text(problem));
  if (problems.empty()) lines = io::left_out(exporter, job, text, {});
  return lines;
}

// Exports every job of a folder in its own format and in membill's; the lines of what was lost.
std::vector<std::string> round_trips(const fs::path& folder, int& done) {
  std::vector<std::string> lines;
  for (const fs::path& file : files_in(folder)) {
    std::string format;
    io::ExportJob job;
    if (!read(file, format, job)) continue;
    for (const io::Exporter& exporter : io::exporters()) {
      if (exporter.name != "membill" && exporter.name != format) continue;
      ++done;
      for (const std::string& line : lost(exporter, job))
        lines.push_back(file.filename().string() + " as " + std::string(exporter.name) + ": " + line);
    }
  }
  return lines;
}

}  // namespace

TEST_CASE("exporters are importers with texts, and their names differ") {
  std::vector<std::string_view> names;
  for (const io::Exporter& exporter : io::exporters()) {
    INFO(std::string(exporter.name));
    CHECK((exporter.name == "membill" || io::find_importer(exporter.name) != nullptr));
    CHECK_FALSE(exporter.summary.empty());
    CHECK(exporter.write != nullptr);
    names.push_back(exporter.name);
  }
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("real job files come back from their own format and from membill's as the same plan") {
  int done = 0;
  const std::vector<std::string> lines = round_trips(test::in_source("tests/data/importers"), done);
  CHECK(done >= 40);
  for (const std::string& line : lines) {
    INFO(line);
    CHECK(false);
  }
}

TEST_CASE("public job files come back from their own format as the same plan") {
  const char* folder = std::getenv("MEMBILL_REAL_FILES");
  if (folder == nullptr) return;
  int done = 0;
  const std::vector<std::string> lines = round_trips(folder, done);
  std::printf("%d exports, %zu fields lost\n", done, lines.size());
  for (const std::string& line : lines) std::printf("lost: %s\n", line.c_str());
}

TEST_CASE("every exporter writes what its importer reads, or says what it cannot") {
  for (const fs::path& file : files_in(test::in_source("tests/data/importers"))) {
    std::string format;
    io::ExportJob job;
    if (!read(file, format, job)) continue;
    for (const io::Exporter& exporter : io::exporters()) {
      INFO(file.filename().string() + " as " + std::string(exporter.name));
      CHECK_NOTHROW(lost(exporter, job));
    }
  }
}

}  // namespace membill::importers_test
