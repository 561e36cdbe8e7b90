#include "estimate/engines/fsdp2.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "blocks/parameter_reader.h"
#include "blocks/sequence_spread.h"
#include "blocks/trl_head.h"
#include "estimate/engines/fsdp2_unit.h"

namespace membill {
namespace {

ShardPlan shard_plan(const TrainingPlan& plan, const Hardware& hardware) {
  const std::int64_t ranks = sharding_ranks(plan, hardware);
  return {ranks, hardware.rank.value_or(0) % ranks, plan.sharding.offload != "none"};
}

class Fsdp2 : public EngineRun, public ForwardHooks, public ParameterReader {
 public:
  Fsdp2(Recorder& recorder, const TrainingPlan& plan, const Hardware& hardware, bool tied)
      : r_(recorder),
        plan_(plan),
        shards_(shard_plan(plan, hardware)),
        tied_(tied),
        by_chunk_(plan.implementation == Implementation::torchtune),
        flat_item_(recorder.writer().item("gathered.flat")),
        gathered_item_(recorder.writer().item("gathered.parameters")),
        reduce_item_(recorder.writer().item("buffers.reduce_scatter")),
        gradient_item_(recorder.writer().item("gradients")) {
    r_.set_backward_hooks([this](int unit, int layer) { before_layer_backward(unit, layer); },
                          [this](int unit, int layer) { after_layer_backward(unit, layer); });
  }

  void wrap(JobModules& job) override {
    trains_ = !job.trained.empty();
    add_outer(job.model.outer);
    const bool by_layer = engine_word(plan_, "wrap", "block") != "none";
    Fsdp2Builder builder(r_, plan_, shards_);
    for (UnitModules& unit : job.model.units) {
      r_.writer().enter(unit.unit, true);
      for (std::size_t layer = 0; layer < unit.layers.size(); ++layer) {
        Fsdp2Unit& target = by_layer ? layers_[{unit.unit, static_cast<int>(layer)}] : root_;
        for (const auto& module : unit.layers[layer].all()) builder.add(target, *module);
        if (by_layer) add_to_order(target);
      }
      r_.writer().leave();
    }
    if (!tail_.tensors.empty()) add_to_order(tail_);
    root_.position = order_.size();
    // training/_distributed.py shard_model: torchtune says it of every unit, the root too; elsewhere fully_shard's own choice stands
    root_.reshards = tail_.reshards = by_chunk_ && plan_.sharding.fsdp != "shard_grad_op";
    replace_trained(job);
  }

  // Gradients that are not reduced yet accumulate whole in the type of the reduction.
  void begin_micro_batch(bool last) override {
    reduces_ = last || !engine_flag(plan_, "no_sync", plan_.loop == Loop::trainer);
    for (Fsdp2Unit* unit : units())
      for (ShardedTensor& tensor : unit->tensors)
        tensor.whole->gradient_dtype = reduces_ ? std::nullopt : std::optional<DType>(reduce_dtype(tensor));
  }
  void gradient_ready(Parameter&) override {}
  ForwardHooks* forward_hooks() override { return this; }

