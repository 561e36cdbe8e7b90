#include "estimate/engines/zero12.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "estimate/engines/flat_groups.h"
#include "estimate/engines/placement.h"
#include "estimate/engines/sent_gradients.h"
#include "membill/catalog.h"

namespace membill {
namespace {

class Zero12 : public EngineRun {
 public:
  Zero12(Recorder& recorder, const TrainingPlan& plan, const Hardware& hardware, std::int64_t hidden)
      : r_(recorder),
        plan_(plan),
        groups_(plan, data_ranks(plan, hardware).count, data_ranks(plan, hardware).own),
        bucket_elements_(reduce_bucket_elements(plan, hidden)),
        rank_(data_ranks(plan, hardware).own),
        overlaps_(engine_flag(plan, "overlap_comm", false)),
        contiguous_(engine_flag(plan, "contiguous_gradients", true) || plan.sharding.offload != "none"),
        on_host_(plan.sharding.offload != "none"),
        type_(deepspeed_dtype(plan)),
        in_fp32_(accumulation_dtype(plan) != type_),
        accumulates_whole_(in_fp32_ && plan.sharding.zero == 1),
        staged_(accumulates_whole_ ? DType::fp32 : type_),
        bucket_item_(recorder.writer().item("buffers.reduce_bucket")),
        gradient_item_(recorder.writer().item("gradients")),
        step_item_(recorder.writer().item("step.temporaries")) {}

  void wrap(JobModules& job) override {
    groups_.lay_out(r_, job.trained);
    make_buckets(job);
    left_.resize(groups_.all().size());
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
    if (groups_.find(parameter) == nullptr) return;
    for (Bucket& bucket : buckets_) allocate(bucket);
    if (accumulates_whole_) accumulate(parameter);
    if (plan_.sharding.zero == 2 || (overlaps_ && last_)) move_to_bucket(parameter);
  }

