#include "estimate/engines/fsdp1.h"

#include <map>
#include <utility>
#include <vector>

#include "estimate/engines/fsdp1_saving.h"
#include "estimate/engines/fsdp1_unit.h"

namespace membill {
namespace {

FlatPlan flat_plan(const TrainingPlan& plan, const Hardware& hardware) {
  const std::int64_t ranks = plan.sharding.fsdp == "no_shard" ? 1 : sharding_ranks(plan, hardware);
  return {ranks, hardware.rank.value_or(0) % ranks, engine_flag(plan, "use_orig_params", true),
          plan.sharding.offload != "none"};
}

class Fsdp1 : public EngineRun, public ForwardHooks, public ParameterUse, public ParameterReader {
 public:
  Fsdp1(Recorder& recorder, const TrainingPlan& plan, const Hardware& hardware)
      : r_(recorder),
        plan_(plan),
        flat_(flat_plan(plan, hardware)),
        builder_(recorder, plan, flat_),
        wrap_(engine_word(plan, "wrap", "block")),
        prefetches_(engine_word(plan, "backward_prefetch", plan.loop == Loop::trainer ? "none" : "backward_pre")),
        prefetches_forward_(engine_flag(plan, "forward_prefetch", false) && wrap_ != "peft"),
        shards_(plan.sharding.fsdp != "no_shard"),
        reshards_(plan.sharding.fsdp != "shard_grad_op"),
        shard_item_(recorder.writer().item("gathered.flat")),
        gathered_item_(recorder.writer().item("gathered.parameters")),
        reduce_item_(recorder.writer().item("buffers.reduce_scatter")),
        gradient_item_(recorder.writer().item("gradients")) {
    r_.set_backward_hooks([this](int unit, int layer) { before_layer_backward(unit, layer); },
                          [this](int unit, int layer) { after_layer_backward(unit, layer); });
    if (wrap_ == "peft") r_.set_parameter_use(this);
  }

  void wrap(JobModules& job) override {
    job_ = &job;
    job.trained.clear();
    add_outer(job.model.outer);
    for (UnitModules& unit : job.model.units) {
      r_.writer().enter(unit.unit, true);
      for (std::size_t layer = 0; layer < unit.layers.size(); ++layer) {
        Fsdp1Unit& target = wrap_ == "none" ? root_ : layers_[{unit.unit, static_cast<int>(layer)}];
        add_modules(target, unit.layers[layer]);
        if (wrap_ != "none") close(target);
      }
      r_.writer().leave();
    }
    if (!root_.is_empty()) close(root_);
  }

  // Each micro-batch's reduced gradient takes the place of the one before.
  [[nodiscard]] bool carries_over() const override { return true; }

  void begin_micro_batch(bool last) override {
    reduces_ = last || !engine_flag(plan_, "no_sync", plan_.loop == Loop::trainer);
  }

  // A flat parameter's hook runs when its gradient is complete: those of single tensors at once, the others as their unit ends.
  void gradient_ready(Parameter& parameter) override {
    if (const auto found = leaves_.find(&parameter); found != leaves_.end()) after_unit_backward(*found->second);
  }

  ForwardHooks* forward_hooks() override { return this; }

  void before_model() override {
    drop_reduced();
    gather(root_);
    prefetch_next(0);
  }
  void before_embedding() override {
    if (embedding_.is_empty()) return;
    gather(embedding_);
    prefetch_next(embedding_.position + 1);
  }
  Tensor after_embedding(Tensor embedded) override {
    if (embedding_.is_empty()) return embedded;
    leave(embedding_);
    return r_.with_backward_hook(embedded, [this] { before_unit_backward(embedding_); });
  }
  void before_layer(int unit, int layer) override {
    Fsdp1Unit* now = find(unit, layer);
    if (now == nullptr) return;
    gather(*now);
    prefetch_next(now->position + 1);
  }
  void after_layer(int unit, int layer) override {
    if (Fsdp1Unit* now = find(unit, layer)) leave(*now);
  }
  void after_model() override {}

