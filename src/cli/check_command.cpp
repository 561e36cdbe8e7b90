// membill check: the verdict of a job file on one line, for scripts.
#include "cli/command_list.h"
#include "cli/estimate_job.h"
#include "cli/inputs.h"
#include "cli/output_format.h"

namespace membill::cli {
namespace {

std::vector<ArgumentSpec> arguments() { return {{"JOBFILE", "a job file", true, {}}}; }

std::vector<OptionSpec> options() {
  std::vector<OptionSpec> all;
  for (OptionSpec& option : input_options()) {
    if (option.name != "--job") all.push_back(std::move(option));
  }
  for (std::vector<OptionSpec> more : {report_options(), bill_options()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

ExitCode run_check(const Arguments& arguments, Output& output) {
  return estimate_job(arguments, {nullptr, arguments.positional(0), "brief"}, output);
}

}  // namespace

Command check_command() {
  return {"check",
          "Whether a job fits, on one line; the exit status says it too",
          arguments,
          options,
          {"check job.yaml --gpu rtx-4090", "check job.yaml --gpu auto --strict && torchrun train.py"},
          run_check};
}

}  // namespace membill::cli
