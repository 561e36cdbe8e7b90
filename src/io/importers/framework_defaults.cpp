// A framework's defaults without a job file: its importer over what the command line says of the method, and nothing else.
#include <array>

#include "base/text.h"
#include "io/importers/importer.h"

namespace membill::io {
namespace {

// How a front end is told which parameters train: the keys of its own job files.
struct FrontEnd {
  std::string_view name;
  std::string_view full, lora;  // "key=value", with blanks between; empty: its default
};
// torchtune's recipes have no defaults of their own: its configs llama3_1/8B_full and 8B_lora_single_device.
constexpr std::string_view kTuneFull =
    "batch_size=2 enable_activation_checkpointing=true optimizer._component_=torch.optim.AdamW optimizer.fused=true";
constexpr std::string_view kTuneLora =
    "model._component_=lora_llama model.lora_attn_modules=q_proj,v_proj,output_proj model.apply_lora_to_mlp=true "
    "model.lora_rank=8 model.lora_alpha=16 batch_size=2 gradient_accumulation_steps=8 "
    "enable_activation_checkpointing=true optimizer._component_=torch.optim.AdamW optimizer.fused=true";
// verl 0.9.1: sft_trainer_engine.yaml.
constexpr std::string_view kVerl = "data.use_dynamic_bsz=true use_remove_padding=true model.strategy=fsdp";
constexpr std::string_view kVerlLora =
    "data.use_dynamic_bsz=true use_remove_padding=true model.strategy=fsdp model.lora_rank=8";
constexpr std::array<FrontEnd, 10> kFrontEnds{{{"llamafactory", "finetuning_type=full", "finetuning_type=lora"},
                                               {"axolotl", "", "adapter=lora lora_target_linear=true"},
                                               {"ms-swift", "tuner_type=full", "tuner_type=lora"},
                                               {"torchtune", kTuneFull, kTuneLora},
                                               {"litgpt", "", "lora_r=8"},
                                               {"trl", "use_peft=false", "use_peft=true"},
                                               {"hf-trainer", "", "use_lora=true"},
                                               {"unsloth", "training_type=full", "training_type=lora"},
                                               {"verl", kVerl, kVerlLora},
                                               {"torchtitan", "", ""}}};

// How a front end is told its stage, where its defaults follow from that. TRL's importer reads --stage itself.
struct FrontEndStage {
  std::string_view name, stage, settings;
};
constexpr FrontEndStage kStages[] = {{"llamafactory", "pretrain", "stage=pt"},
                                     {"llamafactory", "reward", "stage=rm"},
                                     {"llamafactory", "dpo", "stage=dpo"},
                                     {"llamafactory", "orpo", "stage=dpo pref_loss=orpo"},
                                     {"llamafactory", "simpo", "stage=dpo pref_loss=simpo"},
                                     {"llamafactory", "kto", "stage=kto"},
                                     {"axolotl", "reward", "reward_model=true"},
                                     {"axolotl", "dpo", "rl=dpo"},
                                     {"axolotl", "orpo", "rl=orpo"},
                                     {"axolotl", "simpo", "rl=simpo"},
                                     {"axolotl", "kto", "rl=kto"},
                                     {"ms-swift", "reward", "rlhf_type=rm"},
                                     {"ms-swift", "dpo", "rlhf_type=dpo"},
                                     {"ms-swift", "orpo", "rlhf_type=orpo"},
                                     {"ms-swift", "simpo", "rlhf_type=simpo"},
                                     {"ms-swift", "kto", "rlhf_type=kto"},
                                     {"ms-swift", "grpo", "rlhf_type=grpo"},
                                     {"ms-swift", "ppo", "rlhf_type=ppo"}};

std::string_view stage_settings(const FrontEnd& front, const ImportContext& context) {
  const auto given = context.given.find("stage");
  if (given == context.given.end()) return {};
  const std::string stage = to_lower(given->second);
  for (const FrontEndStage& told : kStages)
    if (told.name == front.name && told.stage == stage) return told.settings;
  return {};
}

const FrontEnd& find_front_end(const std::string& name) {
  std::vector<std::string_view> names;
  for (const FrontEnd& front : kFrontEnds) {
    if (front.name == to_kebab(name)) return front;
    names.push_back(front.name);
  }
  throw InputError(Problem{"command line", "--framework", quoted(name) + " is no framework whose defaults are known",
                           std::string(nearest_word(name, names))});
}

void add_keys(std::string_view settings, Value& keys) {
  if (settings.empty()) return;
  for (const std::string& setting : split(settings, ' ')) {
    const std::size_t equals = setting.find('=');
    keys.set(setting.substr(0, equals), flag_value(setting.substr(equals + 1)));
  }
}

}  // namespace

std::vector<std::string> front_ends() {
  std::vector<std::string> names;
  names.reserve(std::size(kFrontEnds));
  for (const FrontEnd& front : kFrontEnds) names.emplace_back(front.name);
  return names;
}

JobFile import_defaults(const std::string& name, const std::string& method, const ImportContext& context,
                        Problems& problems) {
  const FrontEnd& front = find_front_end(name);
  JobSource source;
  const std::string_view settings = method == "full" ? front.full : method.empty() ? "" : front.lora;
  add_keys(settings, source.keys);
  add_keys(stage_settings(front, context), source.keys);
  source.file = "--framework " + std::string(front.name);
  ImportContext own = context;
  own.format = std::string(front.name);
  return import_source(source, own, problems);
}

}  // namespace membill::io
