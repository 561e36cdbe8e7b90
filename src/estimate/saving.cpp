#include "estimate/saving.h"

#include <algorithm>

#include "base/gib_text.h"
#include "blocks/generations.h"
#include "membill/catalog.h"

namespace membill {
namespace {

constexpr std::int64_t kCodeTable = 1024;  // 256 fp32 values

// A tensor made in one unit and let go in another place.
struct Copy {
  int unit;
  Tensor tensor;
};

class Saving {
 public:
  Saving(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan)
      : r_(recorder), model_(model), plan_(plan), item_(recorder.writer().item("buffers.saving")) {}

  void gather(const SavingGathers& gathers) {
    for (const SavingGather& gather : gathers) {
      r_.writer().visit(gather.unit, true);
      std::vector<Tensor> tensors;
      for (const Size& bytes : gather.bytes) tensors.push_back(of_bytes(bytes, "gathered to be saved"));
    }
    r_.writer().visit(TraceWriter::kNoUnit, true);
  }

  // model.state_dict() and save_pretrained(): copies live until the file is written.
  void copy(JobModules& job) {
    copy(job.model.outer, TraceWriter::kNoUnit);
    for (UnitModules& unit : job.model.units)
      for (Modules& layer : unit.layers) copy(layer, unit.unit);
    for (Copy& made : copies_) {
      r_.writer().visit(made.unit, true);
      made.tensor.drop();
    }
    r_.writer().visit(TraceWriter::kNoUnit, true);
  }

 private:
  Tensor of_bytes(const Size& bytes, const char* label) {
    return r_.empty({bytes, Size(1)}, DType::uint8, label, item_);
  }

  void copy(const Modules& modules, int unit) {
    r_.writer().visit(unit, true);
    for (const auto& module : modules.all()) {
      if (module->quantized != nullptr && has_nested_codes())
        copies_.push_back({unit, of_bytes(Size(kCodeTable), "code table of the scales")});
      if (is_taken_apart(*module)) {
        const Tensor& weight = module->weight.value;
        copies_.push_back({unit, r_.empty(weight.shape(), weight.dtype(), "experts' matrices, apart", item_)});
      }
    }
  }

  // bitsandbytes 0.50 functional.py QuantState.as_dict clones it.
  [[nodiscard]] bool has_nested_codes() const {
    return plan_.double_quant && (plan_.weights == WeightFormat::nf4 || plan_.weights == WeightFormat::fp4);
  }

  // transformers 5 core_model_loading.py revert_weight_conversion: checkpoints hold each expert's two matrices apart that the model
  // holds joined, rows by rows, for all experts (conversion_mapping.py). Adapters are saved without their base.
  [[nodiscard]] bool is_taken_apart(const Module& module) const {
    constexpr std::string_view kJoined = ".gate_up_proj";
    const bool joined = module.role == TensorRole::expert && module.name.size() > kJoined.size() &&
                        module.name.compare(module.name.size() - kJoined.size(), kJoined.size(), kJoined) == 0;
    const bool as_saved = model_.model_type == "gpt_oss" || model_.model_type == "llama4" ||
                          model_.model_type == "llama4_text" || model_.model_type == "granitemoe";
    return joined && !as_saved && generations(plan_).joins_experts && !has_adapters(plan_) &&
           module.quantized == nullptr;
  }

  Recorder& r_;
  const ModelSpec& model_;
  const TrainingPlan& plan_;
  ItemId item_;
  std::vector<Copy> copies_;
};

}  // namespace

std::string saving_note(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
                        std::int64_t trainable) {
  const bool stage3 = plan.engine == Engine::deepspeed && plan.sharding.zero == 3;
  if (plan.save.state != "full" || hardware.count < 2 || (!stage3 && !shards_parameters(plan))) return {};
  const std::int64_t saved = stage3 && has_adapters(plan) ? trainable : model.parameters();
  const DType stored = stage3 ? DType::bf16 : stored_dtype(plan, base_dtype(plan), !has_adapters(plan));
  std::int64_t bytes = checked_mul(saved, bytes_per_element(stored));
  const OptimizerRow* optimizer = find_optimizer(plan.optimizer);
  if (!stage3 && plan.save.optimizer && optimizer != nullptr)
    bytes = std::max(bytes, checked_mul(checked_mul(trainable, bytes_per_element(stored_dtype(plan, stored, true))),
                                        static_cast<std::int64_t>(optimizer->states.size())));
  return "save: rank 0 collects the whole state in host memory, about " + gib_text(bytes) +
         ", which the host's total leaves out";
}

void save_checkpoint(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, JobModules& job,
                     EngineRun* engine) {
  if (plan.save.state == "none") return;
  recorder.writer().moment("save");
  Saving saving(recorder, model, plan);
  const bool state_on_card = plan.engine == Engine::torch || plan.engine == Engine::ddp;
  if (state_on_card) saving.copy(job);
  if (engine == nullptr) return;
  engine->at_saving(true);
  saving.gather(engine->gathers_to_save(job));
  engine->at_saving(false);
}

}  // namespace membill
