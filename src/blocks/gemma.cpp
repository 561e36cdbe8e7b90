#include "blocks/gemma.h"

#include "blocks/attention.h"
#include "blocks/experts.h"
#include "blocks/own_norms.h"
#include "blocks/own_rotary.h"

namespace membill {
Tensor GemmaArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  if (f.hooks != nullptr) f.hooks->before_embedding();
  const Tensor table_rows = apply_embedding(f, outer.at(embedding_name()), ids);
  const Tensor embedded = f.hooks != nullptr ? f.hooks->after_embedding(table_rows) : table_rows;
  const Tensor scale = f.r.empty({Size(1), Size(1)}, DType::fp32, "embedding scale");
  return made_to_need_gradient(f, f.r.mul(embedded, f.r.cast(scale, embedded.dtype()), "scaled embedding"));
}

Tensor GemmaArchitecture::head(Forward& f, const Modules& outer, Tensor hidden) const {
  Recorder& r = f.r;
  Tensor logits = Architecture::head(f, outer, hidden);
  if (!f.model.final_logit_softcap) return logits;
  logits = r.mul_scalar(logits, "logits over the cap");
  logits = r.tanh(logits);
  logits = r.mul_scalar(logits, "capped logits");
  return logits;
}

Tensor GemmaArchitecture::norm(Forward& f, Module& module, Tensor x) const {
  return gemma_rms_norm(f, module, std::move(x));
}

Gemma2Architecture::NormNames Gemma2Architecture::norm_names() const {
  return {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"};
}

LayerInputs Gemma3Architecture::prepare(Forward& f, const Modules&, const Tensor& hidden) const {
  return inputs_by_layer_type(f, hidden.dtype());
}

Heads Gemma3Architecture::project(Forward& f, const LayerContext& layer, const Tensor& hidden) const {
  return project_then_norm(f, layer, hidden);
}

void Gemma3Architecture::rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const {
  LlamaArchitecture::rotate(f, layer, tables_of(layer, inputs), heads);
}

Tensor Gemma4Architecture::norm(Forward& f, Module& module, Tensor x) const {
  return gemma4_rms_norm(f, &module, std::move(x));
}

namespace {

// Embeddings of each layer, of the words and of what stands for them so far, side by side.
Tensor inputs_of_layers(Forward& f, const Modules& outer, const Tensor& ids, const Tensor& embedded) {
  Recorder& r = f.r;
  Tensor of_words = apply_embedding(f, outer.at("model.embed_tokens_per_layer"), ids);
  {
    const Tensor scale = r.empty({Size(1), Size(1)}, DType::fp32, "embedding scale");
    of_words = r.mul(of_words, r.cast(scale, of_words.dtype()), "scaled embedding of the layers");
  }
  Module& projection = outer.at("model.per_layer_model_projection");
  Module& norm = outer.at("model.per_layer_projection_norm");
  Tensor projected = r.mul_scalar(apply_linear(f, projection, embedded), "scaled inputs of the layers");
  const Shape whole = projected.shape();
  const Size width = norm.weight.value.rows();
  projected = r.view(projected, {f.dims.N * f.dims.L, width});
  projected = r.view(gemma4_rms_norm(f, &norm, projected), whole);
  return r.mul_scalar(r.add(projected, of_words, "inputs of the layers, summed"), "inputs of the layers");
}

// Whether layers are run again that read the dictionary of keys as it was.
bool reads_keys_again(const Forward& f) {
  return f.plan.checkpointing.mode != Checkpointing::none && f.plan.checkpointing.reentrant && f.r.grad_enabled();
}

// Where a layer of this kind finds keys and values of another one.
std::size_t place_of_keys(const AttentionShape& shape) { return shape.sliding_window ? 2 : 0; }

}  // namespace

Tensor Gemma4Architecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  Tensor embedded = Gemma3Architecture::embed(f, outer, ids);
  if (outer.find("model.per_layer_model_projection") != nullptr)
    f.layer_inputs = inputs_of_layers(f, outer, ids, embedded);
  return embedded;
}

void Gemma4Architecture::before_layer(Forward& f) const {
  if (!f.layer_inputs.defined()) return;
  const Shape own{f.dims.N, f.r.symbols().ceil_div(f.layer_inputs.width(), f.dims.L)};
  f.layer_input = part_of(f, f.layer_inputs, own, "gradient of all layers' inputs, zero-filled");
}

Tensor Gemma4Architecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  Tensor result = Gemma3Architecture::finish(f, outer, std::move(hidden));
  f.layer_inputs.drop();
  f.layer_input.drop();
  if (reads_keys_again(f)) return result;
  for (Tensor& shared : f.shared_keys) shared.drop();
  return result;
}

// A reentrant checkpoint's function knows what its layer reads from the dictionary of keys no more than what it puts there.
Recorder::CheckpointVariables Gemma4Architecture::checkpoint_variables(Forward& f) const {
  Recorder::CheckpointVariables variables{{&f.layer_input}, {}};
  if (f.plan.checkpointing.reentrant) return variables;
  for (Tensor& shared : f.shared_keys) {
    variables.inputs.push_back(&shared);
    variables.outputs.push_back(&shared);
  }
  return variables;
}

