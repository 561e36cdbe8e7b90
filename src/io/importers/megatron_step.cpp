#include "io/importers/megatron_step.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "io/importers/parts.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"micro_batch_size", "1", "micro-batch"},
    {"global_batch_size", "", "sequences of a step on all cards"},
    {"seq_length", "", "tokens of a sequence"},
    {"encoder_seq_length", "", "", "seq_length"},
    {"tensor_model_parallel_size", "1", "tensor parallel degree"},
    {"pipeline_model_parallel_size", "1", "pipeline parallel degree"},
    {"context_parallel_size", "1", "context parallel degree"},
    {"expert_model_parallel_size", "1", "expert parallel degree"},
    {"expert_tensor_parallel_size", "", "tensor parallel degree of experts; absent: as outside of them"},
    {"num_layers_per_virtual_pipeline_stage", "", "layers of a virtual stage"},
    {"num_virtual_stages_per_pipeline_rank", "", "virtual stages of a card"},
    {"virtual_pipeline_model_parallel_size", "", "", "num_virtual_stages_per_pipeline_rank"},
    {"sequence_parallel", "false", "sequence parallelism"},
    {"use_distributed_optimizer", "false", "the optimizer is sharded"},
    {"recompute_granularity", "", "full or selective recompute"},
    {"recompute_activations", "false", "selective recompute"},
    {"checkpoint_activations", "false", "full recompute (old spelling)"},
    {"recompute_method", "", "uniform or block"},
    {"activations_checkpoint_method", "", "", "recompute_method"},
    {"recompute_num_layers", "", "layers of a unit (uniform), or that are recomputed (block)"},
    {"recompute_modules", "core_attn", "what selective recomputes"},
    {"bf16", "false", "bf16 weights with an fp32 master"},
    {"fp16", "false", "fp16 weights with an fp32 master"},
    {"grad_reduce_in_bf16", "false", "gradients accumulate in bf16"},
    {"main_grads_dtype", "fp32", "dtype in which gradients accumulate"},
    {"exp_avg_dtype", "fp32", "dtype of the first moment"},
    {"optimizer", "adam", "optimizer"},
    {"optimizer_cpu_offload", "false", "the optimizer lives on the host"},
    {"clip_grad", "1.0", "gradients are clipped by norm"},
    {"use_flash_attn", "false", "flash attention"},
    {"attention_backend", "", "attention kernel"},
    {"transformer_impl", "transformer_engine", "whose layers"},
    {"use_mcore_models", "false", "whose layers"},
    {"fp8_format", "", "fp8 linears"},
    {"use_megatron_fsdp", "false", "Megatron's FSDP"},
    {"use_torch_fsdp2", "false", "FSDP2"},
    {"cross_entropy_loss_fusion", "false", "fused loss"},
    {"cross_entropy_fusion_impl", "native", "whose kernels the fused loss takes"},
    {"mtp_num_layers", "", "next-token layers"},
    {"no_gradient_accumulation_fusion", "false", "weight gradients are tensors of their own"},
    {"overlap_grad_reduce", "false", "gradients are reduced in buckets"},
    {"distribute_saved_activations", "false", "what full recompute keeps is split over the tensor-parallel ranks"},
    {"moe_token_dispatcher_type", "allgather", "how rows reach their experts"},
    {"moe_grouped_gemm", "false", "a rank's experts run together"},
    {"moe_expert_capacity_factor", "", "most that an expert takes"},
    {"moe_pad_expert_input_to_capacity", "false", "each expert gets its capacity, padded"},
    {"moe_router_load_balancing_type", "aux_loss", "the router's auxiliary loss"},
    {"moe_aux_loss_coeff", "0", "its weight; 0: there is none"},
    {"moe_router_dtype", "", "dtype of the router"},
    {"moe_layer_recompute", "false", "layers of experts are recomputed"},
    {"save", "", "where checkpoints are saved"},
    {"no_save_optim", "false", "checkpoints leave out the optimizer's states"},
    {"dist_ckpt_optim_fully_reshardable", "false", "a checkpoint's optimizer states are gathered by bucket"},
    {"distrib_optim_fully_reshardable_mem_efficient", "false", "they are gathered on the host"},
    {"decoder_first_pipeline_num_layers", "", "layers of the first stage"},
    {"decoder_last_pipeline_num_layers", "", "layers of the last stage"},
};
constexpr std::string_view kHarmless =
    "data_path train_data_path valid_data_path test_data_path vocab_file merge_file merges_file tokenizer_model "
    "tokenizer_* split load "
    "save_* log_* eval_iters eval_interval train_iters train_samples lr* min_lr weight_decay adam_* init_method_std "
    "seed exit_* "
    "distributed_* overlap_* tensorboard_* wandb_* no_* use_cpu_initialization use_mcore_models num_workers rotary_* "
    "norm_epsilon "
    "attention_softmax_in_fp32 accumulate_allreduce_grads_in_fp32 loss_scale initial_loss_scale hysteresis "
    "min_loss_scale rampup_* "
    "data_cache_path dataloader_type mock_data ckpt_* dist_* async_save moe_* reset_* finetune apply_* bias_* "
    "masked_softmax_fusion "
    "gradient_accumulation_fusion manual_gc* profile* use_checkpoint_* auto_detect_* vocab_extra_ids timing_* "
    "empty_unused_memory_level "
    "ddp_* tp_comm_* enable_* use_* DDP_impl attention_* squared_relu override_* start_weight_decay end_weight_decay "
    "weight_decay_* "
    "checkpoint_* decoder_* encoder_* ffn_ export_* te_* model_* per_split_data_args_path clone_* cuda_graph* "
    "external_cuda_graph "
    "delay_* create_attention_mask_in_dataloader q_lora_rank kv_lora_rank qk_* v_head_dim multi_latent_attention "
    "standalone_* "
    "pipeline_model_parallel_* align_* disable_* position_* untie_* make_* openai_gelu onnx_safe hidden_dropout mask_* "
    "task epochs activation_func_clamp_value algorithm allow_missing_* answer_file async_* batch_boundaries "
    "calculate_per_token_loss check_weight_hash_* checkpoint container_* cp_comm_type "
    "dataloader_save dataset_provider decode_only_* decoupled_* deterministic_mode drain_* eod_* finetune_* fp8_* "
    "first_last_* freeze_* glu_linear_offset grpo_* gt_path guess_file hf_* hypothesis image_tag_type img_* "
    "incoming_* inference_* input_* langrl_* language_model_type max_num_tiles max_tokens_to_oom mscale* "
    "num_partitions num_prompt_examples num_samples num_tokens_to_generate out_* output_* patch_dim prompt_* "
    "query_in_block_prob rl_* special_tokens stream temperature top_k top_p use_te vision_model_type "
    "retriever_* recompute_vision pretrained_* tiktoken_pattern total_seq_length straggler_* trust_remote_code verbose "
    "sample_* rope_* quick_geglu window_* softmax_type spec pixel_shuffle packing_* rerun_* partition_id references "
    "return_log_probs termination_id mode nproc output load_data_args max_new_tokens";
