#include "blocks/trl_forward.h"

#include "blocks/generations.h"
#include "blocks/layers.h"

namespace membill {
Tensor TrlForward::decoder(Forward& f, ModelModules& modules) const {
  if (f.hooks != nullptr) f.hooks->before_model();
  Tensor hidden = decoder_forward(f, architecture_, modules, ids_);
  f.moment("loss");
  return hidden;
}

FusedHeadResult TrlForward::fused(Forward& f, ModelModules& modules, const FusedHeadOutputs& outputs) const {
  Tensor hidden = decoder(f, modules);
  FusedHeadResult result =
      fused_log_probabilities(f, architecture_.head_matrix(modules.outer), std::move(hidden), counted_, outputs);
  if (f.hooks != nullptr) result.log_probabilities = f.hooks->after_head(std::move(result.log_probabilities));
  if (f.hooks != nullptr) f.hooks->after_model();
  if (r_.autocast()) r_.forget_copies();  // Accelerate's autocast is around the model's forward
  return result;
}

Tensor TrlForward::logits_of(Forward& f, ModelModules& modules, Tensor last, Tensor rows, HiddenStates* states) const {
  r_.set_items(f.items.loss_logits);
  Tensor logits = architecture_.head(f, modules.outer, std::move(rows));
  if (f.hooks != nullptr) f.hooks->after_model();
  f.hidden_states = nullptr;
  r_.set_items(f.items.loss_upcast);
  if (!r_.autocast() || f_.plan.engine == Engine::fsdp2) {  // accelerate _prepare_fsdp2 converts no outputs
    if (states != nullptr) states->keep(r_, last);
    return logits;
  }
  // Accelerate's autocast is around the model's forward, where the trainer has none around both.
  const bool inside_another = casts_ends_to_16bit(f_.plan) && f_.plan.stage != Stage::grpo;
  if (!inside_another) r_.forget_copies();
  Tensor wide = r_.cast(logits, DType::fp32);
  if (states != nullptr) states->convert(r_, last);
  logits.drop();
  last.drop();
  return wide;
}

Tensor TrlForward::whole_logits(Forward& f, ModelModules& modules, HiddenStates* states) const {
  f.hidden_states = states;
  Tensor hidden = decoder(f, modules);
  Tensor rows = hidden;
  return logits_of(f, modules, std::move(hidden), std::move(rows), states);
}

Tensor TrlForward::last_logits(Forward& f, ModelModules& modules, const Size& kept, HiddenStates* states) const {
  f.hidden_states = states;
  Tensor hidden = decoder(f, modules);
  r_.set_items(f.items.head);
  Tensor part = part_of(f, hidden, {kept, f.dims.h}, "gradient of the final states, zero-filled");
  if (!f.one_row()) part = r_.contiguous_copy(part, part.shape(), "final states of the positions kept");
  return logits_of(f, modules, std::move(hidden), std::move(part), states);
}

void TrlForward::without_gradients(const ReferenceModel& model, const std::function<void(Forward& f)>& run) const {
  beside(model, false, run);
}

void TrlForward::with_gradients(const ReferenceModel& model, const std::function<void(Forward& f)>& run) const {
  beside(model, true, run);
}

void TrlForward::beside(const ReferenceModel& model, bool gradients, const std::function<void(Forward& f)>& run) const {
  TrainingPlan plan = f_.plan;
  if (!gradients || model.own) plan.checkpointing.mode = Checkpointing::none;
  Forward f{r_, f_.model, plan, f_.dims, f_.items, f_.stream};
  f.adapters = model.adapters;
  f.hooks = model.own ? model.hooks : f_.hooks;
  f.quiet = true;
  if (gradients && !model.own) f.input_leaf = f_.input_leaf;
  const bool grad = r_.grad_enabled();
  ParameterUse* const use = r_.parameter_use();
  r_.set_grad_enabled(gradients);
  if (model.own) r_.set_parameter_use(model.parameter_use);
  run(f);
  r_.set_parameter_use(use);
  r_.set_grad_enabled(grad);
}

bool TrlForward::is_classic() const { return generations(f_.plan).trl == Generations::Trl::classic; }

Tensor TrlForward::total(const Tensor& x) const {
  Tensor sum = r_.empty({Size(1), Size(1)}, DType::fp32, "loss");
  if (!r_.needs_node({&x})) return sum;
  r_.record({&sum}, {r_.edge(x)}, [shape = x.shape(), type = x.dtype()](Recorder& rec, Gradients&) {
    return Gradients{rec.placeholder(shape, type)};
  });
  return sum;
}

}  // namespace membill