  Tensor before(Tensor input, Parameter& weight, Parameter*) override {
    const auto found = leaves_.find(&weight);
    if (found != leaves_.end()) gather(*found->second);
    return input;
  }
  Tensor after(Tensor output, Parameter& weight, Parameter*) override {
    const auto found = leaves_.find(&weight);
    if (found == leaves_.end()) return output;
    leave(*found->second);
    return r_.with_backward_hook(output, [this, unit = found->second] { gather(*unit); });
  }

  // The root's pre-backward prefetches the last unit.
  void before_backward() override {
    if (prefetches_ == "backward_pre") prefetch(order_.size());
  }

  void after_backward() override {
    if (Fsdp1Unit* ended = std::exchange(waiting_, nullptr)) after_unit_backward(*ended);
    for (Fsdp1Unit* unit : {&embedding_, &root_}) after_unit_backward(*unit);
    if (!flat_.on_host) return;
    drop_reduced();
  }

  [[nodiscard]] bool clips() const override { return true; }

  void after_step() override {
    if (flat_.aligned) return;
    drop_reduced();
  }

  // The head is in the root, which is whole while the model runs.
  Tensor read(Parameter&) override { return {}; }
  // trl 1.16 generation/vllm_generation.py _iter_fsdp1_params: unit after unit, as it is stored.
  std::vector<WholeParameters> handed_over(bool) override {
    std::vector<WholeParameters> groups;
    at_saving(true);
    for (const Fsdp1Unit* unit : units_)
      groups.push_back({unit->own.unit, {Size(unit->shard * flat_.ranks * bytes_per_element(unit->stored))}});
    return shards_ ? groups : std::vector<WholeParameters>();
  }

  void at_saving(bool begins) override {
    if (!begins) return;
    drop_reduced();
  }
  SavingGathers gathers_to_save(const JobModules&) override {
    return shards_ ? gathers_of(plan_, flat_, units_, r_.symbols()) : SavingGathers();
  }

  // The flat shards and their gradients are page-locked.
  [[nodiscard]] std::map<std::string, std::int64_t> on_host() override {
    std::map<std::string, std::int64_t> bytes;
    if (!flat_.on_host) return bytes;
    for (const Fsdp1Unit* unit : units_) {
      const std::int64_t taken = pinned_bytes(unit->shard * bytes_per_element(unit->stored)) *
                                 r_.symbols().evaluate(r_.writer().turns(unit->own.unit));
      bytes[unit->trains() && has_adapters(plan_) ? "weights.adapter" : "weights.base"] += taken;
      bytes["gradients"] += taken;  // whether it trains or not
    }
    return bytes;
  }

 private:
  using Key = std::pair<int, int>;  // unit, layer

  void add_outer(Modules& outer) {
    for (const auto& module : outer.all()) {
      const bool apart = wrap_ == "block+embedding" && module->role == TensorRole::embedding;
      add_module(apart ? embedding_ : root_, *module);
    }
    if (!embedding_.is_empty()) close(embedding_);
  }

  void add_modules(Fsdp1Unit& unit, Modules& modules) {
    for (const auto& module : modules.all()) add_module(unit, *module);
  }

  void add_module(Fsdp1Unit& unit, Module& module) {
    const DType base = unquantized_dtype(plan_);
    if (module.quantized != nullptr)
      builder_.add_codes(unit, module);
    else if (module.weight.value.defined())
      builder_.add(unit, module.weight, base);
    if (module.bias != nullptr) builder_.add(unit, *module.bias, base);
    if (module.adapter != nullptr)
      for (Parameter* part : {&module.adapter->down, &module.adapter->up, module.adapter->magnitude.get()})
        if (part != nullptr) add_adapter(unit, *module.adapter, *part);
    if (module.original != nullptr) builder_.add(unit, *module.original, base);
    if (module.original_bias != nullptr) builder_.add(unit, *module.original_bias, base);
  }