  void before_model() override { enter(root_); }
  void before_embedding() override { enter(tied_ ? tail_ : embedding_); }
  Tensor after_embedding(Tensor embedded) override {
    if (embedding_.tensors.empty()) return embedded;
    leave(embedding_);
    return r_.with_backward_hook(embedded, [this] { before_unit_backward(embedding_); });
  }
  void before_layer(int unit, int layer) override {
    if (Fsdp2Unit* now = find(unit, layer)) enter(*now);
  }
  void after_layer(int unit, int layer) override {
    if (Fsdp2Unit* now = find(unit, layer)) leave(*now);
  }
  // _fsdp_state.py _pre_forward: MixedPrecisionPolicy's cast_forward_inputs
  [[nodiscard]] std::optional<DType> argument_type() const override {
    return layers_.empty() ? std::nullopt : gathered_dtype(plan_);
  }
  // The model returns logits; the root's backward begins with their gradient.
  [[nodiscard]] bool loss_is_outside() const { return gathers_token_losses(plan_); }
  // Under PEFT accelerate finds no final norm (fsdp_utils.py _find_final_norm): a head that is only read stays sharded, and DTensor's
  // full_tensor() gathers it for its reader.
  [[nodiscard]] bool leaves_head() const { return has_adapters(plan_) && reads_head(plan_) && !tied_; }
  Tensor read(Parameter& weight) override {
    if (!leaves_head() || tail_.tensors.empty()) return {};
    for (const ShardedTensor& tensor : tail_.tensors)
      if (tensor.whole == &weight)
        return r_.empty(weight.value.shape(), tensor.shard->value.dtype(), "head gathered to be read", gathered_item_);
    return {};
  }
  Tensor before_head(Tensor hidden) override {
    if (tail_.tensors.empty() || by_chunk_ || leaves_head()) return hidden;
    enter(tail_);
    if (tied_) return hidden;  // entered with token ids, which need no gradient: reduced when the backward is over
    return r_.with_backward_hook(hidden, [this] { after_unit_backward(tail_); });
  }
  Tensor after_head(Tensor logits) override {
    if (loss_is_outside() && tail_.tensors.empty())
      return r_.with_backward_hook(logits, [this] { prefetch(root_.position); });
    if (tail_.tensors.empty() || leaves_head()) return logits;
    return r_.with_backward_hook(logits, [this] { before_unit_backward(tail_); });
  }
  Tensor before_output(Tensor chunk) override {
    if (tail_.tensors.empty()) return chunk;
    enter(tail_);
    return r_.with_backward_hook(chunk, [this] { after_unit_backward(tail_); });
  }
  Tensor after_output(Tensor logits, bool first, bool last) override {
    if (!tail_.tensors.empty()) {
      leave(tail_);
      logits = r_.with_backward_hook(logits, [this, first] { before_unit_backward(tail_, first); });
    }
    if (!last || !root_.reshards || root_.tensors.empty()) return logits;
    return r_.with_backward_hook(logits, [this] { before_unit_backward(root_, tail_.tensors.empty()); });
  }
  void after_logits() override {
    leave(root_);
    kept_flat_.drop();
  }
  void after_model() override {
    kept_flat_.drop();
    if (!trains_ && plan_.sharding.fsdp != "shard_grad_op") root_.gathered.clear();  // trl models/utils.py prepare_fsdp
  }

  // The root's pre-backward prefetches the unit before it; where the root was resharded, this waits for the logits' gradients.
  void before_backward() override {
    const std::size_t unused =
        leaves_head() && !tail_.tensors.empty() ? 1 : 0;  // the last unit, whose forward did not run
    if (!root_.tensors.empty() && !root_.reshards && !loss_is_outside()) prefetch(root_.position - unused);
  }

  void after_backward() override {
    for (Fsdp2Unit* unit : {&tail_, &embedding_, &root_}) {
      unit->flat.drop();  // gathered ahead for a unit without gradients
      after_unit_backward(*unit);
    }
    reduce_input_.drop();
    reduced_outputs_.clear();
  }

  // trl 1.16 generation/vllm_generation.py _iter_fsdp2_params: its caller holds a tensor until it has the next.
  std::vector<WholeParameters> handed_over(bool) override {
    std::vector<WholeParameters> groups;
    std::optional<Size> before;
    for (const Fsdp2Unit* unit : units())
      for (const ShardedTensor& tensor : unit->tensors) {
        const Size whole = padded(tensor) * Size(bytes_per_element(tensor.shard->value.dtype()));
        groups.push_back({tensor.shard->unit, {whole}});
        if (before) groups.back().bytes.push_back(*before);
        before = whole;
      }
    return groups;
  }

  // torch/distributed/checkpoint/state_dict.py: DTensor.full_tensor(), tensor by tensor, each on its way to the host. The optimizer's
  // states are gathered alike, none of them larger.
  SavingGathers gathers_to_save(const JobModules&) override {
    SavingGathers gathers;
    if (plan_.save.state == "sharded") return gathers;
    for (const Fsdp2Unit* unit : units())
      for (const ShardedTensor& tensor : unit->tensors) {
        const Size width(bytes_per_element(tensor.shard->value.dtype()));
        gathers.push_back({tensor.shard->unit, {padded(tensor) * width}});
        if (shards_.on_host) gathers.back().bytes.push_back(tensor.elements() * width);
      }
    return gathers;
  }

  [[nodiscard]] std::map<std::string, std::int64_t> on_host() override {
    std::map<std::string, std::int64_t> bytes;
    if (!shards_.on_host) return bytes;
    for (Fsdp2Unit* unit : units())
      for (const ShardedTensor& tensor : unit->tensors) add_host_bytes(tensor, bytes);
    return bytes;
  }

