#include "io/importers/accelerate.h"

#include "base/text.h"
#include "io/importers/deepspeed.h"
#include "io/importers/formats.h"
#include "io/importers/fsdp.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"distributed_type", "NO", "who runs the step on several cards"},
    {"mixed_precision", "no", "autocast, and the dtype of gathered units"},
    {"num_processes", "", "cards in all"},
    {"num_machines", "1", "machines"},
    {"use_cpu", "false", "no card at all"},
    {"deepspeed_config", "", "DeepSpeed's part"},
    {"deepspeed_config.deepspeed_config_file", "", "a DeepSpeed file"},
    {"deepspeed_config.zero3_save_16bit_model", "false", "a checkpoint holds the whole weights"},
    {"deepspeed_config.zero_stage", "2", "ZeRO stage"},
    {"deepspeed_config.offload_optimizer_device", "none", "where master weights and states live"},
    {"deepspeed_config.offload_param_device", "none", "where the weights' shards live (stage 3)"},
    {"deepspeed_config.gradient_accumulation_steps", "", "micro-batches of a step"},
    {"deepspeed_config.gradient_clipping", "", "gradients are clipped by norm"},
    {"fsdp_config", "", "FSDP's part"},
    {"parallelism_config.parallelism_config_dp_replicate_size", "1", "replicas"},
    {"parallelism_config.parallelism_config_dp_shard_size", "1", "cards of a shard group"},
    {"parallelism_config.parallelism_config_tp_size", "1", "tensor parallel degree"},
    {"parallelism_config.parallelism_config_cp_size", "1", "context parallel degree"},
    {"parallelism_config.parallelism_config_sp_size", "1", "sequence parallel (Ulysses) degree"},
    {"megatron_lm_config.megatron_lm_tp_degree", "1", "tensor parallel degree"},
    {"megatron_lm_config.megatron_lm_pp_degree", "1", "pipeline parallel degree"},
    {"megatron_lm_config.megatron_lm_sequence_parallelism", "true", "sequence parallelism"},
    {"megatron_lm_config.megatron_lm_recompute_activations", "true", "selective recompute"},
    {"megatron_lm_config.megatron_lm_use_distributed_optimizer", "true", "the optimizer is sharded"},
    {"dynamo_config.dynamo_backend", "NO", "torch.compile"},
    {"dynamo_backend", "", "", "dynamo_config.dynamo_backend"},
    {"gradient_accumulation_steps", "", "micro-batches of a step"},
};
constexpr std::string_view kHarmless =
    "compute_environment debug machine_rank gpu_ids main_process_ip main_process_port rdzv_backend same_network "
    "main_training_function enable_cpu_affinity fp8_config* mpirun_config* downcast_bf16 tpu_name tpu_zone "
    "tpu_use_cluster "
    "tpu_use_sudo command_file commands tpu_vm tpu_env ec2_instance_type iam_role_name image_uri profile region "
    "base_job_name "
    "pytorch_version transformers_version py_version sagemaker_inputs_file sagemaker_metrics_file additional_args* "
    "deepspeed_config.zero3_init_flag "
    "deepspeed_config.deepspeed_multinode_launcher "
    "deepspeed_config.deepspeed_hostfile deepspeed_config.deepspeed_inclusion_filter "
    "deepspeed_config.deepspeed_exclusion_filter "
    "deepspeed_config.deepspeed_moe_layer_cls_names deepspeed_config.offload_optimizer_nvme_path "
    "deepspeed_config.offload_param_nvme_path parallelism_config.parallelism_config_cp_comm_strategy "
    "parallelism_config.parallelism_config_cp_backend parallelism_config.parallelism_config_sp_* use_xpu ipex_config* "
    "megatron_lm_config.megatron_lm_num_micro_batches megatron_lm_config.megatron_lm_gradient_clipping main_process_* "
    "comment fsdp kt_config* dynamo_config.dynamo_mode dynamo_config.dynamo_use_*";
constexpr std::string_view kSource =
    "huggingface/accelerate 16cb6eb: commands/config/config_args.py, utils/dataclasses.py";

// The plugin's fields as DeepSpeed's own map: sizes that it leaves out take DeepSpeed's defaults.
Value plugin_config(KeyReader& reader) {
  const auto device = [&](const char* key) {
    return Value::make_map({{"device", Value::of(reader.text(key).value_or("none"))}});
  };
  const std::int64_t stage = reader.count("deepspeed_config.zero_stage").value_or(2);
  const Value zero = Value::make_map({{"stage", Value::of(stage)},
                                      {"offload_optimizer", device("deepspeed_config.offload_optimizer_device")},
                                      {"offload_param", device("deepspeed_config.offload_param_device")},
                                      {"stage3_gather_16bit_weights_on_model_save",
                                       Value::of(reader.flag("deepspeed_config.zero3_save_16bit_model"))}});
  const Value automatic = Value::make_map({{"enabled", Value::of("auto")}});
  return Value::make_map({{"bf16", automatic}, {"fp16", automatic}, {"zero_optimization", zero}});
}