constexpr std::string_view kSource = "NVIDIA/Megatron-LM: megatron/training/arguments.py";

std::int64_t degree(KeyReader& reader, const char* key) {
  return std::min<std::int64_t>(reader.count(key, 1).value_or(1), 1'000'000);
}

// Experts are split over the tensor-parallel ranks unless the job says otherwise.
std::int64_t expert_degree(KeyReader& reader, std::int64_t tp) {
  const auto given = reader.count("expert_tensor_parallel_size", 1);
  return std::min<std::int64_t>(given.value_or(reader.map().find("num_experts") != nullptr ? tp : 1), 1'000'000);
}

// The least cards of a pipeline stage that both splits of it divide: the layers', and the experts'.
std::int64_t cards_of_stage(std::int64_t split, std::int64_t experts_split) {
  constexpr std::int64_t kMost = 1'000'000;
  const bool small = split >= 1 && split <= kMost && experts_split >= 1 && experts_split <= kMost;
  return small ? std::lcm(split, experts_split) : std::max<std::int64_t>(1, split);
}

void read_parallelism(KeyReader& reader, Draft& draft) {
  const std::int64_t tp = degree(reader, "tensor_model_parallel_size"),
                     pp = degree(reader, "pipeline_model_parallel_size");
  const std::int64_t cp = degree(reader, "context_parallel_size"), ep = degree(reader, "expert_model_parallel_size");
  const std::int64_t expert_tp = expert_degree(reader, tp);
  const std::pair<const char*, std::int64_t> degrees[] = {{"parallel.tp", tp},
                                                          {"parallel.pp", pp},
                                                          {"parallel.cp", cp},
                                                          {"parallel.ep", ep},
                                                          {"parallel.expert_tp", expert_tp}};
  for (const auto& [key, value] : degrees) draft.set(key, std::optional(value));
  draft.set("parallel.sp", Value::of(tp > 1 && reader.flag("sequence_parallel")));
  if (const auto stages = reader.count("num_virtual_stages_per_pipeline_rank", 1)) {
    draft.set("parallel.virtual_pp", stages);
  } else if (const auto layers = reader.count("num_layers_per_virtual_pipeline_stage", 1)) {
    const Value* all = reader.map().find("num_layers");
    const std::int64_t whole = all != nullptr && all->is_int() ? all->as_int() : 0;
    if (whole / pp / *layers >= 1) draft.set("parallel.virtual_pp", std::optional(whole / pp / *layers));
  }
  const std::int64_t replica = std::max<std::int64_t>(1, tp * pp * cp);
  if (!world_size(draft)) {
    draft.processes = cards_of_stage(tp * cp, ep * expert_tp) * pp;
    draft.assume(draft.file + " does not say how many cards there are: one replica of the model, " +
                 std::to_string(*draft.processes) + ", taken");
  }
  const std::int64_t replicas = std::max<std::int64_t>(1, world_size(draft).value_or(1) / replica);
  const std::int64_t batch = reader.count("micro_batch_size", 1).value_or(1);
  draft.set("batch", std::optional(batch));
  if (const auto whole = reader.count("global_batch_size", 1))
    draft.set("accumulate", std::optional(std::max<std::int64_t>(1, *whole / replicas / batch)));
}

