#include "estimate/engines/zero12.h"

#include <algorithm>
#include <map>
#include <vector>

#include "estimate/engines/flat_groups.h"

namespace membill {
namespace {

class Zero12 : public EngineRun {
 public:
  Zero12(Recorder& recorder, const TrainingPlan& plan, const Hardware& hardware, std::int64_t hidden)
      : r_(recorder),
        plan_(plan),
        groups_(plan, hardware.count, hardware.rank.value_or(hardware.count - 1)),
        bucket_elements_(reduce_bucket_elements(plan, hidden)),
        overlaps_(engine_flag(plan, "overlap_comm", false)),
        contiguous_(engine_flag(plan, "contiguous_gradients", true)),
        on_host_(plan.sharding.offload != "none"),
        in_fp32_(accumulation_dtype(plan) != deepspeed_dtype(plan)),
        bucket_item_(recorder.writer().item("buffers.reduce_bucket")),
        gradient_item_(recorder.writer().item("gradients")),
        step_item_(recorder.writer().item("step.temporaries")) {}

  void wrap(JobModules& job) override {
    groups_.lay_out(r_, job.trained);
    type_ = groups_.parameters().front()->value.dtype();
    const ItemId weights = r_.writer().item(has_adapters(plan_) ? "weights.adapter" : "weights.base");
    const ItemId master = r_.writer().item("weights.master");
    job.trained.clear();
    for (const FlatGroup& group : groups_.all()) {
      flat_.push_back(flat(groups_.ranks() * group.part, type_, "flat parameters", weights));
      const Shape shape{Size(group.part), Size(1)};
      partitions_.push_back(std::make_unique<Parameter>());
      Parameter& partition = *partitions_.back();
      partition.value =
          on_host_ ? r_.placeholder(shape, DType::fp32) : r_.empty(shape, DType::fp32, "fp32 master partition", master);
      partition.trainable = true;
      job.trained.push_back({&partition, TensorRole::other, Size(group.part), {}, on_host_, on_host_});
    }
    if (on_host_) staging_ = flat(groups_.largest_tensor(), type_, "gradient on its way to the host", bucket_item_);
  }

  void begin_micro_batch(bool last) override { last_ = last; }

  void gradient_ready(Parameter& parameter) override {
    const Slice* slice = groups_.find(parameter);
    if (slice == nullptr) return;
    if (in_fp32_ && parameter.gradient.dtype() != DType::fp32)
      parameter.gradient = flat(slice->elements, DType::fp32, "gradient in fp32", gradient_item_);
    allocate_buckets();
    if (plan_.sharding.zero == 2 || (overlaps_ && last_)) move_to_bucket(parameter, *slice);
  }

  void after_backward() override {
    if (plan_.sharding.zero == 1 && !last_) return;  // gradients wait whole for the last micro-batch
    if (plan_.sharding.zero == 1 && !overlaps_)
      for (Parameter* parameter : groups_.parameters()) move_to_bucket(*parameter, *groups_.find(*parameter));
    reduce();
    buckets_.clear();
    keep_reduced();
    for (Parameter* parameter : groups_.parameters()) parameter->gradient.drop();
  }

  // The norm in fp64.
  void before_step() override {
    if (!on_host_) flat(2 * groups_.largest_own_slice(), DType::fp32, "gradient slice in fp64", step_item_);
  }

  // One group after the other: its gradients are flattened, cast to fp32, and stepped with. All are parts of one buffer, which the
  // last group lets go of.
  [[nodiscard]] std::size_t sub_steps() const override { return on_host_ ? 0 : partitions_.size(); }
  void before_sub_step(std::size_t index) override {
    Tensor& gradient = partitions_[index]->gradient;
    const bool last = index + 1 == partitions_.size();
    if (in_fp32_) {
      gradient = std::move(accumulator_[index]);
      if (last) accumulator_.clear();
      return;
    }
    const std::int64_t part = groups_.all()[index].part;
    Tensor joined = flat(part, type_, "flat gradient partition", gradient_item_);
    gradient =
        type_ == DType::fp32 ? std::move(joined) : flat(part, DType::fp32, "fp32 gradient partition", gradient_item_);
    if (last || !contiguous_) kept_.clear();
  }
  void after_sub_step(std::size_t index) override { partitions_[index]->gradient.drop(); }

  [[nodiscard]] bool clips() const override { return true; }

  // fp32 master and gradient partitions, a 16-bit copy on its way back, one tensor's gradient; page-locked.
  [[nodiscard]] std::map<std::string, std::int64_t> on_host() override {
    std::map<std::string, std::int64_t> bytes;
    if (!on_host_) return bytes;
    const auto taken = [&](std::int64_t count) {
      return engine_flag(plan_, "pin_memory", true) ? pinned_bytes(count) : count;
    };
    const std::int64_t width = bytes_per_element(type_);
    for (const FlatGroup& group : groups_.all()) {
      bytes["weights.master"] += taken(4 * group.part);
      bytes["gradients"] += taken(4 * group.part);
      bytes["buffers.offload"] += taken(width * group.part);
    }
    bytes["buffers.offload"] += taken(width * groups_.largest_tensor());
    if (plan_.accumulate > 1 && plan_.sharding.zero == 2)
      for (Parameter* parameter : groups_.parameters())
        if (const Slice& slice = *groups_.find(*parameter); slice.is_mine())
          bytes["gradients"] += taken(width * slice.elements);
    return bytes;
  }

