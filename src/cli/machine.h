// The machine on the command line: --gpu, --gpus, --nodes, --host-ram, --others-use.
#ifndef MEMBILL_CLI_MACHINE_H_
#define MEMBILL_CLI_MACHINE_H_

#include <vector>

#include "cli/command.h"
#include "io/job_file.h"
#include "io/preset_files.h"
#include "membill/hardware.h"
#include "membill/problem.h"
#include "membill/training_plan.h"

namespace membill::cli {

[[nodiscard]] std::vector<OptionSpec> machine_options();

// The machine that the arguments and the job file describe; the arguments win. "auto" asks the driver's tool: for one card where the plan
// runs on one, for all of them otherwise, unless a count is given. Throws InputError.
[[nodiscard]] Hardware read_machine(const Arguments& arguments, const io::JobFile& job, const TrainingPlan& plan,
                                    const io::DataDirs& dirs, Problems& problems);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_MACHINE_H_
