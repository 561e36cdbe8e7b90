// The three inputs of a bill from a command line: model, plan, hardware.
#ifndef MEMBILL_CLI_INPUTS_H_
#define MEMBILL_CLI_INPUTS_H_

#include <vector>

#include "cli/command.h"
#include "membill/hardware.h"
#include "membill/model_spec.h"
#include "membill/training_plan.h"

namespace membill::cli {

struct Inputs {
  ModelSpec model;
  TrainingPlan plan;
  Hardware hardware;
  std::vector<std::string> notes;  // what --show-inputs prints: where each input came from
};

// The options of the model (generic sizes), the job file, the machine and the plan.
[[nodiscard]] std::vector<OptionSpec> input_options();

// Reads all inputs: the job file first, if one is named; then what the command line says wins. `model` is the MODEL argument, `job_path` the
// job file; either may be null. Throws InputError with every independent problem of all of them, the problems of the three together
// included.
[[nodiscard]] Inputs read_inputs(const Arguments& arguments, const std::string* model, const std::string* job_path);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_INPUTS_H_