void read_engine(KeyReader& reader, Draft& draft) {
  draft.set("sharding.gradient_accumulation_fusion", Value::of(!reader.flag("no_gradient_accumulation_fusion")));
  for (const char* key : {"cross_entropy_loss_fusion", "overlap_grad_reduce", "distribute_saved_activations"})
    if (reader.flag(key)) draft.set("sharding." + std::string(key), Value::of(true));
  if (reader.flag("cross_entropy_loss_fusion") &&
      to_lower(reader.text("cross_entropy_fusion_impl").value_or("")) == "te")
    draft.set("sharding.cross_entropy_fusion_impl", Value::of("te"));
  for (const char* key : {"decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"})
    if (const auto layers = reader.count(key, 1)) draft.set("sharding." + std::string(key), layers);
}

// Of models with experts.
void read_experts(KeyReader& reader, Draft& draft) {
  const bool given = reader.is_given("num_experts") || reader.is_given("expert_model_parallel_size");
  if (!given) return;
  const std::string dispatcher = to_lower(reader.text("moe_token_dispatcher_type").value_or("allgather"));
  if (dispatcher == "flex") draft.warnings.push_back("the flex dispatcher is billed as alltoall");
  draft.set("sharding.moe_token_dispatcher_type", Value::of(dispatcher == "allgather" ? "allgather" : "alltoall"));
  for (const char* key : {"moe_grouped_gemm", "moe_pad_expert_input_to_capacity"})
    if (reader.flag(key)) draft.set("sharding." + std::string(key), Value::of(true));
  if (const auto factor = reader.real("moe_expert_capacity_factor"); factor && *factor > 0)
    draft.set("sharding.moe_expert_capacity_factor", Value::of(*factor));
  const std::string balancing = to_lower(reader.text("moe_router_load_balancing_type").value_or("aux_loss"));
  if (reader.real("moe_aux_loss_coeff").value_or(0) > 0 && balancing != "sinkhorn")
    draft.set("sharding.moe_router_load_balancing_type", Value::of(balancing));
  if (to_lower(reader.text("moe_router_dtype").value_or("")) == "fp32")
    draft.set("sharding.moe_router_dtype", Value::of("fp32"));
}

