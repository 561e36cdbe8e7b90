#include "io/importers/training_arguments.h"

#include "base/release.h"
#include "base/text.h"
#include "io/importers/accelerate.h"
#include "io/importers/deepspeed.h"
#include "io/importers/fsdp.h"
#include "io/importers/parts.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"per_device_train_batch_size", "8", "micro-batch"},
    {"per_gpu_train_batch_size", "", "", "per_device_train_batch_size"},
    {"gradient_accumulation_steps", "1", "micro-batches of a step"},
    {"per_device_eval_batch_size", "8", "batch of the evaluation"},
    {"per_gpu_eval_batch_size", "", "", "per_device_eval_batch_size"},
    {"eval_strategy", "no", "whether the job evaluates"},
    {"evaluation_strategy", "", "", "eval_strategy"},
    {"eval_on_start", "false", "whether the job evaluates"},
    {"save_strategy", "steps", "whether checkpoints are saved"},
    {"save_steps", "500", "whether checkpoints are saved"},
    {"save_only_model", "false", "checkpoints leave out the optimizer's states"},
    {"bf16", "false", "autocast in bf16; weights keep the dtype in which they were loaded"},
    {"fp16", "false", "autocast in fp16; weights keep the dtype in which they were loaded"},
    {"gradient_checkpointing", "false", "layers run their forward again in backward"},
    {"activation_checkpointing", "", "", "gradient_checkpointing"},
    {"gradient_checkpointing_kwargs", "", "how layers are checkpointed"},
    {"activation_checkpointing_kwargs", "", "", "gradient_checkpointing_kwargs"},
    {"gradient_checkpointing_kwargs.use_reentrant", "", "reentrant checkpointing"},
    {"activation_checkpointing_kwargs.use_reentrant", "", "", "gradient_checkpointing_kwargs.use_reentrant"},
    {"gradient_checkpointing_kwargs.every_n_layers", "", "only every n-th layer is checkpointed"},
    {"activation_checkpointing_kwargs.every_n_layers", "", "", "gradient_checkpointing_kwargs.every_n_layers"},
    {"gradient_checkpointing_kwargs.offload", "", "checkpoints live on the host"},
    {"activation_checkpointing_kwargs.offload", "", "", "gradient_checkpointing_kwargs.offload"},
    {"optim", "adamw_torch_fused", "optimizer"},
    {"optim_args", "", "arguments of the optimizer"},
    {"optim_target_modules", "", "linears that get low-rank states"},
    {"adafactor", "false", "old spelling of optim adafactor"},
    {"max_grad_norm", "1.0", "gradients are clipped by norm"},
    {"torch_compile", "false", "torch.compile"},
    {"torch_compile_backend", "", "whose code torch.compile makes; given, it switches it on"},
    {"torchdynamo", "", "", "torch_compile_backend"},
    {"torch_compile_mode", "", "how torch.compile works; given, it switches it on"},
    {"use_liger_kernel", "false", "Liger's kernels"},
    {"use_liger", "", "", "use_liger_kernel"},
    {"liger_kernel_config", "", "which of Liger's kernels"},
    {"deepspeed", "", "DeepSpeed's configuration"},
    {"fsdp", "", "FSDP's strategy"},
    {"fsdp_config", "", "FSDP's options"},
    {"fsdp_min_num_params", "", "the least size of a unit"},
    {"fsdp_transformer_layer_cls_to_wrap", "", "the class of a unit"},
    {"ddp_bucket_cap_mb", "", "MB of a reducer bucket"},
    {"ddp_find_unused_parameters", "", "DDP looks for parameters without gradient"},
    {"ddp_static_graph", "", "DDP takes the graph of the first step for all"},
    {"auto_find_batch_size", "false", "the batch is halved after an out of memory error"},
    {"label_smoothing_factor", "0.0", "the loss is computed of the whole logits, outside of the model"},
    {"neftune_noise_alpha", "", "one noise tensor of the embedding's size"},
    {"group_by_length", "false", "the first batches are the longest"},
    {"train_sampling_strategy", "", "", "group_by_length"},
    {"resume_from_checkpoint", "", "the states are read beside the live ones while loading"},
    {"parallelism_config", "", "degrees of parallelism"},
    {"prediction_loss_only", "false", "the evaluation keeps no logits"},
    {"eval_accumulation_steps", "", "after how many steps the evaluation's logits go to the host"},
    {"use_cpu", "", "the job runs on the CPU"},
    {"no_cuda", "", "", "use_cpu"},
};

