#include "estimate/engines/zero3.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "blocks/parameter_reader.h"
#include "estimate/engines/flat_groups.h"
#include "estimate/engines/zero3_backward.h"
#include "estimate/engines/zero3_coordinator.h"
#include "estimate/engines/zero3_host.h"
#include "estimate/engines/zero3_reducer.h"
#include "estimate/engines/zero3_saving.h"
#include "membill/catalog.h"

namespace membill {
namespace {

constexpr double kPersistence = 1e5, kSubGroup = 1e9;

class Zero3 : public EngineRun, public ForwardHooks, public ParameterUse, public ParameterReader {
 public:
  Zero3(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware)
      : r_(recorder),
        plan_(plan),
        tied_(model.tied_embeddings),
        ranks_(sharding_ranks(plan, hardware)),
        second_group_(static_cast<std::int64_t>(engine_number(plan, "zero_hpz_partition_size", 1))),
        persistence_(zero3_limit(plan, "stage3_param_persistence_threshold", kPersistence, 10 * model.hidden)),
        offload_(offload_plan(plan)),
        gradient_type_(accumulation_dtype(plan)),
        coordinator_(recorder, gather_limits(plan, sharding_ranks(plan, hardware), model.hidden)),
        backward_(plan, coordinator_),
        reducer_(recorder, plan, reduce_bucket_elements(plan, model.hidden), ranks_),
        gradient_item_(recorder.writer().item("gradients")) {
    r_.set_parameter_use(this);
    r_.set_linear_saves_input(true);  // zero/linear.py LinearFunctionForZeroStage3
    if (plan.checkpointing.mode != Checkpointing::none)
      r_.set_backward_hooks(
          [this](int unit, int layer) {
            enter_layer({unit, layer});
          },
          [this](int unit, int layer) {
            backward_.leave_layer({unit, layer});
          });
  }

  void wrap(JobModules& job) override {
    if (runs_torch_autocast(plan_)) linears_ = parameters_of_linears(job);
    add_modules(job.model.outer);
    for (UnitModules& unit : job.model.units)
      for (Modules& layer : unit.layers) {
        has_opened_mlp_ = false;
        add_modules(layer);
      }
    stored_.ranks = ranks_;
    stored_.gradient = gradient_type_;
    if (job.trained.empty()) return;  // no optimizer: nothing is reduced
    make_sub_groups(job);
    reducer_.make_buckets();
  }

  void begin_micro_batch(bool last) override { reducer_.begin_micro_batch(last); }
  ForwardHooks* forward_hooks() override { return this; }
  ParameterUse* parameter_use() override { return this; }

  void before_model() override {
    coordinator_.begin_pass(external_);
    gather_vectors();
    in_forward_ = true;
    backward_.begin_forward(r_.grad_enabled());
    coordinator_.fetch(external_);  // for the model with its head
    coordinator_.hold(external_);
    pass_silent(1);  // the model
  }
  void before_layer(int unit, int layer) override {
    layer_ = {unit, layer};
    backward_.see(layer_);
    pass_silent(1);
  }
  void after_layer(int, int) override { layer_ = {TraceWriter::kNoUnit, 0}; }
  // A hook of the model's may have made a frozen table's rows need a gradient: they have a backward, too.
  Tensor after_embedding(Tensor embedded) override {
    if (frozen_table_.empty()) return embedded;
    return r_.with_backward_hook(embedded, [this, table = frozen_table_] { enter_backward(table); });
  }
  void after_model() override {
    in_forward_ = false;
    coordinator_.hold({});
    coordinator_.release(external_);
  }
  void before_backward() override {
    backward_.begin();
    coordinator_.fetch(external_);
    coordinator_.hold(external_);
  }

  Tensor before(Tensor input, Parameter& weight, Parameter*) override {
    const Zero3Coordinator::Group module = group(weight);
    if (module.empty()) return input;
    announce(*module.front(), false);
    if (in_forward_) last_of_layer_[layer_] = module;
    coordinator_.fetch(module);
    backward_.fetched(module, weight.trainable);
    return r_.with_backward_hook(input, [this, module] { leave_backward(module); });
  }

