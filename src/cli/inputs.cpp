#include "cli/inputs.h"

#include <iterator>

#include "cli/data_option.h"
#include "cli/input_notes.h"
#include "cli/machine.h"
#include "cli/model_options.h"
#include "cli/plan_options.h"
#include "io/job_file.h"
#include "membill/catalog.h"
#include "membill/estimate.h"

namespace membill::cli {
namespace {

// The flag of a job-file key; the key itself when it has none.
std::string flag_of(const std::string& key) {
  if (key == "hardware.count") return "--gpus";
  if (key == "hardware.nodes") return "--nodes";
  if (key == "hardware.others_use") return "--others-use";
  const PlanFieldRow* row = find_plan_field(key);
  return row == nullptr || row->flag.empty() ? key : row->flag;
}

// A problem of the three inputs together belongs to the flag that was typed, else to the job file.
Problem placed(Problem problem, const Arguments& arguments, const std::string& job_file) {
  if (!problem.file.empty()) return problem;
  const std::string flag = flag_of(problem.key);
  const bool typed = arguments.has(flag) || job_file.empty();
  problem.file = typed ? kCommandLine : job_file;
  if (typed) problem.key = flag;
  return problem;
}

// Runs one reader; its problems join the others.
template <typename Read>
void collect(Problems& problems, const Read& read) {
  try {
    read();
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem);
  }
}

}  // namespace

std::vector<OptionSpec> input_options() {
  std::vector<OptionSpec> all{{"--job", Takes::value, "FILE", "a job file; options beside it win", "Job", {}}};
  for (std::vector<OptionSpec> more : {machine_options(), model_options(), plan_options()}) {
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  return all;
}

Inputs read_inputs(const Arguments& arguments, const std::string* model, const std::string* job_path) {
  Inputs inputs;
  Problems problems;
  io::DataDirs dirs;
  io::JobFile job;
  collect(problems, [&] { dirs = data_dirs(arguments); });
  if (job_path != nullptr) collect(problems, [&] { job = io::read_job_file(*job_path, problems); });
  read_plan(job.plan, job.file, inputs.plan, problems);
  apply_plan_options(arguments, inputs.plan, problems);
  collect(problems, [&] { inputs.hardware = read_machine(arguments, job, inputs.plan, dirs, problems); });
  const bool job_is_readable = job_path == nullptr || !job.file.empty();
  if (job_is_readable || model != nullptr) {
    collect(problems, [&] { inputs.model = read_model(arguments, model, job, dirs, problems); });
  }
  problems.throw_if_any();
  for (Problem& problem : validate(inputs.model, inputs.plan, inputs.hardware)) {
    problems.add(placed(std::move(problem), arguments, job.file));
  }
  problems.throw_if_any();
  inputs.notes = input_notes(arguments, job, inputs);
  return inputs;
}

}  // namespace membill::cli
