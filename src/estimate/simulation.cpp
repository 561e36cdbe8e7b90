#include "estimate/simulation.h"

#include <algorithm>
#include <memory>

#include "blocks/deepspeed_checkpoint.h"
#include "blocks/generate.h"
#include "blocks/generations.h"
#include "blocks/megatron_router.h"
#include "blocks/sequence_spread.h"
#include "blocks/serve.h"
#include "blocks/torchtune_pairs.h"
#include "blocks/vision.h"
#include "estimate/engines/engine.h"
#include "estimate/engines/placement.h"
#include "estimate/evaluation.h"
#include "estimate/input_gradient.h"
#include "estimate/optimizer_step.h"
#include "estimate/parameters.h"
#include "estimate/pipeline_run.h"
#include "estimate/rank_model.h"
#include "estimate/runtime_lines.h"
#include "estimate/saving.h"
#include "estimate/split_model.h"
#include "estimate/stage_run.h"
#include "program/saved_on_host.h"

namespace membill {
namespace {

std::optional<DType> autocast_type(const TrainingPlan& plan) {
  const RegimeRow& row = regime(plan.precision);
  // FSDP's mixed precision instead of autocast; the Trainer has both of FSDP1 (accelerate 1.15 accelerator.py _prepare_fsdp2: none).
  const bool both = plan.loop == Loop::trainer && plan.engine != Engine::fsdp2;
  if (!row.autocast || (gathered_dtype(plan) && !both)) return std::nullopt;
  return row.compute;
}

constexpr std::int64_t kDifferentMicroBatches = 2;

struct Kind {
  bool expand = false;  // every layer is written out
  bool shape = false;   // batch and seq will get other values
};

SymbolTable symbols_of(const Kind& kind) {
  SymbolTable symbols;
  if (!kind.shape) return symbols;
  symbols.vary("b");
  symbols.vary("s");
  return symbols;
}

class JobRun {
 public:
  JobRun(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware, const Kind& kind)
      : model_(model),
        plan_(plan),
        hardware_(hardware),
        symbols_(symbols_of(kind)),
        dims_(define_dims(symbols_, model, plan)),
        r_(writer_, symbols_),
        items_(define_items(writer_)),
        expand_(kind.expand) {
    r_.set_mean_saves_input(generations_.mean_saves_input);
    if (!generations_.keeps_matmul_workspaces && !generations_.matmul_workspaces_outside)
      r_.set_matmul_workspace(Size(matmul_workspace_bytes(hardware, plan).count()));
    r_.keep_results_of(kept_operators(plan.checkpointing));
    if (model.dimensions_known) program_ = find_architecture(model.model_type, plan.implementation);
  }

  Simulation run() {
    Simulation result;
    writer_.moment("build");
    JobModules job = build_modules(r_, model_, plan_, dims_, expand_);
    stage_.emplace(r_, model_, plan_, hardware_, dims_, expand_, job);
    if (plan_.loop == Loop::plain) writer_.empty_cache();
    if (plan_.stage == Stage::inference)
      serve(job, result);
    else
      train(job, result);
    symbols_.stop_deciding();
    result.symbols = std::move(symbols_);
    result.activations_known = program_ != nullptr;
    return result;
  }

 private:
  void train(JobModules& job, Simulation& result) {
    engine_ = make_engine(r_, model_, plan_, hardware_);
    place_idle(job);
    if (engine_ != nullptr) {
      engine_->wrap(job);
      r_.set_after_accumulate([this](Parameter& parameter) { engine_->gradient_ready(parameter); });
    }
    OptimizerRun optimizer(r_, plan_, job.trained);
    optimizer.construct(engine_ != nullptr && engine_->makes_states(), job.idle_trained);
    step(job, optimizer, false);
    // An evaluation comes after many steps: another one that is not billed, then the evaluation before the billed step.
    if (plan_.evaluation.batch) step(job, optimizer, true);
    writer_.begin_billed_step();
    step(job, optimizer, true);
    for (const auto& [item, bytes] : optimizer.on_host()) result.host[item] = symbols_.evaluate(bytes);
    for (const auto& [item, bytes] : optimizer.on_nvme()) result.nvme[item] = symbols_.evaluate(bytes);
    if (!offloaded_.is_zero()) result.host["activations.boundaries"] = symbols_.evaluate(offloaded_);
    if (engine_ != nullptr) {
      for (const auto& [item, bytes] : engine_->on_host()) result.host[item] += bytes;
      for (const auto& [item, bytes] : engine_->on_nvme()) result.nvme[item] += bytes;
    }
    for (const auto& [item, bytes] : stage_->on_host()) result.host[item] += bytes;
    for (const auto& [item, bytes] : stage_->on_nvme()) result.nvme[item] += bytes;
    if (!optimizer.temporaries_known())
      result.warnings.push_back("what one step of " + plan_.optimizer + " makes for a moment is not counted");
    result.trainable_parameters = job.trainable_elements;
    result.trace = writer_.finish();  // while everything of the step is alive
  }