constexpr std::string_view kHarmless =
    "use_cache output_dir overwrite_output_dir do_train do_eval do_predict eval_delay torch_empty_cache_steps "
    "learning_rate "
    "weight_decay "
    "adam_beta1 adam_beta2 adam_epsilon num_train_epochs max_steps lr_scheduler_type lr_scheduler_kwargs* warmup_ratio "
    "warmup_steps "
    "log_level log_level_replica log_on_each_node logging_dir logging_strategy logging_first_step logging_steps "
    "logging_nan_inf_filter save_total_limit save_safetensors save_on_each_node "
    "restore_callback_states_from_checkpoint use_mps_device seed data_seed jit_mode_eval use_ipex "
    "fp16_opt_level "
    "half_precision_backend bf16_full_eval fp16_full_eval tf32 local_rank ddp_backend tpu_num_cores tpu_metrics_debug "
    "debug "
    "dataloader_drop_last eval_steps dataloader_num_workers dataloader_prefetch_factor past_index run_name "
    "disable_tqdm "
    "remove_unused_columns label_names load_best_model_at_end metric_for_best_model greater_is_better ignore_data_skip "
    "accelerator_config* length_column_name report_to ddp_broadcast_buffers dataloader_pin_memory "
    "dataloader_persistent_workers skip_memory_metrics use_legacy_prediction_loop push_to_hub hub_model_id "
    "hub_strategy hub_token "
    "hub_private_repo hub_always_push hub_revision trackio_* dataloader_multiprocessing_context dataloader_in_order "
    "include_inputs_for_metrics include_for_metrics "
    "eval_do_concat_batches fp16_backend "
    "push_to_hub_model_id push_to_hub_organization push_to_hub_token _n_gpu mp_parameters full_determinism "
    "ray_scope "
    "ddp_timeout include_tokens_per_second include_num_input_tokens_seen "
    "batch_eval_metrics "
    "eval_use_gather_object average_tokens_across_devices project enable_jit_checkpoint min_lr_ratio "
    "lr_scheduler wandb_project wandb_entity wandb_name hub_model_revision logging_step max_eval_samples "
    "max_train_samples";

constexpr std::string_view kSource = "transformers 4.56 and 5: src/transformers/training_args.py";

// Transformers 5 takes two options of its own out of the map.
void read_checkpointing_options(KeyReader& reader, Draft& draft) {
  const std::string prefix = "gradient_checkpointing_kwargs.";
  if (const auto every = reader.count(prefix + "every_n_layers", 1); every.value_or(1) > 1)
    draft.set("checkpointing.every", every);
  if (reader.flag(prefix + "offload")) draft.set("checkpointing.offload", Value::of(true));
}

void read_checkpointing(KeyReader& reader, bool reentrant, Draft& draft) {
  const bool on = reader.flag("gradient_checkpointing");
  draft.set("checkpointing", Value::of(on ? "full" : "none"));
  const Value* options = reader.given("gradient_checkpointing_kwargs");
  bool typed = reentrant;
  if (options != nullptr && options->is_string()) {  // JSON text of a command line
    typed = options->as_string().find("false") == std::string::npos &&
            options->as_string().find("False") == std::string::npos;
  } else if (const auto inside = reader.maybe_flag("gradient_checkpointing_kwargs.use_reentrant")) {
    typed = *inside;
  }
  if (!on) return;
  draft.set("checkpointing.reentrant", Value::of(typed));
  read_checkpointing_options(reader, draft);
}

void read_optimizer(KeyReader& reader, Draft& draft) {
  std::string name = reader.flag("adafactor") ? "adafactor" : reader.text("optim").value_or("adamw_torch_fused");
  const std::string release = plan_text(draft, "software.transformers");
  // transformers 4.46 training_args.py: its default then.
  if (!reader.is_given("optim") && name != "adafactor" && !release.empty() && is_before(release, 4, 50))
    name = "adamw_torch";
  set_optimizer(name, draft);
  if (name.ends_with("_layerwise")) {
    set_optimizer(name.substr(0, name.size() - 10), draft);
    set_layerwise(draft);
  }
  if (const Value* arguments = reader.given("optim_args")) set_optimizer_arguments(*arguments, draft);
  reader.use("optim_target_modules");
}

void read_evaluation(KeyReader& reader, Draft& draft) {
  const std::string strategy = to_lower(reader.text("eval_strategy").value_or("no"));
  const bool evaluates = (strategy != "no" && strategy != "false") || reader.flag("eval_on_start");
  if (!evaluates) return;
  draft.set("evaluation.batch", reader.count("per_device_eval_batch_size", 1));
  draft.set("evaluation.accumulation_steps", reader.count("eval_accumulation_steps", 1));
}

// Supervised stages only: the trainers of the others have a key of their own.
void read_label_smoothing(KeyReader& reader, Draft& draft) {
  const double factor = reader.real("label_smoothing_factor").value_or(0);
  const std::string stage = plan_text(draft, "stage");
  if (factor > 0 && (stage.empty() || stage == "sft" || stage == "pretrain"))
    draft.set("stage_args.label_smoothing", Value::of(factor));
}

