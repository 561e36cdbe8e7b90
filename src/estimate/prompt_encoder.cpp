#include "estimate/prompt_encoder.h"

namespace membill {
namespace {

void train(Recorder& r, JobModules& job, Parameter& parameter, const Shape& shape) {
  const ItemId item = r.writer().item("weights.adapter");
  parameter.value = r.empty(shape, DType::fp32, "virtual tokens", item);
  parameter.item = item;
  parameter.leading = shape.rows;
  parameter.trainable = true;
  parameter.label = "virtual tokens";
  parameter.value.body().requires_grad = true;
  parameter.value.body().leaf = &parameter;
  job.trained.push_back({&parameter, TensorRole::adapter, shape.elements()});
  job.trainable_elements += r.symbols().evaluate(shape.elements());
}

}  // namespace

// peft 0.21.2 tuners/prompt_tuning/model.py, tuners/p_tuning/model.py: in fp32 over any base, p-tuning as wide as the model.
void add_prompt_encoder(Recorder& recorder, const TrainingPlan& plan, const Dims& dims, JobModules& job) {
  job.model.prompt = std::make_unique<PromptEncoder>();
  PromptEncoder& encoder = *job.model.prompt;
  train(recorder, job, encoder.embedding, {dims.t, dims.h});
  if (plan.method != Method::ptuning) return;
  constexpr int kLinears = 3;
  for (int i = 0; i < kLinears; ++i) {
    encoder.linears.push_back(std::make_unique<PromptEncoder::Linear>());
    train(recorder, job, encoder.linears.back()->weight, {dims.h, dims.h});
    train(recorder, job, encoder.linears.back()->bias, {dims.h, Size(1)});
  }
}

}  // namespace membill
