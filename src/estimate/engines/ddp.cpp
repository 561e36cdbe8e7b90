#include "estimate/engines/ddp.h"

#include <algorithm>
#include <map>
#include <vector>

namespace membill {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kFirstBucket = kMiB;  // kDefaultFirstBucketBytes

// torchtitan 0.2.2 models/llama3/infra/parallelize.py apply_ddp asks for 100.
double default_bucket(const TrainingPlan& plan) { return plan.implementation == Implementation::torchtitan ? 100 : 25; }

class Ddp : public EngineRun {
 public:
  Ddp(Recorder& recorder, const TrainingPlan& plan) : r_(recorder), plan_(plan) {}

  void wrap(JobModules& job) override {
    plan_buckets(job);
    rebuilds_ = !looks_for_unused(plan_) || engine_flag(plan_, "static_graph", false);
    make_buckets(rebuilds_ ? whole_ : parts_);
    if (!looks_for_unused(plan_) && !engine_flag(plan_, "static_graph", false)) return;
    std::int64_t tensors = 0;
    for (const TrainedParameter& trained : job.trained) tensors += turns(trained);
    extra_ =
        r_.empty({Size(tensors), Size(1)}, DType::int32, "map of used parameters", r_.writer().item("buffers.reducer"));
  }

  // distributed.py _pre_forward: once the gradients have been reduced, buckets are made anew in the order in which they came.
  void begin_micro_batch(bool last) override {
    if (rebuilds_ && has_reduced_) {
      buckets_.clear();
      make_buckets(parts_);
      rebuilds_ = false;
    }
    reduces_ = last || !engine_flag(plan_, "no_sync", true);
    has_reduced_ = reduces_;
  }

  // With views the gradient is copied into its bucket and becomes a view of it as it is reduced; else it stays beside the bucket.
  void gradient_ready(Parameter& parameter) override {
    if (!reduces_ || !engine_flag(plan_, "gradient_as_bucket_view", false) ||
        parameter.gradient.body().storage == nullptr)
      return;
    auto view = std::make_shared<TensorBody>(parameter.gradient.body());
    view->storage.reset();
    parameter.gradient = Tensor(std::move(view));
  }

 private:
  struct Bucket {
    std::int64_t elements;
    DType type;
  };

  void make_buckets(const std::vector<Bucket>& buckets) {
    const ItemId item = r_.writer().item("buffers.reducer");
    for (const Bucket& bucket : buckets)
      buckets_.push_back(r_.empty({Size(bucket.elements), Size(1)}, bucket.type, "gradient bucket", item));
  }

  // One flat tensor a bucket, in the parameters' type: the first of 1 MiB, then bucket_cap_mb each; a bucket closes when it has
  // reached its size. Filled in reverse order of the parameters. Where they are made anew, all of a type are one at first.
  void plan_buckets(const JobModules& job) {
    const auto cap = static_cast<std::int64_t>(engine_number(plan_, "bucket_cap_mb", default_bucket(plan_)) *
                                               static_cast<double>(kMiB));
    std::map<DType, std::int64_t> all;
    std::map<DType, std::pair<std::int64_t, std::int64_t>> open;  // elements of the open bucket, its limit in bytes
    const auto close = [&](DType type, std::int64_t& elements) {
      if (elements > 0) parts_.push_back({elements, type});
      elements = 0;
    };
    for (const Bucket& tensor : in_reverse_order(job)) {
      all[tensor.type] += tensor.elements;
      auto [at, is_new] = open.try_emplace(tensor.type, 0, kFirstBucket);
      at->second.first += tensor.elements;
      if (at->second.first * bytes_per_element(tensor.type) < at->second.second) continue;
      close(tensor.type, at->second.first);
      at->second.second = cap;
    }
    for (auto& [type, bucket] : open) close(type, bucket.first);
    for (const auto& [type, elements] : all) whole_.push_back({elements, type});
  }

  [[nodiscard]] std::int64_t turns(const TrainedParameter& trained) const {
    return r_.symbols().evaluate(r_.writer().turns(trained.parameter->unit));
  }

  // Every trained tensor of the whole model, layers that one simulated unit stands for written out.
  std::vector<Bucket> in_reverse_order(const JobModules& job) const {
    std::vector<Bucket> list;
    for (std::size_t i = 0; i < job.trained.size();) {
      std::size_t end = i;
      while (end < job.trained.size() && job.trained[end].parameter->unit == job.trained[i].parameter->unit) ++end;
      for (std::int64_t turn = 0; turn < turns(job.trained[i]); ++turn)
        for (std::size_t k = i; k < end; ++k)
          list.push_back({r_.symbols().evaluate(job.trained[k].elements), job.trained[k].parameter->value.dtype()});
      i = end;
    }
    std::reverse(list.begin(), list.end());
    return list;
  }

  Recorder& r_;
  const TrainingPlan& plan_;
  bool reduces_ = true, has_reduced_ = false, rebuilds_ = false;
  std::vector<Bucket> whole_, parts_;
  std::vector<Tensor> buckets_;
  Tensor extra_;
};

}  // namespace

// transformers 5.24 trainer.py, unless told: where the model is PEFT's, or is not checkpointed.
bool looks_for_unused(const TrainingPlan& plan) {
  const bool trainer =
      plan.loop == Loop::trainer && (has_adapters(plan) || plan.checkpointing.mode == Checkpointing::none);
  return plan.engine == Engine::ddp && engine_flag(plan, "find_unused_parameters", trainer);
}

std::unique_ptr<EngineRun> make_ddp(Recorder& recorder, const TrainingPlan& plan) {
  return std::make_unique<Ddp>(recorder, plan);
}

}  // namespace membill
