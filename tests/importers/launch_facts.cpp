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
    if (!seen.insert(flag).second) keep(), seen.insert(flag);
    current.emplace_back(flag, is_whole(value) ? value.substr(0, value.find_first_of("|;>&")) : std::string());
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
  text += program_of(row);
  for (const auto& [flag, value] : longest_command(*row.find("flags"))) {
    if (!is_launchers(flag)) text += " " + flag + (value.empty() ? "" : " " + value);
  }
  return text + "\n";
}

}  // namespace membill::importers_test
