// membill export: a plan as the file of a training framework.
#include <iterator>

#include "base/text.h"
#include "cli/command_list.h"
#include "cli/data_option.h"
#include "cli/export_job.h"
#include "cli/inputs.h"
#include "cli/machine.h"
#include "cli/plan_options.h"
#include "io/exporters/exporter.h"

namespace membill::cli {
namespace {

constexpr const char* kAs = "--as";
constexpr const char* kFrom = "--from";

std::vector<std::string> export_formats() {
  std::vector<std::string> names;
  for (const io::Exporter& exporter : io::exporters()) names.emplace_back(exporter.name);
  return names;
}

std::vector<ArgumentSpec> arguments() {
  return {{"JOBFILE|MODEL",
           "a job file of any format or a launch script; or a model, with the plan as options",
           false,
           {},
           true}};
}

std::vector<OptionSpec> options() {
  std::vector<OptionSpec> all{
      {kAs, Takes::value, "FORMAT", "the format to write", "Output", export_formats()},
      {"--job", Takes::value, "FILE", "a job file of any format, where the argument is a model", "Job", {}},
      {kFrom, Takes::value, "FORMAT", "the job file's format, where its content leaves it open", "Job", job_formats()}};
  for (std::vector<OptionSpec> more : {machine_options(), plan_options(), std::vector<OptionSpec>{data_option()}})
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return all;
}

const io::Exporter& chosen_exporter(const Arguments& arguments) {
  const std::string* typed = arguments.value(kAs);
  const std::vector<std::string> names = export_formats();
  const std::string all = join(names, ", ");
  if (typed == nullptr) throw InputError(Problem{kCommandLine, kAs, "is missing", all});
  if (const io::Exporter* exporter = io::find_exporter(*typed)) return *exporter;
  const std::string near(nearest_word(*typed, {names.begin(), names.end()}));
  throw InputError(Problem{kCommandLine, kAs, membill::quoted(*typed) + " is no format that can be written",
                           near.empty() ? all : near});
}

// Problems of the writer are the plan's: they belong to the flag or to the job file.
void throw_placed(const Problems& problems, const Arguments& arguments, const std::string& file) {
  Problems placed;
  for (Problem problem : problems.list()) {
    const PlanFieldRow* row = find_plan_field(problem.key);
    const bool typed = row != nullptr && !row->flag.empty() && (file.empty() || arguments.has(row->flag));
    if (problem.file.empty()) problem.file = typed || file.empty() ? kCommandLine : file;
    if (typed) problem.key = row->flag;
    placed.add(std::move(problem));
  }
  placed.throw_if_any();
}

ExitCode run_export(const Arguments& arguments, Output& output) {
  const io::Exporter& exporter = chosen_exporter(arguments);
  const std::string* argument = arguments.positional(0);
  const bool is_job = argument != nullptr && (*argument == "-" || names_job(*argument));
  const std::string* model = is_job ? nullptr : argument;
  const std::string* path = is_job ? argument : arguments.value("--job");
  if (argument == nullptr && path == nullptr && arguments.command.empty())
    throw InputError(
        Problem{kCommandLine, "JOBFILE|MODEL", "is missing: a job, or a model and the plan's options", ""});
  Problems problems;
  const JobInputs inputs = read_job_inputs(arguments, model, path, kFrom, problems);
  problems.throw_if_any();
  io::ExportJob job =
      export_job(inputs.plan, inputs.hardware, model != nullptr ? *model : inputs.job.model.value_or(""), inputs.dirs);
  if (model == nullptr && !inputs.job.model) job.config = inputs.job.config;
  output.out = io::export_text(exporter, job, problems);
  throw_placed(problems, arguments, inputs.job.file);
  for (const std::string& line : io::left_out(exporter, job, output.out, inputs.dirs))
    output.notes.push_back(std::string(kCommandLine) + ": " + kAs + ": " + line);
  for (const std::string& text : inputs.job.warnings) output.notes.push_back(inputs.job.file + ": " + text);
  return ExitCode::computed;
}

}  // namespace

Command export_command() {
  return {"export",
          "A plan as the file of a training framework, so that it can be launched",
          arguments,
          options,
          {"export llama-2-7b --method qlora --seq 4096 --as llamafactory", "export train.yaml --batch 2 --as axolotl",
           "export run.sh --zero 3 --engine deepspeed --gpus 8 --as deepspeed"},
          run_export};
}

}  // namespace membill::cli
