#include "membill/remedies.h"

#include <algorithm>

#include "base/text.h"

namespace membill {
namespace {

// Matrix weights by whether a checkpointed step runs them again, counted as one token uses them.
struct MatrixWork {
  std::int64_t layers = 0, all = 0;
};

MatrixWork matrix_work(const ModelSpec& model) {
  MatrixWork work;
  std::int64_t embedding = 0, head = 0;
  for (const Section& section : model.sections) {
    for (const LayerKind& kind : section.kinds)
      for (const TensorSpec& tensor : kind.tensors) {
        if (tensor.role == TensorRole::embedding) embedding = tensor.elements();
        if (tensor.role == TensorRole::head) head = tensor.elements();
      }
  }
  head = std::max(head, model.tied_embeddings ? embedding : head);
  const std::int64_t outside = embedding + (model.tied_embeddings ? 0 : head);
  work.layers = std::max<std::int64_t>(0, model.active_parameters() - outside);
  work.all = work.layers + head;
  return work;
}

bool trains_base(const TrainingPlan& plan) { return plan.method == Method::full || plan.method == Method::freeze; }

// Running the layers' forward again, against forward, gradients of inputs, and gradients of what trains: 2 flops a weight each.
std::int64_t recompute_share(const ModelSpec& model, const TrainingPlan& plan) {
  const MatrixWork work = matrix_work(model);
  const std::int64_t step = 2 * work.all + (trains_base(plan) ? work.all : 0);
  return step == 0 ? 0 : (1000 * work.layers + step / 2) / step;
}

class RemedyList {
 public:
  RemedyList(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware)
      : model_(model), plan_(plan), hardware_(hardware) {}

  std::vector<Remedy> all() {
    kernels();
    checkpointing();
    micro_batches();
    evaluation();
    precision();
    optimizers();
    sharding();
    methods();
    shorter();
    return std::move(list_);
  }

 private:
  Remedy& add(std::string id, std::string group, std::vector<PlanSetting> settings, Accuracy accuracy) {
    list_.push_back({std::move(id), std::move(group), std::move(settings), accuracy, 0, 0, 0});
    return list_.back();
  }

  void kernels() {
    if (plan_.attention == AttentionKernel::eager || plan_.attention == AttentionKernel::sdpa_math)
      add("attention", "attention", {{"attention", "sdpa"}}, Accuracy::same);
    if (plan_.implementation == Implementation::hf)
      add("liger", "implementation", {{"implementation", "liger"}}, Accuracy::same);
    if (!plan_.allocator.expandable_segments)
      add("expandable", "allocator", {{"allocator.expandable_segments", "true"}}, Accuracy::same);
    if (plan_.keep_outputs) add("outputs", "outputs", {{"keep_outputs", "false"}}, Accuracy::same);
  }

  void checkpointing() {
    if (plan_.checkpointing.mode == Checkpointing::full) return;
    add("checkpointing", "checkpointing", {{"checkpointing", "full"}}, Accuracy::same).extra_compute =
        recompute_share(model_, plan_);
  }

  // The same tokens a step in more passes.
  void micro_batches() {
    for (std::int64_t batch = plan_.batch / 2; batch >= 1; batch /= 2) {
      if (plan_.batch % batch != 0) continue;
      const std::int64_t accumulate = checked_mul(plan_.accumulate, plan_.batch / batch);
      add("batch", "batch", {{"batch", std::to_string(batch)}, {"accumulate", std::to_string(accumulate)}},
          Accuracy::same);
    }
  }

  void evaluation() {
    const EvaluationPlan& evaluation = plan_.evaluation;
    if (evaluation.batch.value_or(1) > 1) add("evaluation", "evaluation", {{"evaluation.batch", "1"}}, Accuracy::same);
    if (evaluation.batch && evaluation.keep_logits && !evaluation.accumulation_steps)
      add("evaluation-logits", "evaluation", {{"evaluation.accumulation_steps", "1"}}, Accuracy::same);
  }

  void precision() {
    if (plan_.precision == Precision::fp32) add("amp", "precision", {{"precision", "amp-bf16"}}, Accuracy::fewer_bits);
    if (plan_.weights == WeightFormat::fp32)
      add("bf16-weights", "precision", {{"weights", "bf16"}, {"precision", "amp-bf16"}}, Accuracy::fewer_bits);
  }