  // What no batch reaches is never gathered where an engine shards parameters: each card keeps its part.
  void place_idle(JobModules& job) {
    if (plan_.sharding.offload.find("param") != std::string::npos && plan_.engine == Engine::deepspeed) return;
    const Size ranks(sharding_ranks(plan_, hardware_));
    for (Tensor& weight : job.idle) {
      if (weight.handle()->storage != nullptr) continue;
      const Size part = symbols_.ceil_div(weight.shape().elements(), ranks);
      weight = r_.empty({part, Size(1)}, weight.dtype(), "part of an idle weight", writer_.item("weights.base"));
    }
  }

  void serve(JobModules& job, Simulation& result) {
    writer_.begin_billed_step();
    writer_.moment("generate");
    Forward forward = new_forward();
    if (has_paged_cache(plan_.inference)) {
      serve_from_pages(forward, program_, job.model, dims_.b, dims_.s);
    } else if (program_ != nullptr) {
      const RolloutSizes sizes = rollout_sizes(symbols_, plan_, dims_);
      generate_completions(forward, *program_, job.model, {dims_.b, sizes.prompt, sizes.completion}, std::nullopt);
    }
    result.trace = writer_.finish();
  }

  void step(JobModules& job, OptimizerRun& optimizer, bool evaluates) {
    if (plan_.loop == Loop::trainer && plan_.engine != Engine::megatron && stage_->fetches_batches()) fetch_batches();
    if (runs_pipeline(plan_))
      pipeline(job);
    else
      micro_batches(job);
    optimizer.after_backward();
    writer_.moment("clip");
    if (plan_.clip && (engine_ == nullptr || !engine_->clips())) optimizer.clip();
    writer_.moment("step");
    if (engine_ != nullptr) engine_->before_step();
    take_step(optimizer);
    if (engine_ != nullptr) engine_->after_step();
    writer_.moment("zero");
    if (!generations_.gradients_stay) optimizer.drop_gradients();
    stage_->release_outputs();
    if (evaluates) evaluate(job);
    save_checkpoint(r_, model_, plan_, hardware_, job, engine_.get());
  }

  void take_step(OptimizerRun& optimizer) {
    const std::size_t parts = engine_ == nullptr ? 0 : engine_->sub_steps();
    if (parts == 0) return optimizer.step();
    for (std::size_t part = 0; part < parts; ++part) {
      engine_->before_sub_step(part);
      optimizer.step_one(part);
      engine_->after_sub_step(part);
    }
  }

  // The first and, where an engine acts at the end of the step, the last differ from those between.
  void micro_batches(JobModules& job) {
    const std::int64_t apart = engine_ != nullptr && plan_.accumulate > 1 ? 2 : 1;
    std::int64_t between = plan_.accumulate - apart;
    const bool last = apart == 1;
    micro_batch_number_ = 0;
    micro_batch(job, plan_.accumulate == 1);
    if (between > 0 && stage_->prepares(micro_batch_number_)) {
      micro_batch(job, last);
      --between;
    }
    if (plan_.keep_outputs || holds_reference_logits(plan_) || (engine_ != nullptr && engine_->carries_over())) {
      for (std::int64_t i = 0; i < std::min(between, kDifferentMicroBatches); ++i) micro_batch(job, last);
    } else if (between > 0) {
      writer_.begin_repeat(Size(between));
      micro_batch(job, last);
      writer_.end_repeat();
    }
    if (apart == 2) micro_batch(job, true);
  }

