#include "io/importers/megatron_step.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "io/importers/megatron_step_keys.h"
#include "io/importers/parts.h"

namespace membill::io {
namespace {

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
  const bool fuses =
      reader.maybe_flag("gradient_accumulation_fusion").value_or(!reader.flag("no_gradient_accumulation_fusion"));
  draft.set("sharding.gradient_accumulation_fusion", Value::of(fuses));
  for (const char* key : {"cross_entropy_loss_fusion", "overlap_grad_reduce", "distribute_saved_activations"})
    if (reader.flag(key)) draft.set("sharding." + std::string(key), Value::of(true));
  if (reader.flag("cross_entropy_loss_fusion") &&
      to_lower(reader.text("cross_entropy_fusion_impl").value_or("")) == "te")
    draft.set("sharding.cross_entropy_fusion_impl", Value::of("te"));
  for (const char* key : {"decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers", "mtp_num_layers"})
    if (const auto layers = reader.count(key, 1)) draft.set("sharding." + std::string(key), layers);
}

void read_optimizer_place(KeyReader& reader, Draft& draft) {
  const auto fraction = reader.real("optimizer_offload_fraction");
  const bool offloads = reader.flag("optimizer_cpu_offload") && fraction.value_or(1) > 0;
  if (offloads) draft.set("sharding.offload", Value::of("optimizer"));
  if (offloads && fraction && *fraction < 1) draft.set("sharding.optimizer_offload_fraction", Value::of(*fraction));
  const bool pinned = reader.maybe_flag("pin_cpu_grads").value_or(true);
  if (offloads && !pinned) draft.set("sharding.pin_memory", Value::of(false));
  const bool halves = reader.maybe_flag("store_param_remainders").value_or(true);
  if (reader.flag("use_precision_aware_optimizer") && halves && !offloads)
    draft.set("sharding.use_precision_aware_optimizer", Value::of(true));
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

// The precision-aware optimizer keeps states in narrower types.
void state_narrow_states(KeyReader& reader, Draft& draft) {
  for (const char* key : {"exp_avg_sq_dtype", "main_params_dtype"}) {
    const std::string dtype = to_lower(reader.text(key).value_or("fp32"));
    if (dtype_word(dtype) == "fp32") continue;
    draft.warnings.push_back(std::string(key) + " " + dtype + " is not billed: fp32 is");
  }
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
  state_narrow_states(reader, draft);
  if (reader.is_given("fp8_format")) draft.warnings.push_back("fp8 linears are billed as bf16 ones");
}

// Megatron-DeepSpeed, and Megatron-LM until 2023, run their own layers unless the flags say otherwise.
bool runs_before_transformer_engine(const KeyReader& reader) {
  const auto is_there = [&](const char* key) { return reader.map().find(key) != nullptr; };
  return is_there("deepspeed") || is_there("deepspeed_config") || is_there("data_impl") ||
         is_there("no_query_key_layer_scaling") || is_there("checkpoint_activations");
}

// Megatron's own softmax fuses scale, mask and softmax in 16 bits; no flash kernel takes fp32, where Transformer Engine runs its unfused
// attention.
std::string attention_of(KeyReader& reader, Draft& draft) {
  const std::string backend = to_lower(reader.text("attention_backend").value_or(""));
  const bool flash = reader.flag("use_flash_attn") || backend == "flash";
  const bool own = !reader.is_given("transformer_impl") && runs_before_transformer_engine(reader);
  const bool local = (own || reader.text("transformer_impl") == "local") && !flash;
  if (own && local) draft.assume("Megatron's own layers, as Megatron-DeepSpeed and Megatron-LM until 2023 run them");
  const bool fuses = reader.maybe_flag("masked_softmax_fusion").value_or(!reader.flag("no_masked_softmax_fusion"));
  if (plan_text(draft, "weights") == "fp32") {
    if (!local && backend != "unfused") draft.assume("no flash kernel takes fp32: attention keeps its whole scores");
    return "eager";
  }
  if (!local && backend != "unfused") return "flash";
  return fuses ? "fused-softmax" : "eager";
}

// What is billed as Megatron's layers are without it.
void state_what_is_left_out(KeyReader& reader, Draft& draft) {
  warn_of_left_out(kMegatronLeftOut, reader, draft);
  if (to_lower(reader.text("cuda_graph_impl").value_or("none")) != "none")
    draft.warnings.push_back("cuda_graph_impl is not billed: captured graphs keep memory pools of their own");
  if (reader.count("num_distributed_optimizer_instances", 1).value_or(1) > 1)
    draft.warnings.push_back("num_distributed_optimizer_instances is not billed: one copy is spread over all cards");
  for (const char* key :
       {"moe_latent_size", "heterogeneous_layers_config_path", "heterogeneous_layers_config_encoded_json",
        "linear_attention_freq", "experimental_attention_variant", "attention_output_gate"})
    if (reader.is_given(key)) reader.problem(key, "is not billed under Megatron");
  reader.use("freeze_ViT"), reader.use("cpu_offloading_num_layers");
}

void read_code(KeyReader& reader, Draft& draft) {
  const std::string optimizer = to_lower(reader.text("optimizer").value_or("adam"));
  set_optimizer(optimizer == "adam" ? "adamw" : optimizer, draft);
  draft.set("optimizer_impl", Value::of("fused"));
  draft.set("clip", Value::of(reader.real("clip_grad").value_or(0) > 0));
  draft.set("attention", Value::of(attention_of(reader, draft)));
  for (const char* key : {"use_megatron_fsdp", "use_torch_fsdp2"}) {
    if (reader.flag(key)) reader.problem(key, "is not billed", "use_distributed_optimizer");
  }
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

KeyTable megatron_step_table() { return {kMegatronStepKeys, kMegatronStepHarmless, kSource}; }

void read_megatron_step(KeyReader& reader, Draft& draft) {
  draft.set("engine", Value::of("megatron"));
  draft.set("implementation", Value::of("megatron"));
  draft.set("loop", Value::of("plain"));
  const auto decoder = reader.count("decoder_seq_length", 1);
  draft.set("seq", decoder ? decoder : reader.count("seq_length", 1));
  draft.set("sharding.zero", Value::of(reader.flag("use_distributed_optimizer") ? 1 : 0));
  read_optimizer_place(reader, draft);
  read_parallelism(reader, draft);
  read_engine(reader, draft);
  read_experts(reader, draft);
  read_recompute(reader, draft);
  read_precision(reader, draft);
  read_code(reader, draft);
  state_what_is_left_out(reader, draft);
  read_saving(reader, draft);
}

}  // namespace membill::io
