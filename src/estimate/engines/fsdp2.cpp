#include "estimate/engines/fsdp2.h"

#include <map>
#include <utility>
#include <vector>

namespace membill {
namespace {

// One tensor of a unit: how the module sees it, and the shard that this rank keeps.
struct ShardedTensor {
  Parameter* whole = nullptr;
  std::unique_ptr<Parameter> shard;  // what the optimizer steps
  Size rows, row;                    // rows of the shard, elements of a row
};

// What one fully_shard call gathers and frees together.
struct Unit {
  std::vector<ShardedTensor> tensors;
  Tensor flat;                   // all-gather output
  std::vector<Tensor> gathered;  // unsharded parameters
  bool reshards = true;          // after forward
};

class Fsdp2 : public EngineRun, public ForwardHooks {
 public:
  Fsdp2(Recorder& recorder, const TrainingPlan& plan, const Hardware& hardware)
      : r_(recorder),
        plan_(plan),
        ranks_(plan.sharding.shard_group.value_or(hardware.count)),
        flat_item_(recorder.writer().item("gathered.flat")),
        gathered_item_(recorder.writer().item("gathered.parameters")),
        reduce_item_(recorder.writer().item("buffers.reduce_scatter")),
        gradient_item_(recorder.writer().item("gradients")) {
    r_.set_backward_hooks([this](int unit, int layer) { before_layer_backward(unit, layer); },
                          [this](int unit, int layer) { after_layer_backward(unit, layer); });
  }

  void wrap(JobModules& job) override {
    for (const TrainedParameter& trained : job.trained) roles_[trained.parameter] = trained.role;
    root_.reshards = false;
    add_modules(root_, job.model.outer, kRoot);
    for (UnitModules& unit : job.model.units) {
      r_.writer().enter(unit.unit, true);
      for (std::size_t layer = 0; layer < unit.layers.size(); ++layer) {
        const Key key{unit.unit, static_cast<int>(layer)};
        order_.push_back(key);
        Unit& made = units_[key];
        made.reshards = plan_.sharding.fsdp != "shard_grad_op";
        add_modules(made, unit.layers[layer], key);
      }
      r_.writer().leave();
    }
    replace_trained(job);
  }

  void gradient_ready(Parameter&) override {}
  ForwardHooks* forward_hooks() override { return this; }

  void before_model() override {
    gather(root_);
    copy_out(root_);
    kept_flat_ = std::move(root_.flat);
  }
  void before_layer(int unit, int layer) override {
    Unit& now = units_.at({unit, layer});
    gather(now);
    kept_flat_.drop();
    copy_out(now);
    kept_flat_ = std::move(now.flat);
  }
  void after_layer(int unit, int layer) override {
    Unit& now = units_.at({unit, layer});
    if (now.reshards) now.gathered.clear();
  }
  void after_model() override { kept_flat_.drop(); }

  // The root's pre-backward prefetches the last layer.
  void before_backward() override { prefetch(order_.size()); }

  void after_backward() override {
    reduce(root_);
    reduce_input_.drop();
  }

 private:
  using Key = std::pair<int, int>;  // unit, layer
  static constexpr Key kRoot{TraceWriter::kNoUnit, 0};

  void add_modules(Unit& unit, const Modules& modules, const Key&) {
    for (const auto& module : modules.all()) {
      add(unit, module->weight);
      if (module->bias != nullptr) add(unit, *module->bias);
      if (module->adapter != nullptr) {
        add(unit, module->adapter->down);
        add(unit, module->adapter->up);
        if (module->adapter->magnitude != nullptr) add(unit, *module->adapter->magnitude);
      }
      if (module->original != nullptr) add(unit, *module->original);
    }
  }

  // Every tensor is cut along its first axis, padded to the same rows on every rank.
  void add(Unit& unit, Parameter& whole) {
    if (!whole.value.defined() || whole.leading.is_zero()) return;  // quantised storage stays whole
    ShardedTensor tensor;
    tensor.whole = &whole;
    const std::int64_t leading = r_.symbols().evaluate(whole.leading),
                       elements = r_.symbols().evaluate(whole.value.shape().elements());
    tensor.rows = r_.symbols().ceil_div(whole.leading, Size(ranks_));
    tensor.row = whole.value.shape().rows == whole.leading ? whole.value.shape().width : Size(elements / leading);
    tensor.shard = std::make_unique<Parameter>();
    const DType stored = whole.trainable && adapted(whole) ? adapter_dtype(plan_) : unquantized_dtype(plan_);
    tensor.shard->value = r_.empty({tensor.rows, tensor.row}, stored, "shard", whole.item);
    tensor.shard->unit = whole.unit;
    tensor.shard->trainable = whole.trainable;
    tensor.shard->label = whole.label;
    unit.tensors.push_back(std::move(tensor));
  }

  [[nodiscard]] bool adapted(const Parameter& whole) const {
    const auto role = roles_.find(&whole);
    return role != roles_.end() && role->second == TensorRole::adapter;
  }

