// Programs by which public scripts start a training, and the words around them.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace membill::io {

// Programs that start the one after them.
inline constexpr std::array<std::string_view, 6> kWrappers{"nohup", "time", "exec", "env", "sudo", "eval"};
// Programs that run what stands behind their own options and arguments.
inline constexpr std::string_view kRunners =
    "srun docker podman singularity apptainer ssh numactl uv poetry conda micromamba mpirun mpiexec taskset stdbuf "
    "nice "
    "ionice timeout pipenv ray";
// Options of launchers that stand alone; all others take a value.
inline constexpr std::string_view kAlone =
    "standalone use_env run_path no_python multi_gpu use_deepspeed use_fsdp debug same_network no_local_rank no_ssh "
    "force_multi m module "
    "enable_each_rank_log bind_cores_to_rank mixed_precision_ use_megatron_lm cpu quiet";
// Programs with commands of their own, and the commands that train.
struct TrainingTool {
  std::string_view name, commands;
};
inline constexpr TrainingTool kTools[] = {
    {"swift", "sft pt rlhf dpo orpo simpo cpo kto"},
    {"megatron", "sft pt rlhf"},
    {"llamafactory-cli", "train sft dpo rm"},
    {"axolotl", "train"},
    {"tune", "run"},
    {"trl", "sft dpo orpo kto reward grpo rloo cpo gkd"},
    {"litgpt", "finetune finetune_lora finetune_full finetune_adapter finetune_adapter_v2 pretrain"},
    {"unsloth", "train"}};
// Modules and scripts that are such a program by another name.
struct ToolAlias {
  std::string_view script, tool, command;
};
inline constexpr ToolAlias kAliases[] = {{"axolotl.cli.train", "axolotl", "train"},
                                         {"axolotl.cli", "axolotl", "train"},
                                         {"llamafactory.cli", "llamafactory-cli", "train"},
                                         {"src/train.py", "llamafactory-cli", "train"},
                                         {"llamafactory/launcher.py", "llamafactory-cli", "train"},
                                         {"llamafactory.launcher", "llamafactory-cli", "train"},
                                         {"src/train_sft.py", "llamafactory-cli", "train"},
                                         {"src/train_bash.py", "llamafactory-cli", "train_bash"},
                                         {"llm_sft.py", "swift", "sft"},
                                         {"swift.cli.sft", "swift", "sft"},
                                         {"swift.cli.pt", "swift", "pt"},
                                         {"swift.cli.rlhf", "swift", "rlhf"},
                                         {"llm_dpo.py", "swift", "dpo"},
                                         {"llm_orpo.py", "swift", "orpo"},
                                         {"rlhf.py", "swift", "rlhf"},
                                         {"swift/cli/sft.py", "swift", "sft"},
                                         {"swift/cli/pt.py", "swift", "pt"},
                                         {"swift/cli/rlhf.py", "swift", "rlhf"},
                                         {"swift/cli/_megatron/sft.py", "megatron", "sft"},
                                         {"trl/scripts/sft.py", "trl", "sft"},
                                         {"trl/scripts/dpo.py", "trl", "dpo"},
                                         {"scripts/run_sft.py", "trl", "sft"},
                                         {"scripts/run_dpo.py", "trl", "dpo"},
                                         {"scripts/run_orpo.py", "trl", "orpo"},
                                         {"src/open_r1/sft.py", "trl", "sft"},
                                         {"src/open_r1/grpo.py", "trl", "grpo"},
                                         {"examples/scripts/sft.py", "trl", "sft"},
                                         {"examples/scripts/dpo.py", "trl", "dpo"},
                                         {"trl/scripts/grpo.py", "trl", "grpo"},
                                         {"trl/scripts/kto.py", "trl", "kto"},
                                         {"trl.scripts.sft", "trl", "sft"},
                                         {"trl.scripts.dpo", "trl", "dpo"},
                                         {"examples/scripts/kto.py", "trl", "kto"},
                                         {"examples/scripts/orpo.py", "trl", "orpo"},
                                         {"examples/scripts/cpo.py", "trl", "cpo"},
                                         {"examples/scripts/ppo/ppo.py", "trl", "ppo"},
                                         {"examples/scripts/ppo.py", "trl", "ppo"},
                                         {"examples/scripts/reward_modeling.py", "trl", "reward"},
                                         {"examples/scripts/rloo.py", "trl", "rloo"},
                                         {"examples/scripts/gkd.py", "trl", "gkd"},
                                         {"trl/experimental/gkd/gkd.py", "trl", "gkd"},
                                         {"examples/scripts/gold.py", "trl", "gold"},
                                         {"examples/scripts/dpo_online.py", "trl", "dpo_online"},
                                         {"examples/scripts/online_dpo.py", "trl", "online_dpo"},
                                         {"examples/scripts/nash_md.py", "trl", "nash_md"},
                                         {"examples/scripts/xpo.py", "trl", "xpo"},
                                         {"examples/scripts/bco.py", "trl", "bco"},
                                         {"examples/scripts/prm.py", "trl", "prm"},
                                         {"src/open_r1/sft.py", "trl", "sft"}};

[[nodiscard]] inline std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

[[nodiscard]] inline std::string underscored(std::string text) {
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

[[nodiscard]] inline bool holds(std::string_view words, std::string_view word) {
  const std::vector<std::string> all = split(words, ' ');
  return std::find(all.begin(), all.end(), word) != all.end();
}

// Whether a script goes by a name of what is done before or after a training: "convert_checkpoint.py", "eval.py".
[[nodiscard]] inline bool trains_nothing(std::string_view name) {
  constexpr std::string_view kBeginnings[] = {"eval",  "infer", "generate", "convert",    "merge",   "export",
                                              "serve", "chat",  "download", "preprocess", "tokenize"};
  return name.ends_with(".py") && std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                                              [&](std::string_view start) { return name.starts_with(start); });
}

// Transformers' own examples: "run_clm.py", "run_glue_no_trainer.py".
[[nodiscard]] inline bool is_transformers_example(std::string_view name) {
  constexpr std::string_view kTasks[] = {"clm",         "mlm",     "plm",      "glue",       "xnli", "summarization",
                                         "translation", "qa",      "ner",      "seq2seq_qa", "swag", "classification",
                                         "fim",         "t5_mlm_", "bart_dlm_"};
  return name.starts_with("run_") && name.ends_with(".py") &&
         std::any_of(std::begin(kTasks), std::end(kTasks),
                     [&](std::string_view task) { return name.substr(4).starts_with(task); });
}

[[nodiscard]] inline bool is_option(const std::string& word) {
  return word.size() > 2 && word[0] == '-' && word[1] == '-';
}

}  // namespace membill::io