  // peft utils/other.py fsdp_auto_wrap_policy: a module without children whose weight trains is a unit.
  void add_adapter(Fsdp1Unit& unit, LoraAdapter& adapter, Parameter& part) {
    if (wrap_ != "peft") return builder_.add(unit, part, adapter_dtype(plan_));
    adapter.seen = stored_dtype(plan_, adapter_dtype(plan_), part.trainable);
    auto& leaf = leaf_units_.emplace_back(std::make_unique<Fsdp1Unit>());
    leaves_[&part] = leaf.get();
    leaf->around = &unit;
    builder_.add(*leaf, part, adapter_dtype(plan_));
    builder_.close(*leaf);
    register_unit(*leaf);
  }

  void close(Fsdp1Unit& unit) {
    builder_.close(unit);
    if (&unit != &root_) {
      unit.around = &root_;
      unit.position = order_.size();
      order_.push_back(&unit);
    }
    register_unit(unit);
  }

  void register_unit(Fsdp1Unit& unit) {
    units_.push_back(&unit);
    if (!unit.trains()) return;
    job_->trained.push_back(
        {&unit.own, TensorRole::other, unit.own.value.shape().elements(), {}, false, flat_.on_host});
  }

  // Each within its layer: a trace may then stand for alike layers by one of them.
  void drop_reduced() {
    for (Fsdp1Unit* unit : units_) {
      r_.writer().visit(unit->own.unit, true);
      unit->reduced.drop();
    }
    r_.writer().visit(TraceWriter::kNoUnit, true);
  }

  Fsdp1Unit* find(int unit, int layer) {
    const auto found = layers_.find({unit, layer});
    return found == layers_.end() ? nullptr : &found->second;
  }

  // torch/distributed/fsdp/_runtime_utils.py _init_streams: what each allocates, the allocator keeps apart.
  enum Stream : std::uint8_t { computing, unsharding, casting, reducing };

  Tensor flat(std::int64_t elements, DType type, const char* label, ItemId item, Stream stream = computing) {
    const StreamScope scope(r_.writer(), stream);
    return r_.empty({Size(elements), Size(1)}, type, label, item);
  }

  // The shard comes from the host or is cast when its type differs; the unsharded flat parameter is what modules use.
  void gather(Fsdp1Unit& unit) {
    if (unit.is_empty() || unit.whole.defined()) return;
    if (!shards_) {
      if (unit.gathered != unit.stored)
        unit.whole = flat(unit.shard, unit.gathered, "low-precision copy", gathered_item_, casting);
      return;
    }
    Tensor here, cast;
    if (flat_.on_host) here = flat(unit.shard, unit.stored, "shard from the host", shard_item_, casting);
    if (unit.gathered != unit.stored)
      cast = flat(unit.shard, unit.gathered, "low-precision shard", shard_item_, casting);
    else
      unit.here = std::move(here);
    unit.whole = flat(unit.shard * flat_.ranks, unit.gathered, "unsharded flat parameter", gathered_item_, unsharding);
  }

  void leave(Fsdp1Unit& unit) const {
    if (reshards_) reshard(unit);
  }

  static void reshard(Fsdp1Unit& unit) {
    unit.whole.drop();
    unit.here.drop();
  }

  // In the order of the forward; under PEFT's policy a leaf comes next.
  void prefetch_next(std::size_t position) {
    if (prefetches_forward_ && position < order_.size()) gather(*order_[position]);
  }

  void prefetch(std::size_t position) {
    if (position > 0) gather(*order_[position - 1]);
  }

  void before_unit_backward(Fsdp1Unit& unit) {
    gather(unit);
    if (prefetches_ == "backward_pre") prefetch(unit.position);
  }

  void before_layer_backward(int unit, int layer) {
    if (Fsdp1Unit* now = find(unit, layer)) before_unit_backward(*now);
  }