  [[nodiscard]] ItemId inputs_item() { return writer_.item("activations.inputs"); }
  [[nodiscard]] Tensor new_ids(const Size& count, const char* label) {
    return r_.empty({count, Size(1)}, DType::int64, label, inputs_item());
  }

  // The Trainer fetches the batches of all micro-steps before the first, while it still holds the last step's.
  void fetch_batches() {
    const Size tokens = dims_.text * Size(sequence_ranks(plan_) * plan_.accumulate);  // whole sequences
    std::vector<Tensor> batch{new_ids(tokens, "token ids of the step")};
    for (const DType type : stage_->further_batch_tensors())
      batch.push_back(r_.empty({tokens, Size(1)}, type, "labels, masks and positions of the step", inputs_item()));
    step_batch_ = std::move(batch);
    images_.fetch();
    if (plan_.packing && plan_.attention_mask)
      step_mask_ = r_.empty({tokens, dims_.s}, autocast_type(plan_).value_or(unquantized()),
                            "mask of the documents of the step", inputs_item());
  }

  // What of the batch the model's forward is given beside the token ids.
  void hand_over_batch(Forward& forward) {
    if (step_batch_.empty()) return;
    if (joins_rows(plan_)) forward.position_ids = r_.view(step_batch_.at(1), {dims_.N, Size(1)});
    if (step_mask_.defined()) forward.batch_mask = r_.view(step_mask_, {dims_.N, dims_.s});
  }

  [[nodiscard]] DType unquantized() const { return unquantized_dtype(plan_, TensorRole::embedding); }
  // Every layer of every micro-batch that is in flight is written out.
  void pipeline(JobModules& job) {
    Forward forward = new_forward();
    keep_lasting(forward);
    PipelineStage place{plan_.parallel.pp, pipeline_stage(plan_, hardware_), plan_.parallel.virtual_pp,
                        plan_.accumulate};
    place.micro_batches = distinct_micro_batches(place);
    PipelineRun(forward, *program_, job.model, place, pipeline_inputs_).step();
  }

  void keep_lasting(Forward& forward) {
    if (program_ != nullptr && lasting_.empty()) lasting_ = program_->lasting(forward);
  }

  void micro_batch(JobModules& job, bool last) {
    if (engine_ != nullptr) engine_->begin_micro_batch(last);
    r_.set_items(items_.embedding);
    auto input_leaf = std::make_unique<Parameter>();
    Forward forward = new_forward();
    keep_lasting(forward);
    if (input_needs_gradient(plan_)) forward.input_leaf = input_leaf.get();
    if (holds_variables(plan_)) forward.loop_variables = &loop_variables_;
    if (engine_ != nullptr) forward.hooks = engine_->forward_hooks();
    const std::optional<DType> autocast = autocast_type(plan_);
    const std::int64_t number = micro_batch_number_++;
    if (program_ != nullptr && stage_->prepares(number)) stage_->prepare(forward, *program_, job, autocast);
    writer_.moment("forward");
    const bool fetched = !step_batch_.empty();
    const Tensor ids = fetched ? r_.view(step_batch_.front(), {dims_.text, Size(1)}) : new_ids(dims_.text, "token ids");
    const std::vector<Tensor> images = images_.hand_over(forward);
    if (program_ == nullptr) return gradients_only(job);
    keep_workspace(Thread::main);
    hand_over_batch(forward);
    Tensor outputs, loss;
    if (autocast) r_.begin_autocast(*autocast);
    hook_saved_tensors();
    loss = stage_->forward(forward, *program_, job, ids, plan_.keep_outputs ? &outputs : nullptr);
    r_.set_saved_on_host(saved_on_host_.get());
    if (autocast) r_.end_autocast();
    left_leaf_.reset();
    offloaded_ = r_.take_offloaded();
    kept_outputs_ =
        outputs;  // the loop's variables, loss and with it the graph too, live until the next forward has returned
    r_.drop_left_graph();
    writer_.moment("backward");
    keep_workspace(Thread::autograd);
    r_.set_items({items_.loss_logits.backward, items_.loss_logits.backward});
    if (plan_.accumulate > 1) loss = r_.mul_scalar(loss, "loss over micro-batches");
    if (engine_ != nullptr) engine_->before_backward();
    r_.backward(loss);
    unhook_saved_tensors();
    plan_.keep_outputs ? r_.leave_graph() : r_.drop_graph();
    if (engine_ != nullptr) engine_->after_backward();
    if (plan_.loop == Loop::trainer) writer_.moment("clip");  // its loss still holds what nodes hold
    if (plan_.accumulate > 1) stage_->release_outputs();
    leave_leaf(forward, job.model, last, input_leaf, left_leaf_);
  }

