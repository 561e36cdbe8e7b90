// membill estimate: the bill of a job, and with a card the verdict.
#include "cli/command_list.h"
#include "cli/estimate_job.h"
#include "cli/estimate_jobs.h"
#include "cli/inputs.h"
#include "cli/output_format.h"

namespace membill::cli {
namespace {

std::vector<ArgumentSpec> arguments() { return {model_argument()}; }

std::vector<OptionSpec> options() {
  std::vector<OptionSpec> all = input_options();
  for (std::vector<OptionSpec> more : {report_options(), bill_options()})
    all.insert(all.end(), more.begin(), more.end());
  all.push_back(
      {"--jobs", Takes::value, "FILE", "one job a line (JSONL), one report a line; - for standard input", "Job", {}});
  return all;
}

ExitCode run_estimate(const Arguments& arguments, Output& output) {
  if (arguments.has("--jobs")) return estimate_jobs(arguments, output);
  return estimate_job(arguments, {arguments.positional(0), arguments.value("--job"), "table"}, output);
}

}  // namespace

Command estimate_command() {
  return {"estimate",
          "The bill of a job, item by item; with a card, whether it fits",
          arguments,
          options,
          {"estimate llama-2-7b --method lora --rank 16 --gpu rtx-4090",
           "estimate ./config.json --method qlora --seq 4096 --checkpointing full --gpu \"24 GiB\"",
           "estimate --params 7e9 --hidden 4096 --layers 32 --format json", "estimate --job job.yaml --batch 2"},
          run_estimate};
}

}  // namespace membill::cli
