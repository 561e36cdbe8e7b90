// solve and plan on real jobs: files of public repositories, and runs of which it is known whether they fitted. Every answer is estimated
// again by itself.
#include <fmt/format.h>
#include <filesystem>
#include <fstream>
#include <set>

#include "io/importers/importer.h"
#include "io/json_reader.h"
#include "io/model_source.h"
#include "membill/remedies.h"
#include "membill/solve.h"
#include "support/catch.h"
#include "support/outcome_rows.h"
#include "support/places.h"

namespace membill {
namespace {

using accuracy::RowJob;

struct Job {
  std::string name;
  RowJob row;
};

bool survives(Answer answer) { return answer == Answer::fits || answer == Answer::tight; }

Hardware card(std::int64_t gib) {
  Hardware hardware;
  hardware.gpu = GpuSpec();
  hardware.gpu->name = std::to_string(gib) + " GiB";
  hardware.gpu->usable = Bytes(gib << 30);
  return hardware;
}

// The job of a file of tests/data/importers on a card of `gib`; nothing where this version cannot bill it.
std::optional<Job> imported_job(const std::filesystem::path& path, std::int64_t gib) {
  io::ImportContext context;
  Problems problems;
  Job job{path.filename().string(), {}};
  try {
    const io::JobFile file = io::import_job(path.string(), context, problems);
    if (!file.model) return std::nullopt;
    read_plan(file.plan, file.file, job.row.plan, problems);
    job.row.model = io::describe_model(io::load_model(*file.model, {}));
    job.row.hardware = card(gib);
    job.row.hardware.count = file.hardware.count.value_or(1);
    job.row.hardware.nodes = file.hardware.nodes.value_or(1);
  } catch (const InputError&) {
    return std::nullopt;
  }
  if (!problems.empty() || !validate(job.row.model, job.row.plan, job.row.hardware).empty()) return std::nullopt;
  return job;
}

std::vector<Job> real_jobs() {
  std::vector<Job> jobs;
  for (const accuracy::OutcomeRow& row :
       accuracy::read_outcome_rows(test::in_source("data/measurements/outcomes.jsonl")))
    if (row.not_a_job.empty() && row.job.not_billed.empty()) jobs.push_back({row.id, row.job});
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(test::in_source("tests/data/importers")))
    if (entry.path().extension() != ".plan" && entry.path().extension() != ".jsonl") files.insert(entry.path());
  for (const std::filesystem::path& path : files)
    if (std::optional<Job> job = imported_job(path, 16)) jobs.push_back(*std::move(job));
  return jobs;
}

struct Counts {
  int jobs = 0, plans = 0, fitting = 0, failing = 0, answers = 0, nexts = 0, unknown = 0;
};

// A trial says what an estimate of its plan says.
void check_trial(const RowJob& row, const RemedyTrial& trial, Counts& counts) {
  const Report report = estimate(row.model, trial.plan, row.hardware);
  CHECK(report.verdict.answer == trial.answer);
  CHECK(report.totals.device.likely == trial.device);
  ++(survives(trial.answer) ? counts.fitting : counts.failing);
}

void check_plan(const RowJob& row, Counts& counts) {
  const RemedyPlan plan = find_remedies(row.model, row.plan, row.hardware, {});
  counts.plans += plan.fits_now() ? 0 : 1;
  for (const RemedyTrial& trial : plan.single) check_trial(row, trial, counts);
  for (const RemedyTrial& trial : plan.together) {
    CHECK(survives(trial.answer));
    check_trial(row, trial, counts);
  }
}

void check_solve(const RowJob& row, std::string_view name, Counts& counts) {
  for (const SolveTargetRow& target : solve_targets()) {
    if (target.name != name) continue;
    const Solution solution = solve(row.model, row.plan, row.hardware, target);
    for (const auto* trial : {&solution.answer, &solution.next}) {
      if (!*trial || !(*trial)->report) continue;
      TrainingPlan plan = row.plan;
      (name == "batch" ? plan.batch : plan.seq) = (*trial)->value;
      const bool fits = survives(estimate(row.model, plan, row.hardware).verdict.answer);
      CHECK(fits == (trial == &solution.answer));
      ++(trial == &solution.answer ? counts.answers : counts.nexts);
    }
  }
}

}  // namespace

TEST_CASE("on real jobs every answer of plan and solve fits and every next value fails") {
  Counts counts;
  for (const Job& job : real_jobs()) {
    INFO(job.name);
    if (estimate(job.row.model, job.row.plan, job.row.hardware).at_least) {
      ++counts.unknown;
      continue;
    }
    ++counts.jobs;
    check_plan(job.row, counts);
    check_solve(job.row, "batch", counts);
    check_solve(job.row, "seq", counts);
  }
  fmt::print(
      "{} real jobs: {} do not fit as they are; {} changes or lists of changes said to be enough, {} said not to be, "
      "all so "
      "when estimated again; {} answers of solve fit, {} next values fail\n",
      counts.jobs, counts.plans, counts.fitting, counts.failing, counts.answers, counts.nexts);
  CHECK(counts.jobs >= 30);
}

// tests/data/resolutions.jsonl: reports of jobs that ran out of memory and what made them run, as the thread says it.
TEST_CASE("what is known to have made a job fit is among the changes that plan names") {
  std::ifstream file(test::in_source("tests/data/resolutions.jsonl"));
  int found = 0, rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    const Value value = io::parse_json(line, "resolutions.jsonl");
    INFO(value.find("id")->as_string());
    RowJob row = accuracy::read_row_job(*value.find("job"), "resolutions.jsonl");
    REQUIRE(row.not_billed.empty());
    if (const Value* count = value.find("job")->find("hardware")->find("count")) row.hardware.count = count->as_int();
    // Where the real job failed by less than membill can say, the card is taken to be a tenth smaller than what is needed.
    const Report now = estimate(row.model, row.plan, row.hardware);
    if (survives(now.verdict.answer))
      row.hardware.others_use = *row.hardware.gpu->usable - Bytes(*now.totals.requested.likely / 10 * 9);
    const RemedyPlan plan = find_remedies(row.model, row.plan, row.hardware, {});
    bool listed = false;
    for (const Value& remedy : value.find("remedies")->items()) {
      listed = listed || (remedy.as_string() == "cards" && plan.cards);
      for (const RemedyTrial& trial : plan.single) listed = listed || trial.remedies.front().id == remedy.as_string();
    }
    CHECK(listed);
    found += listed;
  }
  fmt::print("{} of {} remedies that are known to have worked are in the list\n", found, rows);
  CHECK(rows >= 10);
}

}  // namespace membill
