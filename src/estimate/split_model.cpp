#include "estimate/split_model.h"

#include "blocks/tensor_parallel_head.h"
#include "estimate/rank_model.h"
#include "estimate/stage_run.h"

namespace membill {
namespace {

// deepspeed 0.19 module_inject/layers.py: LinearLayer divides rows of the weight, LinearAllreduce columns; the head's rows are divided, and
// those of an embedding that it is tied to.
void split(TensorSpec& tensor, bool tied, std::int64_t ranks) {
  const bool words = tensor.split == SplitAxis::vocab && (tied || tensor.role == TensorRole::head);
  const bool rows = tensor.split == SplitAxis::column || words;
  if (rows) tensor.shape.front() /= ranks;
  if (tensor.split == SplitAxis::row) tensor.shape.back() /= ranks;
}

}  // namespace

ModelSpec split_model(const ModelSpec& model, std::int64_t ranks) {
  ModelSpec part = model;
  part.stated_parameters.reset();
  for (Section& section : part.sections)
    for (LayerKind& kind : section.kinds) {
      for (TensorSpec& tensor : kind.tensors) split(tensor, model.tied_embeddings, ranks);
      kind.attention.heads /= ranks;
      kind.attention.kv_heads /= ranks;
      kind.mlp.intermediate /= ranks;
    }
  return part;
}

bool splits_layers(const TrainingPlan& plan) { return gathers_split_logits(plan); }

ModelSpec model_on_rank(const ModelSpec& given, const TrainingPlan& given_plan, const TrainingPlan& plan,
                        const Hardware& hardware) {
  if (plan.implementation == Implementation::megatron) return rank_model(given, plan, pipeline_stage(plan, hardware));
  const ModelSpec staged = staged_model(given, given_plan);
  return splits_layers(plan) ? split_model(staged, plan.parallel.tp) : staged;
}

}  // namespace membill
