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

void add_linear(Recorder& r, JobModules& job, const Size& in, const Size& out) {
  auto& linears = job.model.prompt->linears;
  linears.push_back(std::make_unique<PromptEncoder::Linear>());
  train(r, job, linears.back()->weight, {out, in});
  train(r, job, linears.back()->bias, {out, Size(1)});
}

// tuners/prefix_tuning/model.py: keys and values of all layers, whole or made by an MLP (utils/other.py: as wide as those of a layer).
void add_prefix(Recorder& r, const TrainingPlan& plan, const Dims& dims, JobModules& job) {
  const KindDims& kind = dims.kinds.at(1).at(0);
  const Size token = kind.k * kind.d, all = Size(2) * dims.L * token;
  Parameter& embedding = job.model.prompt->embedding;
  if (!plan.adapter.prefix_projection) return train(r, job, embedding, {dims.past, all});
  const Size hidden = plan.adapter.encoder_hidden ? Size(*plan.adapter.encoder_hidden) : token;
  train(r, job, embedding, {dims.past, token});
  add_linear(r, job, token, hidden);
  add_linear(r, job, hidden, all);
}

}  // namespace

// peft 0.21.2 tuners/prompt_tuning/model.py, tuners/p_tuning/model.py: in fp32 over any base, p-tuning as wide as the model.
void add_prompt_encoder(Recorder& recorder, const TrainingPlan& plan, const Dims& dims, JobModules& job) {
  job.model.prompt = std::make_unique<PromptEncoder>();
  if (plan.method == Method::prefix) return add_prefix(recorder, plan, dims, job);
  train(recorder, job, job.model.prompt->embedding, {dims.t, dims.h});
  if (plan.method != Method::ptuning) return;
  const Size hidden = plan.adapter.encoder_hidden ? Size(*plan.adapter.encoder_hidden) : dims.h;
  add_linear(recorder, job, dims.h, hidden);
  add_linear(recorder, job, hidden, hidden);
  add_linear(recorder, job, hidden, dims.h);
}

}  // namespace membill
