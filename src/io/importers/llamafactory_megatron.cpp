#include "io/importers/llamafactory_megatron.h"

#include "io/importers/megatron_step.h"
#include "io/importers/parts.h"

namespace membill::io {
namespace {

constexpr KeyRow kRows[] = {
    {"use_mca", "false", "Megatron runs the step"},
    {"per_device_train_batch_size", "8", "micro-batch"},
    {"micro_batch_size", "", "", "per_device_train_batch_size"},
    {"gradient_accumulation_steps", "1", "micro-batches of a step"},
    {"max_grad_norm", "1.0", "gradients are clipped by norm"},
    {"clip_grad", "", "", "max_grad_norm"},
    {"transformer_impl", "local", "whose layers", {}, "alibaba/ROLL mcore_adapter/models/model_config.py"},
    {"expert_tensor_parallel_size", "1", "tensor parallel degree of experts"},
    {"sequence_packing", "false", "several samples share a sequence"},
    {"additional_configs", "", "further fields of Megatron's configuration"},
};
constexpr std::string_view kHarmless =
    "account_for_* variable_seq_lengths calculate_per_token_loss check_for_nan_in_loss_and_grad compile_warmup "
    "cuda_graph_* delay_grad_reduce optimizer_offload_fraction";
constexpr std::string_view kSource = "alibaba/ROLL 1bc1205: mcore_adapter/src/mcore_adapter/training_args.py";

}  // namespace

KeyTable llamafactory_megatron_table() { return {kRows, kHarmless, kSource}; }

bool runs_on_megatron(const JobSource& source) {
  if (const std::string* use = source.launch.environment.find("USE_MCA");
      use != nullptr && as_flag(Value::of(*use)) == true)
    return true;
  if (const Value* use = source.keys.find("use_mca"); use != nullptr && as_flag(*use) == true) return true;
  return count_keys(source.keys,
                    "tensor_model_parallel_size pipeline_model_parallel_size expert_model_parallel_size "
                    "context_parallel_size use_distributed_optimizer") > 0;
}

void read_llamafactory_megatron(KeyReader& reader, const JobSource& source, Draft& draft) {
  reader.use("use_mca");
  count_local_cards(source.launch, draft);
  read_megatron_step(reader, draft);
  draft.set("batch", reader.count("per_device_train_batch_size", 1));
  draft.set("accumulate", reader.count("gradient_accumulation_steps", 1));
  draft.set("clip", Value::of(reader.real("max_grad_norm").value_or(0) > 0));
  draft.set("seq", reader.count("cutoff_len", 1));
  draft.set("packing",
            Value::of(reader.flag("packing") || reader.flag("neat_packing") || reader.flag("sequence_packing")));
  if (!reader.is_given("moe_router_dtype") && find_model(draft).experts >= 32)  // McaModelConfig.__post_init__
    draft.set("sharding.moe_router_dtype", Value::of("fp32"));
  if (reader.is_given("additional_configs"))
    draft.warnings.push_back("additional_configs is not read: --set says what of it matters");
  draft.assume("the step is Megatron's, by mcore_adapter: USE_MCA=1 has to be set where the job is launched");
}

}  // namespace membill::io