 private:
  Tensor flat(std::int64_t elements, DType type, const char* label, ItemId item) {
    return r_.empty({Size(elements), Size(1)}, type, label, item);
  }

  void allocate_buckets() {
    if (!buckets_.empty() || !contiguous_) return;
    for (int i = 0; i < (overlaps_ ? 2 : 1); ++i)
      buckets_.push_back(flat(bucket_elements_, type_, "reduce bucket", bucket_item_));
  }

  // The gradient is copied into the bucket; a full bucket is reduced first. A tensor larger than the bucket stays where it is.
  void move_to_bucket(Parameter& parameter, const Slice& slice) {
    if (!parameter.gradient.defined()) return;
    if (filled_ + slice.elements > bucket_elements_) reduce();
    if (on_host_ && slice.elements > bucket_elements_)
      parameter.gradient = flat(slice.elements, type_, "gradient beside the bucket", gradient_item_);
    filled_ += slice.elements;
    waiting_.push_back(&parameter);
    if (slice.elements <= bucket_elements_ && contiguous_) parameter.gradient.drop();
  }

  // allreduce_and_copy_with_multiple_ranks: slices for more than one rank are reduced as one flat copy. Tensors of this rank's
  // partition then move into one buffer for all of them, whole; under stage 2 the others' gradients go.
  void reduce() {
    const StreamScope scope(r_.writer(), overlaps_ ? kReduceStream : 0);
    reduce_slices();
    for (Parameter* parameter : waiting_) {
      const Slice& slice = *groups_.find(*parameter);
      if (slice.is_mine()) keep_own(*parameter, slice);
      if (plan_.sharding.zero == 2 && !(slice.is_mine() && !contiguous_)) parameter->gradient.drop();
    }
    waiting_.clear();
    filled_ = 0;
  }

  void reduce_slices() {
    std::int64_t elements = 0, slices = 0, last_rank = -1;
    for (const Parameter* parameter : waiting_) {
      const Slice& slice = *groups_.find(*parameter);
      elements += slice.elements;
      for (std::int64_t rank = slice.first_rank; rank <= slice.last_rank; ++rank) {
        if (rank != last_rank || in_fp32_) ++slices;
        last_rank = rank;
      }
    }
    if (waiting_.empty()) return;
    Tensor joined;
    if (slices > 1 || (!contiguous_ && waiting_.size() > 1))
      joined = flat(elements, type_, "gradients of several ranks, joined", bucket_item_);
    if (in_fp32_ && elements > bucket_elements_)
      joined = flat(elements, type_, "gradient as it is reduced", bucket_item_);
  }

  void keep_own(Parameter& parameter, const Slice& slice) {
    if (on_host_) return send_to_host(parameter, slice);
    if (in_fp32_) {
      if (accumulator_.empty())
        for (const FlatGroup& group : groups_.all())
          accumulator_.push_back(flat(group.part, DType::fp32, "accumulated gradients", gradient_item_));
      if (slice.elements <= bucket_elements_) flat(slice.own(), DType::fp32, "slice in fp32", gradient_item_);
    } else if (!contiguous_) {
      own_.push_back(parameter.gradient);
    } else {
      if (own_.empty())
        own_.push_back(flat(groups_.own_elements(), type_, "gradients of this partition", gradient_item_));
      parameter.gradient.drop();
    }
  }

  // The norm is taken in fp64 on the card, the copy to the host in fp32.
  void send_to_host(Parameter& parameter, const Slice& slice) {
    if (last_) {
      flat(2 * slice.own(), DType::fp32, "gradient slice in fp64", gradient_item_);
      if (type_ != DType::fp32) flat(slice.own(), DType::fp32, "gradient slice in fp32", gradient_item_);
    }
    parameter.gradient.drop();
  }

  // Later micro-batches' gradients are added to the first's.
  void keep_reduced() {
    if (kept_.empty()) kept_ = std::move(own_);
    own_.clear();
  }

  Recorder& r_;
  const TrainingPlan& plan_;
  FlatGroups groups_;
  std::int64_t bucket_elements_;
  // overlap_comm: buckets are reduced on a stream whose memory the allocator keeps apart.
  static constexpr int kReduceStream = 1;
  bool overlaps_, contiguous_, on_host_, in_fp32_, last_ = true;
  ItemId bucket_item_, gradient_item_, step_item_;
  DType type_ = DType::bf16;
  std::int64_t filled_ = 0;
  std::vector<Parameter*> waiting_;
  std::vector<Tensor> flat_, buckets_;
  std::vector<Tensor> own_,
      kept_;  // reduced gradients of every tensor that overlaps this rank's partition: this micro-batch's, all
  std::vector<Tensor> accumulator_;  // the same in fp32, this rank's part only, by group
  std::vector<std::unique_ptr<Parameter>> partitions_;
  Tensor staging_;
};

}  // namespace

std::unique_ptr<EngineRun> make_zero12(Recorder& recorder, const TrainingPlan& plan, const Hardware& hardware,
                                       std::int64_t hidden) {
  return std::make_unique<Zero12>(recorder, plan, hardware, hidden);
}

}  // namespace membill
