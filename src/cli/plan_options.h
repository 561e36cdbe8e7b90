// The training plan on the command line: one option for each field that has a flag, and --set for all of them.
#ifndef MEMBILL_CLI_PLAN_OPTIONS_H_
#define MEMBILL_CLI_PLAN_OPTIONS_H_

#include <map>
#include <string>
#include <vector>

#include "cli/command.h"
#include "membill/problem.h"
#include "membill/training_plan.h"

namespace membill::cli {

// Every row of plan_fields() that has a flag, and --set.
[[nodiscard]] std::vector<OptionSpec> plan_options();

// The text that the command line gives each key of the plan ("stage", "software.trl"), by flags and --set; what apply_plan_options()
// refuses is in it all the same, or left out.
[[nodiscard]] std::map<std::string, std::string> given_plan_keys(const Arguments& arguments);

// Applies the plan options of `arguments` onto `plan`. A field that is given twice (as a flag and by --set), and a value that its field
// refuses, is a problem.
void apply_plan_options(const Arguments& arguments, TrainingPlan& plan, Problems& problems);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_PLAN_OPTIONS_H_