  void hook_saved_tensors() {
    if (!saves_on_host(plan_)) return;
    const bool fused = generations_.trl == Generations::Trl::fused;
    saved_on_host_ = std::make_unique<SavedOnHost>(r_, SavedOnHost::Kind{fused, fused});
    r_.set_saved_on_host(saved_on_host_.get());
  }

  void unhook_saved_tensors() {
    if (!saved_on_host_) return;
    r_.set_saved_on_host(nullptr);
    saved_on_host_->clear();
    saved_on_host_.reset();
  }

  [[nodiscard]] Forward new_forward() {
    Forward forward{r_,
                    model_,
                    plan_,
                    dims_,
                    items_,
                    gathered_dtype(plan_).value_or(unquantized()),
                    attention_dropout(),
                    plan_.dropout.value_or(model_.hidden_dropout)};
    forward.embedding_dropout = plan_.dropout.value_or(model_.embedding_dropout);
    forward.checkpoint_inputs = checkpoint_inputs_.get();
    return forward;
  }

  void evaluate(JobModules& job) {
    if (!plan_.evaluation.batch || program_ == nullptr) return;
    Forward forward = new_forward();
    if (shards_parameters(plan_)) forward.hooks = engine_->forward_hooks();  // DDP's module runs without its wrapper
    Evaluation(forward, plan_, hardware_.count).run(*stage_, *program_, job, autocast_type(plan_));
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
      writer_.visit(parameter.unit, true);
      const bool converted = parameter.gradient_dtype && *parameter.gradient_dtype != parameter.value.dtype();
      r_.accumulate(parameter, r_.empty(parameter.value.shape(), parameter.value.dtype(), "gradient",
                                        converted ? items_.block.backward : items_.gradients));
    }
    writer_.visit(TraceWriter::kNoUnit, true);
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
  std::optional<StageRun> stage_;
  std::vector<Tensor> step_batch_;       // empty where each micro-batch makes its own
  std::int64_t micro_batch_number_ = 0;  // within its step
  Tensor step_mask_, kept_outputs_;
  ImageBatches images_{r_, model_, plan_, dims_};
  std::unique_ptr<SavedOnHost> saved_on_host_;
  Size offloaded_;  // checkpoints' inputs of one micro-batch, on the host
  std::unique_ptr<Parameter> left_leaf_;
  std::vector<Tensor> loop_variables_, workspaces_, lasting_;
  PipelineRun::HeldInputs pipeline_inputs_;
  std::unique_ptr<InputKeeper> checkpoint_inputs_ = deepspeed_inputs(plan_);
  std::unique_ptr<EngineRun> engine_;
  const Architecture* program_ = nullptr;
};

Simulation simulate_kind(const ModelSpec& given_model, const TrainingPlan& given_plan, const Hardware& hardware,
                         Kind kind) {
  const TrainingPlan plan = staged_plan(given_model, given_plan);
  const ModelSpec model = model_on_rank(given_model, given_plan, plan, hardware);
  const auto run_job = [tied = given_model.tied_embeddings](auto&&... inputs) {
    Simulation job = JobRun(inputs...).run();
    job.tied_embeddings = tied;
    return job;
  };
  const bool one_unit = plan.engine == Engine::fsdp2 && has_reference(plan) && !has_adapters(plan);  // of the reference
  if (!kind.expand && !one_unit && !needs_every_layer(plan)) {
    try {
      return run_job(model, plan, hardware, kind);
    } catch (const NotPeriodic&) {
      // A layer differs from the one before it: every layer is written out.
    }
  }
  kind.expand = true;
  return run_job(model, plan, hardware, kind);
}

}  // namespace

Simulation simulate(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware, bool expand) {
  return simulate_kind(model, plan, hardware, {expand, false});
}

Simulation simulate_shape(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware) {
  return simulate_kind(model, plan, hardware, {false, true});
}

}  // namespace membill
