#include "estimate/parameters.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "blocks/architecture.h"
#include "blocks/generations.h"
#include "blocks/megatron_next_token.h"
#include "blocks/packed_storage.h"
#include "blocks/quantized.h"
#include "blocks/torchtune_nf4.h"
#include "blocks/vision.h"
#include "catalog/adapters.h"
#include "catalog/module_names.h"
#include "estimate/adapter_modules.h"
#include "estimate/dimension_names.h"
#include "estimate/engines/placement.h"
#include "estimate/idle_parts.h"
#include "estimate/layer_units.h"
#include "estimate/packed_tensors.h"
#include "estimate/prompt_encoder.h"
#include "estimate/rotary_cache.h"
#include "estimate/trained_tensors.h"
#include "membill/catalog.h"
#include "membill/vision_part.h"

namespace membill {
namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// "model.layers.*.self_attn.q_proj.weight" -> "self_attn.q_proj"; outside of layers the whole module name.
std::string local_name(const TensorSpec& spec) {
  std::string name =
      spec.module == ModuleKind::parameter && !ends_with(spec.name, ".weight") && !ends_with(spec.name, ".bias")
          ? spec.name
          : spec.module_name();
  const std::size_t star = name.find("*.");
  return star == std::string::npos ? name : name.substr(star + 2);
}

bool adapts_layers_apart(const TrainingPlan& plan) {
  const AdapterPlan& adapter = plan.adapter;
  const bool pattern = adapter.targets.size() == 1 && is_pattern(adapter.targets.front());
  return adapts_modules(plan.method) &&
         (pattern || !adapter.exclude.empty() || !adapter.layers.empty() || !adapter.rank_pattern.empty());
}

class Builder {
 public:
  Builder(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, const Dims& dims, bool expand,
          std::string_view weights_item)
      : r_(recorder),
        model_(model),
        plan_(plan),
        dims_(dims),
        expand_(expand),
        weights_(recorder.writer().item(weights_item)),
        buffers_(recorder.writer().item("weights.buffers")),
        trained_(model, plan),
        packed_(model, plan),
        quantizer_{plan.weights, plan.quantization, plan.double_quant, base_dtype(plan),
                   plan.implementation == Implementation::torchtune} {
    if (adapts_layers_apart(plan)) adapted_ = match_adapter_targets(model, plan.adapter, plan.method);
  }

  JobModules run() {
    if (keeps_rotary_cache(plan_)) job_.buffers.push_back(rotary_cache(r_, model_, plan_, dims_, buffers_));
    Tensor head;
    if (makes_tied_head() && begins_with_head()) head = untied_head();
    for (std::size_t section = 0; section < model_.sections.size(); ++section) add_section(section);
    if (makes_tied_head() && !begins_with_head()) head = untied_head();
    head.drop();
    if (quantizer_.scale_values.defined()) job_.buffers.push_back(quantizer_.scale_values);
    if (unquantized_dtype(plan_) != base_dtype(plan_)) prepare_for_kbit();
    return std::move(job_);
  }

 private:
  struct Unquantized {
    Parameter* parameter;
    TensorRole role;
  };

  void add_section(std::size_t index) {
    const Section& section = model_.sections[index];
    if (section.layer_kinds.empty()) {
      Modules& outer = job_.model.outer;
      Modules& modules = is_next_token_part(section) ? outer.make_part(section.name) : outer;
      add_tensors(modules, section.kinds.at(0), dims_.kinds[index][0], TraceWriter::kNoUnit, 1, {section, 0});
      return;
    }
    std::vector<std::int32_t> alike(section.layer_kinds.begin(), section.layer_kinds.end());
    for (std::size_t layer = 0; layer < alike.size(); ++layer)
      alike[layer] =
          likeness(section, static_cast<std::int64_t>(layer)) * static_cast<std::int32_t>(section.kinds.size()) +
          alike[layer];
    for (const LayerRun& run : find_runs(alike, expand_)) add_run(index, run);
  }

  struct Layer {
    const Section& section;
    std::int64_t number;
  };

  [[nodiscard]] std::size_t section_of(const Section& section) const {
    return static_cast<std::size_t>(&section - model_.sections.data());
  }

  // Layers of a kind that are trained, adapted, packed and checkpointed alike have the same number.
  [[nodiscard]] std::int32_t likeness(const Section& section, std::int64_t layer) const {
    std::vector<std::int64_t> now =
        adapted_ ? adapted_->ranks_in(section_of(section), layer) : std::vector<std::int64_t>();
    now.insert(now.end(), {trained_.likeness(section, layer), packed_.likeness(section, layer),
                           is_checkpointed(plan_.checkpointing, layer) ? 1 : 0});
    return number_of(std::move(now), likenesses_);
  }