 private:
  using Key = std::pair<int, int>;  // unit, layer

  void add_outer(Modules& outer) {
    Fsdp2Builder builder(r_, plan_, shards_);
    const std::string wrap = engine_word(plan_, "wrap", "block");
    const bool apart = wrap == "block+embedding" || (plan_.loop == Loop::trainer && wrap != "none");
    tied_ = tied_ && apart;
    for (const auto& module : outer.all()) {
      const bool of_tail = module->role == TensorRole::head ||
                           (module->role == TensorRole::norm && !by_chunk_ && !leaves_head()) ||
                           (tied_ && module->role == TensorRole::embedding);
      const bool of_embedding = module->role == TensorRole::embedding;
      builder.add(apart && of_tail ? tail_ : apart && of_embedding ? embedding_ : root_, *module);
    }
    embedding_.reshards = plan_.sharding.fsdp != "shard_grad_op";
    if (!embedding_.tensors.empty()) add_to_order(embedding_);
  }

  void add_to_order(Fsdp2Unit& unit) {
    unit.position = order_.size();
    unit.reshards = plan_.sharding.fsdp != "shard_grad_op";
    order_.push_back(&unit);
  }

  [[nodiscard]] std::vector<Fsdp2Unit*> units() {
    std::vector<Fsdp2Unit*> all{&root_};
    all.insert(all.end(), order_.begin(), order_.end());
    return all;
  }

  void replace_trained(JobModules& job) {
    std::map<const Parameter*, Parameter*> shards;
    for (Fsdp2Unit* unit : units())
      for (const ShardedTensor& tensor : unit->tensors) shards[tensor.whole] = tensor.shard.get();
    for (TrainedParameter& trained : job.trained) {
      trained.parameter = shards.at(trained.parameter);
      trained.elements = trained.parameter->value.shape().elements();
      trained.on_host = shards_.on_host;
    }
  }

  // Parameters and their gradients are page-locked tensor by tensor.
  void add_host_bytes(const ShardedTensor& tensor, std::map<std::string, std::int64_t>& bytes) const {
    const std::int64_t shard =
        r_.symbols().evaluate(tensor.elements()) * bytes_per_element(tensor.shard->value.dtype());
    const bool pins = engine_flag(plan_, "pin_memory", true);
    const std::int64_t taken =
        (pins ? pinned_bytes(shard) : shard) * r_.symbols().evaluate(r_.writer().turns(tensor.shard->unit));
    bytes[tensor.whole->trainable && has_adapters(plan_) ? "weights.adapter" : "weights.base"] += taken;
    if (tensor.whole->trainable) bytes["gradients"] += taken;
  }

  Fsdp2Unit* find(int unit, int layer) {
    const auto found = layers_.find({unit, layer});
    return found == layers_.end() ? nullptr : &found->second;
  }

  void enter(Fsdp2Unit& unit) {
    if (unit.tensors.empty() || !unit.gathered.empty()) return;
    gather(unit);
    kept_flat_.drop();
    copy_out(unit);
    kept_flat_ = std::move(unit.flat);
  }

  static void leave(Fsdp2Unit& unit) {
    if (unit.reshards) unit.gathered.clear();
  }

  [[nodiscard]] Size padded(const ShardedTensor& tensor) const { return Size(shards_.ranks) * tensor.elements(); }

  // The collective: shards come from the host or are cast into its input when their type differs; the output is one flat tensor.
  void gather(Fsdp2Unit& unit) {
    if (unit.flat.defined() || !unit.gathered.empty()) return;
    const StreamScope scope(r_.writer(), gathering);
    Size bytes;
    std::vector<Tensor> inputs;
    for (const ShardedTensor& tensor : unit.tensors) {
      const DType gathered = tensor.whole->value.dtype(), stored = tensor.shard->value.dtype();
      const Shape shape{tensor.rows, tensor.row};
      bytes += padded(tensor) * Size(bytes_per_element(gathered));
      Tensor here;
      if (shards_.on_host) here = r_.empty(shape, stored, "shard from the host", flat_item_);
      if (gathered != stored) here = r_.empty(shape, gathered, "all-gather input", flat_item_);
      if (here.defined()) inputs.push_back(std::move(here));
    }
    unit.flat = r_.empty({bytes, Size(1)}, DType::uint8, "all-gather output", flat_item_);
  }

