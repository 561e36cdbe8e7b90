// What the #SBATCH lines of a script say to the job that it starts.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "io/importers/shell_words.h"

namespace membill::io {

// The variables that Slurm sets for the script, as far as its #SBATCH lines say them: SLURM_NNODES, SLURM_NTASKS_PER_NODE,
// SLURM_GPUS_ON_NODE ...
[[nodiscard]] Variables slurm_variables(std::string_view script, Variables variables = {});
// Which task of a job array was taken, where the script asks for its number; empty: it does not.
[[nodiscard]] std::string slurm_array_remark(std::string_view script);
// What options of srun or sbatch ("--nodes=2", "-N 2", "-N2") say to those variables.
void read_slurm_options(std::span<const std::string> words, Variables& variables);

}  // namespace membill::io
