// PEFT's adapter_config.json: the adapter of a job, not its batch or precision.
#include "base/text.h"
#include "io/importers/formats.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"base_model_name_or_path", "", "model"},
    {"peft_type", "LORA", "which adapters"},
    {"r", "8", "rank of the adapters"},
    {"lora_alpha", "8", "scale of the adapters"},
    {"lora_dropout", "0.0", "dropout before the adapters"},
    {"target_modules", "", "modules that get an adapter"},
    {"modules_to_save", "", "modules that train whole"},
    {"use_dora", "false", "DoRA"},
    {"init_r", "12", "AdaLoRA's first rank"},
    {"num_virtual_tokens", "", "tokens of prompt, prefix and p-tuning"},
};
constexpr std::string_view kHarmless =
    "task_type inference_mode bias fan_in_fan_out init_lora_weights layers_to_transform layers_pattern rank_pattern* "
    "alpha_pattern* "
    "megatron_* loftq_config* eva_config* corda_config* use_rslora layer_replication revision auto_mapping* "
    "exclude_modules lora_bias "
    "trainable_token_indices target_parameters runtime_config* qalora_group_size use_qalora peft_version "
    "ensure_weight_tying "
    "feedforward_modules token_dim num_* prompt_tuning_* encoder_* prefix_projection target_r tinit tfinal deltaT "
    "beta1 beta2 "
    "orth_reg_weight total_step d_initial projection_prng_key save_projection vera_dropout alora_* arrow_config "
    "velora_config "
    "use_bdlora kasa_config monteclora_config lora_ga_config";
constexpr std::string_view kSource = "huggingface/peft 5d602fd: src/peft/tuners/lora/config.py";

struct Type {
  std::string_view name, method;
};
constexpr Type kTypes[] = {{"lora", "lora"},       {"adalora", "adalora"},      {"vera", "vera"},
                           {"ia3", "ia3"},         {"prompt-tuning", "prompt"}, {"prefix-tuning", "prefix"},
                           {"p-tuning", "ptuning"}};

int claim(const JobSource& source) { return !source.arguments && source.keys.find("peft_type") != nullptr ? 100 : 0; }

void read(const JobSource& source, Draft& draft) {
  KeyReader reader(source.keys, source.file, {peft_table()}, draft.problems);
  draft.model = reader.text("base_model_name_or_path");
  draft.model_key = "base_model_name_or_path";
  draft.bf16 = true;
  const std::string type = to_kebab(reader.text("peft_type").value_or("LORA"));
  std::string method;
  for (const Type& known : kTypes) {
    if (known.name == type) method = known.method;
  }
  if (method.empty())
    reader.problem("peft_type", quoted(type) + " is not billed", "LORA, ADALORA, VERA, IA3, PROMPT_TUNING");
  LoraArguments lora;
  lora.rank = reader.count("r", 1);
  lora.alpha = reader.count("lora_alpha");
  lora.dropout = reader.real("lora_dropout");
  const Value* targets = reader.given("target_modules");
  if (targets != nullptr && targets->is_string()) {
    lora.targets = {targets->as_string()};
  } else {
    lora.targets = reader.texts("target_modules");
  }
  lora.modules_to_save = reader.texts("modules_to_save");
  lora.dora = reader.flag("use_dora");
  if (method.starts_with("p")) {
    draft.set("adapter.virtual_tokens", reader.count("num_virtual_tokens", 1));
  } else {
    set_lora(lora, draft);
  }
  if (method == "adalora") draft.set("adapter.init_rank", reader.count("init_r", 1));
  if (!method.empty() && method != "lora") draft.set("method", Value::of(method));
  draft.assume("an adapter's file says neither batch nor length nor optimizer: membill's defaults are taken");
  draft.add_records(reader);
}

}  // namespace

KeyTable peft_table() { return {kRows, kHarmless, kSource}; }

Importer peft_importer() { return {"peft", "PEFT's adapter_config.json", kSource, claim, read}; }

}  // namespace membill::io
