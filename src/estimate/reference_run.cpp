#include "estimate/reference_run.h"

#include "blocks/llamafactory.h"

namespace membill {
namespace {

// LLaMA-Factory loads it as the checkpoint is stored and freezes it, where it casts what trains to fp32.
bool is_frozen(const TrainingPlan& plan) { return shards_parameters(plan) || runs_llamafactory(plan); }

TrainingPlan reference_plan(const TrainingPlan& plan) {
  TrainingPlan reference = plan;
  if (runs_llamafactory(plan) && plan.weights == WeightFormat::fp32) reference.weights = WeightFormat::bf16;
  if (!shards_parameters(plan)) {
    reference.engine = Engine::torch;
    reference.sharding = {};
  } else if (plan.engine == Engine::fsdp2 && !runs_llamafactory(plan) &&
             plan.implementation != Implementation::torchtune) {
    reference.sharding.engine_keys["wrap"] = "none";
  } else if (plan.engine == Engine::deepspeed) {
    // It is prepared before the Trainer fills in what is "auto": DeepSpeed's own defaults hold.
    std::erase_if(reference.sharding.engine_keys, [](const auto& entry) { return entry.second == "auto"; });
  }
  return reference;
}

void freeze(JobModules& job) {
  for (const TrainedParameter& trained : job.trained) {
    trained.parameter->trainable = false;
    trained.parameter->value.body().requires_grad = false;
  }
  job.trained.clear();
}

using Stored = std::map<std::string, std::int64_t>;

}  // namespace

ReferenceRun::ReferenceRun(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan,
                           const Hardware& hardware, const Dims& dims, bool expand, const char* weights_item)
    : plan_(reference_plan(plan)),
      weights_item_(weights_item),
      job_(build_modules(recorder, model, plan_, dims, expand, weights_item)) {
  // Where nothing shards it TRL does not freeze it: autocast caches 16-bit copies of its weights like the policy's.
  if (is_frozen(plan_)) freeze(job_);
  if (!shards_parameters(plan_)) return;
  engine_ = make_engine(recorder, model, plan_, hardware);
  engine_->wrap(job_);
}

// Its weights under their own item; what its engine makes beside them as the policy's does.
Stored ReferenceRun::named(const Stored& stored) const {
  Stored bytes;
  for (const auto& [item, taken] : stored) bytes[item == "weights.base" ? weights_item_ : item] += taken;
  return bytes;
}

Stored ReferenceRun::on_host() { return engine_ == nullptr ? Stored() : named(engine_->on_host()); }

Stored ReferenceRun::on_nvme() { return engine_ == nullptr ? Stored() : named(engine_->on_nvme()); }

ReferenceModel ReferenceRun::model() {
  ReferenceModel reference{&job_.model, true, true};
  if (engine_ == nullptr) return reference;
  reference.hooks = engine_->forward_hooks();
  reference.parameter_use = engine_->parameter_use();
  return reference;
}

}  // namespace membill
