#include "launch_facts.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace membill::importers_test {
namespace {

using Flags = std::vector<std::pair<std::string, std::string>>;

bool is_whole(std::string_view text) {
  const auto count = [&](char c) { return std::count(text.begin(), text.end(), c); };
  return count('"') % 2 == 0 && count('\'') % 2 == 0 && count('(') == count(')') && count('{') == count('}') &&
         count('`') % 2 == 0;
}

// Facts break substitutions off at their end: "$(expr 16 / $n".
std::string completed(const std::string& value) {
  return value.starts_with("$(") && value.find(')') == std::string::npos ? value + ")" : value;
}

// A flag that a usage text names before the command gives it its value.
bool replaces_empty(Flags& flags, const std::string& flag) {
  const auto found = std::find(flags.begin(), flags.end(), std::pair(flag, std::string()));
  if (found == flags.end()) return false;
  flags.erase(found);
  return true;
}

// The flags of the longest command; a flag that comes again begins another.
Flags longest_command(const Value& flags) {
  Flags best, current;
  std::set<std::string> seen;
  const auto keep = [&] {
    if (current.size() > best.size()) best = current;
    current.clear();
    seen.clear();
  };
  for (const Value& pair : flags.items()) {
    const std::string& flag = pair.items()[0].as_string();
    const std::string& value = pair.items()[1].as_string();
    if (!flag.starts_with("--") || !is_whole(flag)) continue;
    const std::string whole = completed(value);
    if (!is_whole(whole)) continue;
    if (!seen.insert(flag).second && !replaces_empty(current, flag)) keep(), seen.insert(flag);
    current.emplace_back(flag, whole.substr(0, whole.find_first_of("|;>&")));
  }
  keep();
  return best;
}

bool is_training(const std::string& program, const std::string& word) {
  return ((program == "swift" || program == "megatron") && (word == "sft" || word == "pt" || word == "rlhf"));
}

std::string program_of(const Value& row) {
  std::string script;
  for (const Value& program : row.find("programs")->items()) {
    const std::string& name = program.items()[0].as_string();
    const std::string& word = program.items()[1].as_string();
    if (is_training(name, word)) return name + " " + word;
    if (word.ends_with(".py")) script = word;
  }
  const std::string& format = row.find("format")->as_string();
  if (format.starts_with("megatron")) return "torchrun pretrain_gpt.py";
  if (format == "verl-sft-sh") return "torchrun -m verl.trainer.fsdp_sft_trainer";
  if (format == "ms-swift-v2-sh") return "python llm_sft.py";
  return "torchrun " + (script.empty() ? "train.py" : script);
}

// Variables in lower case are not among the facts: the one that scripts compute with is the number of cards that they name.
std::string cards_of(const Value& environment) {
  const Value* visible = environment.find("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return "nproc_per_node=1\n";
  const std::string& list = visible->as_string();
  return "nproc_per_node=" + std::to_string(std::count(list.begin(), list.end(), ',') + 1) + "\n";
}

// Options of the launcher stand among the program's in the facts.
bool is_launchers(const std::string& flag) {
  static const std::set<std::string> kLaunchers{
      "--nproc_per_node", "--nproc-per-node", "--nnodes",      "--node_rank",        "--master_addr",
      "--master_port",    "--standalone",     "--include",     "--num_gpus",         "--num_nodes",
      "--num_processes",  "--use_env",        "--config_file", "--main_process_port"};
  return kLaunchers.contains(flag);
}

}  // namespace

std::string script_of(const Value& row) {
  std::string text = "#!/bin/bash\n";
  for (const auto& [name, value] : row.find("environment")->entries()) {
    if (is_whole(value.as_string())) text += name + "=" + value.as_string() + "\n";
  }
  text += cards_of(*row.find("environment")) + program_of(row);
  for (const auto& [flag, value] : longest_command(*row.find("flags"))) {
    if (!is_launchers(flag)) text += " " + flag + (value.empty() ? "" : " " + value);
  }
  return text + "\n";
}

}  // namespace membill::importers_test
