// How ZeRO-3 reduces gradients (deepspeed 0.19 runtime/zero/stage3.py): buckets, one for each type in which gradients are sent.
#pragma once

#include <cstdint>
#include <vector>

#include "estimate/engines/placement.h"
#include "estimate/engines/zero3_coordinator.h"

namespace membill {

class Zero3Reducer {
 public:
  Zero3Reducer(Recorder& recorder, const TrainingPlan& plan, std::int64_t bucket_elements, std::int64_t ranks);

  // There are gradients to reduce: the buffers are made, for good.
  void make_buckets();
  void begin_micro_batch(bool last) { is_last_ = last; }
  // The gradient is copied into its bucket, or waits beside it when it is larger.
  void add(Parameter& parameter, const Partitioned& partitioned);
  void reduce();
  // Of what goes to NVMe, gradients that are too small for files wait on the card until the step.
  void release_unswapped() { unswapped_.clear(); }

 private:
  struct Waiting {
    Parameter* parameter;
    const Partitioned* partitioned;
  };
  struct Bucket {
    DType sent = DType::bf16;
    std::int64_t filled = 0;
    Tensor buffer;
    std::vector<Waiting> waiting;
  };

  Tensor flat(std::int64_t elements, DType type, const char* label, ItemId item) {
    return r_.empty({Size(elements), Size(1)}, type, label, item);
  }
  void reduce(Bucket& bucket);
  void scatter(const Bucket& bucket);
  void pass_to_host(std::int64_t part, std::vector<Tensor>& swapping);

  Recorder& r_;
  std::int64_t bucket_elements_, ranks_;
  OffloadPlan offload_;
  bool contiguous_, is_last_ = true;
  DType type_, gradient_type_;
  ItemId bucket_item_, gradient_item_;
  std::vector<Bucket> buckets_;
  std::vector<Tensor> unswapped_;
};

}  // namespace membill
