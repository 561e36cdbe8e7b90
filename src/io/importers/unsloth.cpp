// Unsloth: the studio's YAML (blocks training and lora), the CLI's flags and its scripts'.
#include "base/text.h"
#include "io/importers/formats.h"
#include "io/importers/training_arguments.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"model", "", "model"},
    {"model_name", "", "", "model"},
    {"base_model", "", "", "model"},
    {"model_name_or_path", "", "", "model"},
    {"model_id", "", "", "model"},
    {"training.training_type", "lora", "which parameters train"},
    {"training_type", "", "", "training.training_type"},
    {"training.max_seq_length", "2048", "tokens of a sequence"},
    {"max_seq_length", "", "", "training.max_seq_length"},
    {"training.load_in_4bit", "true", "4-bit base"},
    {"load_in_4bit", "", "", "training.load_in_4bit"},
    {"load_in_8bit", "false", "8-bit base"},
    {"full_finetuning", "false", "all weights train"},
    {"training.batch_size", "2", "micro-batch"},
    {"batch_size", "", "", "training.batch_size"},
    {"per_device_train_batch_size", "", "", "training.batch_size"},
    {"training.gradient_accumulation_steps", "4", "micro-batches of a step"},
    {"gradient_accumulation_steps", "", "", "training.gradient_accumulation_steps"},
    {"training.packing", "false", "several samples share a sequence"},
    {"packing", "", "", "training.packing"},
    {"training.gradient_checkpointing", "unsloth", "unsloth: checkpoints live on the host"},
    {"gradient_checkpointing", "", "", "training.gradient_checkpointing"},
    {"use_gradient_checkpointing", "", "", "training.gradient_checkpointing"},
    {"training.optim", "adamw_8bit", "optimizer"},
    {"optim", "", "", "training.optim"},
    {"lora.lora_r", "16", "rank of the adapters"},
    {"lora_r", "", "", "lora.lora_r"},
    {"r", "", "", "lora.lora_r"},
    {"lora.lora_alpha", "16", "scale of the adapters"},
    {"lora_alpha", "", "", "lora.lora_alpha"},
    {"lora.lora_dropout", "0.0", "dropout before the adapters"},
    {"lora_dropout", "", "", "lora.lora_dropout"},
    {"lora.target_modules", "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj", "modules that get an adapter"},
    {"target_modules", "", "", "lora.target_modules"},
    {"modules_to_save", "", "modules that train whole"},
    {"lora.vision_all_linear", "false", "every linear gets an adapter"},
    {"lora.use_dora", "false", "DoRA"},
    {"use_dora", "", "", "lora.use_dora"},
    {"lora.finetune_vision_layers", "", "layers of the vision tower get adapters"},
    {"lora.finetune_language_layers", "true", "layers of the language model get adapters"},
    {"lora.finetune_attention_modules", "true", "attention gets adapters"},
    {"lora.finetune_mlp_modules", "true", "MLPs get adapters"},
    {"finetune_vision_layers", "", "", "lora.finetune_vision_layers"},
    {"finetune_language_layers", "", "", "lora.finetune_language_layers"},
    {"finetune_attention_modules", "", "", "lora.finetune_attention_modules"},
    {"finetune_mlp_modules", "", "", "lora.finetune_mlp_modules"},
    {"dtype", "", "dtype of the weights; absent: bf16 where the card can"},
};
constexpr std::string_view kHarmless =
    "training.output_dir audio_input "
    "training.num_epochs training.learning_rate training.warmup_* training.max_steps training.save_steps "
    "training.eval_steps "
    "training.weight_decay training.random_seed training.train_on_completions training.lr_scheduler_type "
    "training.trust_remote_code "
    "training.tensorboard_dir training.dataset* lora.use_rslora lora.use_loftq logging* inference* "
    "data* output_dir "
    "dataset local_dataset format_type num_epochs learning_rate warmup_steps max_steps save_* weight_decay random_seed "
    "seed "
    "train_on_completions use_rslora use_loftq enable_wandb wandb_* enable_tensorboard tensorboard_dir "
    "hf_token bias "
    "random_state loftq_config report_to logging_steps lr_scheduler_type push_* hub_* quantization* audio_type "
    "training.audio_type is_vision "
    "warmup_ratio dataset_* embedding_learning_rate training.embedding_* gguf* vision*";
constexpr std::string_view kSource =
    "unslothai/unsloth 015bdef: unsloth_cli/config.py, unsloth/models/loader.py, studio";

