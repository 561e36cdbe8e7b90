#include "estimate/adapter_modules.h"

#include <algorithm>

#include "base/first_rank.h"
#include "blocks/quantized.h"
#include "blocks/vision.h"
#include "catalog/adapter_shapes.h"
#include "estimate/engines/placement.h"
#include "membill/vision_part.h"

namespace membill {
namespace {

class AdapterBuilder {
 public:
  AdapterBuilder(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, JobModules& job)
      : r_(recorder),
        model_(model),
        plan_(plan),
        job_(job),
        match_(adapts_modules(plan.method) ? match_adapter_targets(model, plan.adapter, plan.method) : AdapterMatch()),
        item_(recorder.writer().item("weights.adapter")) {}

  void run() {
    if (plan_.method == Method::vera) make_shared_matrices();
    std::size_t next_unit = 0;
    for (std::size_t section = 0; section < model_.sections.size(); ++section) {
      if (model_.sections[section].layer_kinds.empty()) {
        const bool idle = is_vision_part(model_.sections[section]) && !sees_images(model_, plan_);
        idle_ = idle;
        adapt(idle ? job_.idle_modules : job_.model.outer, {section, 0, 0}, TraceWriter::kNoUnit);
        idle_ = false;
        continue;
      }
      for (; next_unit < job_.model.units.size() && job_.model.units[next_unit].section == section; ++next_unit)
        adapt_unit(job_.model.units[next_unit]);
    }
    save_tied_head();
    adapt_tied_head();
    cast_adapters();
    job_.trainable_elements += match_.parameters(plan_.method);
  }

 private:
  void adapt_unit(UnitModules& unit) {
    r_.writer().enter(unit.unit, true);
    for (std::size_t i = 0; i < unit.layers.size(); ++i)
      adapt(unit.layers[i], {unit.section, static_cast<std::size_t>(unit.kinds[i]), unit.numbers[i]}, unit.unit);
    r_.writer().leave();
  }

  struct Place {
    std::size_t section, kind;
    std::int64_t layer;
  };

  void adapt(Modules& modules, const Place& place, int unit) {
    const bool all_idle = idle_;
    for (const auto& module : modules.all()) {
      idle_ = all_idle || (model_.vision && is_behind_features(*model_.vision, module->name));
      const AdaptedModule* matched = find_match(*module, place);
      if (matched != nullptr && matched->module == ModuleKind::parameter)
        add_to_parameter(*module, *matched, unit);
      else if (matched != nullptr)
        add_adapter(*module, *matched, unit);
      if (is_saved(module->name) && module->original == nullptr) save(*module, unit);
      if (trains_rows(*module)) train_rows(*module, unit);
    }
    idle_ = all_idle;
  }

  // The outer modules are visited once for each section that is no stack.
  [[nodiscard]] bool trains_rows(const Module& module) const {
    return plan_.adapter.trainable_tokens > 0 && module.role == TensorRole::embedding && module.trained_rows == nullptr;
  }

  // tuners/trainable_tokens/layer.py update_layer; a tied head uses the embedding's.
  void train_rows(Module& module, int unit) {
    module.trained_rows = std::make_unique<TrainedRows>();
    const Shape shape{Size(plan_.adapter.trainable_tokens), module.weight.value.width()};
    train_adapter(module.trained_rows->delta, shape, unit, type_when_made(module));
    module.trained_rows->originals = r_.empty(shape, adapter_dtype(plan_), "original rows", item_);
    job_.trainable_elements += r_.symbols().evaluate(shape.elements());
  }

  [[nodiscard]] const AdaptedModule* find_match(const Module& module, const Place& place) const {
    for (const AdaptedModule& candidate : match_.modules) {
      if (candidate.section != place.section || candidate.kind != place.kind) continue;
      if (!std::binary_search(candidate.layers.begin(), candidate.layers.end(), place.layer)) continue;
      if (is_of(candidate, module.name)) return &candidate;
    }
    return nullptr;
  }

  // A router's parameter is known by the module that owns it, an experts' one by its own name.
  [[nodiscard]] static bool is_of(const AdaptedModule& matched, std::string_view name) {
    std::string_view full = matched.name;
    if (const std::size_t star = full.find("*."); star != std::string_view::npos) full.remove_prefix(star + 2);
    if (matched.module == ModuleKind::parameter && full.ends_with(".weight")) full.remove_suffix(7);
    return full == name;
  }

