#include "estimate/engines/zero3_reducer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "estimate/engines/sent_gradients.h"
#include "estimate/engines/zero3_host.h"
#include "membill/catalog.h"

namespace membill {

Zero3Reducer::Zero3Reducer(Recorder& recorder, const TrainingPlan& plan, std::int64_t bucket_elements,
                           std::int64_t ranks)
    : r_(recorder),
      bucket_elements_(bucket_elements),
      ranks_(ranks),
      offload_(offload_plan(plan)),
      contiguous_(engine_flag(plan, "contiguous_gradients", true)),
      type_(deepspeed_dtype(plan)),
      gradient_type_(accumulation_dtype(plan)),
      bucket_item_(recorder.writer().item("buffers.reduce_bucket")),
      gradient_item_(recorder.writer().item("gradients")) {
  buckets_.emplace_back().sent = sent_dtype(plan);
  if (runs_torch_autocast(plan)) buckets_.emplace_back().sent = regime(plan.precision).compute;
}

void Zero3Reducer::make_buckets() {
  if (!contiguous_) return;
  for (Bucket& bucket : buckets_) bucket.buffer = flat(bucket_elements_, bucket.sent, "reduce bucket", bucket_item_);
}

void Zero3Reducer::add(Parameter& parameter, const Partitioned& partitioned) {
  Bucket& bucket = *std::find_if(buckets_.begin(), std::prev(buckets_.end()),
                                 [&](const Bucket& each) { return each.sent == partitioned.sent; });
  if (bucket.filled > 0 && bucket.filled + partitioned.elements > bucket_elements_) reduce(bucket);
  if (contiguous_ && bucket.filled + partitioned.elements <= bucket_elements_) parameter.gradient.drop();
  bucket.filled += partitioned.elements;
  bucket.waiting.push_back({&parameter, &partitioned});
}

void Zero3Reducer::reduce() {
  for (Bucket& bucket : buckets_) reduce(bucket);
}

// reduce_scatter_coalesced: several gradients, or one that the ranks do not divide, are joined in a copy.
void Zero3Reducer::scatter(const Bucket& bucket) {
  const StreamScope scope(r_.writer(), kReduceStream);
  std::int64_t padded = 0;
  std::vector<Tensor> cast;
  for (const Waiting& each : bucket.waiting) {
    padded += each.partitioned->part * ranks_;
    if (bucket.sent != type_ && each.parameter->gradient.defined())
      cast.push_back(flat(each.partitioned->elements, bucket.sent, "gradient as it is sent", gradient_item_));
  }
  Tensor joined;
  if (bucket.waiting.size() > 1 || padded != bucket.filled)
    joined = flat(padded, bucket.sent, "gradients, joined", bucket_item_);
  if (gradient_type_ != bucket.sent)
    flat(padded / ranks_, gradient_type_, "partitions as they accumulate", gradient_item_);
}

void Zero3Reducer::reduce(Bucket& bucket) {
  if (bucket.waiting.empty()) return;
  scatter(bucket);
  std::vector<Tensor> swapping;  // until all of the bucket are there
  for (const Waiting& each : bucket.waiting) {
    if (offload_.optimizer) pass_to_host(each.partitioned->part, swapping);
    each.parameter->gradient.drop();
  }
  bucket.waiting.clear();
  bucket.filled = 0;
}

// partition_grads: the host's gradient comes to the card to be added to, and before the step its norm is taken in fp64.
void Zero3Reducer::pass_to_host(std::int64_t part, std::vector<Tensor>& swapping) {
  constexpr std::int64_t kNormBuffer = 250'000'000;
  const StreamScope scope(r_.writer(), kReduceStream);
  const Tensor here = flat(part, gradient_type_, "partition of a gradient", gradient_item_);
  if (!is_last_) return;
  flat(2 * std::min(part, kNormBuffer), DType::fp32, "partition of a gradient in fp64", gradient_item_);
  Tensor wide =
      gradient_type_ == DType::fp32 ? here : flat(part, DType::fp32, "partition of a gradient in fp32", gradient_item_);
  if (offload_.optimizer_on_nvme) (is_swappable(4 * part) ? swapping : unswapped_).push_back(std::move(wide));
}

}  // namespace membill
