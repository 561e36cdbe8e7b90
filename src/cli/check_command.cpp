// membill check: the verdict of a job file on one line, for scripts.
#include "cli/command_list.h"
#include "cli/estimate_job.h"
#include "cli/inputs.h"
#include "cli/output_format.h"

namespace membill::cli {
namespace {

constexpr const char* kModel = "--model";

std::vector<ArgumentSpec> arguments() {
  return {{"JOBFILE",
           "a job file, a launch script, a program in Python or the name of a model; or, after --, the command that "
           "launches the job",
           false,
           {},
           true}};
}

std::vector<OptionSpec> options() {
  std::vector<OptionSpec> all;
  for (OptionSpec& option : input_options()) {
    if (option.name != "--job") all.push_back(std::move(option));
  }
  all.push_back(
      {kModel, Takes::value, "MODEL", "the model, where the job does not name it, or another one", "Job", {}});
  for (std::vector<OptionSpec> more : {report_options(), bill_options()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

ExitCode run_check(const Arguments& arguments, Output& output) {
  const std::string* file = arguments.positional(0);
  if (file == nullptr && arguments.command.empty())
    throw InputError(
        Problem{kCommandLine, "JOBFILE", "is missing: a job file, a launch script, a model, or -- and a command", ""});
  if (file != nullptr && !arguments.command.empty())
    throw InputError(Problem{kCommandLine, quoted(*file), "is a job beside the one after --", "leave out one of them"});
  if (file != nullptr && arguments.value(kModel) == nullptr && can_only_name_model(*file))
    return estimate_job(arguments, {file, nullptr, "brief"}, output);
  return estimate_job(arguments, {arguments.value(kModel), file, "brief"}, output);
}

}  // namespace

Command check_command() {
  return {"check",
          "Whether a job fits, on one line; the exit status says it too",
          arguments,
          options,
          {"check job.yaml --gpu rtx-4090", "check run.sh --gpu a100-80gb",
           "check llama-3.1-8b --method qlora --checkpointing full --gpu rtx-4090",
           "check --gpu h100-80gb -- torchrun --nproc_per_node 8 train.py --per_device_train_batch_size 2",
           "check ds_config.json --model llama-3.1-8b --gpu h100-80gb --gpus 8",
           "check job.yaml --gpu auto --strict && torchrun train.py"},
          run_check};
}

}  // namespace membill::cli
