#include "estimate/evaluation.h"

#include <algorithm>

#include "blocks/generations.h"

namespace membill {
namespace {

constexpr std::int64_t kUnsaidBatches = 2;

TrainingPlan in_evaluation_mode(const TrainingPlan& plan) {
  TrainingPlan result = plan;
  result.checkpointing.mode = Checkpointing::none;
  result.dropout = 0;
  return result;
}

}  // namespace

Evaluation::Evaluation(const Forward& like, const TrainingPlan& plan, std::int64_t processes)
    : processes_(processes),
      r_(like.r),
      plan_(in_evaluation_mode(plan)),
      dims_(like.dims),
      forward_{like.r, like.model, plan_, dims_, like.items, like.stream},
      item_(like.r.writer().item("evaluation.logits")) {
  forward_.quiet = true;
  forward_.hooks = like.hooks;
}

std::int64_t Evaluation::batches() const {
  const EvaluationPlan& evaluation = plan_.evaluation;
  return evaluation.samples ? (*evaluation.samples - 1) / *evaluation.batch + 1 : kUnsaidBatches;
}

// The last batch has what is left.
std::int64_t Evaluation::samples_of(std::int64_t number) const {
  const EvaluationPlan& evaluation = plan_.evaluation;
  if (!evaluation.samples || number + 1 < batches()) return *evaluation.batch;
  return *evaluation.samples - number * *evaluation.batch;
}

void Evaluation::run(StageRun& stage, const Architecture& architecture, JobModules& job,
                     std::optional<DType> autocast) {
  const std::int64_t last = std::min(batches(), plan_.evaluation.accumulation_steps.value_or(batches())) - 1;
  r_.writer().moment("evaluation");
  for (std::int64_t number = 0; number <= last; ++number) {
    if (number == 2 && last > 3) {
      number = last - 1;
      if (kept_.defined()) kept_ = r_.empty({rows_before(number), dims_.V}, kept_.dtype(), "kept logits", item_);
    }
    set_samples(samples_of(number));
    batch(stage, architecture, job, autocast);
    join(number);
  }
  logits_.drop();
  kept_.drop();
}

void Evaluation::set_samples(std::int64_t samples) {
  dims_.samples = dims_.b = Size(samples) * Size(has_pairs(plan_.stage) ? 2 : 1);
  dims_.N = dims_.samples * dims_.s;
}

Size Evaluation::rows_before(std::int64_t number) const {
  return Size(number * processes_ * *plan_.evaluation.batch * (has_pairs(plan_.stage) ? 2 : 1)) * dims_.s;
}

// The batch, and the next one that the loader has fetched.
void Evaluation::batch(StageRun& stage, const Architecture& architecture, JobModules& job,
                       std::optional<DType> autocast) {
  const ItemId inputs = r_.writer().item("activations.inputs");
  const Tensor ids = r_.empty({dims_.N, Size(1)}, DType::int64, "token ids of the evaluation", inputs);
  const Tensor labels = r_.empty({dims_.N, Size(1)}, DType::int64, "labels of the evaluation", inputs);
  const Tensor next = r_.empty({dims_.N * Size(2), Size(1)}, DType::int64, "the next batch of the evaluation", inputs);
  const bool grad = r_.grad_enabled();
  r_.set_grad_enabled(plan_.evaluation.gradients);
  Tensor outputs;
  if (autocast) r_.begin_autocast(*autocast);
  {
    const Tensor loss = stage.forward(forward_, architecture, job, ids, &outputs);
    if (autocast) r_.end_autocast();
  }
  r_.drop_graph();
  r_.set_grad_enabled(false);
  // accelerate's convert_outputs_to_fp32, which its way to FSDP2 leaves out (accelerator.py prepare_model).
  const bool wide = autocast && plan_.loop == Loop::trainer && plan_.engine != Engine::fsdp2;
  if (outputs.defined() && wide) outputs = r_.cast(std::move(outputs), DType::fp32);
  if (plan_.evaluation.keep_logits) logits_ = gathered(std::move(outputs));
  r_.set_grad_enabled(grad);
}

// accelerate's gather_for_metrics: every process holds the logits of all.
Tensor Evaluation::gathered(Tensor logits) {
  if (processes_ == 1 || !logits.defined()) return logits;
  return r_.empty({dims_.N * Size(processes_), dims_.V}, logits.dtype(), "logits of all processes", item_);
}

// nested_concat: the joined logits are made beside both parts.
void Evaluation::join(std::int64_t number) {
  if (!logits_.defined()) return;
  if (number == 0)
    kept_ = logits_;
  else
    kept_ =
        r_.empty({rows_before(number) + dims_.N * Size(processes_), dims_.V}, logits_.dtype(), "kept logits", item_);
}

}  // namespace membill