  Tensor after(Tensor output, Parameter& weight, Parameter*) override {
    const Zero3Coordinator::Group module = group(weight);
    if (module.empty()) return output;
    if (!backward_.is_active(module)) coordinator_.release(module);
    if (module.front()->role == TensorRole::embedding) {
      pass_silent(1);  // rotary embedding
      if (r_.grad_enabled() && !output.requires_grad()) frozen_table_ = module;
    }
    return r_.with_backward_hook(output, [this, module] { enter_backward(module); });
  }

  // partition_parameters.py ZeROOrderedDict: a parameter that other code than its module reads becomes an external one of the module
  // that runs, here the whole model, which gathers it with its own from then on.
  Tensor read(Parameter& weight) override {
    const auto found = partitioned_.find(&weight);
    if (found == partitioned_.end() || !coordinator_.gather_apart(found->second)) return {};
    if (external_.empty()) external_.push_back(&found->second);  // only ever the head
    return {};
  }

  // deepspeed.zero.GatheredParameters of the model (trl models/utils.py unwrap_model_for_generation).
  std::vector<Tensor> gather_all() override {
    std::vector<Tensor> whole;
    for (const Partitioned* p : in_order_)
      if (!p->whole.defined()) whole.push_back(flat(p->part * ranks_, p->type, "parameter for generation", p->item));
    return whole;
  }

  // One after another, each held until the next is there; all at once where adapters are merged (trl 1.16 generation/vllm_generation.py _iter_named_params).
  std::vector<WholeParameters> handed_over(bool merged) override {
    std::vector<WholeParameters> groups(merged ? 1 : 0);
    std::optional<Size> before;
    for (const Partitioned* p : in_order_) {
      if (p->whole.defined()) continue;
      if (!merged) groups.emplace_back();
      const Size whole(p->part * ranks_ * bytes_per_element(p->type));
      groups.back().bytes.push_back(whole);
      if (p->on_host) groups.back().bytes.emplace_back(p->part * bytes_per_element(p->type));
      if (before && !merged) groups.back().bytes.push_back(*before);
      before = whole;
    }
    return groups;
  }

  void gradient_ready(Parameter& parameter) override {
    const auto found = partitioned_.find(&parameter);
    if (found != partitioned_.end() && parameter.gradient.defined()) reducer_.add(parameter, found->second);
  }

  void after_backward() override {
    reducer_.reduce();
    backward_.end();
    coordinator_.hold({});
    coordinator_.release(external_);
  }

  [[nodiscard]] bool carries_over() const override { return true; }
  [[nodiscard]] std::size_t sub_steps() const override { return sub_groups_.size(); }

  void before_step() override {
    for (Partitioned* p : in_order_) coordinator_.partition(*p);
    vectors_.clear();
  }

  // Gradients of a sub-group are joined, then made fp32.
  void before_sub_step(std::size_t index) override {
    if (offload_.optimizer) return;
    Parameter& group = *sub_groups_[index];
    const Shape shape = group.value.shape();
    Tensor joined = r_.empty(shape, gradient_type_, "gradients of a sub-group", gradient_item_);
    group.gradient = gradient_type_ == DType::fp32
                         ? joined
                         : r_.empty(shape, DType::fp32, "fp32 gradients of a sub-group", gradient_item_);
  }
  void after_sub_step(std::size_t index) override {
    sub_groups_[index]->gradient.drop();
    reducer_.release_unswapped();
  }

  // New values: a secondary copy is made anew as the next forward and backward partition.
  void after_step() override {
    for (Partitioned* p : in_order_) p->second.drop();
    gather_vectors();
    for (Partitioned* p : in_order_)
      if (p->persists && !p->is_vector) p->whole = flat(p->elements, p->type, "persistent parameter", p->item);
  }

  void at_saving(bool begins) override { begins ? before_step() : after_step(); }
  SavingGathers gathers_to_save(const JobModules& job) override { return gathers_of(plan_, job, partitioned_, ranks_); }
  [[nodiscard]] bool clips() const override { return true; }
  [[nodiscard]] std::map<std::string, std::int64_t> on_host() override { return zero3_stored(plan_, stored_).host; }
  [[nodiscard]] std::map<std::string, std::int64_t> on_nvme() override { return zero3_stored(plan_, stored_).nvme; }

 private:
  using Layer = std::pair<int, int>;  // unit, layer

  Tensor flat(std::int64_t elements, DType type, const char* label, ItemId item) {
    return r_.empty({Size(elements), Size(1)}, type, label, item);
  }

