#include "io/importers/megatron_deepspeed.h"

#include <optional>

#include "io/importers/deepspeed.h"
#include "io/importers/parts.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"deepspeed", "false", "DeepSpeed runs the step"},
    {"deepspeed_config", "", "DeepSpeed's configuration"},
    {"zero_stage", "1", "ZeRO stage, where the configuration is not here"},
    {"cpu_optimizer", "false", "the optimizer lives on the host"},
    {"no_pipeline_parallel", "false", "layers run without DeepSpeed's pipeline"},
    {"deepspeed_activation_checkpointing", "false", "DeepSpeed's checkpoint function runs the layers"},
    {"partition_activations", "false", "checkpoints are split over the tensor-parallel ranks"},
    {"checkpoint_in_cpu", "false", "checkpoints live on the host"},
    {"contigious_checkpointing", "false", "checkpoints of all layers share buffers"},
    {"checkpoint_num_layers", "1", "layers between two checkpoints"},
    {"mlp_type", "standard", "experts of DeepSpeed's own"},
    {"ds_sequence_parallel_size", "1", "Ulysses degree"},
};
constexpr std::string_view kHarmless =
    "deepspeed_mpi deepscale deepscale_config synchronize_each_layer profile_backward split_transformers "
    "zero_reduce_* zero_allgather_* zero_contiguous_gradients remote_device use_pin_memory memory_centric_tiled_linear "
    "tile_factor universal_checkpoint ds_inference ds_fused_adam ds_pipeline_enabled create_moe_param_group topk "
    "moe_train_capacity_factor moe_eval_capacity_factor moe_min_capacity moe_loss_coeff disable_moe_* use_tutel "
    "enable_expert_tensor_parallelism inference curriculum_learning* random_ltd return_data_index data_efficiency_* "
    "use_dataset_only force_ds_sequence_parallel attention_softmax_in_fp32 abort_on_unmet_* train_tokens "
    "lr_warmup_tokens lr_decay_tokens kd* student_* teacher_* cpu_torch_adam codecarbon_dir eval_fp32 hf_loader*";
constexpr std::string_view kSource = "microsoft/Megatron-DeepSpeed: megatron/arguments.py";

// megatron/initialize.py setup_deepspeed_random_and_activation_checkpointing: the flags, not the file's section, configure the function.
void read_checkpoints(KeyReader& reader, Draft& draft) {
  const bool own = reader.flag("deepspeed_activation_checkpointing");
  const bool parts = reader.flag("partition_activations"), host = reader.flag("checkpoint_in_cpu");
  const bool joined = reader.flag("contigious_checkpointing");
  const std::int64_t every = reader.count("checkpoint_num_layers", 1).value_or(1);
  if (!own || plan_text(draft, "checkpointing") != "full") return;
  if (parts) draft.set("sharding.partition_activations", Value::of(true));
  if (host) draft.set("sharding.cpu_checkpointing", Value::of(true));
  if (!joined || !parts) return;
  draft.set("sharding.contiguous_memory_optimization", Value::of(true));
  const Value* layers = reader.map().find("num_layers");
  const Value count = layers == nullptr ? Value() : flag_value(value_text(*layers));
  if (count.is_int() && count.as_int() > 0)
    draft.set("sharding.number_checkpoints", std::optional((count.as_int() + every - 1) / every));
}

// The scripts make the file of a template beside them, with sed.
void read_config(KeyReader& reader, Draft& draft) {
  const Value* path = reader.given("deepspeed_config");
  const bool here =
      path != nullptr && path->is_string() && is_part_here(path->as_string(), draft.folder, draft.files.get());
  const std::int64_t stage = reader.count("zero_stage").value_or(1);
  if (here) return read_deepspeed_argument(*path, "deepspeed_config", {draft.bf16, draft.fp16}, draft);
  const Value zero = Value::make_map({{"stage", Value::of(stage)}});
  const Value on = Value::make_map({{"enabled", Value::of(true)}});
  Value config = Value::make_map({{"zero_optimization", zero}});
  if (draft.bf16 || draft.fp16) config.set(draft.bf16 ? "bf16" : "fp16", on);
  const std::vector<KeyRecord> kept = draft.records;
  read_deepspeed_part(config, draft.file, {}, draft);
  draft.records = kept;  // its keys are this function's
  draft.assume("deepspeed_config is not here: ZeRO stage " + std::to_string(stage) + " with DeepSpeed's own defaults");
}

}  // namespace

KeyTable megatron_deepspeed_table() { return {kRows, kHarmless, kSource}; }

bool runs_on_deepspeed(const JobSource& source) {
  const Value* on = source.keys.find("deepspeed");
  return (on != nullptr && as_flag(*on) == true) || source.keys.find("deepspeed_config") != nullptr;
}

void read_megatron_deepspeed(KeyReader& reader, Draft& draft) {
  reader.use("deepspeed"), reader.use("no_pipeline_parallel");
  draft.bf16 = reader.flag("bf16");
  draft.fp16 = !draft.bf16 && reader.flag("fp16");
  draft.own_precision = false;
  for (const char* key : {"gradient_accumulation_fusion", "cross_entropy_loss_fusion", "overlap_grad_reduce",
                          "cross_entropy_fusion_impl", "grad_accum_dtype"})
    draft.plan.set(std::string("sharding.") + key, Value());
  const Value* batch = draft.plan.find("batch");
  const Value* steps = draft.plan.find("accumulate");
  const Value own_batch = batch == nullptr ? Value() : *batch, own_steps = steps == nullptr ? Value() : *steps;
  read_config(reader, draft);
  if (!own_batch.is_null()) draft.set("batch", own_batch);  // the template's sizes are the script's
  if (!own_steps.is_null()) draft.set("accumulate", own_steps);
  read_checkpoints(reader, draft);
  if (reader.flag("cpu_optimizer") && plan_text(draft, "sharding.offload") == "none") {
    draft.set("sharding.offload", Value::of("optimizer"));
    set_optimizer("cpu-adam", draft);
  }
  if (const auto sp = reader.count("ds_sequence_parallel_size", 1); sp.value_or(1) > 1)
    draft.set("parallel.ulysses", sp);
  if (const auto type = reader.text("mlp_type"); type == "residual")
    draft.warnings.push_back("mlp_type residual: the MLP beside the experts is not billed");
}

}  // namespace membill::io
