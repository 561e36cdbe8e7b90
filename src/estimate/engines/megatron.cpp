#include "estimate/engines/megatron.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "estimate/engines/megatron_buffers.h"
#include "estimate/rank_model.h"
#include "membill/catalog.h"

namespace membill {
namespace {

constexpr std::int64_t kLeastBucket = 40'000'000, kBucketOfRank = 1'000'000;  // elements; distributed_data_parallel.py

class Megatron : public EngineRun {
 public:
  Megatron(Recorder& recorder, const TrainingPlan& plan, const Hardware& hardware)
      : r_(recorder),
        plan_(plan),
        dense_(group_of(hardware, plan, plan.parallel.tp)),
        experts_(group_of(hardware, plan, plan.parallel.ep * plan.parallel.expert_tp)),
        stage_(pipeline_stage(plan, hardware)),
        sharded_(plan.sharding.zero == 1),
        offloads_(plan.sharding.offload == "optimizer"),
        precise_(engine_flag(plan, "use_precision_aware_optimizer", false)),
        main_(plan.gradient_dtype.value_or(engine_word(plan, "grad_accum_dtype", "fp32") == "bf16" ? DType::bf16
                                                                                                   : DType::fp32)),
        gradient_item_(recorder.writer().item("gradients")) {}

  void wrap(JobModules& job) override {
    for (const TrainedParameter& trained : job.trained) model_parameters_.insert(trained.parameter);
    type_ = job.trained.front().parameter->value.dtype();
    const std::vector<TrainedParameter> dense = parameters_of(job, false), experts = parameters_of(job, true);
    const bool several = dense_.ranks > 1 || (experts_.ranks > 1 && !experts.empty());
    const bool shares = sharded_ && (several || offloads_ || precise_);
    const char* weights = has_adapters(plan_) ? "weights.adapter" : "weights.base";
    if (shares) job.trained.clear();
    for (const auto& [parameters, group] : {std::pair(&dense, dense_), std::pair(&experts, experts_)}) {
      if (parameters->empty()) continue;
      const BufferLayout layout = lay_out_buffer(written_out(*parameters), shape(group));
      const Size size = buffer_size(*parameters, layout.elements);
      if (sharded_) buffers_.push_back(flat(size, type_, "parameter buffer", r_.writer().item(weights)));
      buffers_.push_back(flat(size, main_, "gradient buffer", gradient_item_));
      if (shares) take_share(job, layout, parameters == &experts);
      if (shares) reshard_to_save(layout, group);
    }
    trained_ = &job.trained;
    const std::vector<std::string>& again = plan_.checkpointing.selective;
    leaves_inputs_ = routes(job) && (plan_.checkpointing.mode == Checkpointing::full ||
                                     std::find(again.begin(), again.end(), "moe") != again.end());
  }

  // The dispatchers hold recomputed graphs, with the inputs where they end, until their next forward.
  [[nodiscard]] bool carries_over() const override { return leaves_inputs_ || has_adapters(plan_); }

  void gradient_ready(Parameter& parameter) override {
    if (model_parameters_.count(&parameter) != 0) parameter.gradient.drop();  // added to its part of the buffer
  }

  // Float16 optimizers read fp32 gradients: the buffer's, or copies of 16-bit ones.
  void before_step() override {
    if (main_ == DType::fp32 || precise_ || !regime(plan_.precision).master) return;
    for (TrainedParameter& trained : *trained_) {
      if (trained.on_host) continue;
      Parameter& parameter = *trained.parameter;
      r_.writer().visit(parameter.unit, true);
      parameter.gradient = r_.empty(parameter.value.shape(), DType::fp32, "gradient in fp32", gradient_item_);
    }
    r_.writer().visit(TraceWriter::kNoUnit, true);
  }

  // Stepped slices come back one by one, and are made 16-bit on the card.
  void after_step() override {
    if (offloaded_.empty() || type_ == DType::fp32) return;
    const Size largest(*std::max_element(offloaded_.begin(), offloaded_.end()));
    flat(largest, DType::fp32, "stepped slice from the host", r_.writer().item("step.temporaries"));
  }

  [[nodiscard]] bool clips() const override { return true; }

  // Of each slice a pageable fp32 master and an fp32 gradient.
  [[nodiscard]] std::map<std::string, std::int64_t> on_host() override {
    std::map<std::string, std::int64_t> bytes;
    const bool pinned = engine_flag(plan_, "pin_memory", true);
    for (const std::int64_t elements : offloaded_) {
      const std::int64_t taken = elements * bytes_per_element(DType::fp32);
      bytes["weights.master"] += taken;
      bytes["gradients"] += pinned ? pinned_bytes(taken) : taken;
    }
    return bytes;
  }

  SavingGathers gathers_to_save(const JobModules&) override { return to_save_; }

 private:
  // Ranks that hold the same parameters, and which of them this one is.
  struct Group {
    std::int64_t ranks = 1, rank = 0;
  };
  static Group group_of(const Hardware& hardware, const TrainingPlan& plan, std::int64_t holders) {
    const std::int64_t of_stage = hardware.count / plan.parallel.pp;
    return {of_stage / holders, hardware.rank.value_or(0) % of_stage / holders};
  }

  static bool routes(const JobModules& job) {
    const std::vector<UnitModules>& units = job.model.units;
    return std::any_of(units.begin(), units.end(), [](const UnitModules& unit) {
      return std::any_of(unit.layers.begin(), unit.layers.end(), [](const Modules& layer) {
        return std::any_of(layer.all().begin(), layer.all().end(),
                           [](const auto& module) { return module->role == TensorRole::router; });
      });
    });
  }

