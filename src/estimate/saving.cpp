#include "estimate/saving.h"

#include <algorithm>

#include "base/gib_text.h"
#include "blocks/generations.h"
#include "membill/catalog.h"

namespace membill {
namespace {

constexpr std::int64_t kCodeTable = 1024;  // 256 fp32 values
// A tensor's entry in the plan of torch.distributed.checkpoint as it is pickled, its name included, which is longer of an adapter:
// measured with torch 2.15 and Llama's names (tests/oracle/measure_save.py).
constexpr std::int64_t kPlanEntry = 240, kAdaptersPlanEntry = 285;

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

  // torch/distributed/checkpoint/utils.py gather_object: rank 0 gets every rank's plan beside its own, of the model, then of the optimizer.
  void exchange_plans(const JobModules& job, const Hardware& hardware) {
    const OptimizerRow* optimizer = find_optimizer(plan_.optimizer);
    const std::size_t states = plan_.save.optimizer && optimizer != nullptr ? optimizer->states.size() + 1 : 0;
    const TensorCount count = tensors_of(job);
    const std::int64_t entries = std::max(count.all, count.trained * static_cast<std::int64_t>(states));
    const std::int64_t plans = hardware.rank.value_or(0) == 0 ? hardware.count + 1 : 1;
    const std::int64_t entry = has_adapters(plan_) ? kAdaptersPlanEntry : kPlanEntry;
    const Tensor exchanged = of_bytes(Size(entries * entry * plans), "plans of what each rank saves");
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
  struct TensorCount {
    std::int64_t all = 0, trained = 0;
  };

  static void count(const Module& module, std::int64_t turns, TensorCount& tensors) {
    const auto add = [&](const Parameter* parameter) {
      if (parameter == nullptr) return;
      tensors.all += turns;
      if (parameter->trainable) tensors.trained += turns;
    };
    add(&module.weight);
    add(module.bias.get());
    add(module.original.get());
    if (module.adapter == nullptr) return;
    for (const Parameter* part : {&module.adapter->down, &module.adapter->up}) add(part);
  }

  [[nodiscard]] TensorCount tensors_of(const JobModules& job) const {
    TensorCount tensors;
    for (const auto& module : job.model.outer.all()) count(*module, 1, tensors);
    for (const UnitModules& unit : job.model.units) {
      const std::int64_t turns = r_.symbols().evaluate(r_.writer().turns(unit.unit));
      for (const Modules& layer : unit.layers)
        for (const auto& module : layer.all()) count(*module, turns, tensors);
    }
    return tensors;
  }

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

void save_checkpoint(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
                     JobModules& job, EngineRun* engine) {
  if (plan.save.state == "none") return;
  recorder.writer().moment("save");
  Saving saving(recorder, model, plan);
  const bool state_on_card = plan.engine == Engine::torch || plan.engine == Engine::ddp;
  if (state_on_card) saving.copy(job);
  if (engine == nullptr) return;
  engine->at_saving(true);
  saving.gather(engine->gathers_to_save(job));
  if (plan.engine == Engine::megatron || (plan.save.state == "sharded" && shards_parameters(plan)))
    saving.exchange_plans(job, hardware);
  engine->at_saving(false);
}

}  // namespace membill