  void add_run(std::size_t index, const LayerRun& run) {
    const Section& section = model_.sections[index];
    const int simulated = static_cast<int>(std::min<std::int64_t>(run.count, TraceWriter::kSimulatedUnits));
    const bool whole = run.length == 1 && run.count == model_.layers;
    const bool repeats = simulated == TraceWriter::kSimulatedUnits;
    const std::int64_t written_out = TraceWriter::kSimulatedUnits - 1;
    const Size turns = whole ? dims_.L - Size(written_out) : Size(run.count - written_out);
    const int first = r_.writer().add_run(run.count, simulated, repeats ? turns : Size(1));
    for (int i = 0; i < simulated; ++i) {
      UnitModules unit;
      unit.unit = first + i;
      unit.section = index;
      const std::int64_t place = i < written_out ? i : run.count - 1;
      const std::int64_t stands_for = repeats && i == TraceWriter::kRepeatedUnit ? run.count - written_out : 1;
      r_.writer().enter(unit.unit, true);
      for (std::int64_t layer = run.first + place * run.length; layer < run.first + (place + 1) * run.length; ++layer) {
        const std::int32_t kind = section.layer_kinds[static_cast<std::size_t>(layer)];
        unit.kinds.push_back(kind);
        unit.numbers.push_back(layer);
        unit.layers.emplace_back();
        add_tensors(unit.layers.back(), section.kinds[static_cast<std::size_t>(kind)],
                    dims_.kinds[index][static_cast<std::size_t>(kind)], unit.unit, stands_for, {section, layer});
      }
      r_.writer().leave();
      job_.model.units.push_back(std::move(unit));
    }
  }

  void add_tensors(Modules& modules, const LayerKind& kind, const KindDims& kind_dims, int unit,
                   std::int64_t stands_for, const Layer& layer) {
    const DimensionNames names(r_.symbols(), dims_, kind_dims);
    for (const TensorSpec& spec : kind.tensors) {
      if (spec.buffer) {
        if (keeps_rotary_cache(plan_)) continue;
        const DType type = spec.own_dtype.value_or(base_dtype(plan_));
        job_.buffers.push_back(r_.empty({Size(spec.elements()), Size(1)}, type, "buffer", buffers_));
        continue;
      }
      if (is_vision_part(layer.section) && !sees_images(model_, plan_)) {
        add_idle(spec, names.shape(spec), layer);
        continue;
      }
      const std::string name = local_name(spec);
      Module* module = modules.find(name);
      if (module == nullptr) {
        module = &modules.add(name);
        module->kind = spec.module;
        module->role = spec.role;
      }
      Parameter* parameter = &module->weight;
      if (ends_with(spec.name, ".bias")) {
        module->bias = std::make_unique<Parameter>();
        parameter = module->bias.get();
      }
      if (packed_.packs(layer.section, layer.number, spec)) {
        store(*module, spec.shape.size() == 2 ? names.shape(spec) : Shape(), unit, spec);
        continue;
      }
      const bool trained = trained_.trains(layer.section, layer.number, spec);
      const DType made = shards_parameters(plan_) ? unquantized_dtype(plan_, spec.role) : base_dtype(plan_);
      fill(*parameter, names.shape(spec), spec.own_dtype.value_or(made), weights_, spec, unit, trained);
      if (trained) note_trained(*parameter, spec, stands_for);
    }
  }

  void note_trained(Parameter& parameter, const TensorSpec& spec, std::int64_t stands_for) {
    job_.trainable_elements += spec.elements() * stands_for;
    const TrainedParameter one{&parameter, spec.role, parameter.value.shape().elements()};
    if (model_.vision && is_behind_features(*model_.vision, spec.name)) return job_.idle_trained.push_back(one);
    job_.trained.push_back(one);
    if (spec.shape.size() != 3 || shards_parameters(plan_)) return;
    job_.trained.back().stacked = Size(spec.shape[0]);
    job_.trained.back().of_stack = {Size(spec.shape[1]), Size(spec.shape[2])};
  }

  void add_idle(const TensorSpec& spec, const Shape& shape, const Layer& layer) {
    if (packed_.packs(layer.section, layer.number, spec))
      return keep_idle(job_, spec, r_.placeholder(shape, DType::uint8),
                       store_quantized(r_, quantizer_, {Size(1), shape.rows, shape.width}));
    const DType type = spec.own_dtype.value_or(unquantized_dtype(plan_, spec.role));
    const Tensor weight = place_parameter(r_, plan_, shape, type, label(spec), weights_, false);
    keep_idle(job_, spec, weight, nullptr);
    if (!trained_.trains(layer.section, layer.number, spec)) return;
    job_.idle_parameters.push_back(std::make_unique<Parameter>());
    job_.idle_parameters.back()->value = weight;
    job_.idle_trained.push_back({job_.idle_parameters.back().get(), spec.role, shape.elements()});
  }