  void optimizers() {
    const OptimizerRow* row = find_optimizer(plan_.optimizer);
    if (row == nullptr) return;
    if (plan_.optimizer_impl == OptimizerImpl::foreach && row->has_fused)
      add("fused", "optimizer_impl", {{"optimizer_impl", "fused"}}, Accuracy::same);
    if (row->name != "adamw" && row->name != "adam") return;
    add("adam-8bit", "optimizer", {{"optimizer", "adamw_8bit"}}, Accuracy::fewer_bits);
    add("paged-8bit", "optimizer", {{"optimizer", "paged_adamw_8bit"}}, Accuracy::fewer_bits);
    add("adafactor", "optimizer", {{"optimizer", "adafactor"}}, Accuracy::fewer_bits);
  }

  // Bytes that one card sends to sum gradients and to gather weights, 16 bits each: (n - 1) / n of them for each pass.
  [[nodiscard]] std::int64_t passes(std::int64_t count) const {
    const std::int64_t ranks = hardware_.count;
    return checked_mul(checked_mul(2 * count, model_.parameters()) / ranks, ranks - 1);
  }

  void sharding() {
    if (plan_.engine == Engine::megatron) return;
    const std::int64_t now = plan_.engine == Engine::torch ? 0 : 2;  // an all-reduce is two passes
    if (plan_.sharding.offload == "none") offload(now);
    if (hardware_.count < 2) return;
    for (std::int64_t stage = plan_.sharding.zero + 1; stage <= 3; ++stage)
      add("zero-" + std::to_string(stage), "sharding",
          {{"engine", "deepspeed"}, {"sharding.zero", std::to_string(stage)}}, Accuracy::same)
          .communication = passes((stage == 3 ? 3 : 2) - now);
    if (plan_.sharding.fsdp != "full_shard")
      add("fsdp", "sharding", {{"engine", "fsdp2"}, {"sharding.fsdp", "full_shard"}}, Accuracy::same).communication =
          passes(3 - now);
  }

  // What one card's share of the step sends to the host and back: gradients there, weights back, 16 bits each.
  [[nodiscard]] std::int64_t over_the_host_link(std::int64_t times) const {
    return checked_mul(2 * times, model_.parameters()) / hardware_.count;
  }

  void offload(std::int64_t now) {
    const bool fsdp = plan_.engine == Engine::fsdp || plan_.engine == Engine::fsdp2;
    if (fsdp) {
      add("offload-fsdp", "sharding", {{"sharding.offload", "optimizer+param"}}, Accuracy::same).host_transfer =
          over_the_host_link(3);
      return;
    }
    const std::string stage = std::to_string(std::max<std::int64_t>(plan_.sharding.zero, 2));
    Remedy& states =
        add("offload", "sharding",
            {{"engine", "deepspeed"}, {"sharding.zero", stage}, {"sharding.offload", "optimizer"}}, Accuracy::same);
    states.communication = passes((stage == "3" ? 3 : 2) - now);
    states.host_transfer = over_the_host_link(2);
    Remedy& all =
        add("offload-param", "sharding",
            {{"engine", "deepspeed"}, {"sharding.zero", "3"}, {"sharding.offload", "optimizer+param"}}, Accuracy::same);
    all.communication = passes(3 - now);
    all.host_transfer = over_the_host_link(4);
  }

  void methods() {
    const bool quantized = weight_format(plan_.weights).quantized;
    if (trains_base(plan_)) {
      add("lora", "method", {{"method", "lora"}, {"adapter.rank", "16"}, {"adapter.targets", "all-linear"}},
          Accuracy::adapters);
      add("qlora", "method", {{"method", "qlora"}, {"adapter.rank", "16"}, {"adapter.targets", "all-linear"}},
          Accuracy::quantized);
    } else if (!plan_.adapter.modules_to_save.empty()) {
      add("modules", "modules", {{"adapter.modules_to_save", ""}}, Accuracy::adapters);
    }
    if (!trains_base(plan_) && !quantized) {
      add("int8", "method", {{"weights", "int8"}}, Accuracy::quantized);
      add("nf4", "method", {{"weights", "nf4"}}, Accuracy::quantized);
    }
  }

  void shorter() {
    if (plan_.seq >= 512) add("seq", "seq", {{"seq", std::to_string(plan_.seq / 2)}}, Accuracy::less_data);
  }

  const ModelSpec& model_;
  const TrainingPlan& plan_;
  const Hardware& hardware_;
  std::vector<Remedy> list_;
};

}  // namespace

std::vector<Remedy> remedies(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware) {
  return RemedyList(model, plan, hardware).all();
}

}  // namespace membill