  void after_layer_backward(int unit, int layer) {
    Fsdp1Unit* ended = find(unit, layer);
    if (ended == nullptr) return;
    // Views made before the layer in front ran have the lower sequence number: their backward waits for that layer's.
    if (prefetches_forward_) ended = std::exchange(waiting_, ended);
    if (ended != nullptr) after_unit_backward(*ended);
  }

  // The backward of the views joins all gradients, zeros for frozen tensors, in one flat tensor.
  Tensor join_gradients(Fsdp1Unit& unit) {
    std::vector<Tensor> zeros;
    for (const FlatMember& member : unit.members)
      if (!member.whole->gradient.defined() && unit.members.size() > 1)
        zeros.push_back(flat(member.elements, unit.gathered, "zeros for a frozen tensor", gradient_item_));
    Tensor joined;
    if (unit.members.size() == 1 && unit.elements == unit.members.front().elements)
      joined = unit.members.front().whole->gradient;
    else
      joined = flat(unit.elements, unit.gathered, "flat gradient", gradient_item_);
    for (FlatMember& member : unit.members) member.whole->gradient.drop();
    return joined;
  }

  void after_unit_backward(Fsdp1Unit& unit) {
    bool any = false;
    for (const FlatMember& member : unit.members) any = any || member.whole->gradient.defined();
    Tensor joined = any ? join_gradients(unit) : Tensor();
    if (reshards_ || reduces_) reshard(unit);
    if (prefetches_ == "backward_post" && !unit.is_empty() && &unit != &root_) prefetch(unit.position);
    if (!any) return;
    if (unit.gradient.defined()) joined = std::move(unit.gradient);  // added in place
    if (!reduces_)
      unit.gradient = std::move(joined);
    else
      reduce(unit, std::move(joined));
  }

  void reduce(Fsdp1Unit& unit, Tensor gradient) {
    const DType type = named_reduce_dtype(plan_).value_or(unit.gathered);
    Tensor cast, padded;
    if (type != gradient.dtype())
      cast = flat(unit.elements, type, "gradient in the type of the reduction", reduce_item_, reducing);
    if (!shards_) return keep(unit, cast.defined() ? std::move(cast) : std::move(gradient));
    if (unit.elements != unit.shard * flat_.ranks)
      padded = flat(unit.shard * flat_.ranks, type, "padded gradient", reduce_item_, reducing);
    keep(unit, flat(unit.shard, type, "sharded gradient", gradient_item_, reducing));
  }

  // The reduced gradient, in the type of what is stored.
  void keep(Fsdp1Unit& unit, Tensor part) {
    Tensor own = part.dtype() == unit.stored
                     ? part
                     : flat(unit.shard, unit.stored, "sharded gradient", gradient_item_, reducing);
    if (!unit.reduced.defined()) unit.reduced = std::move(own);
    if (!flat_.on_host) unit.own.gradient = unit.reduced;
  }

  Recorder& r_;
  const TrainingPlan& plan_;
  FlatPlan flat_;
  Fsdp1Builder builder_;
  std::string wrap_, prefetches_;
  bool prefetches_forward_, shards_, reshards_, reduces_ = true;
  ItemId shard_item_, gathered_item_, reduce_item_, gradient_item_;
  JobModules* job_ = nullptr;
  Fsdp1Unit root_, embedding_;
  Fsdp1Unit* waiting_ = nullptr;  // its backward has ended, that of its views has not
  std::map<Key, Fsdp1Unit> layers_;
  std::vector<std::unique_ptr<Fsdp1Unit>> leaf_units_;
  std::map<const Parameter*, Fsdp1Unit*> leaves_;
  std::vector<Fsdp1Unit*> units_;
  std::vector<Fsdp1Unit*> order_;  // but root and leaves, in forward order
};

}  // namespace

std::unique_ptr<EngineRun> make_fsdp1(Recorder& recorder, const TrainingPlan& plan, const Hardware& hardware) {
  return std::make_unique<Fsdp1>(recorder, plan, hardware);
}

}  // namespace membill
