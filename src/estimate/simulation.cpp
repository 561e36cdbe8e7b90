#include "estimate/simulation.h"

#include "blocks/generations.h"
#include "estimate/engines/engine.h"
#include "estimate/optimizer_step.h"
#include "estimate/parameters.h"
#include "estimate/runtime_lines.h"

namespace membill {
namespace {

std::optional<DType> autocast_type(const TrainingPlan& plan) {
  const RegimeRow& row = regime(plan.precision);
  if (!row.autocast || gathered_dtype(plan)) return std::nullopt;  // FSDP's mixed precision instead of autocast
  return row.compute;
}

class JobRun {
 public:
  JobRun(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware, bool expand)
      : model_(model),
        plan_(plan),
        hardware_(hardware),
        dims_(define_dims(symbols_, model, plan)),
        r_(writer_, symbols_),
        items_(define_items(writer_)),
        expand_(expand) {
    r_.set_mean_saves_input(generations_.mean_saves_input);
    if (!generations_.keeps_matmul_workspaces && !generations_.matmul_workspaces_outside)
      r_.set_matmul_workspace(Size(matmul_workspace_bytes(hardware, plan).count()));
    if (model.dimensions_known && has_program_of_release(model.model_type, plan))
      program_ = find_architecture(model.model_type, plan.implementation);
  }

  Simulation run() {
    Simulation result;
    writer_.moment("build");
    JobModules job = build_modules(r_, model_, plan_, dims_, expand_);
    engine_ = make_engine(r_, model_, plan_, hardware_);
    if (engine_ != nullptr) {
      engine_->wrap(job);
      r_.set_after_accumulate([this](Parameter& parameter) { engine_->gradient_ready(parameter); });
    }
    OptimizerRun optimizer(r_, plan_, job.trained);
    optimizer.construct();
    step(job, optimizer);
    writer_.begin_billed_step();
    step(job, optimizer);
    for (const auto& [item, bytes] : optimizer.on_host()) result.host[item] = symbols_.evaluate(bytes);
    if (!optimizer.temporaries_known())
      result.warnings.push_back("what one step of " + plan_.optimizer + " makes for a moment is not counted");
    result.trace = writer_.finish();
    result.symbols = std::move(symbols_);
    result.trainable_parameters = job.trainable_elements;
    result.activations_known = program_ != nullptr;
    return result;
  }

 private:
  void step(JobModules& job, OptimizerRun& optimizer) {
    if (plan_.loop == Loop::trainer) fetch_batches();
    micro_batch(job);
    if (plan_.accumulate > 1) {
      writer_.begin_repeat(Size(plan_.accumulate - 1));
      micro_batch(job);
      writer_.end_repeat();
    }
    writer_.moment("clip");
    if (plan_.clip && (engine_ == nullptr || !engine_->clips())) optimizer.clip();
    writer_.moment("step");
    if (engine_ != nullptr) engine_->before_step();
    optimizer.step();
    writer_.moment("zero");
    optimizer.drop_gradients();
  }

  [[nodiscard]] Tensor new_ids(const Size& count, const char* label) {
    return r_.empty({count, Size(1)}, DType::int64, label, writer_.item("activations.inputs"));
  }

  // The Trainer fetches the batches of all micro-steps before the first, while it still holds the last step's.
  void fetch_batches() {
    const Size tokens = dims_.N * Size(plan_.accumulate);
    Tensor ids = new_ids(tokens, "token ids of the step"), labels = new_ids(tokens, "labels of the step");
    step_ids_ = std::move(ids);
    step_labels_ = std::move(labels);
  }

