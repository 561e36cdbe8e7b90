#include "estimate/rotary_cache.h"

#include "blocks/sequence_spread.h"
#include "estimate/parameters.h"

namespace membill {
namespace {

// The builders with adapters of torchtune 0.6.1 make one a layer, but for those of llama3_1 and llama3_2, whose positions are more.
bool makes_one_by_layer(const ModelSpec& model, const TrainingPlan& plan) {
  constexpr std::int64_t kScaledPositions = 131072;
  return has_adapters(plan) && (model.model_type != "llama" || model.max_positions < kScaledPositions);
}

}  // namespace

bool keeps_rotary_cache(const TrainingPlan& plan) {
  return plan.implementation == Implementation::torchtune || plan.implementation == Implementation::litgpt ||
         plan.implementation == Implementation::torchtitan;
}

// litgpt: cosines and sines of every position in the type of the weights; finetune/lora.py makes them again for its longest sample.
// torchtune keeps cosines and sines of every position in fp32: a pair for each two elements of a head (llama), or for each (qwen2).
// torchtitan 0.2.2: complex numbers of the positions of one sequence (models/llama3/model/args.py update_from_config).
Tensor rotary_cache(Recorder& r, const ModelSpec& model, const TrainingPlan& plan, const Dims& dims, ItemId item) {
  const Size rotary = dims.kinds.at(1).at(0).rotary, positions(model.max_positions);
  if (plan.implementation == Implementation::torchtitan)
    return r.empty({dims.s * Size(sequence_ranks(plan)), rotary}, DType::fp32, "rotary cache", item);
  if (plan.implementation == Implementation::litgpt) {
    const bool again = has_adapters(plan);
    return r.empty({again ? dims.s : positions, rotary * Size(2)}, again ? DType::fp32 : base_dtype(plan),
                   "rotary cache", item);
  }
  const bool qwen = model.model_type == "qwen2" || model.model_type == "qwen3";
  const Size tables = makes_one_by_layer(model, plan) ? dims.L : Size(1);
  return r.empty({positions, rotary * Size(qwen ? 2 : 1) * tables}, DType::fp32, "rotary cache", item);
}

}  // namespace membill
