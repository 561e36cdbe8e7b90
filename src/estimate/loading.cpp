#include "estimate/loading.h"

#include "base/engine_keys.h"
#include "base/gib_text.h"
#include "base/release.h"
#include "blocks/generations.h"
#include "estimate/engines/placement.h"
#include "estimate/parameters.h"
#include "membill/catalog.h"

namespace membill {
namespace {

// A script that hands a model to the Trainer. LLaMA-Factory loads to the card itself, except under FSDP.
bool loads_to_host(const TrainingPlan& plan) {
  const bool own_code = has_own_model_code(plan) || plan.engine == Engine::megatron;
  const bool to_card = plan.software.count("llamafactory") != 0 && !is_fsdp(plan);
  return plan.loop == Loop::trainer && plan.stage != Stage::inference && !own_code && !to_card;
}

bool maps_checkpoints(const TrainingPlan& plan) {
  const auto release = plan.software.find("transformers");
  return release == plan.software.end() || !is_before(release->second, 5, 0);
}

// The type of the weights in their files; where the model's config does not say it, that in which they are loaded.
DType filed_dtype(const ModelSpec& model, DType loaded) {
  const WeightFormatRow* row = find_weight_format(model.stored_dtype);
  for (const DType type : {DType::fp32, DType::bf16, DType::fp16})
    if (row != nullptr && row->name == dtype_name(type)) return type;
  return loaded;
}

}  // namespace

Loading loading_of(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware) {
  Loading loading;
  const bool third = plan.engine == Engine::deepspeed && plan.sharding.zero == 3;
  if (!loads_to_host(plan) || third || weight_format(plan.weights).quantized) return loading;
  const DType made = base_dtype(plan);
  loading.type = plan.engine == Engine::fsdp2 ? stored_dtype(plan, made, !has_adapters(plan)) : made;
  if (maps_checkpoints(plan) && loading.type == filed_dtype(model, made)) return loading;
  loading.copy = checked_mul(model.parameters(), bytes_per_element(loading.type));
  const bool one = is_fsdp(plan) && engine_flag(plan, "cpu_ram_efficient_loading", false);
  loading.copies = one ? 1 : hardware.count / hardware.nodes;
  return loading;
}

std::string loading_note(const Loading& loading, const Hardware& hardware) {
  if (loading.copy == 0 || (hardware.count == 1 && !hardware.host_ram)) return {};
  const std::string who = loading.copies == 1
                              ? "one rank of a node makes"
                              : "each of the " + std::to_string(loading.copies) + " ranks of a node makes";
  const std::string all = loading.copies == 1 ? "" : ", in all " + gib_text(checked_mul(loading.copy, loading.copies));
  return "loading: " + who + " a copy of the weights in host memory, in " + std::string(dtype_name(loading.type)) +
         ", " + gib_text(loading.copy) + all + ", until it is on the card; the host's total leaves it out";
}

void judge_loading(Report& report, const Loading& loading, const Hardware& hardware) {
  if (loading.copy == 0 || !hardware.host_ram) return;
  const std::int64_t needed = checked_mul(loading.copy, loading.copies);
  if (needed <= hardware.host_ram->count()) return;
  report.verdict.answer = Answer::does_not_fit;
  report.verdict.because = "loading the weights takes " + gib_text(needed) + " of a node's host memory, which has " +
                           gib_text(hardware.host_ram->count());
}

}  // namespace membill