  // utils/other.py _set_trainable: a module whose name ends with one of the words.
  [[nodiscard]] bool is_saved(const std::string& name) const {
    return std::any_of(plan_.adapter.modules_to_save.begin(), plan_.adapter.modules_to_save.end(),
                       [&](const std::string& saved) { return name.ends_with(saved); });
  }

  void add_adapter(Module& module, const AdaptedModule& matched, int unit) {
    if (plan_.method == Method::vera || plan_.method == Method::ia3) return add_vectors(module, matched, unit);
    if (plan_.method == Method::loha || plan_.method == Method::lokr) return add_matrices(module, matched, unit);
    if (plan_.method == Method::oft) return add_rotation(module, matched, unit);
    module.adapter = std::make_unique<LoraAdapter>();
    module.adapter->dropout = plan_.adapter.dropout;
    const Shape& whole = module.weight.value.shape();
    const bool transposed = module.kind == ModuleKind::conv1d || module.kind == ModuleKind::embedding;
    const Size in = transposed ? whole.rows : whole.width, out = transposed ? whole.width : whole.rows;
    const Size r = rank_of(matched);
    const DType made = type_when_made(module);
    // Expert parallelism divides adapters with their experts.
    role_ = plan_.engine == Engine::megatron && module.role == TensorRole::expert ? module.role : TensorRole::adapter;
    train_adapter(module.adapter->down, {r, in}, unit, made);
    train_adapter(module.adapter->up, {out, r}, unit, made);
    module.adapter->up.seen_as_view = module.kind == ModuleKind::embedding;
    if (matched.bias) {
      module.adapter->bias = std::make_unique<Parameter>();
      train_adapter(*module.adapter->bias, {out, Size(1)}, unit, made);
    }
    if (plan_.method == Method::adalora) add_singular_values(*module.adapter, r, unit, made);
    role_ = TensorRole::adapter;
    if (plan_.method != Method::dora) return;
    module.adapter->magnitude = std::make_unique<Parameter>();
    train_adapter(*module.adapter->magnitude, {out, Size(1)}, unit, made);
  }

  // tuners/lora/layer.py ParamWrapper: the pairs of all experts side by side.
  void add_to_parameter(Module& module, const AdaptedModule& matched, int unit) {
    const bool down = module.name.ends_with("down_proj");
    const std::int64_t hidden = model_.hidden, other = matched.in == hidden ? matched.out : matched.in;
    const std::int64_t ranks = checked_mul(matched.rank, matched.matrices);
    module.adapter = std::make_unique<LoraAdapter>();
    module.adapter->matrices = matched.matrices;
    const DType made = module.weight.value.dtype();
    train_adapter(module.adapter->down, {Size(ranks), Size(down ? other : hidden)}, unit, made);
    train_adapter(module.adapter->up, {Size(down ? hidden : other), Size(ranks)}, unit, made);
  }

  // tuners/adalora/layer.py update_layer. B is used transposed, a view that autocast does not cache.
  void add_singular_values(LoraAdapter& adapter, const Size& rank, int unit, DType made) {
    adapter.up.seen_as_view = true;
    adapter.values = std::make_unique<Parameter>();
    adapter.rank = std::make_unique<Parameter>();
    train_adapter(*adapter.values, {rank, Size(1)}, unit, made);
    train_adapter(*adapter.rank, {Size(1), Size(1)}, unit, made);
  }

  // tuners/vera/model.py _init_vera_A_vera_B: two matrices for all modules, as large as the largest needs, in fp32.
  void make_shared_matrices() {
    for (const AdaptedModule& module : match_.modules) {
      shared_in_ = std::max(shared_in_, module.in);
      shared_out_ = std::max(shared_out_, module.out);
    }
    shared_down_ = r_.empty({rank_symbol(), Size(shared_in_)}, DType::fp32, "shared matrix A of VeRA", item_);
    shared_up_ = r_.empty({Size(shared_out_), rank_symbol()}, DType::fp32, "shared matrix B of VeRA", item_);
    job_.buffers.push_back(shared_down_);
    job_.buffers.push_back(shared_up_);
  }

