#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "base/text.h"
#include "catalog/plan_fields/row.h"

namespace membill {
namespace {

using Plan = TrainingPlan;

constexpr std::array<std::string_view, 5> kFsdpWords{"none", "full_shard", "shard_grad_op", "hybrid_shard", "no_shard"};
constexpr std::array<std::string_view, 5> kOffloadWords{"none", "optimizer", "param", "optimizer+param", "nvme"};

// The keys of `sharding` that are kept as the engine spells them. Each may also be "auto": what Hugging Face fills in.
enum class KeyKind : std::uint8_t { count, real, boolean, word };
struct EngineKey {
  std::string_view key;
  KeyKind kind;
  std::string_view words;  // of KeyKind::word, with blanks between
  std::string_view help;
};
constexpr RealRange kCapacity{0.0, 1000.0, false, true};
constexpr std::string_view kFloats = "fp32 bf16 fp16";
constexpr std::array kEngineKeys{
    EngineKey{"pin_memory", KeyKind::boolean, "", "offloaded tensors are page-locked"},
    EngineKey{"wrap", KeyKind::word, "block block+embedding peft none", "FSDP: what becomes a unit"},
    EngineKey{"param_dtype", KeyKind::word, "none fp32 bf16 fp16", "FSDP mixed precision: gathered parameters"},
    EngineKey{"reduce_dtype", KeyKind::word, kFloats, "FSDP mixed precision: reduced gradients"},
    EngineKey{"backward_prefetch", KeyKind::word, "backward_pre backward_post none",
              "FSDP: when the next unit is gathered"},
    EngineKey{"forward_prefetch", KeyKind::boolean, "", "FSDP: the next unit is gathered early in forward"},
    EngineKey{"limit_all_gathers", KeyKind::boolean, "", "FSDP: at most two units in flight"},
    EngineKey{"use_orig_params", KeyKind::boolean, "", "FSDP: parameters keep their own shapes"},
    EngineKey{"no_sync", KeyKind::boolean, "", "gradients stay whole between the steps of an accumulation"},
    EngineKey{"cpu_ram_efficient_loading", KeyKind::boolean, "", "FSDP: one rank of a node loads the weights"},
    EngineKey{"quant_storage", KeyKind::word, "uint8 bf16 fp16 fp32", "dtype in which quantised weights are stored"},
    EngineKey{"reduce_scatter", KeyKind::boolean, "", "gradients are reduced into shards"},
    EngineKey{"bucket_cap_mb", KeyKind::count, "", "DDP: MB of a reducer bucket"},
    EngineKey{"gradient_as_bucket_view", KeyKind::boolean, "", "DDP: gradients are views of the buckets"},
    EngineKey{"static_graph", KeyKind::boolean, "", "DDP: the graph never changes"},
    EngineKey{"find_unused_parameters", KeyKind::boolean, "", "DDP: looks for parameters without gradient"},
    EngineKey{"reduce_bucket_size", KeyKind::count, "", "DeepSpeed: elements of the reduce bucket"},
    EngineKey{"allgather_bucket_size", KeyKind::count, "", "DeepSpeed: elements of the gather bucket"},
    EngineKey{"overlap_comm", KeyKind::boolean, "", "DeepSpeed: reduces during backward, a second bucket"},
    EngineKey{"contiguous_gradients", KeyKind::boolean, "", "DeepSpeed: gradients are copied to one buffer"},
    EngineKey{"stage3_prefetch_bucket_size", KeyKind::count, "", "ZeRO-3: elements gathered ahead"},
    EngineKey{"stage3_param_persistence_threshold", KeyKind::count, "", "ZeRO-3: smaller tensors stay whole"},
    EngineKey{"stage3_max_live_parameters", KeyKind::count, "", "ZeRO-3: gathered elements that may live at once"},
    EngineKey{"stage3_max_reuse_distance", KeyKind::count, "", "ZeRO-3: reused within so many elements, not freed"},
    EngineKey{"sub_group_size", KeyKind::count, "", "ZeRO-3: elements that one step of the optimizer takes"},
    EngineKey{"zero_hpz_partition_size", KeyKind::count, "", "ZeRO++: cards of a secondary shard"},
    EngineKey{"mics_shard_size", KeyKind::count, "", "MiCS: cards of a shard group"},
    EngineKey{"grad_accum_dtype", KeyKind::word, kFloats, "DeepSpeed: dtype in which gradients accumulate"},
    EngineKey{"torch_autocast", KeyKind::boolean, "", "DeepSpeed: fp32 weights under autocast, no 16-bit copy beside"},
    EngineKey{"partition_activations", KeyKind::boolean, "",
              "DeepSpeed's checkpoint function: tensor-parallel ranks keep a part of each checkpoint"},
    EngineKey{"cpu_checkpointing", KeyKind::boolean, "", "DeepSpeed's checkpoint function: checkpoints on the host"},
    EngineKey{"contiguous_memory_optimization", KeyKind::boolean, "",
              "DeepSpeed's checkpoint function: parts lie in buffers that are made at once"},
    EngineKey{"number_checkpoints", KeyKind::count, "", "DeepSpeed's checkpoint function: how many such buffers"},
    EngineKey{"offload_optimizer_device", KeyKind::word, "cpu nvme", "ZeRO-3: where the offloaded optimizer lives"},
    EngineKey{"offload_param_device", KeyKind::word, "cpu nvme", "ZeRO-3: where the offloaded parameters live"},
    EngineKey{"offload_optimizer_buffer_count", KeyKind::count, "", "ZeRO-3: host buffers of a sub-group for NVMe"},
    EngineKey{"offload_param_buffer_count", KeyKind::count, "", "ZeRO-3: host buffers of a parameter for NVMe"},
    EngineKey{"offload_param_buffer_size", KeyKind::count, "", "ZeRO-3: elements of such a buffer"},
    EngineKey{"max_in_cpu", KeyKind::count, "", "ZeRO-3: elements that stay in host memory beside NVMe"},
    EngineKey{"overlap_grad_reduce", KeyKind::boolean, "",
              "Megatron: gradients are reduced in buckets during backward"},
    EngineKey{"gradient_accumulation_fusion", KeyKind::boolean, "",
              "Megatron: weight gradients are added up inside the matrix product"},
    EngineKey{"cross_entropy_loss_fusion", KeyKind::boolean, "", "Megatron: the loss's kernels are compiled together"},
    EngineKey{"cross_entropy_fusion_impl", KeyKind::word, "native te", "Megatron: whose kernels the fused loss takes"},
    EngineKey{"decoder_first_pipeline_num_layers", KeyKind::count, "", "Megatron: layers of the first stage"},
    EngineKey{"decoder_last_pipeline_num_layers", KeyKind::count, "", "Megatron: layers of the last stage"},
    EngineKey{"moe_token_dispatcher_type", KeyKind::word, "alltoall allgather",
              "Megatron: how rows reach their experts"},
    EngineKey{"moe_grouped_gemm", KeyKind::boolean, "", "Megatron: the products of a rank's experts are made together"},
    EngineKey{"moe_expert_capacity_factor", KeyKind::real, "",
              "Megatron: an expert takes this times an even share at most"},
    EngineKey{"moe_pad_expert_input_to_capacity", KeyKind::boolean, "",
              "Megatron: each expert gets its capacity, padded"},
    EngineKey{"moe_router_load_balancing_type", KeyKind::word, "none aux_loss seq_aux_loss global_aux_loss",
              "Megatron: the auxiliary loss of the router"},
    EngineKey{"moe_router_dtype", KeyKind::word, "fp32", "Megatron: type of the router's logits and weights"},
    EngineKey{"optimizer_offload_fraction", KeyKind::real, "",
              "Megatron: share of a rank's optimizer that lives on the host"},
    EngineKey{"use_precision_aware_optimizer", KeyKind::boolean, "",
              "Megatron: Transformer Engine's optimizer keeps the lower halves of bf16 weights' masters"},
    EngineKey{"mtp_num_layers", KeyKind::count, "", "Megatron: layers that predict the tokens after the next one"},
    EngineKey{"distribute_saved_activations", KeyKind::boolean, "",
              "Megatron: what full recompute keeps is split over the tensor-parallel ranks"},
    EngineKey{"sequence_code", KeyKind::word, "accelerate ms-swift verl axolotl",
              "whose code spreads sequences over ranks"},
    EngineKey{"pipeline_deallocate", KeyKind::boolean, "", "Megatron: a stage frees its output once it is sent"},
};

std::string in_digits(double number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, std::chars_format::fixed);
  return {digits.data(), end.ptr};
}

std::string read_engine_count(const Value& value, std::string& result) {
  std::int64_t count = 0;
  std::string why;
  // The engines' own files write 5e8; still a whole number.
  const bool whole = value.is_int() ? value.as_int() >= 0 && (count = value.as_int(), true)
                                    : value.is_number() && parse_parameters(value.written(), count, why);
  if (!whole) return "needs a whole number, 0 or more, not " + describe(value);
  result = std::to_string(count);
  return {};
}

std::string read_engine_key(const EngineKey& key, const Value& value, Plan& plan, std::string& hint) {
  auto& keys = plan.sharding.engine_keys;
  const std::string name(key.key);
  if (value.is_null()) return keys.erase(name), std::string();
  if (value.is_string() && value.as_string() == "auto") return keys[name] = "auto", std::string();
  std::string text;
  std::string wrong;
  if (key.kind == KeyKind::count) {
    wrong = read_engine_count(value, text);
  } else if (key.kind == KeyKind::real) {
    double factor = 0;
    wrong = read_real(value, kCapacity, factor);
    text = value.is_int() ? std::to_string(value.as_int()) : value.written();
    if (text.empty()) text = in_digits(factor);  // of a value that no file wrote
  } else if (key.kind == KeyKind::boolean) {
    bool flag = false;
    wrong = read_bool(value, flag);
    text = flag ? "true" : "false";
  } else {
    const std::vector<std::string> words = split(key.words, ' ');
    std::size_t index = 0;
    wrong = read_word(value, {words.begin(), words.end()}, index, hint);
    if (wrong.empty()) text = words[index];
  }
  if (wrong.empty()) keys[name] = text;
  return wrong;
}

std::string write_engine_key(const EngineKey& key, const Plan& plan) {
  const auto found = plan.sharding.engine_keys.find(std::string(key.key));
  if (found == plan.sharding.engine_keys.end()) return "null";
  const bool bare = found->second != "auto" && key.kind != KeyKind::word;
  return bare ? found->second : to_json(found->second);
}

std::string values_of(const EngineKey& key) {
  if (key.kind == KeyKind::count) return "0 or more, auto";
  if (key.kind == KeyKind::real) return range_text(kCapacity) + ", auto";
  if (key.kind == KeyKind::boolean) return "true false auto";
  return std::string(key.words) + " auto";
}

template <std::size_t I>
PlanFieldRow engine_row() {
  const EngineKey& key = kEngineKeys[I];
  return make_row(
      {"sharding." + std::string(key.key), "", std::string(key.help)}, values_of(key),
      [](const Value& value, Plan& plan, std::string& hint) {
        return read_engine_key(kEngineKeys[I], value, plan, hint);
      },
      [](const Plan& plan) { return write_engine_key(kEngineKeys[I], plan); });
}

// Megatron's key stands beside the plan's own, too.
PlanFieldRow pipeline_deallocate_row() {
  PlanFieldRow row = engine_row<kEngineKeys.size() - 1>();
  row.key = "pipeline_deallocate";
  row.part = true;
  return row;
}

template <std::size_t... I>
std::vector<PlanFieldRow> engine_rows(std::index_sequence<I...>) {
  return {engine_row<I>()...};
}

std::vector<PlanFieldRow> parallel_rows() {
  constexpr auto kParallel = &Plan::parallel;
  return {
      count_row<1, kLargestCount, kParallel, &ParallelPlan::tp>({"parallel.tp", "--tp", "tensor parallel degree"}),
      bool_row<kParallel, &ParallelPlan::sp>({"parallel.sp", "--sp", "sequence parallelism beside tensor parallelism"}),
      count_row<1, kLargestCount, kParallel, &ParallelPlan::pp>({"parallel.pp", "--pp", "pipeline parallel degree"}),
      count_row<1, kLargestCount, kParallel, &ParallelPlan::virtual_pp>(
          {"parallel.virtual_pp", "--virtual-pp", "model chunks of a pipeline stage"}),
      count_row<1, kLargestCount, kParallel, &ParallelPlan::cp>({"parallel.cp", "--cp", "context parallel degree"}),
      count_row<1, kLargestCount, kParallel, &ParallelPlan::ulysses>(
          {"parallel.ulysses", "--ulysses", "sequence parallel degree of DeepSpeed Ulysses"}),
      count_row<1, kLargestCount, kParallel, &ParallelPlan::ep>({"parallel.ep", "--ep", "expert parallel degree"}),
      count_row<1, kLargestCount, kParallel, &ParallelPlan::expert_tp>(
          {"parallel.expert_tp", "--expert-tp", "tensor parallel degree inside an expert"}),
  };
}

}  // namespace

std::vector<PlanFieldRow> sharding_fields() {
  constexpr auto kSharding = &Plan::sharding;
  std::vector<PlanFieldRow> rows{
      word_row<kEngineWords, &Plan::engine>({"engine", "--engine", "who runs the step on several cards"}),
      count_row<0, 3, kSharding, &ShardingPlan::zero>(
          {"sharding.zero", "--zero", "ZeRO stage; Megatron's distributed optimizer is 1"}),
      text_word_row<kFsdpWords, kSharding, &ShardingPlan::fsdp>(
          {"sharding.fsdp", "--fsdp", "FSDP's sharding strategy"}),
      count_row<1, kLargestCount, kSharding, &ShardingPlan::shard_group>(
          {"sharding.shard_group", "--shard-group", "cards of a group of hybrid_shard"}),
      text_word_row<kOffloadWords, kSharding, &ShardingPlan::offload>(
          {"sharding.offload", "--offload", "what lives on the host or on NVMe"}),
  };
  for (PlanFieldRow& row : engine_rows(std::make_index_sequence<kEngineKeys.size()>())) rows.push_back(std::move(row));
  rows.push_back(pipeline_deallocate_row());
  for (PlanFieldRow& row : parallel_rows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace membill