  // A hand-written loop makes the model on the card: a tied head's own matrix is there until it is tied.
  [[nodiscard]] bool makes_tied_head() const {
    const bool own_class = plan_.implementation == Implementation::hf || plan_.implementation == Implementation::liger;
    if (plan_.loop != Loop::plain || !own_class || !model_.tied_embeddings) return false;
    bool matrix = false, bias = false;
    for (const Section& section : model_.sections)
      for (const LayerKind& kind : section.kinds)
        for (const TensorSpec& tensor : kind.tensors) {
          const bool head = tensor.role == TensorRole::head;
          matrix = matrix || (head && tensor.shape.size() == 2);
          bias = bias || (head && tensor.shape.size() == 1);
        }
    const Architecture* program = find_architecture(model_.model_type, plan_.implementation);
    const bool causal = program == nullptr || program->causal();
    return !matrix && (bias || causal);
  }

  [[nodiscard]] Tensor untied_head() {
    const std::vector<std::int64_t>& embedding = model_.sections.front().kinds.front().tensors.front().shape;
    const std::int64_t width = embedding.size() == 2 ? embedding[1] : model_.hidden;
    return r_.empty({dims_.V, Size(width)}, base_dtype(plan_), "head before it is tied", weights_);
  }

  // transformers 5.24 models/camembert, xlm_roberta: the head's module is made before the base model.
  [[nodiscard]] bool begins_with_head() const {
    return model_.model_type == "camembert" || model_.model_type == "xlm-roberta";
  }

  // peft/utils/other.py prepare_model_for_kbit_training: 16-bit parameters to fp32, one after another; then the cache is emptied.
  void prepare_for_kbit() {
    for (const Unquantized& entry : unquantized_) convert(entry, unquantized_dtype(plan_));
    for (const Unquantized& entry : unquantized_)
      if (const DType last = unquantized_dtype(plan_, entry.role); last != unquantized_dtype(plan_))
        convert(entry, last);
    r_.writer().visit(TraceWriter::kNoUnit, true);
    r_.writer().empty_cache();
  }

  void convert(const Unquantized& entry, DType type) {
    Parameter& parameter = *entry.parameter;
    r_.writer().visit(parameter.unit, true);
    parameter.value = r_.empty(parameter.value.shape(), type, parameter.label, weights_);
  }

  // Fused experts run as if they were whole: their kernels unpack what they multiply.
  void store(Module& module, const Shape& shape, int unit, const TensorSpec& spec) {
    const bool experts = spec.shape.size() == 3;
    const PackedShape packed = experts ? PackedShape{spec.shape[0], spec.shape[1], spec.shape[2]}
                                       : PackedShape{Size(1), shape.rows, shape.width};
    std::unique_ptr<QuantizedWeight> stored = store_quantized(r_, quantizer_, packed);
    auto body = std::make_shared<TensorBody>();
    body->shape = experts ? Shape{Size(spec.elements()), Size(1)} : shape;
    body->dtype = experts ? base_dtype(plan_) : DType::uint8;
    module.weight.value = Tensor(std::move(body));
    module.weight.leading = experts ? Size(spec.shape[0]) : shape.rows;
    module.weight.unit = unit;
    module.weight.label = label(spec);
    if (experts) return job_.packed_experts.push_back(std::move(stored));
    for (std::size_t i = 0; i < stored->parts.size(); ++i)  // the engine's shard takes its place
      if (is_cut(*stored, i)) stored->parts[i] = r_.placeholder(stored->parts[i].shape(), stored->parts[i].dtype());
    module.quantized = std::move(stored);
  }

  [[nodiscard]] bool is_cut(const QuantizedWeight& stored, std::size_t part) const {
    if (stored.torchao) return shards_parameters(plan_) && part < kCutNf4Parts;
    return shards_codes(plan_) && part == stored.codes_at;
  }

  void fill(Parameter& parameter, const Shape& shape, DType dtype, ItemId item, const TensorSpec& spec, int unit,
            bool trained) {
    parameter.value = place_parameter(r_, plan_, shape, dtype, label(spec), item, trained);
    parameter.item = item;
    parameter.leading = spec.shape.size() > 2 ? Size(spec.shape[0]) : shape.rows;
    parameter.unit = unit;
    parameter.trainable = trained;
    parameter.in_by_out = spec.module == ModuleKind::conv1d && spec.shape.size() == 2;
    parameter.label = label(spec);
    if (parameter.value.handle()->storage != nullptr) unquantized_.push_back({&parameter, spec.role});
    if (!trained) return;
    parameter.value.body().requires_grad = true;
    parameter.value.body().leaf = &parameter;
  }