Tensor Gemma4Architecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                     const LayerInputs& inputs, Tensor& weights) const {
  const KindDims& dims = layer.dims;
  const AttentionShape& shape = layer.kind.attention;
  // Rotated with heads behind tokens, q and k get their gradients so.
  const auto project = [&](const char* name, const Size& heads, bool rotated) {
    const Tensor x = apply_linear(f, layer.modules.at(name), hidden);
    return rotated ? f.r.view(x, {f.dims.N * heads, dims.d}) : seen_as_heads(f, x, heads, dims.d);
  };
  const LayerInputs tables = tables_of(layer, inputs);
  f.r.watch_history(false);
  Tensor q = project("self_attn.q_proj", dims.a, true);
  q = norm(f, layer.modules.at("self_attn.q_norm"), q);
  q = apply_rotary(f, q, tables.cos, tables.sin);
  const std::size_t place = place_of_keys(shape);
  Tensor k, v;
  if (layer.modules.find("self_attn.k_proj") == nullptr) {
    k = f.shared_keys.at(place), v = f.shared_keys.at(place + 1);
  } else {
    f.r.watch_history(shape.shares_keys);
    k = project("self_attn.k_proj", dims.k, layer.modules.find("self_attn.v_proj") != nullptr);
    v = layer.modules.find("self_attn.v_proj") != nullptr ? project("self_attn.v_proj", dims.k, false) : k;
    k = norm(f, layer.modules.at("self_attn.k_norm"), k);
    k = apply_rotary(f, k, tables.cos, tables.sin);
    v = gemma4_rms_norm(f, nullptr, v);
    f.r.watch_history(false);
  }
  if (shape.shares_keys) {
    f.r.hold_shared(shape.sliding_window ? 1 : 0, {k, v});
    // What was stored is no longer needed once its layer runs again: layers go backward.
    const bool runs_again = reads_keys_again(f) && f.plan.checkpointing.every == 1;
    f.shared_keys.at(place) = runs_again ? Tensor() : k, f.shared_keys.at(place + 1) = runs_again ? Tensor() : v;
  }
  const Tensor& mask = shape.sliding_window ? inputs.local_mask : inputs.mask;
  AttentionCall call{dims, shape, choose_attention(f, layer.kind, mask.defined()), mask};
  call.weights = &weights;
  Tensor output = run_attention(f, call, q, k, v);
  output = apply_linear(f, layer.modules.at("self_attn.o_proj"), std::move(output));
  k.drop(), q.drop(), v.drop();
  return output;
}

namespace {

// Gemma4TextRouter: a softmax over logits of scaled states; weights over their sum, times a factor of each expert.
Routing route_scaled(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  Recorder& r = f.r;
  Tensor x = gemma4_rms_norm(f, nullptr, hidden);
  x = r.mul_scalar(r.mul(x, layer.modules.at("router.scale").weight.value, "states by the router's scale"));
  const Tensor logits = apply_linear(f, layer.modules.at("router.proj"), x);
  Routing routing;
  routing.logits = r.softmax(logits, DType::fp32);
  auto [values, indices] = r.top_of_rows(routing.logits, layer.dims.top);
  values = r.div_in_place(values, r.sum_of_rows(values));
  const Tensor factors =
      r.view(layer.modules.at("router.per_expert_scale").weight.value, {layer.dims.experts, Size(1)});
  const Tensor chosen = r.index_rows(factors, r.view(indices, {f.dims.N * layer.dims.top, Size(1)}), Size(1));
  routing.weights = r.mul(values, r.view(chosen, values.shape()), "scaled weights of experts");
  routing.indices = std::move(indices);
  return routing;
}

}  // namespace

Tensor Gemma4Architecture::feed_forward(Forward& f, const LayerContext& layer, Tensor hidden,
                                        const Tensor& residual) const {
  Tensor dense = mlp(f, layer, hidden);
  hidden.drop();
  if (!layer.kind.moe) return dense;
  const Tensor first = norm(f, layer.modules.at("post_feedforward_layernorm_1"), dense);
  const Tensor flat = f.r.reshaped(residual, residual.shape());
  const Routing routing = route_scaled(f, layer, flat);
  f.second_output = routing.logits;  // a variable until the layer's end
  Tensor second = norm(f, layer.modules.at("pre_feedforward_layernorm_2"), flat);
  second = run_experts(f, layer, "experts.", second, routing);
  second = norm(f, layer.modules.at("post_feedforward_layernorm_2"), second);
  return f.r.add(first, second, "MLP and experts");
}

namespace {

// x *= a buffer of one element, which the node saves: a recomputation begins with it and runs to it.
Tensor scaled_by_buffer(Recorder& r, const Tensor& x) {
  Tensor out = r.view(x, x.shape());
  if (!r.needs_node({&x})) return out;
  Tensor kept = r.saved(r.placeholder({Size(1), Size(1)}, x.dtype()));
  r.record({&out}, {r.edge(x)}, [kept, shape = x.shape(), type = x.dtype()](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(shape, type, "scaled gradient")};
  });
  return out;
}

// The block that a layer's own embedding gates.
Tensor gated_by_input(Forward& f, const LayerContext& layer, const Tensor& hidden) {
  Recorder& r = f.r;
  Tensor x = apply_linear(f, layer.modules.at("per_layer_input_gate"), hidden);
  x = activation(f, layer.kind.mlp.activation, x);
  x = r.mul(x, f.layer_input, "gated input of the layer");
  x = apply_linear(f, layer.modules.at("per_layer_projection"), x);
  x = gemma4_rms_norm(f, &layer.modules.at("post_per_layer_input_norm"), x);
  const ItemScope scope(r, f.items.boundary);
  return r.add(hidden, x, "layer output");
}

}  // namespace

Tensor Gemma4Architecture::layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                 const LayerInputs& inputs) const {
  f.r.watch_history(layer.kind.attention.shares_keys);
  hidden = Gemma3Architecture::layer(f, layer, std::move(hidden), inputs);
  if (f.layer_input.defined()) hidden = gated_by_input(f, layer, hidden);
  f.second_output.drop();
  return scaled_by_buffer(f.r, hidden);
}

}  // namespace membill