void read_recompute(KeyReader& reader, Draft& draft) {
  const std::string granularity = to_lower(reader.text("recompute_granularity").value_or(""));
  const auto method = reader.text("recompute_method");
  const bool full = granularity == "full" || reader.flag("checkpoint_activations") || (granularity.empty() && method);
  const bool selective = granularity == "selective" || (granularity.empty() && reader.flag("recompute_activations"));
  draft.set("checkpointing", Value::of(full ? "full" : "none"));
  std::vector<std::string> modules =
      selective && !full ? reader.texts("recompute_modules") : std::vector<std::string>();
  if (selective && !full && modules.empty()) modules.emplace_back("core_attn");
  if (!full && reader.flag("moe_layer_recompute")) modules.emplace_back("moe");
  if (!modules.empty()) draft.set("checkpointing", Value::of("selective:" + join(modules, ",")));
  if (!full) return;
  if (method) draft.set("checkpointing.method", Value::of(to_lower(*method)));
  draft.set("checkpointing.layers", reader.count("recompute_num_layers", 1));
}

void read_precision(KeyReader& reader, Draft& draft) {
  draft.own_precision = true;
  const std::string dtype = reader.flag("bf16") ? "bf16" : reader.flag("fp16") ? "fp16" : "fp32";
  if (!draft.quantized) draft.set("weights", Value::of(dtype));
  draft.set("precision", Value::of(dtype == "fp32" ? dtype : "master-" + dtype));
  const std::string main = dtype_word(reader.text("main_grads_dtype").value_or("fp32"));
  if (dtype == "bf16" && (reader.flag("grad_reduce_in_bf16") || main == "bf16"))
    draft.set("sharding.grad_accum_dtype", Value::of("bf16"));
  if (const std::string moment = dtype_word(reader.text("exp_avg_dtype").value_or("fp32"));
      moment == "bf16" || moment == "fp16")
    draft.set("moment_dtype", Value::of(moment));
  if (reader.is_given("fp8_format")) draft.warnings.push_back("fp8 linears are billed as bf16 ones");
}

void read_code(KeyReader& reader, Draft& draft) {
  const std::string optimizer = to_lower(reader.text("optimizer").value_or("adam"));
  set_optimizer(optimizer == "adam" ? "adamw" : optimizer, draft);
  draft.set("optimizer_impl", Value::of("fused"));
  draft.set("clip", Value::of(reader.real("clip_grad").value_or(0) > 0));
  const std::string backend = to_lower(reader.text("attention_backend").value_or(""));
  const bool local = reader.text("transformer_impl") == "local" && !reader.flag("use_flash_attn") && backend != "flash";
  draft.set("attention", Value::of(local || backend == "unfused" ? "fused-softmax" : "flash"));
  for (const char* key : {"use_megatron_fsdp", "use_torch_fsdp2"}) {
    if (reader.flag(key)) reader.problem(key, "is not billed", "use_distributed_optimizer");
  }
  if (reader.is_given("mtp_num_layers")) draft.warnings.push_back("next-token layers (mtp_num_layers) are not billed");
}

// A distributed checkpoint holds each rank's parts; a fully reshardable state of the optimizer is gathered for it.
void read_saving(KeyReader& reader, Draft& draft) {
  const bool gathers =
      reader.flag("dist_ckpt_optim_fully_reshardable") && !reader.flag("distrib_optim_fully_reshardable_mem_efficient");
  draft.saves = reader.is_given("save");
  draft.saves_shards = !gathers;
  if (draft.saves && reader.flag("no_save_optim")) draft.set("save.optimizer", Value::of(false));
}

}  // namespace

KeyTable megatron_step_table() { return {kRows, kHarmless, kSource}; }

void read_megatron_step(KeyReader& reader, Draft& draft) {
  draft.set("engine", Value::of("megatron"));
  draft.set("implementation", Value::of("megatron"));
  draft.set("loop", Value::of("plain"));
  draft.set("seq", reader.count("seq_length", 1));
  draft.set("sharding.zero", Value::of(reader.flag("use_distributed_optimizer") ? 1 : 0));
  if (reader.flag("optimizer_cpu_offload")) draft.set("sharding.offload", Value::of("optimizer"));
  read_parallelism(reader, draft);
  read_engine(reader, draft);
  read_experts(reader, draft);
  read_recompute(reader, draft);
  read_precision(reader, draft);
  read_code(reader, draft);
  read_saving(reader, draft);
}

}  // namespace membill::io