  void add_vectors(Module& module, const AdaptedModule& matched, int unit) {
    module.vectors = std::make_unique<VectorAdapter>();
    VectorAdapter& vectors = *module.vectors;
    const Shape& whole = module.weight.value.shape();
    const bool transposed = module.kind == ModuleKind::conv1d;
    const Size in = transposed ? whole.rows : whole.width, out = transposed ? whole.width : whole.rows;
    const DType made = type_when_made(module);
    vectors.dropout = plan_.adapter.dropout;
    vectors.feed_forward = matched.feed_forward;
    train_adapter(vectors.scale, {vectors.feed_forward ? in : out, Size(1)}, unit, made);
    if (plan_.method == Method::ia3) return;
    vectors.inner_scale = std::make_unique<Parameter>();
    train_adapter(*vectors.inner_scale, {rank_symbol(), Size(1)}, unit, made);
    vectors.down = std::make_unique<Parameter>();
    vectors.up = std::make_unique<Parameter>();
    vectors.down->value = r_.view(shared_down_, {rank_symbol(), in});
    vectors.up->value = r_.view(shared_up_, {out, rank_symbol()});
    vectors.down->label = vectors.up->label = "adapter output";
  }

  [[nodiscard]] Size rank_of(const AdaptedModule& matched) const {
    return matched.rank == first_rank(plan_.adapter, plan_.method) ? rank_symbol() : Size(matched.rank);
  }

  void add_matrices(Module& module, const AdaptedModule& matched, int unit) {
    module.matrix = std::make_unique<MatrixAdapter>();
    MatrixAdapter& matrix = *module.matrix;
    const DType made = type_when_made(module);
    const Size r = rank_of(matched);
    const auto make = [&](std::unique_ptr<Parameter>& parameter, const Shape& shape) {
      parameter = std::make_unique<Parameter>();
      train_adapter(*parameter, shape, unit, made);
    };
    const auto pair = [&](std::unique_ptr<Parameter>& a, std::unique_ptr<Parameter>& b, const Shape& shape) {
      make(a, {shape.rows, r});
      make(b, {r, shape.width});
    };
    matrix.hadamard = plan_.method == Method::loha;
    if (matrix.hadamard) {
      pair(matrix.first_a, matrix.first_b, module.weight.value.shape());
      return pair(matrix.second_a, matrix.second_b, module.weight.value.shape());
    }
    const LokrShapes shapes = lokr_shapes(matched.in, matched.out, matched.rank, plan_.adapter);
    const Shape first{Size(shapes.first_rows), Size(shapes.first_columns)},
        second{Size(shapes.second_rows), Size(shapes.second_columns)};
    shapes.first_whole ? make(matrix.first, first) : pair(matrix.first_a, matrix.first_b, first);
    shapes.second_whole ? make(matrix.second, second) : pair(matrix.second_a, matrix.second_b, second);
  }

  // tuners/oft/layer.py OFTRotationModule: the places of the angles are buffers of it.
  void add_rotation(Module& module, const AdaptedModule& matched, int unit) {
    module.rotation = std::make_unique<RotationAdapter>();
    RotationAdapter& rotation = *module.rotation;
    const OftShapes shapes = oft_shapes(matched.in, plan_.adapter);
    rotation.blocks = Size(shapes.blocks);
    rotation.width = Size(shapes.width);
    const Shape places{Size(shapes.angles()), Size(1)};
    train_adapter(rotation.angles, {rotation.blocks, Size(shapes.angles())}, unit, type_when_made(module));
    rotation.rows = r_.empty(places, DType::int64, "rows of OFT's angles", item_);
    rotation.columns = r_.empty(places, DType::int64, "columns of OFT's angles", item_);
  }

  [[nodiscard]] Size rank_symbol() const {
    return r_.symbols().define("r", "adapter rank", first_rank(plan_.adapter, plan_.method));
  }

  // utils/other.py ModulesToSaveWrapper: a trained copy in the original's type runs in its place; the original stays.
  void save(Module& module, int unit) {
    module.original = std::make_unique<Parameter>();
    copy(module.weight, *module.original, module.role, unit);
    if (module.bias == nullptr) return;
    module.original_bias = std::make_unique<Parameter>();
    copy(*module.bias, *module.original_bias, module.role, unit);
  }

  void copy(Parameter& running, Parameter& original, TensorRole role, int unit) {
    original = running;
    const Shape shape = original.value.shape();
    train(running, shape, unit, original.value.dtype());
    running.leading = original.leading;
    running.label = original.label;
    if (!idle_) job_.trained.back().role = role;
    job_.trainable_elements += r_.symbols().evaluate(shape.elements() * r_.writer().turns(unit));
  }

