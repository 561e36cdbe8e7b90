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

const FrontEnd& find_front_end(const std::string& name) {
  std::vector<std::string_view> names;
  for (const FrontEnd& front : kFrontEnds) {
    if (front.name == to_kebab(name)) return front;
    names.push_back(front.name);
  }
  throw InputError(Problem{"command line", "--framework", quoted(name) + " is no framework whose defaults are known",
                           std::string(nearest_word(name, names))});
}

Value keys_of(std::string_view settings) {
  Value keys = Value::make_map();
  for (const std::string& setting : split(settings, ' ')) {
    const std::size_t equals = setting.find('=');
    keys.set(setting.substr(0, equals), flag_value(setting.substr(equals + 1)));
  }
  return keys;
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
  if (!settings.empty()) source.keys = keys_of(settings);
  source.file = "--framework " + std::string(front.name);
  ImportContext own = context;
  own.format = std::string(front.name);
  return import_source(source, own, problems);
}

}  // namespace membill::io