  static const char* label(const TensorSpec& spec) {
    switch (spec.role) {
      case TensorRole::embedding: return "embedding";
      case TensorRole::position: return "positions";
      case TensorRole::attention: return "attention projection";
      case TensorRole::mlp: return "MLP projection";
      case TensorRole::expert: return "expert";
      case TensorRole::router: return "router";
      case TensorRole::norm: return "norm";
      case TensorRole::head: return "logits";
      case TensorRole::adapter: return "adapter";
      case TensorRole::other: break;
    }
    return "weight";
  }

  Recorder& r_;
  const ModelSpec& model_;
  const TrainingPlan& plan_;
  const Dims& dims_;
  bool expand_;
  ItemId weights_, buffers_;
  TrainedTensors trained_;
  PackedTensors packed_;
  Quantizer quantizer_;
  std::optional<AdapterMatch> adapted_;                        // where some layers have other adapters than others
  mutable std::vector<std::vector<std::int64_t>> likenesses_;  // of layers, by what likeness() looks at
  std::vector<Unquantized> unquantized_;                       // with memory of their own
  JobModules job_;
};

// The engine makes the whole model 16-bit, adapters and all (deepspeed 0.19 runtime/engine.py; megatron-core 0.16
// transformer/module.py Float16Module).
std::optional<DType> type_of_whole_model(const TrainingPlan& plan) {
  const bool engine = plan.engine == Engine::deepspeed || plan.engine == Engine::megatron;
  if (!engine || !regime(plan.precision).master) return std::nullopt;
  return regime(plan.precision).compute;
}

}  // namespace

DType base_dtype(const TrainingPlan& plan) {
  if (const auto cast = type_of_whole_model(plan)) return *cast;
  switch (plan.weights) {
    case WeightFormat::fp32: return DType::fp32;
    case WeightFormat::fp16:
    case WeightFormat::awq_int4: return DType::fp16;  // transformers 5.24 quantizers/quantizer_awq.py update_dtype
    default: return DType::bf16;
  }
}

DType adapter_dtype(const TrainingPlan& plan) {
  // ZeRO-3 has partitioned adapters by then, and a type that is asked for stays.
  const bool stays =
      plan.engine == Engine::deepspeed && plan.sharding.zero == 3 && plan.adapter.dtype != AdapterDType::automatic;
  if (const auto cast = type_of_whole_model(plan); cast && !stays) return *cast;
  switch (plan.adapter.dtype) {
    case AdapterDType::bf16: return DType::bf16;
    case AdapterDType::fp16: return DType::fp16;
    case AdapterDType::fp32: return DType::fp32;
    case AdapterDType::automatic: break;
  }
  if (plan.implementation == Implementation::torchtune) return base_dtype(plan);
  // trl 1.16 trainer/sft_trainer.py: adapters over a 4-bit base are cast to bf16.
  const bool trl = is_4bit(plan.weights) && generations(plan).trl == Generations::Trl::fused;
  return trl && !casts_ends_to_16bit(plan) ? DType::bf16 : DType::fp32;
}

// peft/utils/other.py prepare_model_for_kbit_training leaves GPTQ and HQQ models in their types; fp8 and mxfp4 are no k-bit formats.
bool is_cast_for_kbit(WeightFormat format) {
  return is_4bit(format) || format == WeightFormat::int8 || format == WeightFormat::awq_int4;
}

DType unquantized_dtype(const TrainingPlan& plan, TensorRole role) {
  const bool ends = role == TensorRole::embedding || role == TensorRole::position || role == TensorRole::head;
  if (ends && casts_ends_to_16bit(plan)) return base_dtype(plan);
  return unquantized_dtype(plan);
}

DType unquantized_dtype(const TrainingPlan& plan) {
  if (const auto cast = type_of_whole_model(plan)) return *cast;
  return is_cast_for_kbit(plan.weights) && plan.kbit_prepare ? DType::fp32 : base_dtype(plan);
}

bool has_adapters(const TrainingPlan& plan) { return plan.method != Method::full && plan.method != Method::freeze; }

JobModules build_modules(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, const Dims& dims,
                         bool expand, std::string_view weights_item) {
  JobModules job = Builder(recorder, model, plan, dims, expand, weights_item).run();
  if (has_adapters(plan)) add_adapters(recorder, model, plan, job);
  if (has_adapters(plan) && !adapts_modules(plan.method)) add_prompt_encoder(recorder, plan, dims, job);
  return job;
}

}  // namespace membill
