#include "estimate/engines/zero3_host.h"

#include <algorithm>

#include "estimate/engines/engine.h"

namespace membill {
namespace {

constexpr std::int64_t kLeastFile = std::int64_t{1} << 20;  // swap_tensor/utils.py MIN_AIO_BYTES
constexpr std::int64_t kAlignedBytes = 1024;                // AIO_ALIGNED_BYTES, one thread a request
constexpr int kMaster = 4;                                  // bytes of an element in fp32

class StoredBill {
 public:
  StoredBill(const TrainingPlan& plan, const StoredModel& model)
      : plan_(plan), model_(model), offload_(offload_plan(plan)), pins_(engine_flag(plan, "pin_memory", true)) {
    for (const std::int64_t group : model.sub_groups) trained_ += group;
  }

  StoredBytes bytes() {
    if (offload_.optimizer) add_optimizer();
    if (offload_.parameters) add_parameters();
    return std::move(stored_);
  }

 private:
  [[nodiscard]] std::int64_t taken(std::int64_t bytes) const { return pins_ ? pinned_bytes(bytes) : bytes; }

  [[nodiscard]] static std::int64_t aligned(std::int64_t elements, std::int64_t width) {
    return round_up(checked_mul(elements, width), kAlignedBytes);
  }

  // The gradients' own type for all; masters and fp32 gradients of each sub-group, or files of them.
  void add_optimizer() {
    stored_.host["gradients"] += taken(bytes_per_element(model_.gradient) * trained_);
    std::int64_t largest = 0;
    for (const std::int64_t group : model_.sub_groups) {
      largest = std::max(largest, group);
      if (swaps(group)) {
        stored_.nvme["weights.master"] += aligned(group, kMaster);
      } else {
        stored_.host["weights.master"] += kMaster * group;
        stored_.host["gradients"] += taken(kMaster * group);
      }
    }
    if (!offload_.optimizer_on_nvme) return;
    constexpr double kBuffers = 4;
    const auto buffers = static_cast<std::int64_t>(engine_number(plan_, "offload_optimizer_buffer_count", kBuffers));
    stored_.host["buffers.swap"] += checked_mul(buffers, aligned(largest, kMaster));
    for (const StoredPartition& partition : model_.partitions)
      if (partition.trains && is_swappable(kMaster * partition.elements))
        stored_.nvme["gradients"] += aligned(partition.elements, kMaster);
  }

  [[nodiscard]] bool swaps(std::int64_t group) const {
    return offload_.optimizer_on_nvme && is_swappable(kMaster * group);
  }

  // zero.Init puts each partition on the host or into a file; those that train move on to one flat buffer, as far as it goes.
  void add_parameters() {
    const std::int64_t width = bytes_per_element(model_.type);
    const std::int64_t flat = flat_elements();
    stored_.host["weights.base"] += pinned_bytes(width * flat);
    for (const StoredPartition& partition : model_.partitions) add_partition(partition);
    if (!offload_.parameters_on_nvme) return;
    constexpr double kBuffers = 5, kBufferSize = 1e8;
    const auto buffers = static_cast<std::int64_t>(engine_number(plan_, "offload_param_buffer_count", kBuffers));
    const auto size = static_cast<std::int64_t>(engine_number(plan_, "offload_param_buffer_size", kBufferSize));
    stored_.host["buffers.swap"] += checked_mul(buffers, aligned(size, width));
    if (flat == trained_) return;
    const std::int64_t largest = *std::max_element(model_.sub_groups.begin(), model_.sub_groups.end());
    stored_.host["buffers.swap"] +=
        aligned(checked_mul(largest, model_.ranks), width);  // of whole tensors, not of parts
  }

  [[nodiscard]] std::int64_t flat_elements() const {
    constexpr double kMostOnHost = 1e9;
    if (!offload_.parameters_on_nvme) return trained_;
    return std::min(trained_, static_cast<std::int64_t>(engine_number(plan_, "max_in_cpu", kMostOnHost)));
  }

  void add_partition(const StoredPartition& partition) {
    const std::int64_t width = bytes_per_element(partition.type), bytes = width * partition.elements;
    if (offload_.parameters_on_nvme && is_swappable(bytes)) {
      stored_.nvme["weights.base"] += partition.copies * aligned(partition.elements, width);
    } else if (pins_) {
      stored_.host["weights.base"] += partition.copies * pinned_bytes(bytes);
    } else if (!partition.trains) {
      stored_.host["weights.base"] += bytes;
    }
  }

  const TrainingPlan& plan_;
  const StoredModel& model_;
  OffloadPlan offload_;
  bool pins_;
  std::int64_t trained_ = 0;
  StoredBytes stored_;
};

}  // namespace

bool is_swappable(std::int64_t bytes) { return bytes >= kLeastFile; }

StoredBytes zero3_stored(const TrainingPlan& plan, const StoredModel& model) { return StoredBill(plan, model).bytes(); }

}  // namespace membill
