// The three inputs of a bill from a command line: model, plan, hardware.
#ifndef MEMBILL_CLI_INPUTS_H_
#define MEMBILL_CLI_INPUTS_H_

#include <vector>

#include "cli/command.h"
#include "io/job_file.h"
#include "io/preset_files.h"
#include "membill/hardware.h"
#include "membill/model_spec.h"
#include "membill/training_plan.h"

namespace membill::cli {

// Whether the three inputs are validated together.
enum class Check : std::uint8_t { together, each_alone };

struct Inputs {
  ModelSpec model;
  TrainingPlan plan;
  Hardware hardware;
  std::vector<std::string> notes;  // what --show-inputs prints: where each input came from
  TrainingPlan job_plan;           // before the command line's options
  io::JobFile job;                 // as read; empty without one
  io::DataDirs dirs;
};

// The job before its model is looked up.
struct JobInputs {
  io::DataDirs dirs;
  io::JobFile job;
  TrainingPlan job_plan;  // before the command line's options
  TrainingPlan plan;
  Hardware hardware;
};

// Reads the job file at `job_path` (or the command after "--"), then what the command line says of plan and machine; `format_option`
// is the option that says the job's format. What is wrong is added to `problems`.
[[nodiscard]] JobInputs read_job_inputs(const Arguments& arguments, const std::string* model,
                                        const std::string* job_path, const char* format_option, Problems& problems);

// Takes full_shard where the engine is FSDP and neither the command line nor the job says a strategy. Returns what was assumed.
std::string settle_sharding(const Arguments& arguments, const Inputs& inputs, TrainingPlan& plan);

// Takes what the checkpoint says of its weights into `plan` where neither the command line nor the job does. Returns what was assumed.
std::string settle_weights(const Arguments& arguments, const Inputs& inputs, const Hardware& hardware,
                           TrainingPlan& plan);

// The names of all formats of job files.
[[nodiscard]] std::vector<std::string> job_formats();

// MODEL as commands take it that bill one job.
[[nodiscard]] ArgumentSpec model_argument();

// Whether `name` is a file that by its ending or by what it holds is a job or a launch script, not a model.
[[nodiscard]] bool names_job(const std::string& name);
// Whether `name` is no file or folder here and does not end as a job file does: what it names is a model, if anything.
[[nodiscard]] bool can_only_name_model(const std::string& name);

// The options of the model (generic sizes), the job file, the machine and the plan.
[[nodiscard]] std::vector<OptionSpec> input_options();

// The inputs of one job that is read already; the command line's options win.
[[nodiscard]] Inputs inputs_of(const Arguments& arguments, const std::string* model, io::JobFile job,
                               Check check = Check::together);

// Reads all inputs: the job file first, if one is named; then what the command line says wins. `model` is the MODEL argument, `job_path` the
// job file; either may be null. A MODEL that names a job is the job. Throws InputError with every independent problem of all of them, the problems of the three together
// included (unless `check` leaves those to the caller).
[[nodiscard]] Inputs read_inputs(const Arguments& arguments, const std::string* model, const std::string* job_path,
                                 Check check = Check::together);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_INPUTS_H_