  void add_modules(const Modules& modules) {
    for (const auto& module : modules.all()) {
      if (module->quantized == nullptr && module->weight.value.defined()) add_weight(*module);
      if (module->quantized != nullptr && !codes_are_buffers(plan_)) add_codes(*module);
      if (module->bias != nullptr) add(*module->bias);
      if (module->adapter != nullptr) {
        add(module->adapter->down);
        add(module->adapter->up);
        if (module->adapter->magnitude != nullptr) add(*module->adapter->magnitude);
      }
      if (module->original != nullptr) add(*module->original);
      if (module->original_bias != nullptr) add(*module->original_bias);
    }
  }

  void add_weight(Module& module) { describe(add(module.weight), module); }

  // Packed codes are partitioned like any tensor, in the type that they are stored in.
  void add_codes(Module& module) {
    const DType type = code_storage(plan_);
    Tensor& codes = module.quantized->codes();
    const std::int64_t bytes = r_.symbols().evaluate(codes.shape().elements());
    codes.drop();
    describe(add(module.weight, ceil_div(bytes, bytes_per_element(type)), type, r_.writer().item("weights.base")),
             module);
  }

  void describe(Partitioned& weight, const Module& module) {
    weight.role = module.role;
    if (tied_ && module.role == TensorRole::embedding) stored_.partitions.back().copies = 2;
    weight.opens_mlp = is_of_mlp(weight) && !has_opened_mlp_;
    has_opened_mlp_ = has_opened_mlp_ || weight.opens_mlp;
  }

  Partitioned& add(Parameter& parameter) {
    return add(parameter, r_.symbols().evaluate(parameter.value.shape().elements()), parameter.value.dtype(),
               parameter.item);
  }

  Partitioned& add(Parameter& parameter, std::int64_t elements, DType type, ItemId item) {
    Partitioned p;
    p.number = static_cast<std::int64_t>(partitioned_.size());
    p.elements = elements;
    p.part = ceil_div(p.elements, ranks_);
    p.type = type;
    p.sent = linears_.count(&parameter) > 0 ? regime(plan_.precision).compute : type;
    p.item = gathered_item();
    p.persists = p.elements <= persistence_;
    p.is_vector = parameter.value.width() == Size(1);
    p.on_host = offload_.parameters;
    stored_.partitions.push_back({p.part, type, parameter.trainable, 1});
    if (second_group_ > 1) p.second_part = p.elements / second_group_;
    if (!parameter.trainable && !offload_.parameters) kept_.push_back(flat(p.part, p.type, "partition", item));
    Partitioned& made = partitioned_.emplace(&parameter, std::move(p)).first->second;
    in_order_.push_back(&made);
    coordinator_.partition(made);
    return made;
  }

  [[nodiscard]] ItemId gathered_item() { return r_.writer().item("gathered.parameters"); }

  // stage3.py _create_fp16_sub_groups: trained parameters until a sub-group is full.
  void make_sub_groups(JobModules& job) {
    const std::int64_t most = zero3_limit(plan_, "sub_group_size", kSubGroup, static_cast<std::int64_t>(kSubGroup));
    std::vector<std::int64_t>& parts = stored_.sub_groups;
    std::int64_t whole = 0;
    parts.assign(1, 0);
    for (const TrainedParameter& trained : job.trained) {
      if (parts.back() >= most) parts.push_back(0);
      parts.back() += partitioned_.at(trained.parameter).part;
      whole += partitioned_.at(trained.parameter).part;
    }
    const ItemId weights = r_.writer().item(has_adapters(plan_) ? "weights.adapter" : "weights.base");
    stored_.type = job.trained.front().parameter->value.dtype();
    if (!offload_.parameters) kept_.push_back(flat(whole, stored_.type, "flat partitions", weights));
    if (!offload_.optimizer) kept_.push_back(flat(whole, gradient_type_, "gradient partitions", gradient_item_));
    job.trained.clear();
    for (const std::int64_t part : parts) add_sub_group(job, part);
  }

  void add_sub_group(JobModules& job, std::int64_t part) {
    const Shape shape{Size(part), Size(1)};
    sub_groups_.push_back(std::make_unique<Parameter>());
    Parameter& group = *sub_groups_.back();
    group.value = offload_.optimizer
                      ? r_.placeholder(shape, DType::fp32)
                      : r_.empty(shape, DType::fp32, "fp32 master of a sub-group", r_.writer().item("weights.master"));
    group.trainable = true;
    const bool in_files = offload_.optimizer_on_nvme && is_swappable(4 * part);
    job.trained.push_back(
        {&group, TensorRole::other, Size(part), {}, offload_.optimizer, offload_.optimizer, in_files});
  }

