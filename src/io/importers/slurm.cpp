#include "io/importers/slurm.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "io/importers/shell_text.h"

namespace membill::io {
namespace {

struct Option {
  std::string_view name, variable;
};
constexpr Option kOptions[] = {{"--nodes", "SLURM_NNODES"},
                               {"-N", "SLURM_NNODES"},
                               {"--ntasks", "SLURM_NTASKS"},
                               {"-n", "SLURM_NTASKS"},
                               {"--ntasks-per-node", "SLURM_NTASKS_PER_NODE"},
                               {"--gpus-per-node", "SLURM_GPUS_ON_NODE"},
                               {"--gres", "SLURM_GPUS_ON_NODE"},
                               {"--gpus", "SLURM_GPUS"},
                               {"-G", "SLURM_GPUS"}};

// "8" of "8", "gpu:8" and "gpu:a100:8"; "4" of "2-4".
std::string number_of(std::string_view value) {
  const std::size_t mark = value.find_last_of(":-");
  const std::string_view last = value.substr(mark == std::string_view::npos ? 0 : mark + 1);
  const bool digits = !last.empty() && std::all_of(last.begin(), last.end(), is_digit);
  return digits ? std::string(last) : std::string();
}

void set_option(std::string_view name, std::string_view value, Variables& variables) {
  for (const Option& option : kOptions) {
    if (option.name != name) continue;
    const std::string number = number_of(value);
    if (!number.empty()) variables[std::string(option.variable)] = number;
  }
}

void read_line(std::string_view line, Variables& variables) {
  const std::vector<std::string> words = words_of(line);
  for (std::size_t i = 1; i < words.size() && !words[i].starts_with("#"); ++i) {
    const std::size_t equals = std::min(words[i].find('='), words[i].size());
    if (equals < words[i].size()) {
      set_option(words[i].substr(0, equals), words[i].substr(equals + 1), variables);
    } else if (i + 1 < words.size()) {
      set_option(words[i], words[i + 1], variables);
    }
  }
}

void copy(const char* from, const char* to, Variables& variables) {
  const auto found = variables.find(from);
  if (found != variables.end()) variables.emplace(to, found->second);
}

}  // namespace

Variables slurm_variables(std::string_view script) {
  Variables variables;
  for (std::size_t at = 0; at < script.size(); at = end_of_line(script, at) + 1) {
    const std::string_view line = script.substr(at, end_of_line(script, at) - at);
    if (line.starts_with("#SBATCH")) read_line(line, variables);
  }
  copy("SLURM_NNODES", "SLURM_JOB_NUM_NODES", variables);
  copy("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE", variables);
  return variables;
}

}  // namespace membill::io