  // A tied head has no matrix of its own until it is copied.
  void save_tied_head() {
    if (!model_.tied_embeddings || !is_saved("lm_head") || job_.model.outer.find("lm_head") != nullptr) return;
    Module& head = job_.model.outer.add("lm_head");
    head.kind = ModuleKind::linear;
    head.role = TensorRole::head;
    const Shape shape{r_.symbols().define("V", "vocabulary", model_.vocab),
                      r_.symbols().define("h", "hidden size", model_.hidden)};
    train(head.weight, shape, TraceWriter::kNoUnit, unquantized_dtype(plan_));
    head.weight.label = "logits";
    job_.trained.back().role = TensorRole::head;
    job_.trainable_elements += r_.symbols().evaluate(shape.elements());
  }

  // Over a tied head an adapter's base is the embedding's matrix.
  void adapt_tied_head() {
    const auto matched = std::find_if(match_.modules.begin(), match_.modules.end(),
                                      [](const AdaptedModule& module) { return module.tied_head; });
    if (matched == match_.modules.end() || job_.model.outer.find("lm_head") != nullptr) return;
    for (const auto& module : job_.model.outer.all()) {
      if (module->role != TensorRole::embedding) continue;
      const Parameter table = module->weight;
      Module& head = job_.model.outer.add("lm_head");
      head.kind = ModuleKind::linear;
      head.role = TensorRole::head;
      head.weight = table;
      return add_adapter(head, *matched, TraceWriter::kNoUnit);
    }
  }

  // tuners_utils.py _move_adapter_to_device_of_base_layer: adapters are made in the base layer's type, unless that is an integer.
  [[nodiscard]] DType type_when_made(const Module& module) const {
    if (plan_.adapter.dtype != AdapterDType::automatic || !has_own_memory(plan_, true)) return adapter_dtype(plan_);
    if (module.quantized == nullptr) return module.weight.value.dtype();
    return is_4bit(plan_.weights) ? module.quantized->compute : DType::fp32;
  }

  void train_adapter(Parameter& parameter, const Shape& shape, int unit, DType dtype) {
    train(parameter, shape, unit, dtype);
    if (dtype != adapter_dtype(plan_)) made_in_16_bits_.push_back(&parameter);
  }

  // tuners_utils.py cast_adapter_dtype: 16-bit adapters become fp32 once all are there.
  void cast_adapters() {
    TraceWriter& writer = r_.writer();
    for (Parameter* parameter : made_in_16_bits_) {
      if (parameter->unit != writer.unit()) {
        if (writer.unit() != TraceWriter::kNoUnit) writer.leave();
        if (parameter->unit != TraceWriter::kNoUnit) writer.enter(parameter->unit, true);
      }
      const Shape shape = parameter->value.shape();
      parameter->value = r_.empty(shape, adapter_dtype(plan_), "adapter", item_);
      parameter->value.body().requires_grad = true;
      parameter->value.body().leaf = parameter;
    }
    if (writer.unit() != TraceWriter::kNoUnit) writer.leave();
  }

  void train(Parameter& parameter, const Shape& shape, int unit, DType dtype) {
    parameter.value = place_parameter(r_, plan_, shape, dtype, "adapter", item_, true);
    parameter.item = item_;
    parameter.leading = shape.rows;
    parameter.unit = unit;
    parameter.trainable = true;
    parameter.label = "adapter output";
    parameter.value.body().requires_grad = true;
    parameter.value.body().leaf = &parameter;
    (idle_ ? job_.idle_trained : job_.trained).push_back({&parameter, role_, shape.elements()});
  }

  Recorder& r_;
  const ModelSpec& model_;
  const TrainingPlan& plan_;
  JobModules& job_;
  AdapterMatch match_;
  ItemId item_;
  TensorRole role_ = TensorRole::adapter;
  bool idle_ = false;  // what is added now never gets a gradient, and so no states
  std::vector<Parameter*> made_in_16_bits_;
  std::int64_t shared_in_ = 0, shared_out_ = 0;
  Tensor shared_down_, shared_up_;  // VeRA
};

}  // namespace

void add_adapters(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, JobModules& job) {
  AdapterBuilder(recorder, model, plan, job).run();
}

}  // namespace membill
