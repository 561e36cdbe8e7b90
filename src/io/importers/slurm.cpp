#include "io/importers/slurm.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "io/importers/shell_text.h"

namespace membill::io {
namespace {

constexpr std::string_view kArrayTask = "SLURM_ARRAY_TASK_ID";

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
                               {"-G", "SLURM_GPUS"},
                               {"--array", kArrayTask},
                               {"-a", kArrayTask}};

// "8" of "8", "gpu:8" and "gpu:a100:8"; "4" of "2-4".
std::string number_of(std::string_view value) {
  const std::size_t mark = value.find_last_of(":-");
  const std::string_view last = value.substr(mark == std::string_view::npos ? 0 : mark + 1);
  const bool digits = !last.empty() && std::all_of(last.begin(), last.end(), is_digit);
  return digits ? std::string(last) : std::string();
}

// "0" of "0-15%4" and "0,2,4": the first task of an array.
std::string first_of(std::string_view value) {
  return std::string(value.substr(0, std::min(value.find_first_not_of("0123456789"), value.size())));
}

void set_option(std::string_view name, std::string_view value, Variables& variables) {
  for (const Option& option : kOptions) {
    if (option.name != name) continue;
    const std::string number = option.variable == kArrayTask ? first_of(value) : number_of(value);
    if (!number.empty()) variables.set(option.variable, number);
  }
}

// The words of a #SBATCH line, without that mark and what is a comment.
std::vector<std::string> options_of(std::string_view line) {
  std::vector<std::string> words = words_of(line);
  const auto comment = std::find_if(words.begin() + 1, words.end(), [](const auto& word) { return word[0] == '#'; });
  return {words.begin() + 1, comment};
}

void copy(const char* from, const char* to, Variables& variables) {
  if (const std::string* found = variables.find(from)) variables.set(to, *found);
}

}  // namespace

void read_slurm_options(std::span<const std::string> words, Variables& variables) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::size_t equals = std::min(word.find('='), word.size());
    if (equals < word.size()) {
      set_option(word.substr(0, equals), word.substr(equals + 1), variables);
    } else if (i + 1 < words.size()) {
      set_option(word, words[i + 1], variables);
    }
    if (word.size() > 2 && word[0] == '-' && is_digit(word[2]))
      set_option(word.substr(0, 2), word.substr(2), variables);
  }
}

Variables slurm_variables(std::string_view script, Variables variables) {
  for (std::size_t at = 0; at < script.size(); at = end_of_line(script, at) + 1) {
    const std::string_view line = script.substr(at, end_of_line(script, at) - at);
    if (line.starts_with("#SBATCH")) read_slurm_options(options_of(line), variables);
  }
  copy("SLURM_NNODES", "SLURM_JOB_NUM_NODES", variables);
  copy("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE", variables);
  return variables;
}

std::string slurm_array_remark(std::string_view script) {
  const Variables variables = slurm_variables(script);
  const std::string* task = variables.find(kArrayTask);
  if (task == nullptr || script.find(kArrayTask) == std::string_view::npos) return {};
  return "the first task of the Slurm array, " + *task + ", is taken";
}

}  // namespace membill::io
