// What the #SBATCH lines of a script say to the job that it starts.
#pragma once

#include <string_view>

#include "io/importers/shell_words.h"

namespace membill::io {

// The variables that Slurm sets for the script, as far as its #SBATCH lines say them: SLURM_NNODES, SLURM_NTASKS_PER_NODE,
// SLURM_GPUS_ON_NODE ...
[[nodiscard]] Variables slurm_variables(std::string_view script);

}  // namespace membill::io