  void micro_batch(JobModules& job) {
    r_.set_items(items_.embedding);
    Parameter input_leaf;
    Forward forward{r_,
                    model_,
                    plan_,
                    dims_,
                    items_,
                    gathered_dtype(plan_).value_or(unquantized_dtype(plan_)),
                    attention_dropout(),
                    plan_.dropout.value_or(model_.hidden_dropout)};
    forward.embedding_dropout = plan_.dropout.value_or(model_.embedding_dropout);
    if (has_adapters(plan_) && plan_.checkpointing.mode != Checkpointing::none) forward.input_leaf = &input_leaf;
    if (engine_ != nullptr) forward.hooks = engine_->forward_hooks();
    writer_.moment("forward");
    const Tensor ids =
        plan_.loop == Loop::trainer ? r_.view(step_ids_, {dims_.N, Size(1)}) : new_ids(dims_.N, "token ids");
    if (program_ == nullptr) return gradients_only(job);
    const std::optional<DType> autocast = autocast_type(plan_);
    keep_workspace(Thread::main);
    Tensor outputs, loss;
    if (autocast) r_.begin_autocast(*autocast);
    loss = causal_lm_forward(forward, *program_, job.model, ids, plan_.keep_outputs ? &outputs : nullptr);
    if (autocast) r_.end_autocast();
    if (plan_.accumulate == 1)
      kept_outputs_ = outputs;  // the loop's variable lives until the next forward has returned
    writer_.moment("backward");
    keep_workspace(Thread::autograd);
    r_.set_items({items_.loss_logits.backward, items_.loss_logits.backward});
    if (plan_.accumulate > 1) loss = r_.mul_scalar(loss, "loss over micro-batches");
    if (engine_ != nullptr) engine_->before_backward();
    r_.backward(loss);
    r_.drop_graph();
    if (engine_ != nullptr) engine_->after_backward();
  }

  enum class Thread : std::size_t { main, autograd };

  // Each thread that multiplies has a cuBLAS handle with a workspace of its own.
  void keep_workspace(Thread thread) {
    if (!generations_.keeps_matmul_workspaces || workspaces_.size() > static_cast<std::size_t>(thread)) return;
    const Shape shape{Size(1), Size(matmul_workspace_bytes(hardware_, plan_).count())};
    workspaces_.push_back(r_.empty(shape, DType::uint8, "cuBLAS workspace", writer_.item("runtime.workspace")));
  }

  // Dropout of the attention weights: the same in every layer.
  [[nodiscard]] double attention_dropout() const {
    if (plan_.dropout) return *plan_.dropout;
    for (const Section& section : model_.sections)
      for (const LayerKind& kind : section.kinds)
        if (kind.attention.heads > 0) return kind.attention.dropout;
    return 0;
  }

  // Without a block program: gradients appear, activations are unknown.
  void gradients_only(JobModules& job) {
    writer_.moment("backward");
    for (TrainedParameter& trained : job.trained) {
      Parameter& parameter = *trained.parameter;
      if (parameter.gradient.defined()) continue;
      if (parameter.unit != writer_.unit()) {
        if (writer_.unit() != TraceWriter::kNoUnit) writer_.leave();
        if (parameter.unit != TraceWriter::kNoUnit) writer_.enter(parameter.unit, true);
      }
      const bool converted = parameter.gradient_dtype && *parameter.gradient_dtype != parameter.value.dtype();
      r_.accumulate(parameter, r_.empty(parameter.value.shape(), parameter.value.dtype(), "gradient",
                                        converted ? items_.block.backward : items_.gradients));
    }
    if (writer_.unit() != TraceWriter::kNoUnit) writer_.leave();
  }

  const ModelSpec& model_;
  const TrainingPlan& plan_;
  Generations generations_ = generations(plan_);
  const Hardware& hardware_;
  SymbolTable symbols_;
  TraceWriter writer_;
  Dims dims_;
  Recorder r_;
  Items items_;
  bool expand_;
  Tensor step_ids_, step_labels_, kept_outputs_;
  std::vector<Tensor> workspaces_;
  std::unique_ptr<EngineRun> engine_;
  const Architecture* program_ = nullptr;
};

}  // namespace

Simulation simulate(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware, bool expand) {
  if (!expand && !needs_every_layer(plan)) {
    try {
      return JobRun(model, plan, hardware, false).run();
    } catch (const NotPeriodic&) {
      // A layer differs from the one before it: every layer is written out.
    }
  }
  return JobRun(model, plan, hardware, true).run();
}

}  // namespace membill