int claim(const JobSource& source) {
  for (const std::string& word : source.launch.program) {
    if (to_lower(word).find("unsloth") != std::string::npos) return 95;
  }
  const Value* training = source.keys.find("training");
  const Value* lora = source.keys.find("lora");
  const bool blocks = training != nullptr && training->is_map() &&
                      count_keys(*training, "max_seq_length batch_size load_in_4bit optim gradient_checkpointing") > 1;
  return blocks ? (lora != nullptr ? 100 : 80) : 0;
}

constexpr LeftOut kLeftOut[] = {
    {"lora.finetune_vision_layers", "gives the vision tower adapters, which are not billed"},
    {"lora.finetune_language_layers", "false leaves the language model without adapters: they are billed", true},
    {"lora.finetune_attention_modules", "false leaves attention without adapters: they are billed", true},
    {"lora.finetune_mlp_modules", "false leaves MLPs without adapters: they are billed", true}};

void read_method(const Launch& launch, KeyReader& reader, Draft& draft) {
  if (reader.flag("lora.vision_all_linear") || reader.is_given("lora.finetune_vision_layers"))
    warn_of_left_out(kLeftOut, reader, draft);
  const std::string type = to_lower(reader.text("training.training_type").value_or("lora"));
  if (type == "full" || reader.flag("full_finetuning")) {
    draft.set("method", Value::of("full"));
    return;
  }
  LoraArguments lora;
  const bool trains = !launch.program.empty() && launch.program.front() == "unsloth";  // unsloth train
  const bool by_cli = (trains || reader.map().find("training") != nullptr) && !reader.is_given("lora.lora_r");
  lora.rank = by_cli ? 64 : reader.count("lora.lora_r", 1);  // unsloth_cli/config.py; get_peft_model(r = 16)
  lora.alpha = reader.count("lora.lora_alpha");
  lora.dropout = reader.real("lora.lora_dropout");
  lora.targets = reader.texts("lora.target_modules");
  lora.modules_to_save = reader.texts("modules_to_save");
  for (const char* whole : {"embed_tokens", "lm_head"})  // unsloth/models/llama.py: these train whole
    if (std::erase(lora.targets, whole) > 0) lora.modules_to_save.emplace_back(whole);
  if (reader.flag("lora.vision_all_linear")) lora.targets = {"all-linear"};
  lora.dora = reader.flag("lora.use_dora");
  set_lora(lora, draft);
  if (reader.flag("load_in_8bit")) {
    set_bits(8, "", false, false, draft);
  } else if (reader.flag("training.load_in_4bit") && !type.starts_with("lora-16")) {
    set_bits(4, "nf4", true, false, draft);
  }
}

void read(const JobSource& source, Draft& draft) {
  KeyReader reader(source.keys, source.file, {{kRows, kHarmless, kSource}, training_arguments_table()}, draft.problems);
  draft.model = reader.text("model");
  draft.set("implementation", Value::of("unsloth"));
  const std::string dtype = dtype_word(reader.text("dtype").value_or("bf16"));
  draft.load_dtype = dtype.empty() ? "bf16" : dtype;
  (draft.load_dtype == "fp16" ? draft.fp16 : draft.bf16) = draft.load_dtype != "fp32";
  read_method(source.launch, reader, draft);
  draft.set("seq", reader.count("training.max_seq_length", 1));
  draft.set("batch", reader.count("training.batch_size", 1));
  draft.set("accumulate", reader.count("training.gradient_accumulation_steps", 1));
  const bool packing = reader.flag("training.packing");
  draft.set("packing", Value::of(packing));
  if (!packing) draft.set("lengths", Value::of("varied"));
  const std::string checkpointing = to_lower(reader.text("training.gradient_checkpointing").value_or("unsloth"));
  const bool on = checkpointing != "false" && checkpointing != "none";
  draft.set("checkpointing", Value::of(on ? "full" : "none"));
  if (on && checkpointing.find("unsloth") != std::string::npos) draft.set("checkpointing.offload", Value::of(true));
  set_optimizer(reader.text("training.optim").value_or("adamw_8bit"), draft);
  draft.add_records(reader);
}

}  // namespace

KeyTable unsloth_table() { return {kRows, kHarmless, kSource}; }

Importer unsloth_importer() { return {"unsloth", "Unsloth's studio YAML and CLI flags", kSource, claim, read}; }

}  // namespace membill::io