  // Norms and biases beside linears: whole from the first use on.
  void gather_vectors() {
    if (!vectors_.empty()) return;
    for (const Partitioned* p : in_order_)
      if (p->persists && p->is_vector) vectors_.push_back(flat(p->elements, p->type, "persistent parameter", p->item));
  }

  Zero3Coordinator::Group group(const Parameter& weight) {
    const auto found = partitioned_.find(&weight);
    if (found == partitioned_.end()) return {};
    return {&found->second};
  }

  [[nodiscard]] static bool is_of_mlp(const Partitioned& p) {
    return p.role == TensorRole::mlp || p.role == TensorRole::expert || p.role == TensorRole::router;
  }

  void pass_silent(int modules) {
    for (int i = 0; i < modules; ++i) coordinator_.fetch({});
  }

  // Modules without parameters to gather that run before the one of `next`: norms, containers, activations.
  void announce(const Partitioned& next, bool backward) {
    const Partitioned* last = std::exchange(last_, &next);
    const bool from_mlp = last != nullptr && is_of_mlp(*last),
               from_attention = last != nullptr && last->role == TensorRole::attention;
    if (is_of_mlp(next)) {
      if (backward && !from_mlp) return pass_silent(from_attention ? 3 : 4);               // (model,) norm, layer, MLP
      if (backward ? next.opens_mlp : from_mlp && last->opens_mlp) return pass_silent(1);  // activation
      if (!backward && !from_mlp) pass_silent(2);                                          // norm, MLP
    } else if (next.role == TensorRole::attention && !from_attention) {
      pass_silent(2);  // norm, attention
    } else if (next.role == TensorRole::head && !backward) {
      pass_silent(1);  // norm
    }
  }

  void enter_layer(const Layer& layer) {
    backward_.enter_layer(layer);
    if (!plan_.checkpointing.reentrant) enter_last_of(layer);
  }

  // A checkpoint that is not reentrant runs its layer again when the first node of its graph asks for a saved tensor: the layer's last
  // module has been entered by then.
  void enter_last_of(const Layer& layer) {
    const auto found = last_of_layer_.find(layer);
    if (found == last_of_layer_.end()) return;
    enter_backward(found->second);
    entered_ = found->second;
  }

  void enter_backward(const Zero3Coordinator::Group& module) {
    if (module == entered_) return entered_.clear();
    announce(*module.front(), true);
    backward_.enter(module);
  }

  void leave_backward(const Zero3Coordinator::Group& module) {
    backward_.leave(module, r_.writer().unit() != TraceWriter::kNoUnit);
  }

  Recorder& r_;
  const TrainingPlan& plan_;
  bool tied_;
  std::int64_t ranks_, second_group_, persistence_;
  OffloadPlan offload_;
  DType gradient_type_;
  Zero3Coordinator coordinator_;
  Zero3Backward backward_;
  Zero3Reducer reducer_;
  ItemId gradient_item_;
  std::set<const Parameter*> linears_;  // whose parameters are sent in autocast's type
  std::map<const Parameter*, Partitioned> partitioned_;
  std::vector<Partitioned*> in_order_;  // of the model: what is made again must not follow addresses
  std::vector<std::unique_ptr<Parameter>> sub_groups_;
  StoredModel stored_;
  std::vector<Tensor> kept_, vectors_;
  bool in_forward_ = false, has_opened_mlp_ = false;
  Layer layer_{TraceWriter::kNoUnit, 0};
  std::map<Layer, Zero3Coordinator::Group> last_of_layer_;
  Zero3Coordinator::Group entered_;       // entered before its layer's recomputation
  Zero3Coordinator::Group frozen_table_;  // the embedding, where its output needs no gradient of its own
  const Partitioned* last_ = nullptr;
  Zero3Coordinator::Group external_;
};

}  // namespace

std::unique_ptr<EngineRun> make_zero3(Recorder& recorder, const ModelSpec& model, const TrainingPlan& plan,
                                      const Hardware& hardware) {
  return std::make_unique<Zero3>(recorder, model, plan, hardware);
}

}  // namespace membill
