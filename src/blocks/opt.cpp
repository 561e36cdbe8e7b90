#include "blocks/opt.h"

#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"
#include "blocks/llama.h"

namespace membill {
namespace {

// do_layer_norm_before: the models that have it end with a norm.
bool norms_first(const Forward& f) {
  for (const Section& section : f.model.sections)
    if (section.name == "final") return true;
  return false;
}

Tensor opt_attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                     Tensor& weights) {
  Recorder& r = f.r;
  const KindDims& dims = layer.dims;
  const auto project = [&](const char* name) { return apply_linear(f, layer.modules.at(name), hidden); };
  Tensor q = r.mul_scalar(project("self_attn.q_proj"), "scaled queries");
  q = seen_as_heads(f, q, dims.a, dims.d);
  Tensor k = project("self_attn.k_proj"), v = project("self_attn.v_proj");
  k = seen_as_heads(f, k, dims.a, dims.d);
  v = seen_as_heads(f, v, dims.a, dims.d);
  AttentionCall call{dims, layer.kind.attention, choose_attention(f, layer.kind, inputs.mask.defined()), inputs.mask};
  call.weights = &weights;
  Tensor output = run_attention(f, call, q, k, v);
  return apply_linear(f, layer.modules.at("self_attn.out_proj"), output);
}

// A norm without weights (layer_norm_elementwise_affine: false) has no module.
Tensor norm(Forward& f, const Modules& modules, std::string_view name, Tensor x) {
  Module* module = modules.find(name);
  if (module != nullptr) return layer_norm(f, *module, std::move(x));
  return f.r.plain_layer_norm(std::move(x));
}

}  // namespace

// position_ids is a running sum over a mask of ones: floats, then integers.
Tensor OptArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  Recorder& r = f.r;
  Tensor tokens = embed_tokens(f, outer, ids);
  const Shape per_token{f.dims.N, Size(1)};
  const Tensor ones = r.empty(per_token, DType::fp32, "mask of ones");
  const Tensor positions = r.empty(per_token, DType::int64, "position ids");
  const Tensor shifted = r.empty(per_token, DType::int64, "position ids with OPT's offset");
  const Tensor placed = apply_embedding(f, outer.at("model.decoder.embed_positions"), shifted);
  if (Module* project_in = outer.find("model.decoder.project_in")) tokens = apply_linear(f, *project_in, tokens);
  f.locals = {tokens, ones, positions, placed};
  return r.add(tokens, placed, "tokens and positions");
}

LayerInputs OptArchitecture::prepare(Forward& f, const Modules&, const Tensor&) const {
  LayerInputs inputs;
  inputs.position_ids = f.locals.at(2);
  make_masks(f, inputs);
  return inputs;
}

Tensor OptArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden, const LayerInputs& inputs) const {
  Recorder& r = f.r;
  Modules& modules = layer.modules;
  const bool before = norms_first(f);
  Tensor residual = hidden, weights;
  if (before) hidden = norm(f, modules, "self_attn_layer_norm", hidden);
  hidden = opt_attention(f, layer, hidden, inputs, weights);
  hidden = r.dropout(hidden, f.hidden_dropout);
  hidden = r.add(residual, hidden, "residual stream");
  if (!before) hidden = norm(f, modules, "self_attn_layer_norm", hidden);
  hidden = r.reshaped(hidden, hidden.shape());
  residual = hidden;
  if (before) hidden = norm(f, modules, "final_layer_norm", hidden);
  hidden = apply_linear(f, modules.at("fc1"), hidden);
  hidden = activation(f, layer.kind.mlp.activation, hidden);
  hidden = apply_linear(f, modules.at("fc2"), hidden);
  hidden = r.dropout(hidden, f.hidden_dropout);
  const ItemScope scope(r, f.items.boundary);
  hidden = r.add(residual, hidden, "layer output");
  hidden = r.reshaped(hidden, hidden.shape());
  return before ? hidden : norm(f, modules, "final_layer_norm", hidden);
}

Tensor OptArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  if (norms_first(f)) hidden = norm(f, outer, "model.decoder.final_layer_norm", hidden);
  Module* project_out = outer.find("model.decoder.project_out");
  return project_out == nullptr ? hidden : apply_linear(f, *project_out, hidden);
}

}  // namespace membill