  void copy_out(Fsdp2Unit& unit) {
    if (!unit.gathered.empty()) return;
    for (const ShardedTensor& tensor : unit.tensors)
      unit.gathered.push_back(
          r_.empty({padded(tensor), Size(1)}, tensor.whole->value.dtype(), "gathered parameter", gathered_item_));
  }

  void prefetch(std::size_t position) {
    if (position > 0) gather(*order_[position - 1]);
  }

  void before_unit_backward(Fsdp2Unit& unit, bool prefetches = true) {
    gather(unit);
    copy_out(unit);
    unit.flat.drop();
    if (prefetches) prefetch(unit.position);
  }

  void before_layer_backward(int unit, int layer) {
    if (Fsdp2Unit* now = find(unit, layer)) before_unit_backward(*now);
  }

  void after_layer_backward(int unit, int layer) {
    if (Fsdp2Unit* now = find(unit, layer)) after_unit_backward(*now);
  }

  [[nodiscard]] DType reduce_dtype(const ShardedTensor& tensor) const {
    return named_reduce_dtype(plan_).value_or(tensor.shard->value.dtype());
  }

  // Post-backward: parameters are resharded; gradients are reduced, or kept whole for the next micro-batch.
  void after_unit_backward(Fsdp2Unit& unit) {
    unit.gathered.clear();
    std::vector<ShardedTensor*> with_gradient;
    for (ShardedTensor& tensor : unit.tensors)
      if (tensor.whole->gradient.defined()) with_gradient.push_back(&tensor);
    if (reduces_ && !with_gradient.empty()) reduce(with_gradient);
  }

  // Gradients are copied into the reduce-scatter's input, which lives until the next unit's.
  void reduce(const std::vector<ShardedTensor*>& reduced) {
    const ShardedTensor& first = *reduced.front();
    const DType type = reduce_dtype(first), stored = first.shard->value.dtype();
    Size whole, part;
    for (const ShardedTensor* tensor : reduced) {
      whole += padded(*tensor);
      part += tensor->elements();
    }
    reduce_input_.drop();
    reduce_input_ = r_.empty({whole, Size(1)}, type, "reduce-scatter input", reduce_item_);
    for (ShardedTensor* tensor : reduced) tensor->whole->gradient.drop();
    const StreamScope scope(r_.writer(), reducing);
    Tensor sharded = r_.empty({part, Size(1)}, type, "sharded gradient", gradient_item_);
    if (plan_.sharding.fsdp == "hybrid_shard" && type != stored) reduced_outputs_.push_back(sharded);
    if (type != stored) sharded = r_.empty({part, Size(1)}, stored, "sharded gradient", gradient_item_);
    if (shards_.on_host) return;
    for (ShardedTensor* tensor : reduced) {
      Tensor view = r_.view(sharded, tensor->shard->value.shape());
      if (!tensor->shard->gradient.defined()) tensor->shard->gradient = std::move(view);
      r_.tell_accumulated(*tensor->shard);  // foreach_reduce runs the post-accumulate hooks of sharded parameters
    }
  }

  // torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py FSDPCommContext: what each allocates, the allocator keeps apart.
  enum Stream : std::uint8_t { computing, gathering, reducing };

  Recorder& r_;
  const TrainingPlan& plan_;
  ShardPlan shards_;
  bool tied_;
  bool reduces_ = true, trains_ = true;
  bool by_chunk_;  // the model calls its head chunk by chunk, and its loss is computed outside of it
  ItemId flat_item_, gathered_item_, reduce_item_, gradient_item_;
  Fsdp2Unit root_, embedding_, tail_;
  std::map<Key, Fsdp2Unit> layers_;
  std::vector<Fsdp2Unit*> order_;  // but the root, in forward order
  Tensor kept_flat_;               // the last unit's all-gather output, freed by the next unit's copy-out
  Tensor reduce_input_;
  std::vector<Tensor> reduced_outputs_;  // of hybrid groups: each unit keeps its own until the backward is over
};

}  // namespace

std::unique_ptr<EngineRun> make_fsdp2(Recorder& recorder, const TrainingPlan& plan, const Hardware& hardware,
                                      bool tied_embeddings) {
  return std::make_unique<Fsdp2>(recorder, plan, hardware, tied_embeddings);
}

}  // namespace membill