  void after_backward() override {
    if (plan_.sharding.zero == 1 && !last_) return;  // gradients wait whole for the last micro-batch
    if (plan_.sharding.zero == 1 && !overlaps_)
      for (Parameter* parameter : groups_.parameters()) move_to_bucket(*parameter);
    for (Bucket& bucket : buckets_) reduce(bucket);
    for (Bucket& bucket : buckets_) bucket.buffers.clear();
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
    left_[index].clear();
    if (in_fp32_) {
      make_accumulators();  // where no backward has: of a model without a program
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
  void after_step() override {
    for (std::vector<Tensor>& group : left_) group.clear();
    accumulator_.clear();
  }

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
    if (plan_.accumulate > 1 && plan_.sharding.zero == 2 && !in_fp32_)
      for (Parameter* parameter : groups_.parameters())
        if (const Slice& slice = *groups_.find(*parameter); slice.is_mine())
          bytes["gradients"] += taken(width * slice.elements);
    return bytes;
  }

 private:
  Tensor flat(std::int64_t elements, DType type, const char* label, ItemId item) {
    return r_.empty({Size(elements), Size(1)}, type, label, item);
  }

  // Gradients of one type on the wire, and two buffers of them where reduction overlaps with backward.
  struct Bucket {
    DType sent = DType::bf16;
    std::int64_t filled = 0;
    std::size_t turn = 0;
    std::vector<Parameter*> waiting;
    std::vector<Tensor> buffers;
  };

  // torch_autocast.py: gradients of torch.nn.Linear are sent in the type of autocast, and wait in a bucket of their own.
  void make_buckets(const JobModules& job) {
    buckets_.emplace_back().sent = sent_dtype(plan_);
    if (!runs_torch_autocast(plan_)) return;
    buckets_.emplace_back().sent = regime(plan_.precision).compute;
    linears_ = parameters_of_linears(job);
  }

  Bucket& bucket_of(const Parameter& parameter) { return buckets_[linears_.count(&parameter)]; }

  void allocate(Bucket& bucket) {
    if (!bucket.buffers.empty() || !contiguous_) return;
    for (int i = 0; i < (overlaps_ ? 2 : 1); ++i)
      bucket.buffers.push_back(flat(bucket_elements_, staged_, "reduce bucket", bucket_item_));
  }

  // _fill_param_grad_accum_attribute: each micro-batch's gradient is cast, then added to the first's.
  void accumulate(Parameter& parameter) {
    Tensor cast = flat(groups_.find(parameter)->elements, DType::fp32, "gradient in fp32", gradient_item_);
    if (Tensor& whole = whole_[&parameter]; !whole.defined()) whole = std::move(cast);
    parameter.gradient.drop();
  }

  Tensor& to_reduce(Parameter& parameter) { return accumulates_whole_ ? whole_[&parameter] : parameter.gradient; }

  // The gradient is copied into the bucket; a full bucket is reduced first. A tensor larger than the bucket stays where it is.
  void move_to_bucket(Parameter& parameter) {
    const Slice& slice = *groups_.find(parameter);
    Tensor& gradient = to_reduce(parameter);
    if (!gradient.defined()) return;
    Bucket& bucket = bucket_of(parameter);
    if (bucket.filled + slice.elements > bucket_elements_) {
      reduce(bucket);
      bucket.turn = bucket.buffers.size() - 1 - bucket.turn;
    }
    const bool fits = slice.elements <= bucket_elements_;
    if (on_host_ && !fits) gradient = flat(slice.elements, staged_, "gradient beside the bucket", gradient_item_);
    bucket.filled += slice.elements;
    bucket.waiting.push_back(&parameter);
    if (!fits || !contiguous_) return;
    gradient.drop();
    if (accumulates_whole_) gradient = bucket.buffers[bucket.turn];
  }

  // allreduce_and_copy_with_multiple_ranks: slices for more than one rank are reduced as one flat copy. Tensors of this rank's
  // partition then move into one buffer for all of them, whole; under stage 2 the others' gradients go.
  void reduce(Bucket& bucket) {
    const StreamScope scope(r_.writer(), overlaps_ ? kReduceStream : 0);
    reduce_slices(bucket);
    for (Parameter* parameter : bucket.waiting) {
      const Slice& slice = *groups_.find(*parameter);
      if (slice.is_mine()) keep_own(*parameter, slice);
      if (accumulates_whole_) leave(*parameter, slice);
      if (plan_.sharding.zero == 2 && !(slice.is_mine() && !contiguous_)) parameter->gradient.drop();
    }
    bucket.waiting.clear();
    bucket.filled = 0;
  }

  // Gradients that other ranks step with lie where they were until their group is stepped.
  void leave(Parameter& parameter, const Slice& slice) {
    Tensor gradient = std::move(whole_[&parameter]);
    whole_.erase(&parameter);
    if (!(slice.is_mine() && contiguous_)) left_[slice.group].push_back(std::move(gradient));
  }

  void reduce_slices(const Bucket& bucket) {
    if (bucket.waiting.empty()) return;
    std::int64_t elements = 0, slices = 0, last_rank = -1;
    for (const Parameter* parameter : bucket.waiting) {
      const Slice& slice = *groups_.find(*parameter);
      elements += slice.elements;
      for (std::int64_t rank = slice.first_rank; rank <= slice.last_rank; ++rank) {
        if (rank != last_rank || (in_fp32_ && rank == rank_)) ++slices;
        last_rank = rank;
      }
      if (in_fp32_ && slice.is_mine()) make_accumulators();
    }
    const DType sent = accumulates_whole_ ? type_ : bucket.sent;
    Tensor joined, cast;
    if (slices > 1 || (!contiguous_ && bucket.waiting.size() > 1))
      joined = flat(elements, staged_, "gradients of several ranks, joined", bucket_item_);
    if (sent != staged_) {
      cast = flat(elements, sent, "gradients as they are sent", bucket_item_);
      joined.drop();
    }
    for (const Parameter* parameter : bucket.waiting)
      if (const Slice& slice = *groups_.find(*parameter); in_fp32_ && slice.is_mine())
        flat(slice.own(), DType::fp32, "slice in fp32", gradient_item_);
  }

  // _build_compact_grad_partition_buffer
  void make_accumulators() {
    if (!accumulator_.empty()) return;
    for (const FlatGroup& group : groups_.all())
      accumulator_.push_back(flat(group.part, DType::fp32, "accumulated gradients", gradient_item_));
  }

  void keep_own(Parameter& parameter, const Slice& slice) {
    if (on_host_) return send_to_host(parameter, slice);
    if (in_fp32_) return;
    if (!contiguous_) {
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
      if (type_ != DType::fp32 && !in_fp32_) flat(slice.own(), DType::fp32, "gradient slice in fp32", gradient_item_);
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
  std::int64_t bucket_elements_, rank_;
  // overlap_comm: buckets are reduced on a stream whose memory the allocator keeps apart.
  static constexpr int kReduceStream = 1;
  bool overlaps_, contiguous_, on_host_;
  DType type_;
  bool in_fp32_, accumulates_whole_;  // gradients in fp32; and at stage 1 whole ones, until the last micro-batch
  DType staged_;                      // type of the buckets' buffers
  bool last_ = true;
  ItemId bucket_item_, gradient_item_, step_item_;
  std::vector<Bucket> buckets_;
  std::set<const Parameter*> linears_;
  std::map<const Parameter*, Tensor> whole_;
  std::vector<std::vector<Tensor>> left_;  // by group
  std::vector<Tensor> flat_;
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
