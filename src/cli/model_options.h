// The model on the command line: MODEL, or the sizes of a generic one.
#ifndef MEMBILL_CLI_MODEL_OPTIONS_H_
#define MEMBILL_CLI_MODEL_OPTIONS_H_

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "io/job_file.h"
#include "io/preset_files.h"
#include "membill/model_spec.h"
#include "membill/problem.h"
#include "membill/training_plan.h"

namespace membill::cli {

// --params, --hidden, --layers, ...
[[nodiscard]] std::vector<OptionSpec> model_options();

// The model of a job: MODEL (`typed`, or null) or the generic sizes of the arguments, else what the job file says; sizes beside a generic
// model of the job file win over its own. Naming MODEL and sizes, or nothing anywhere, is a problem. Throws InputError.
[[nodiscard]] ModelSpec read_model(const Arguments& arguments, const std::string* typed, const io::JobFile& job,
                                   const io::DataDirs& dirs, Problems& problems);

// The model that stage distill learns from; null where the plan names none. Throws InputError.
[[nodiscard]] std::shared_ptr<const ModelSpec> read_teacher(const TrainingPlan& plan, const io::JobFile& job,
                                                            const io::DataDirs& dirs);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_MODEL_OPTIONS_H_
