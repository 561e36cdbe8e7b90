#include "estimate/engines/zero12.h"

#include <algorithm>
#include <map>
#include <vector>

namespace membill {
namespace {

// A trained tensor's place in the flat group.
struct Slice {
  std::int64_t begin = 0, elements = 0;
};

class Zero12 : public EngineRun {
 public:
  Zero12(Recorder& recorder, const TrainingPlan& plan, const Hardware& hardware, std::int64_t hidden)
      : r_(recorder),
        plan_(plan),
        ranks_(hardware.count),
        rank_(hardware.rank.value_or(hardware.count - 1)),
        bucket_elements_(bucket_size(plan, hidden)),
        overlaps_(engine_flag(plan, "overlap_comm", false)),
        buffer_item_(recorder.writer().item("buffers.reduce_bucket")),
        gradient_item_(recorder.writer().item("gradients")) {}

  void wrap(JobModules& job) override {
    lay_out(job);
    const Size whole(ranks_ * part_);
    flat_ = r_.empty({whole, Size(1)}, type_, "flat parameters",
                     r_.writer().item(has_adapters(plan_) ? "weights.adapter" : "weights.base"));
    partition_.value =
        r_.empty({Size(part_), Size(1)}, DType::fp32, "fp32 master partition", r_.writer().item("weights.master"));
    partition_.trainable = true;
    job.trained.assign(1, {&partition_, TensorRole::other, Size(part_)});
  }

  void gradient_ready(Parameter& parameter) override {
    if (plan_.sharding.zero == 1 && !overlaps_) return;  // reduced after the last micro-batch
    move_to_bucket(parameter);
  }

  void after_backward() override {
    if (plan_.sharding.zero == 1 && !overlaps_)
      for (Parameter* parameter : order_) move_to_bucket(*parameter);
    reduce();
    buckets_.clear();
    for (Parameter* parameter : order_) parameter->gradient.drop();
  }

  // unscale, norm in fp64, flatten in 16 bits, cast to fp32.
  void before_step() override {
    {
      const Tensor norm = r_.empty({Size(2 * largest_own_slice_), Size(1)}, DType::fp32, "gradient slice in fp64",
                                   r_.writer().item("step.temporaries"));
    }
    Tensor flat = r_.empty({Size(part_), Size(1)}, type_, "flat gradient partition", gradient_item_);
    partition_.gradient = r_.empty({Size(part_), Size(1)}, DType::fp32, "fp32 gradient partition", gradient_item_);
    flat.drop();
    own_.drop();
  }

  [[nodiscard]] bool clips() const override { return true; }

 private:
  static std::int64_t bucket_size(const TrainingPlan& plan, std::int64_t hidden) {
    const auto found = plan.sharding.engine_keys.find("reduce_bucket_size");
    if (found != plan.sharding.engine_keys.end() && found->second == "auto") return hidden * hidden;
    return static_cast<std::int64_t>(engine_number(plan, "reduce_bucket_size", 5e8));
  }

  // One flat group of all trained tensors, aligned to twice the ranks. REQUIRES: every layer is simulated.
  void lay_out(const JobModules& job) {
    std::int64_t total = 0;
    for (const TrainedParameter& trained : job.trained) {
      const std::int64_t elements = r_.symbols().evaluate(trained.elements);
      type_ = trained.parameter->value.dtype();
      slices_[trained.parameter] = {total, elements};
      order_.push_back(trained.parameter);
      total += elements;
    }
    part_ = round_up(total, 2 * ranks_) / ranks_;
    for (const auto& [parameter, slice] : slices_) {
      const std::int64_t begin = std::max(slice.begin, rank_ * part_),
                         end = std::min(slice.begin + slice.elements, (rank_ + 1) * part_);
      largest_own_slice_ = std::max(largest_own_slice_, end - begin);
      if (end > begin) own_elements_ += slice.elements;
    }
  }

  [[nodiscard]] bool is_mine(const Slice& slice) const {
    return slice.begin < (rank_ + 1) * part_ && slice.begin + slice.elements > rank_ * part_;
  }

  void allocate_buckets() {
    if (!buckets_.empty() || !engine_flag(plan_, "contiguous_gradients", true)) return;
    for (int i = 0; i < (overlaps_ ? 2 : 1); ++i)
      buckets_.push_back(r_.empty({Size(bucket_elements_), Size(1)}, type_, "reduce bucket", buffer_item_));
  }

  // The gradient is copied into the bucket; a full bucket is reduced first. A tensor larger than the bucket stays where it is.
  void move_to_bucket(Parameter& parameter) {
    const auto found = slices_.find(&parameter);
    if (found == slices_.end() || !parameter.gradient.defined()) return;
    if (filled_ + found->second.elements > bucket_elements_) reduce();
    allocate_buckets();
    filled_ += found->second.elements;
    waiting_.push_back(&parameter);
    if (found->second.elements <= bucket_elements_ && !buckets_.empty()) parameter.gradient.drop();
  }

  // Tensors of this rank's partition move into one buffer for all of them, whole; under stage 2 the others' gradients go.
  void reduce() {
    for (Parameter* parameter : waiting_) {
      const bool mine = is_mine(slices_.at(parameter));
      if (mine && !own_.defined())
        own_ = r_.empty({Size(own_elements_), Size(1)}, type_, "gradients of this partition", gradient_item_);
      if (mine || plan_.sharding.zero == 2) parameter->gradient.drop();
    }
    waiting_.clear();
    filled_ = 0;
  }

  Recorder& r_;
  const TrainingPlan& plan_;
  std::int64_t ranks_, rank_, bucket_elements_;
  bool overlaps_;
  ItemId buffer_item_, gradient_item_;
  DType type_ = DType::bf16;
  std::int64_t part_ = 0, largest_own_slice_ = 0, own_elements_ = 0, filled_ = 0;
  std::map<Parameter*, Slice> slices_;
  std::vector<Parameter*> order_, waiting_;
  std::vector<Tensor> buckets_;
  Tensor flat_, own_;  // own_: reduced gradients of every tensor that overlaps this rank's partition
  Parameter partition_;
};

}  // namespace

std::unique_ptr<EngineRun> make_zero12(Recorder& recorder, const TrainingPlan& plan, const Hardware& hardware,
                                       std::int64_t hidden) {
  return std::make_unique<Zero12>(recorder, plan, hardware, hidden);
}

}  // namespace membill
