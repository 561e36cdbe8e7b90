// --axes: a sweep's lists and ranges from a file.
#ifndef MEMBILL_CLI_SWEEP_AXES_H_
#define MEMBILL_CLI_SWEEP_AXES_H_

#include <array>
#include <string>

#include "cli/command.h"

namespace membill::cli {

// Parts of the machine that can be axes: the option, and the key of a job file.
struct MachineAxis {
  const char* option;
  const char* column;
};
inline constexpr std::array<MachineAxis, 3> kMachineAxes{
    {{"--gpu", "hardware.gpu"}, {"--gpus", "hardware.count"}, {"--nodes", "hardware.nodes"}}};

// Reads the file of --axes, JSON or YAML: a map whose keys are those of a job file (nested or dotted), each with one value, a list, or
// the text of a range ("1024:8192:*2"). They are added to `arguments` as if they were typed; what was typed wins.
void add_axes_of_file(Arguments& arguments, Problems& problems);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_SWEEP_AXES_H_
