#include "blocks/causal_lm.h"

#include <optional>
#include <utility>

#include "base/engine_keys.h"
#include "blocks/adalora.h"
#include "blocks/generations.h"
#include "blocks/key_cache.h"
#include "blocks/layers.h"
#include "blocks/loss.h"
#include "blocks/vision.h"

namespace membill {
namespace {

// The mask that the model passes to a layer of `kind`, alone; of tables by layer type, those of its type.
LayerInputs inputs_of(const LayerKind& kind, LayerInputs inputs) {
  const bool sliding = kind.attention.sliding_window.has_value();
  const bool unmasked = kind.linear_attention || (kind.state_space && kind.attention.heads == 0);
  if (unmasked || sliding) inputs.mask.drop();
  if (unmasked || !sliding) inputs.local_mask.drop();
  if (!inputs.local_cos.defined()) return inputs;
  for (Tensor* table : {sliding ? &inputs.cos : &inputs.local_cos, sliding ? &inputs.sin : &inputs.local_sin})
    table->drop();
  return inputs;
}

// Of keys and values that a dictionary holds, the history ends at the layer's input as the recomputation had it, with its gradient.
CheckpointEnd held_with_keys(const Forward& f, const LayerKind& kind) {
  return [&r = f.r, key = kind.attention.sliding_window ? 1 : 0](const Tensor& input, const Tensor& gradient) {
    r.hold_with_shared(key, {input, gradient});
  };
}

std::optional<DType> argument_type(const Forward& f) {
  return f.hooks != nullptr ? f.hooks->argument_type() : std::nullopt;
}

// Float arguments in the type to which the engine casts them before a layer's forward. `extra` is of the hidden states' type, or complex.
LayerInputs as_layer_gets(Forward& f, LayerInputs inputs) {
  const std::optional<DType> type = argument_type(f);
  if (!type) return inputs;
  const ItemScope scope(f.r, f.items.embedding);
  for (Tensor* argument :
       {&inputs.mask, &inputs.local_mask, &inputs.cos, &inputs.sin, &inputs.local_cos, &inputs.local_sin}) {
    if (!argument->defined()) continue;
    const DType given = argument->dtype();
    if (given == DType::fp32 || given == DType::bf16 || given == DType::fp16) *argument = f.r.cast(*argument, *type);
  }
  return inputs;
}

// A reentrant checkpoint's context holds the keyword arguments of its layer until the graph is gone.
void hold_arguments(Forward& f, const LayerInputs& inputs) {
  for (const Tensor* argument : {&inputs.mask, &inputs.local_mask, &inputs.cos, &inputs.sin, &inputs.local_cos,
                                 &inputs.local_sin, &inputs.position_ids, &inputs.extra})
    if (argument->defined()) f.r.hold_in_graph(*argument);
}

Tensor run_unit(Forward& f, const Architecture& architecture, UnitModules& unit, Tensor hidden,
                const LayerInputs& inputs) {
  Recorder& r = f.r;
  const Section& section = f.model.sections[unit.section];
  for (std::size_t i = 0; i < unit.layers.size(); ++i) {
    const auto kind = static_cast<std::size_t>(unit.kinds[i]);
    const LayerContext context{unit.layers[i], section.kinds[kind], f.dims.kinds[unit.section][kind]};
    r.set_layer(static_cast<int>(i));
    architecture.before_layer(f);
    const bool checkpointed = is_checkpointed(f.plan.checkpointing, unit.numbers[i]);
    const bool casts_inside = checkpointed && generations(f.plan).checkpoints_around_wrappers;
    LayerInputs own = inputs_of(context.kind, inputs);
    if (!casts_inside) own = as_layer_gets(f, std::move(own));
    if (f.hooks != nullptr) f.hooks->before_layer(unit.unit, static_cast<int>(i));
    if (f.hidden_states != nullptr) f.hidden_states->keep(r, hidden);
    if (checkpointed) {
      Recorder::CheckpointKind how = layer_checkpoint(f, architecture, {&unit.layers[i]});
      if (how.reentrant && context.kind.attention.shares_keys) how.finished = held_with_keys(f, context.kind);
      if (how.reentrant && argument_type(f)) hold_arguments(f, own);
      hidden = r.checkpoint(
          hidden, how,
          [&f, &architecture, context, own, casts_inside](Tensor x) {
            const ItemScope scope(f.r, f.items.block);
            return architecture.layer(f, context, std::move(x), casts_inside ? as_layer_gets(f, own) : own);
          },
          architecture.checkpoint_variables(f));
    } else {
      const ItemScope scope(r, f.items.block);
      hidden = architecture.layer(f, context, hidden, own);
    }
    if (f.hooks != nullptr) f.hooks->after_layer(unit.unit, static_cast<int>(i));
  }
  r.set_layer(0);
  return hidden;
}

}  // namespace

Tensor decoder_forward(Forward& f, const Architecture& architecture, ModelModules& modules, const Tensor& ids) {
  Recorder& r = f.r;
  r.set_items(f.items.embedding);
  f.prompt = modules.prompt.get();
  HiddenStates own_states;
  if (architecture.keeps_hidden_states()) f.hidden_states = &own_states;
  Tensor hidden = architecture.embed(f, modules.outer, ids);
  if (f.pixels.defined()) hidden = with_images(f, modules, std::move(hidden));
  if (f.locals.empty()) f.locals.push_back(f.checkpoint_inputs != nullptr ? hidden : r.detach(hidden));
  LayerInputs inputs = architecture.prepare(f, modules.outer, hidden);
  std::size_t section = modules.units.empty() ? 0 : modules.units.front().section;
  for (UnitModules& unit : modules.units) {
    if (std::exchange(section, unit.section) != unit.section)
      hidden = architecture.enter_section(f, modules.outer, f.model.sections[unit.section], std::move(hidden), inputs);
    r.writer().enter(unit.unit, true);
    hidden = run_unit(f, architecture, unit, std::move(hidden), inputs);
    r.writer().leave();
  }
  if (f.plan.checkpointing.mode == Checkpointing::full && f.plan.checkpointing.reentrant && !argument_type(f))
    hold_arguments(f, inputs);
  r.set_items(f.items.head);
  if (f.hooks != nullptr) hidden = f.hooks->before_head(std::move(hidden));
  hidden = architecture.finish(f, modules.outer, hidden);
  f.locals.clear();
  f.second_output.drop();
  if (f.hidden_states == &own_states) f.hidden_states = nullptr;
  own_states.release(r);
  if (!r.grad_enabled() || f.plan.checkpointing.mode == Checkpointing::none) r.drop_shared();
  return hidden;
}

namespace {

// FSDP1 watches the gradients of a frozen unit's inputs by hooks that it removes after the whole backward pass
// (_runtime_utils.py _register_post_backward_reshard_only_hook). Where the unit runs inside of a reentrant checkpoint, they hold
// the input that was made anew, and its gradient.
CheckpointEnd held_by_hooks(const Forward& f) {
  const bool adapters = f.plan.method != Method::full && f.plan.method != Method::freeze;
  const bool frozen_units = f.plan.engine == Engine::fsdp && adapters && engine_word(f.plan, "wrap", "") == "peft";
  if (!frozen_units || !generations(f.plan).checkpoints_around_wrappers) return {};
  return [&r = f.r](const Tensor& input, const Tensor& gradient) {
    r.hold_in_graph(input);
    r.hold_in_graph(gradient);
  };
}

}  // namespace

Recorder::CheckpointKind layer_checkpoint(const Forward& f, const Architecture& architecture,
                                          const std::vector<Modules*>& layers) {
  const CheckpointPlan& plan = f.plan.checkpointing;
  const bool in_parts = engine_flag(f.plan, "distribute_saved_activations", false);
  CheckpointEnd finished = architecture.after_checkpoint(layers);
  if (!finished && plan.reentrant) finished = held_by_hooks(f);
  // torchtitan's configuration: early_stop = false
  return {plan.reentrant,      plan.offload && f.r.saved_on_host() == nullptr,      in_parts ? f.plan.parallel.tp : 1,
          std::move(finished), f.plan.implementation != Implementation::torchtitan, f.checkpoint_inputs};
}

bool is_checkpointed(const CheckpointPlan& plan, std::int64_t layer) {
  return plan.mode != Checkpointing::none && (layer + 1) % plan.every == 0;
}

AtenOperators kept_operators(const CheckpointPlan& plan) {
  AtenOperators operators;
  if (plan.mode != Checkpointing::selective) return operators;
  for (const std::string& name : plan.selective)
    if (const auto op = find_aten_operator(name)) operators.add(*op, name.ends_with(kEverySecond));
  return operators;
}

namespace {

// transformers 5.24 modeling_layers.py GenericForSequenceClassification: scores of every token, of which each row's last is compared.
Tensor loss_of_scores(Forward& f, Module& head, const Tensor& hidden) {
  Recorder& r = f.r;
  const Tensor scores = apply_linear(f, head, hidden);
  const Tensor present = r.empty({f.dims.N, Size(1)}, DType::int32, "tokens that are no padding");
  const Tensor places = r.empty({f.dims.s, Size(1)}, DType::int32, "places in a row");
  const Tensor last = r.empty({f.dims.b, Size(1)}, DType::int64, "last token of each row");
  const Tensor pooled = part_of(f, scores, {f.dims.b, scores.width()}, "gradient of the scores, zero-filled");
  const Tensor labels = r.empty({f.dims.b, Size(1)}, DType::int64, "a label a row");
  return plain_loss(f, pooled, labels);
}

}  // namespace

Tensor causal_lm_forward(Forward& f, const Architecture& architecture, ModelModules& modules, const Tensor& ids,
                         Tensor* outputs) {
  if (f.hooks != nullptr) f.hooks->before_model();
  std::optional<KeyCache> cache;
  const bool prefixed = !f.dims.past.is_zero() && f.adapters;
  if (prefixed || fills_cache(f)) f.cache = &cache.emplace(f);
  if (prefixed) cache->begin_with_prefix(*modules.prompt, modules.units);
  Tensor hidden = decoder_forward(f, architecture, modules, ids);
  f.r.set_saved_on_host(nullptr);  // torchtune's hook leaves the head out, and the loss is outside of it
  f.moment("loss");
  f.r.set_items(f.items.loss_logits);
  Tensor logits;  // of the outputs that AdaLoRA looks at
  const bool regularised = f.plan.method == Method::adalora && f.adapters;
  if (regularised && outputs == nullptr) outputs = &logits;
  Module* const score = modules.outer.find(kScoreHead);
  Tensor loss = score != nullptr ? loss_of_scores(f, *score, std::exchange(hidden, Tensor()))
                                 : architecture.loss(f, modules.outer, std::move(hidden),
                                                     f.labels.defined() ? f.labels : ids, outputs);
  if (regularised) loss = with_orthogonality(f, modules, std::move(loss));
  f.labels.drop();
  f.caller_locals.clear();
  f.cache = nullptr;
  cache.reset();
  if (f.hooks != nullptr) f.hooks->after_model();
  return loss;
}

}  // namespace membill
