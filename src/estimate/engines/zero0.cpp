#include "estimate/engines/zero0.h"

#include "estimate/parameter_walk.h"
#include "membill/catalog.h"

namespace membill {
namespace {

constexpr std::int64_t kElementsPerBuffer = 500'000'000;  // engine.py MEMORY_OPT_ALLREDUCE_SIZE

class Zero0 : public EngineRun {
 public:
  Zero0(Recorder& recorder, const TrainingPlan& plan)
      : r_(recorder),
        has_master_(regime(plan.precision).master),
        gradient_item_(recorder.writer().item("gradients")),
        buffer_item_(recorder.writer().item("buffers.reduce_bucket")) {}

  void wrap(JobModules& job) override { job_ = &job; }
  void begin_micro_batch(bool last) override { last_ = last; }
  void gradient_ready(Parameter&) override {}

  // engine.py buffered_allreduce_fallback: gradients are flattened up to a size at a time.
  void after_backward() override {
    if (!last_) return;
    Size joined;
    for (const TrainedParameter& trained : job_->trained) {
      joined += trained.elements * r_.writer().turns(trained.parameter->unit);
      if (r_.symbols().evaluate(joined) <= kElementsPerBuffer) continue;
      flatten(joined);
      joined = Size();
    }
    flatten(joined);
  }

  // Every gradient once more in fp32, beside itself.
  void before_step() override {
    if (!has_master_) return;
    in_fp32_.resize(job_->trained.size());
    walk_parameters(r_.writer(), job_->trained, [&](TrainedParameter& trained, std::size_t i) {
      in_fp32_[i] = r_.empty(trained.parameter->value.shape(), DType::fp32, "gradient in fp32", gradient_item_);
    });
  }

  void after_step() override {
    walk_parameters(r_.writer(), job_->trained, [&](TrainedParameter& trained, std::size_t i) {
      if (has_master_) in_fp32_[i].drop();
      trained.parameter->gradient.drop();
    });
  }

  [[nodiscard]] bool clips() const override { return true; }
  [[nodiscard]] bool makes_states() const override { return has_master_; }

 private:
  void flatten(const Size& elements) {
    if (elements.is_zero()) return;
    r_.empty({elements, Size(1)}, job_->trained.front().parameter->value.dtype(), "gradients, joined", buffer_item_);
  }

  Recorder& r_;
  bool has_master_;
  ItemId gradient_item_, buffer_item_;
  JobModules* job_ = nullptr;
  bool last_ = true;
  std::vector<Tensor> in_fp32_;
};

}  // namespace

std::unique_ptr<EngineRun> make_zero0(Recorder& recorder, const TrainingPlan& plan) {
  return std::make_unique<Zero0>(recorder, plan);
}

}  // namespace membill