// Only where the file speaks of it: what is saved by default is saved seldom.
void read_saving(KeyReader& reader, Draft& draft) {
  const bool named = reader.is_given("save_strategy") || reader.is_given("save_steps");
  const std::string strategy = to_lower(reader.text("save_strategy").value_or("steps"));
  draft.saves = named && strategy != "no" && strategy != "false";
  (void)reader.text("save_steps");
  if (draft.saves && reader.flag("save_only_model")) draft.set("save.optimizer", Value::of(false));
}

constexpr LeftOut kLeftOut[] = {
    {"neftune_noise_alpha", "adds noise to the embedding's output: the noise is not billed"},
    {"use_cpu", "runs the job on the CPU: it is billed as on a card"},
    {"resume_from_checkpoint", "reads the saved states beside the live ones while loading: not billed"}};

void state_what_is_left_out(KeyReader& reader, Draft& draft) {
  warn_of_left_out(kLeftOut, reader, draft);
  if (reader.flag("auto_find_batch_size"))
    draft.assume("auto_find_batch_size halves the batch when memory runs out: the first batch is billed");
}

// A script may compute the steps from what it is told: two cost what any more cost.
std::optional<std::int64_t> read_accumulation(KeyReader& reader, std::string_view key, Draft& draft) {
  const Value* given = reader.given(key);
  const bool computed = given != nullptr && given->is_string() && given->as_string().find('$') != std::string::npos;
  if (!computed) return reader.count(key, 1);
  draft.assume(std::string(key) + " " + given->as_string() + " is not set in the script: several micro-batches taken");
  return 2;
}

// Arguments of Liger's apply_liger_kernel_to_<type>, with their defaults.
void read_liger_kernels(KeyReader& reader, Draft& draft) {
  const Value* config = reader.given("liger_kernel_config");
  if (config == nullptr || !config->is_map()) return;
  const auto is_on = [&](const char* key, bool otherwise) {
    const Value* value = config->find(key);
    return value != nullptr && value->is_bool() ? value->as_bool() : otherwise;
  };
  const bool fused = is_on("fused_linear_cross_entropy", true), whole = is_on("cross_entropy", false);
  draft.set("liger.rope", Value::of(is_on("rope", true)));
  draft.set("liger.rms_norm", Value::of(is_on("rms_norm", true)));
  draft.set("liger.swiglu", Value::of(is_on("swiglu", is_on("geglu", true))));
  draft.set("liger.cross_entropy", Value::of(fused || whole));
  if (whole && !fused) draft.set("loss", Value::of("native"));
}

}  // namespace

KeyTable training_arguments_table() { return {kRows, kHarmless, kSource}; }

void read_training_arguments(KeyReader& reader, bool reentrant, Draft& draft) {
  draft.set("batch", reader.count("per_device_train_batch_size", 1));
  draft.set("accumulate", read_accumulation(reader, "gradient_accumulation_steps", draft));
  draft.bf16 = reader.flag("bf16");
  draft.fp16 = reader.flag("fp16") && !draft.bf16;
  draft.set("clip", Value::of(reader.real("max_grad_norm").value_or(0) > 0));
  const bool compiles =
      reader.flag("torch_compile") || reader.is_given("torch_compile_backend") || reader.is_given("torch_compile_mode");
  draft.set("compile", Value::of(compiles));
  if (reader.flag("use_liger_kernel")) {
    draft.set("implementation", Value::of("liger"));
    read_liger_kernels(reader, draft);
  }
  read_checkpointing(reader, reentrant, draft);
  read_optimizer(reader, draft);
  read_evaluation(reader, draft);
  read_label_smoothing(reader, draft);
  read_saving(reader, draft);
  state_what_is_left_out(reader, draft);
}

void read_sharding_arguments(KeyReader& reader, const Launch& launch, Draft& draft) {
  if (const Value* argument = reader.given("deepspeed"); argument != nullptr && value_text(*argument) != "false") {
    read_deepspeed_argument(*argument, "deepspeed", {draft.bf16, draft.fp16}, draft);
  } else {
    read_fsdp_arguments(reader, draft);
  }
  if (launch.accelerate) read_accelerate_part(*launch.accelerate, launch.accelerate_file, draft);
  if (plan_text(draft, "engine").empty() && world_size(draft).value_or(1) > 1) {
    draft.set("sharding.bucket_cap_mb", reader.count("ddp_bucket_cap_mb", 1));
    if (const auto unused = reader.maybe_flag("ddp_find_unused_parameters"))
      draft.set("sharding.find_unused_parameters", Value::of(*unused));
    if (reader.flag("ddp_static_graph")) draft.set("sharding.static_graph", Value::of(true));
  }
}

void set_padded(Draft& draft) {
  draft.set("lengths", Value::of("varied"));
  const Value* batch = draft.plan.find("batch");
  if (batch != nullptr && batch->is_int() && batch->as_int() > 1) draft.set("attention_mask", Value::of(true));
}

}  // namespace membill::io