  // Experts are parameters like all others where expert parallelism does not divide them (tensor_parallel/layers.py: allreduce).
  [[nodiscard]] std::vector<TrainedParameter> parameters_of(const JobModules& job, bool experts) const {
    std::vector<TrainedParameter> parameters;
    const bool apart = plan_.parallel.ep > 1;
    std::copy_if(
        job.trained.begin(), job.trained.end(), std::back_inserter(parameters),
        [&](const TrainedParameter& trained) { return (apart && trained.role == TensorRole::expert) == experts; });
    return parameters;
  }

  [[nodiscard]] BufferShape shape(const Group& group) const {
    BufferShape shape{sharded_ ? group.ranks : 1, sharded_ ? group.rank : 0, sharded_, 0};
    const bool overlaps = engine_flag(plan_, "overlap_grad_reduce", false);
    if (overlaps && stage_ == 0) shape.bucket_size = std::max(kLeastBucket, kBucketOfRank * dense_.ranks);
    return shape;
  }

  // Elements of every parameter, layers that a unit stands for one by one.
  std::vector<std::int64_t> written_out(const std::vector<TrainedParameter>& parameters) const {
    std::vector<std::int64_t> elements;
    for (std::size_t i = 0; i < parameters.size();) {
      const int unit = parameters[i].parameter->unit;
      std::size_t end = i;
      while (end < parameters.size() && parameters[end].parameter->unit == unit) ++end;
      const std::int64_t turns = r_.symbols().evaluate(r_.writer().turns(unit));
      for (std::int64_t turn = 0; turn < turns; ++turn)
        for (std::size_t at = i; at < end; ++at) elements.push_back(r_.symbols().evaluate(parameters[at].elements));
      i = end;
    }
    return elements;
  }

  // As the formulas name it: the parameters and the padding.
  Size buffer_size(const std::vector<TrainedParameter>& parameters, std::int64_t elements) const {
    Size sum;
    for (const TrainedParameter& trained : parameters)
      sum += trained.elements * r_.writer().turns(trained.parameter->unit);
    return sum + Size(elements - r_.symbols().evaluate(sum));
  }

  // The optimizer steps this rank's slices. optimizer/cpu_offloading/hybrid_optimizer.py: on the host as many whole ones, the model's
  // last parameters first, as make up the fraction.
  void take_share(JobModules& job, const BufferLayout& layout, bool of_experts) {
    const std::vector<std::int64_t>& own = layout.own_slices;
    const auto all = static_cast<double>(std::accumulate(own.begin(), own.end(), std::int64_t{0}));
    const double wanted = offloads_ ? all * engine_number(plan_, "optimizer_offload_fraction", 1.0) : 0;
    double gone = 0;
    for (const std::int64_t elements : own) {
      const bool on_host = gone < wanted;
      if (on_host) gone += static_cast<double>(elements);
      slices_.push_back(std::make_unique<Parameter>());
      Parameter& slice = *slices_.back();
      slice.value = master_of({Size(elements), Size(1)}, on_host);
      slice.trainable = true;
      job.trained.push_back(
          {&slice, of_experts ? TensorRole::expert : TensorRole::other, Size(elements), {}, on_host, on_host});
      if (on_host) offloaded_.push_back(elements);
    }
  }

  // transformer_engine 2.20 pytorch/optimizers/fused_adam.py store_param_remainders: of an fp32 master over a bf16 weight only the lower
  // half is kept.
  Tensor master_of(const Shape& slice, bool on_host) {
    const bool masters = regime(plan_.precision).master;
    const ItemId item = r_.writer().item("weights.master");
    if (on_host || !masters) return r_.placeholder(slice, masters ? DType::fp32 : type_);
    if (!precise_ || offloads_ || type_ != DType::bf16) return r_.empty(slice, DType::fp32, "fp32 master slice", item);
    remainders_.push_back(r_.empty(slice, DType::bf16, "lower half of the fp32 master slice", item));
    return r_.placeholder(slice, DType::fp32);
  }

  // optimizer/distrib_optimizer.py get_parameter_state_dp_zero: of a fully reshardable state each bucket's parts, in fp32, come from all
  // ranks beside the one that is sent, for the weights and for each state in turn. Else every rank saves its own parts.
  void reshard_to_save(const BufferLayout& layout, const Group& group) {
    if (plan_.save.state != "full" || !plan_.save.optimizer) return;
    for (const std::int64_t share : layout.shares) {
      const Size part(share * bytes_per_element(DType::fp32));
      to_save_.push_back({TraceWriter::kNoUnit, std::vector<Size>(static_cast<std::size_t>(group.ranks + 1), part)});
    }
  }

  Tensor flat(const Size& elements, DType type, const char* label, ItemId item) {
    return r_.empty({elements, Size(1)}, type, label, item);
  }

  Recorder& r_;
  const TrainingPlan& plan_;
  Group dense_, experts_;
  std::int64_t stage_;
  bool sharded_, offloads_, precise_, leaves_inputs_ = false;
  DType main_, type_ = DType::bf16;
  ItemId gradient_item_;
  std::vector<Tensor> buffers_, remainders_;
  std::vector<std::int64_t> offloaded_;  // elements of each slice on the host
  SavingGathers to_save_;
  std::vector<std::unique_ptr<Parameter>> slices_;
  std::vector<TrainedParameter>* trained_ = nullptr;
  std::unordered_set<const Parameter*> model_parameters_;
};

}  // namespace

std::unique_ptr<EngineRun> make_megatron(Recorder& recorder, const TrainingPlan& plan, const Hardware& hardware) {
  return std::make_unique<Megatron>(recorder, plan, hardware);
}

}  // namespace membill
