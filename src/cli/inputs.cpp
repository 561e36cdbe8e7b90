#include "cli/inputs.h"

#include <iterator>

#include "cli/data_option.h"
#include "cli/input_notes.h"
#include "cli/machine.h"
#include "cli/model_options.h"
#include "cli/plan_options.h"
#include "io/importers/importer.h"
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

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const io::Importer& importer : io::importers()) names.emplace_back(importer.name);
  names.insert(names.end(), {"script", "membill"});
  return names;
}

io::JobFile read_job(const Arguments& arguments, const std::string* model, const std::string* job_path,
                     const io::DataDirs& dirs, Problems& problems) {
  io::ImportContext context;
  context.dirs = dirs;
  if (model != nullptr) context.model = *model;
  if (const std::string* format = arguments.value("--as")) context.format = *format;
  std::string why;
  std::int64_t gpus = 0;
  const std::string* count = arguments.value("--gpus");  // a wrong one is read_machine's to refuse
  if (count != nullptr && parse_count(*count, gpus, why) && gpus > 0) context.gpus = gpus;
  return job_path != nullptr ? io::import_job(*job_path, context, problems)
                             : io::import_command(arguments.command, context, problems);
}

// What the importer filled in or left out belongs into the report.
void add_remarks(const io::JobFile& job, Inputs& inputs) {
  for (const std::string& text : job.assumptions) inputs.hardware.assumptions.push_back(job.file + ": " + text);
  for (const std::string& text : job.warnings) inputs.model.warnings.push_back(job.file + ": " + text);
  std::string unknown;
  for (const io::KeyRecord& record : job.records) {
    if (record.state == io::KeyState::unknown && !record.note.empty())
      unknown += (unknown.empty() ? "" : ", ") + record.key + " (nearest: " + record.note + ")";
  }
  if (!unknown.empty()) inputs.model.warnings.push_back(job.file + ": unknown keys: " + unknown);
}

}  // namespace

std::vector<OptionSpec> input_options() {
  std::vector<OptionSpec> all{
      {"--job", Takes::value, "FILE", "a job file of any format, or a launch script; options beside it win", "Job", {}},
      {"--as", Takes::value, "FORMAT", "the job file's format, where its content leaves it open", "Job",
       format_names()}};
  for (std::vector<OptionSpec> more : {machine_options(), model_options(), plan_options()}) {
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  return all;
}

namespace {

// Fills `inputs` from its job and the command line. Without a job that could be read, a model that only it would name is no problem.
void fill(Inputs& inputs, const Arguments& arguments, const std::string* model, bool job_is_readable, Check check,
          Problems& problems) {
  const io::JobFile& job = inputs.job;
  read_plan(job.plan, job.file, inputs.job_plan, problems);
  inputs.plan = inputs.job_plan;
  apply_plan_options(arguments, inputs.plan, problems);
  collect(problems, [&] { inputs.hardware = read_machine(arguments, job, inputs.plan, inputs.dirs, problems); });
  if (job_is_readable || model != nullptr) {
    collect(problems, [&] { inputs.model = read_model(arguments, model, job, inputs.dirs, problems); });
  }
  problems.throw_if_any();
  add_remarks(job, inputs);
  if (check == Check::together) {
    for (Problem& problem : validate(inputs.model, inputs.plan, inputs.hardware)) {
      problems.add(placed(std::move(problem), arguments, job.file));
    }
    problems.throw_if_any();
  }
  inputs.notes = input_notes(arguments, job, inputs);
}

}  // namespace

Inputs read_inputs(const Arguments& arguments, const std::string* model, const std::string* job_path, Check check) {
  Inputs inputs;
  Problems problems;
  collect(problems, [&] { inputs.dirs = data_dirs(arguments); });
  const bool has_job = job_path != nullptr || !arguments.command.empty();
  if (has_job) collect(problems, [&] { inputs.job = read_job(arguments, model, job_path, inputs.dirs, problems); });
  fill(inputs, arguments, model, !has_job || !inputs.job.file.empty(), check, problems);
  return inputs;
}

Inputs inputs_of(const Arguments& arguments, const std::string* model, io::JobFile job, Check check) {
  Inputs inputs;
  Problems problems;
  collect(problems, [&] { inputs.dirs = data_dirs(arguments); });
  inputs.job = std::move(job);
  fill(inputs, arguments, model, true, check, problems);
  return inputs;
}

}  // namespace membill::cli