  void replace_trained(JobModules& job) {
    std::map<const Parameter*, Parameter*> shards;
    const auto note = [&](Unit& unit) {
      for (ShardedTensor& tensor : unit.tensors) shards[tensor.whole] = tensor.shard.get();
    };
    note(root_);
    for (auto& [key, unit] : units_) note(unit);
    for (TrainedParameter& trained : job.trained) {
      trained.parameter = shards.at(trained.parameter);
      trained.elements = trained.parameter->value.shape().elements();
    }
  }

  [[nodiscard]] Size padded(const ShardedTensor& tensor) const { return Size(ranks_) * tensor.rows * tensor.row; }

  // The collective: shards are cast into its input when their type differs, the output is one flat tensor.
  void gather(Unit& unit) {
    if (unit.flat.defined() || !unit.gathered.empty()) return;
    Size bytes, cast;
    for (const ShardedTensor& tensor : unit.tensors) {
      const DType gathered = tensor.whole->value.dtype();
      bytes += padded(tensor) * Size(bytes_per_element(gathered));
      if (gathered != tensor.shard->value.dtype()) cast += tensor.rows * tensor.row * Size(bytes_per_element(gathered));
    }
    const Tensor input =
        cast.is_zero() ? Tensor() : r_.empty({cast, Size(1)}, DType::uint8, "all-gather input", flat_item_);
    unit.flat = r_.empty({bytes, Size(1)}, DType::uint8, "all-gather output", flat_item_);
  }

  void copy_out(Unit& unit) {
    if (!unit.gathered.empty()) return;
    for (const ShardedTensor& tensor : unit.tensors)
      unit.gathered.push_back(
          r_.empty({padded(tensor), Size(1)}, tensor.whole->value.dtype(), "gathered parameter", gathered_item_));
  }

  void prefetch(std::size_t position) {
    if (position > 0) gather(units_.at(order_[position - 1]));
  }

  void before_layer_backward(int unit, int layer) {
    const Key key{unit, layer};
    Unit& now = units_.at(key);
    gather(now);
    copy_out(now);
    now.flat.drop();
    for (std::size_t position = 0; position < order_.size(); ++position)
      if (order_[position] == key) prefetch(position);
  }

  void after_layer_backward(int unit, int layer) { reduce(units_.at({unit, layer})); }

  [[nodiscard]] DType reduce_dtype(const ShardedTensor& tensor) const {
    const auto found = plan_.sharding.engine_keys.find("reduce_dtype");
    if (found != plan_.sharding.engine_keys.end() && found->second == "bf16") return DType::bf16;
    if (found != plan_.sharding.engine_keys.end() && found->second == "fp32") return DType::fp32;
    return tensor.shard->value.dtype();
  }

  // Post-backward: parameters are resharded, gradients copied into the reduce-scatter's input, which lives until the next unit's.
  void reduce(Unit& unit) {
    unit.gathered.clear();
    Size whole_bytes, part_bytes, cast_bytes;
    std::vector<ShardedTensor*> reduced;
    for (ShardedTensor& tensor : unit.tensors) {
      if (!tensor.whole->gradient.defined()) continue;
      reduced.push_back(&tensor);
      const Size width = Size(bytes_per_element(reduce_dtype(tensor)));
      whole_bytes += padded(tensor) * width;
      part_bytes += tensor.rows * tensor.row * width;
      cast_bytes += tensor.rows * tensor.row * Size(bytes_per_element(tensor.shard->value.dtype()));
    }
    if (reduced.empty()) return;
    reduce_input_.drop();
    reduce_input_ = r_.empty({whole_bytes, Size(1)}, DType::uint8, "reduce-scatter input", reduce_item_);
    for (ShardedTensor* tensor : reduced) tensor->whole->gradient.drop();
    Tensor sharded = r_.empty({part_bytes, Size(1)}, DType::uint8, "sharded gradient", gradient_item_);
    if (reduce_dtype(*reduced.front()) != reduced.front()->shard->value.dtype())
      sharded = r_.empty({cast_bytes, Size(1)}, DType::uint8, "sharded gradient", gradient_item_);
    for (ShardedTensor* tensor : reduced) {
      Tensor view = r_.view(sharded, tensor->shard->value.shape());
      view.body().dtype = tensor->shard->value.dtype();
      if (!tensor->shard->gradient.defined()) tensor->shard->gradient = std::move(view);
    }
  }

  Recorder& r_;
  const TrainingPlan& plan_;
  std::int64_t ranks_;
  ItemId flat_item_, gathered_item_, reduce_item_, gradient_item_;
  Unit root_;
  std::map<Key, Unit> units_;
  std::vector<Key> order_;  // layers in forward order
  std::map<const Parameter*, TensorRole> roles_;
  Tensor kept_flat_;  // the last unit's all-gather output, freed by the next unit's copy-out
  Tensor reduce_input_;
};

}  // namespace

std::unique_ptr<EngineRun> make_fsdp2(Recorder& recorder, const TrainingPlan& plan, const Hardware& hardware) {
  return std::make_unique<Fsdp2>(recorder, plan, hardware);
}

}  // namespace membill
