#include "estimate/engines/bf16_optimizer.h"

#include <vector>

#include "estimate/engines/flat_groups.h"
#include "estimate/engines/placement.h"

namespace membill {
namespace {

constexpr std::int64_t kElementsPerBuffer = 500'000'000;  // engine.py MEMORY_OPT_ALLREDUCE_SIZE

class Bf16Optimizer : public EngineRun {
 public:
  Bf16Optimizer(Recorder& recorder, const TrainingPlan& plan, const Hardware& hardware)
      : r_(recorder),
        groups_(plan, data_ranks(plan, hardware).count, data_ranks(plan, hardware).own),
        weight_item_(recorder.writer().item(has_adapters(plan) ? "weights.adapter" : "weights.base")),
        master_item_(recorder.writer().item("weights.master")),
        bucket_item_(recorder.writer().item("buffers.reduce_bucket")),
        gradient_item_(recorder.writer().item("gradients")) {}

  void wrap(JobModules& job) override {
    groups_.lay_out(r_, job.trained);
    job.trained.clear();
    for (const FlatGroup& group : groups_.all()) {
      const std::int64_t whole = groups_.ranks() * group.part;
      flat_.push_back(flat(whole, DType::bf16, "flat parameters", weight_item_));
      partitions_.push_back(std::make_unique<Parameter>());
      Parameter& partition = *partitions_.back();
      partition.value = flat(group.part, DType::fp32, "fp32 master partition", master_item_);
      partition.trainable = true;
      gradients_.push_back(flat(whole, DType::fp32, "fp32 gradients", gradient_item_));
      job.trained.push_back({&partition, TensorRole::other, Size(group.part), {}, false, false});
    }
  }

  void begin_micro_batch(bool last) override { last_ = last; }
  void gradient_ready(Parameter&) override {}

  // Each bf16 gradient is added in fp32; after the last micro-batch the groups' gradients are reduced in bf16.
  void after_backward() override {
    for (Parameter* parameter : groups_.parameters())
      flat(groups_.find(*parameter)->elements, DType::fp32, "gradient in fp32", gradient_item_);
    if (last_) reduce();
  }

  void before_step() override {
    for (std::size_t i = 0; i < partitions_.size(); ++i)
      partitions_[i]->gradient = r_.view(gradients_[i], partitions_[i]->value.shape());
  }

  void after_step() override {
    for (auto& partition : partitions_) partition->gradient.drop();
    for (Parameter* parameter : groups_.parameters()) parameter->gradient.drop();
  }

  [[nodiscard]] bool clips() const override { return true; }

 private:
  Tensor flat(std::int64_t elements, DType type, const char* label, ItemId item) {
    return r_.empty({Size(elements), Size(1)}, type, label, item);
  }

  // engine.py allreduce_no_retain: several groups are joined in a copy, then made bf16.
  void reduce() {
    std::int64_t elements = 0, groups = 0;
    for (const FlatGroup& group : groups_.all()) {
      elements += groups_.ranks() * group.part;
      ++groups;
      if (elements <= kElementsPerBuffer && &group != &groups_.all().back()) continue;
      Tensor joined;
      if (groups > 1) joined = flat(elements, DType::fp32, "gradients, joined", bucket_item_);
      flat(elements, DType::bf16, "gradients as they are reduced", bucket_item_);
      elements = groups = 0;
    }
  }

  Recorder& r_;
  FlatGroups groups_;
  ItemId weight_item_, master_item_, bucket_item_, gradient_item_;
  bool last_ = true;
  std::vector<Tensor> flat_, gradients_;
  std::vector<std::unique_ptr<Parameter>> partitions_;
};

}  // namespace

bool runs_bf16_optimizer(const TrainingPlan& plan) {
  return plan.sharding.zero == 1 && plan.sharding.offload == "none" && deepspeed_dtype(plan) == DType::bf16 &&
         accumulation_dtype(plan) == DType::fp32;
}

std::unique_ptr<EngineRun> make_bf16_optimizer(Recorder& recorder, const TrainingPlan& plan, const Hardware& hardware) {
  return std::make_unique<Bf16Optimizer>(recorder, plan, hardware);
}

}  // namespace membill
