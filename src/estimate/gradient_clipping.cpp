#include "estimate/gradient_clipping.h"

#include <algorithm>

#include "estimate/parameter_walk.h"

namespace membill {
namespace {

constexpr std::int64_t kChunk = 65536;    // elements of a chunk of a multi-tensor kernel
constexpr std::int64_t kOffsetBytes = 8;  // where a tensor's chunks begin

class Clipping {
 public:
  Clipping(Recorder& recorder, std::vector<TrainedParameter>& trained)
      : r_(recorder), trained_(trained), item_(recorder.writer().item("step.temporaries")), norms_(trained.size()) {}

  void run() {
    for (const TrainedParameter& trained : trained_) {
      if (!trained.parameter->gradient.defined()) continue;
      const DType type = trained.parameter->gradient.dtype();
      if (std::find(groups_.begin(), groups_.end(), type) == groups_.end()) groups_.push_back(type);
    }
    if (groups_.empty()) return;
    for (const DType type : groups_) norms_of_group(type);
    const Tensor total = total_norm();
    walk_parameters_backwards(r_.writer(), trained_, [&](TrainedParameter&, std::size_t i) { norms_[i].drop(); });
    const Tensor coefficient = scale_of(total);
  }

 private:
  Tensor scalar() { return r_.empty({Size(1), Size(1)}, stacked_type(), "norm of all gradients", item_); }

  [[nodiscard]] static bool belongs(const TrainedParameter& trained, DType type) {
    return trained.parameter->gradient.defined() && trained.parameter->gradient.dtype() == type;
  }

  // torch.stack promotes.
  [[nodiscard]] DType stacked_type() const { return groups_.size() == 1 ? groups_.front() : DType::fp32; }

  void norms_of_group(DType type) {
    Size tensors, chunks;
    for (const TrainedParameter& trained : trained_) {
      if (!belongs(trained, type)) continue;
      const Size copies = r_.writer().turns(trained.parameter->unit);
      tensors += copies;
      chunks += copies * r_.symbols().ceil_div(trained.elements, Size(kChunk));
    }
    Tensor offsets =
        r_.empty({(tensors + Size(1)) * Size(kOffsetBytes), Size(1)}, DType::uint8, "offsets of chunks", item_);
    Tensor sums = r_.empty({chunks, Size(1)}, DType::fp32, "sums of chunks", item_);
    walk_parameters(r_.writer(), trained_, [&](TrainedParameter& trained, std::size_t i) {
      if (belongs(trained, type)) norms_[i] = r_.empty({Size(1), Size(1)}, type, "gradient norm", item_);
    });
    sums.drop();
    offsets.drop();
    tensors_ += tensors;
  }

  Tensor total_norm() {
    const Tensor stacked = r_.empty({tensors_, Size(1)}, stacked_type(), "norms of all gradients", item_);
    return scalar();
  }

  // max_norm / (total + 1e-6), clamped.
  Tensor scale_of(const Tensor&) {
    Tensor sum = scalar(), reciprocal = scalar();
    const Tensor quotient = scalar();
    reciprocal.drop();
    sum.drop();
    return scalar();
  }

  Recorder& r_;
  std::vector<TrainedParameter>& trained_;
  ItemId item_;
  std::vector<Tensor> norms_;
  std::vector<DType> groups_;
  Size tensors_;
};

}  // namespace

void clip_gradients(Recorder& recorder, std::vector<TrainedParameter>& trained) { Clipping(recorder, trained).run(); }

}  // namespace membill
