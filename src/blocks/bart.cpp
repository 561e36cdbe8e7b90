#include "blocks/bart.h"

#include <string>

#include "blocks/attention.h"
#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"
#include "blocks/llama.h"
#include "blocks/loss.h"

namespace membill {
namespace {

// shift_tokens_right: the labels, shifted right, are the decoder's input.
Tensor shifted_labels(Forward& f) {
  Recorder& r = f.r;
  const Shape per_token{f.dims.N, Size(1)};
  Tensor shifted = r.empty(per_token, DType::int64, "labels, shifted right");
  { const Tensor copy = r.empty({f.dims.N - f.dims.b, Size(1)}, DType::int64, "labels without the last"); }
  { const Tensor ignored = r.empty(per_token, DType::boolean, "ignored labels"); }
  return shifted;
}

// Places of the tokens behind the table's first two rows; `rows`: tokens of one row, or of all.
Tensor places(Forward& f, const Size& rows) {
  const Tensor line = f.r.empty({f.dims.s, Size(1)}, DType::int64, "positions");
  return f.r.empty({rows, Size(1)}, DType::int64, "positions behind the offset");
}

struct BartCall {
  const LayerContext& layer;
  std::string module;
  const Tensor& mask;
  bool crosses = false;
};

Tensor bart_attention(Forward& f, const BartCall& call, const Tensor& hidden, Tensor& weights) {
  Recorder& r = f.r;
  const KindDims& dims = call.layer.dims;
  const auto project = [&](const char* name, const Tensor& from) {
    return r.view(apply_linear(f, call.layer.modules.at(call.module + name), from), {f.dims.N * dims.a, dims.d});
  };
  const Tensor& from = call.crosses ? f.encoder_states : hidden;
  const Tensor q = project(".q_proj", hidden);
  const Tensor k = project(".k_proj", from);
  const Tensor v = project(".v_proj", from);
  AttentionCall attend{dims, call.layer.kind.attention, choose_attention(f, call.layer.kind, call.mask.defined()),
                       call.mask};
  attend.native_softmax = attend.keeps_softmax = true;
  attend.weights = &weights;
  return apply_linear(f, call.layer.modules.at(call.module + ".out_proj"), run_attention(f, attend, q, k, v));
}

Tensor feed_forward(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  Tensor x = activation(f, layer.kind.mlp.activation, apply_linear(f, layer.modules.at("fc1"), hidden));
  x = f.r.dropout(std::move(x), f.embedding_dropout);  // activation_dropout
  return f.r.dropout(apply_linear(f, layer.modules.at("fc2"), x), f.hidden_dropout);
}

}  // namespace

// A stack's input: scaled tokens and their places, normalised.
Tensor BartArchitecture::start(Forward& f, const Modules& outer, const char* stack, const Tensor& ids,
                               const Tensor& positions) const {
  Recorder& r = f.r;
  const std::string name = std::string("model.") + stack + ".";
  const Tensor tokens = r.mul_scalar(embed_tokens(f, outer, ids), "scaled embedding");
  const Tensor placed = apply_embedding(f, outer.at(name + "embed_positions"), positions);
  f.locals = {tokens, placed};
  Tensor hidden = r.add(tokens, placed, "tokens and positions");
  hidden = layer_norm(f, outer.at(name + "layernorm_embedding"), hidden);
  return r.dropout(std::move(hidden), f.hidden_dropout);
}

Tensor BartArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  f.caller_locals.push_back(shifted_labels(f));
  return start(f, outer, "encoder", ids, places(f, f.dims.N));
}

LayerInputs BartArchitecture::prepare(Forward& f, const Modules&, const Tensor&) const {
  LayerInputs inputs;
  if (f.plan.attention_mask)
    inputs.mask = f.r.empty({f.dims.N, f.unpads() ? Size(1) : f.dims.s}, DType::boolean, "padding mask, boolean");
  return inputs;
}

Tensor BartArchitecture::behind_stack(Forward& f, const Modules& outer, const char* name, Tensor hidden) const {
  return norm_first_ ? layer_norm(f, outer.at(name), std::move(hidden)) : hidden;
}

Tensor BartArchitecture::enter_section(Forward& f, const Modules& outer, const Section& section, Tensor hidden,
                                       LayerInputs& inputs) const {
  if (section.name != "decoder") return hidden;
  const ItemScope scope(f.r, f.items.embedding);
  f.encoder_states = behind_stack(f, outer, "model.encoder.layer_norm", std::move(hidden));
  f.locals.clear();
  const Tensor shifted = f.caller_locals.back();
  if (f.plan.attention == AttentionKernel::eager) make_masks(f, inputs);
  return start(f, outer, "decoder", shifted, places(f, f.dims.s));
}

Tensor BartArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden, const LayerInputs& inputs) const {
  Recorder& r = f.r;
  const bool decoder = f.encoder_states.defined();
  const Tensor none;
  Tensor weights;
  const auto block = [&](const char* norm_name, const auto& run) {
    const Tensor residual = hidden;
    if (norm_first_) hidden = layer_norm(f, layer.modules.at(norm_name), hidden);
    hidden = run(hidden);
    hidden = r.add(residual, hidden, "residual stream");
    if (!norm_first_) hidden = layer_norm(f, layer.modules.at(norm_name), hidden);
  };
  const auto attend = [&](const char* module, bool crosses) {
    return [&f, &layer, &weights, &none, &inputs, module, crosses](const Tensor& x) {
      const Tensor& mask = crosses && !f.plan.attention_mask ? none : inputs.mask;
      return f.r.dropout(bart_attention(f, {layer, module, mask, crosses}, x, weights), f.hidden_dropout);
    };
  };
  block("self_attn_layer_norm", attend("self_attn", false));
  if (decoder) block("encoder_attn_layer_norm", attend("encoder_attn", true));
  const ItemScope scope(r, f.items.boundary);
  block("final_layer_norm", [&](const Tensor& x) { return feed_forward(f, layer, x); });
  return hidden;
}

Tensor BartArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return behind_stack(f, outer, "model.decoder.layer_norm", std::move(hidden));
}

// The tied head's logits with a bias that is a buffer.
Tensor BartArchitecture::loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                              Tensor* outputs) const {
  Tensor logits = head(f, outer, std::move(hidden));
  const Tensor bias = f.r.placeholder({f.dims.V, Size(1)}, f.stream);
  logits = f.r.add(logits, bias, "logits with their bias");
  if (f.hooks != nullptr) logits = f.hooks->after_head(std::move(logits));
  Tensor result = plain_loss(f, logits, labels);
  if (outputs != nullptr) *outputs = std::move(logits);
  f.encoder_states.drop();
  return result;
}

}  // namespace membill