void read_deepspeed(KeyReader& reader, Draft& draft) {
  const DeepSpeedFill fill{draft.bf16, draft.fp16};
  if (const Value* path = reader.given("deepspeed_config.deepspeed_config_file")) {
    return read_deepspeed_argument(*path, "deepspeed_config.deepspeed_config_file", fill, draft);
  }
  std::vector<KeyRecord> kept = draft.records;
  read_deepspeed_part(plugin_config(reader), reader.file(), fill, draft);
  draft.records = std::move(kept);  // the plugin's own keys are recorded by this table
  for (const char* key : {"gradient_accumulation_steps", "gradient_clipping"}) {
    const std::string dotted = "deepspeed_config." + std::string(key);
    if (!reader.is_given(dotted) || reader.text(dotted) == "auto") continue;
    if (std::string_view(key) == "gradient_clipping") {
      draft.set("clip", Value::of(reader.real(dotted).value_or(0) > 0));
    } else if (draft.plan.find("accumulate") == nullptr) {
      draft.set("accumulate", reader.count(dotted, 1));
    }
  }
}

void read_parallelism(KeyReader& reader, Draft& draft) {
  const std::string prefix = "parallelism_config.parallelism_config_";
  const auto degree = [&](const char* name) { return reader.count(prefix + name, 1).value_or(1); };
  if (reader.map().find("parallelism_config") == nullptr) return;
  if (const std::int64_t tp = degree("tp_size"); tp > 1) draft.set("parallel.tp", std::optional(tp));
  if (const std::int64_t cp = degree("cp_size"); cp > 1) draft.set("parallel.cp", std::optional(cp));
  if (const std::int64_t sp = degree("sp_size"); sp > 1) draft.set("parallel.ulysses", std::optional(sp));
  take_data_parallel(reader, prefix + "dp_replicate_size", prefix + "dp_shard_size", draft);
}

void read_megatron(KeyReader& reader, Draft& draft) {
  const std::string prefix = "megatron_lm_config.megatron_lm_";
  draft.set("engine", Value::of("megatron"));
  draft.set("implementation", Value::of("megatron"));
  draft.set("parallel.tp", reader.count(prefix + "tp_degree", 1));
  draft.set("parallel.pp", reader.count(prefix + "pp_degree", 1));
  draft.set("parallel.sp", Value::of(reader.flag(prefix + "sequence_parallelism")));
  if (reader.flag(prefix + "recompute_activations")) draft.set("checkpointing", Value::of("selective:core_attn"));
  draft.set("sharding.zero", Value::of(reader.flag(prefix + "use_distributed_optimizer") ? 1 : 0));
}

void read_engine(KeyReader& reader, const std::string& type, Draft& draft) {
  if (!plan_text(draft, "engine").empty()) return;  // the job's own says it
  if (type == "DEEPSPEED") return read_deepspeed(reader, draft);
  if (type == "MEGATRON_LM") return read_megatron(reader, draft);
  const Value* fsdp = reader.given("fsdp_config");
  if (type != "FSDP") return;
  draft.fsdp_upcasts = true;
  FsdpSurroundings around;
  around.wrap = false;
  around.prefix = "fsdp_config.";
  read_fsdp_part(fsdp == nullptr ? Value::make_map() : *fsdp, reader.file(), around, draft);
}

int claim(const JobSource& source) {
  if (source.arguments) return 0;
  const int keys = count_keys(source.keys,
                              "distributed_type num_processes num_machines mixed_precision compute_environment "
                              "main_training_function machine_rank downcast_bf16 rdzv_backend");
  return keys >= 4 ? 100 : keys >= 2 ? 70 : 0;
}

void read(const JobSource& source, Draft& draft) { read_accelerate_part(source.keys, source.file, draft); }

}  // namespace

void read_accelerate_part(const Value& config, const std::string& file, Draft& draft) {
  KeyReader reader(config, file, {accelerate_table()}, draft.problems);
  const std::optional<std::int64_t> processes =
      reader.text("num_processes") == "-1" ? std::nullopt : reader.count("num_processes", 1);
  if (processes) draft.processes = processes;
  if (const auto machines = reader.count("num_machines", 1)) draft.nodes = machines;
  const std::string precision = to_lower(reader.text("mixed_precision").value_or("no"));
  if (!draft.bf16 && !draft.fp16) {
    draft.bf16 = precision == "bf16" || precision == "fp8";
    draft.fp16 = precision == "fp16";
    if (precision == "fp8") draft.warnings.push_back("fp8 of accelerate is billed as bf16 autocast");
  }
  if (reader.flag("use_cpu")) reader.problem("use_cpu", "the job runs on no card");
  read_engine(reader, reader.text("distributed_type").value_or("NO"), draft);
  read_parallelism(reader, draft);
  if (const std::string dynamo = to_lower(reader.text("dynamo_config.dynamo_backend").value_or("no"));
      dynamo != "no" && dynamo != "false")
    draft.set("compile", Value::of(true));
  if (draft.plan.find("accumulate") == nullptr && reader.is_given("gradient_accumulation_steps"))
    draft.set("accumulate", reader.count("gradient_accumulation_steps", 1));
  draft.add_records(reader);
}

KeyTable accelerate_table() { return {kRows, kHarmless, kSource}; }

Importer accelerate_importer() {
  return {"accelerate", "accelerate's YAML, with its DeepSpeed or FSDP part", kSource, claim, read};
}

}  // namespace membill::io
