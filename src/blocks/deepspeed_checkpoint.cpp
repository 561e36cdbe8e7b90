#include "blocks/deepspeed_checkpoint.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "base/engine_keys.h"
#include "program/recorder.h"

namespace membill {
namespace {

ItemId boundaries(Recorder& r) { return r.writer().item("activations.boundaries"); }

Tensor like(Recorder& r, const Shape& shape, DType type, const char* label) {
  return r.empty(shape, type, label, boundaries(r));
}

// arg.data = torch.empty([]): a scalar in the default type.
void empty_data(Recorder& r, Tensor& input) {
  input.body().storage = like(r, {Size(1), Size(1)}, DType::fp32, "emptied layer input").body().storage;
}

Size bytes_of(const Tensor& x) { return x.shape().elements() * Size(bytes_per_element(x.dtype())); }

// offload_activations.py: page-locked copies on a stream of their own. The last two inputs stay on the card.
class OnHost : public InputKeeper {
 public:
  std::unique_ptr<KeptInput> keep(Recorder& r, const Tensor& input) override;

 private:
  class Input;
  static constexpr int kCopyStream = 3;
  std::deque<Input*> on_card_;
};

class OnHost::Input : public KeptInput {
 public:
  Input(OnHost& keeper, const Tensor& input) : keeper_(keeper), shape_(input.shape()), type_(input.dtype()) {}

  void leave(Recorder& r, Tensor& input) override {
    device_ = r.detach(input);
    std::deque<Input*>& on_card = keeper_.on_card_;
    if (!on_card.empty()) r.add_offloaded(r.symbols().next_power_of_two(bytes_of(on_card.back()->device_)));
    on_card.push_back(this);
    if (on_card.size() > 2) {
      on_card.front()->device_.drop();
      on_card.pop_front();
    }
    empty_data(r, input);
  }

  std::shared_ptr<Storage> bring_back(Recorder& r) override {
    std::erase(keeper_.on_card_, this);
    if (device_.defined()) return std::exchange(device_, Tensor()).body().storage;
    const StreamScope scope(r.writer(), kCopyStream);
    return like(r, shape_, type_, "layer input, back from the host").body().storage;
  }

 private:
  OnHost& keeper_;
  Shape shape_;
  DType type_;
  Tensor device_;
};

std::unique_ptr<KeptInput> OnHost::keep(Recorder&, const Tensor& input) {
  return std::make_unique<Input>(*this, input);
}

// partition_activations: this rank's part, copied before the layer runs; on the host, and in buffers for all layers, if asked for.
class InParts : public InputKeeper {
 public:
  InParts(std::int64_t parts, bool on_host, std::int64_t buffers)
      : parts_(parts), buffer_count_(buffers), on_host_(on_host) {}

  std::unique_ptr<KeptInput> keep(Recorder& r, const Tensor& input) override;

 private:
  class Input;
  // The buffers are made anew for each micro-batch; the backward pass lets go of those that no layer has taken.
  Tensor take_buffer(Recorder& r, const Tensor& part) {
    if (buffers_.empty())
      for (std::int64_t i = 0; i < buffer_count_; ++i)
        buffers_.push_back(like(r, part.shape(), part.dtype(), "buffer of a layer input"));
    Tensor buffer = std::move(buffers_.front());
    buffers_.pop_front();
    return buffer;
  }

  std::int64_t parts_, buffer_count_;
  bool on_host_, counted_ = false;
  std::deque<Tensor> buffers_;
};

class InParts::Input : public KeptInput {
 public:
  Input(Recorder& r, InParts& keeper, const Tensor& input)
      : keeper_(keeper),
        whole_(input.shape()),
        part_{whole_.rows, r.symbols().ceil_div(whole_.width, keeper.parts_)},
        type_(input.dtype()) {
    Tensor own = like(r, part_, type_, "layer input, this rank's part");
    const bool buffers = keeper.buffer_count_ > 0;
    if (keeper.on_host_) {
      if (!buffers) r.add_offloaded(bytes_of(own));
      if (buffers && !std::exchange(keeper.counted_, true)) r.add_offloaded(bytes_of(own) * Size(keeper.buffer_count_));
    } else {
      kept_ = buffers ? keeper.take_buffer(r, own) : std::move(own);
    }
  }

  void leave(Recorder& r, Tensor& input) override { empty_data(r, input); }

  std::shared_ptr<Storage> bring_back(Recorder& r) override {
    keeper_.buffers_.clear();
    keeper_.counted_ = false;
    if (!kept_.defined()) kept_ = like(r, part_, type_, "layer input, this rank's part, back from the host");
    if (keeper_.parts_ > 1) kept_ = like(r, whole_, type_, "layer input, gathered");
    return std::exchange(kept_, Tensor()).body().storage;
  }

 private:
  InParts& keeper_;
  Shape whole_, part_;
  DType type_;
  Tensor kept_;
};

std::unique_ptr<KeptInput> InParts::keep(Recorder& r, const Tensor& input) {
  return std::make_unique<Input>(r, *this, input);
}

bool is_on(const TrainingPlan& plan, const char* key) { return engine_flag(plan, key, false); }

}  // namespace

bool calls_deepspeed_checkpoint(const TrainingPlan& plan) {
  return plan.engine == Engine::deepspeed && plan.checkpointing.mode == Checkpointing::full &&
         (is_on(plan, "partition_activations") || is_on(plan, "cpu_checkpointing"));
}

std::unique_ptr<InputKeeper> deepspeed_inputs(const TrainingPlan& plan) {
  if (!calls_deepspeed_checkpoint(plan)) return nullptr;
  if (!is_on(plan, "partition_activations")) return std::make_unique<OnHost>();
  const bool contiguous = is_on(plan, "contiguous_memory_optimization");
  const auto buffers = contiguous ? static_cast<std::int64_t>(engine_number(plan, "number_checkpoints", 0)) : 0;
  return std::make_unique<InParts>(plan.parallel.tp, is_on(plan, "cpu_checkpointing"), buffers);
}

}  // namespace membill
