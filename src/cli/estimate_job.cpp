#include "cli/estimate_job.h"

#include "cli/data_option.h"
#include "cli/inputs.h"
#include "cli/output_format.h"
#include "membill/estimate.h"

namespace membill::cli {

std::vector<OptionSpec> bill_options() {
  return {
      {"--smallest-card", Takes::nothing, "", "also find the least capacity on which the job survives", "Output", {}},
      {"--show-inputs", Takes::nothing, "", "say on standard error where each input came from", "Output", {}},
      data_option()};
}

ExitCode estimate_job(const Arguments& arguments, const JobRequest& request, Output& output) {
  Problems problems;
  const report::Format* format = chosen_format(arguments, request.default_format, problems);
  Inputs inputs;
  try {
    inputs = read_inputs(arguments, request.model, request.job);
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem);
  }
  problems.throw_if_any();
  EstimateOptions options;
  options.smallest_card = arguments.is_on("--smallest-card");
  options.timeline = format->draws;
  const Report report = estimate(inputs.model, inputs.plan, inputs.hardware, options);
  if (arguments.is_on("--show-inputs")) output.notes = std::move(inputs.notes);
  return print_report(report, *format, arguments, output);
}

}  // namespace membill::cli
