#include "blocks/megatron.h"

#include <algorithm>

#include "blocks/attention.h"
#include "blocks/layers.h"
#include "blocks/megatron_attention.h"
#include "blocks/megatron_experts.h"
#include "blocks/megatron_latent.h"
#include "blocks/megatron_mlp.h"
#include "blocks/megatron_next_token.h"
#include "blocks/megatron_norm.h"
#include "blocks/megatron_parallel.h"
#include "blocks/megatron_router.h"

namespace membill {
namespace {

Size rotary_width(const Forward& f) {
  for (const auto& section : f.dims.kinds)
    for (const KindDims& kind : section)
      if (!kind.rotary.is_zero()) return kind.rotary;
  return {};
}

// fused_bias_dropout.py, compiled into one kernel: residual + dropout(x + bias).
Tensor bias_dropout_add(Forward& f, const Tensor& x, Parameter* bias, const Tensor& residual) {
  Recorder& r = f.r;
  const bool drops = f.hidden_dropout > 0;
  const Tensor offset = bias != nullptr ? bias->value : Tensor();
  const Tensor mask = drops ? r.empty(x.shape(), DType::boolean, "dropout mask") : Tensor();
  Tensor out = r.empty(x.shape(), x.dtype(), "residual stream");
  if (!r.needs_node({&x, &residual, &offset})) return out;
  const Tensor kept = drops ? r.saved(mask) : Tensor();
  r.record({&out}, {r.edge(x), r.edge(offset), r.edge(residual)},
           [kept, drops, shape = x.shape(), type = x.dtype(), biased = offset.defined() && offset.requires_grad(),
            b = offset.defined() ? offset.shape() : Shape{},
            own = r.writer().item("gradients")](Recorder& rec, Gradients& g) {
             Gradients result(3);
             result[0] = drops ? rec.empty(shape, type, "gradient of dropout") : g[0];
             if (biased) result[1] = bias_gradient(rec, b, type, shape.rows, own);
             result[2] = std::move(g[0]);
             return result;
           });
  return out;
}

// A norm of the layer, whose output selective recompute may let go of.
Tensor layer_norm_of(Forward& f, Module& module, const Tensor& x, DiscardedResults& output) {
  if (!recomputes_module(f.plan, "layernorm")) return megatron_norm(f, module, x);
  const auto norm = [&f, &module](const std::vector<Tensor>& inputs) {
    const ItemScope scope(f.r, f.items.block);
    return std::vector<Tensor>{megatron_norm(f, module, inputs.front())};
  };
  return output.run(f.r, {x}, norm).front();
}

}  // namespace

Tensor MegatronArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  Module* positions = outer.find("embedding.position_embeddings");
  // With adapters mcore_bridge 1.6 model/gpt_model.py makes the decoder's input need a gradient.
  return made_to_need_gradient(f, parallel_embedding(f, outer.at(embedding_name()).weight,
                                                     positions != nullptr ? &positions->weight : nullptr, ids));
}

// The angles of all positions are cached for good: lasting().
LayerInputs MegatronArchitecture::prepare(Forward& f, const Modules&, const Tensor&) const {
  LayerInputs inputs;
  if (has_scores(f.plan)) inputs.mask = f.r.empty({f.dims.s, f.dims.s}, DType::boolean, "attention mask");
  return inputs;
}

std::vector<Tensor> MegatronArchitecture::lasting(Forward& f) const {
  Recorder& r = f.r;
  std::vector<Tensor> kept;
  const Size width = rotary_width(f);
  const std::int64_t tables =
      has_latent_attention(f.model) ? f.model.layers + next_token_layers(f.plan) : f.plan.parallel.virtual_pp;
  for (std::int64_t table = 0; table < tables && !width.is_zero(); ++table)
    kept.push_back(r.empty({f.dims.s, width}, DType::fp32, "rotary angles", r.writer().item("weights.buffers")));
  for (Tensor& dummy : dummy_gradients(f)) kept.push_back(std::move(dummy));
  for (Tensor& attribute : dispatcher_attributes(f)) kept.push_back(std::move(attribute));
  if (Tensor buffer = global_memory_buffer(f); buffer.defined()) kept.push_back(std::move(buffer));
  return kept;
}

CheckpointEnd MegatronArchitecture::after_checkpoint(const std::vector<Modules*>& layers) const {
  return held_by_routers(layers);
}

std::vector<Tensor> MegatronArchitecture::attention_parts(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                                          DiscardedResults& projected) const {
  if (layer.kind.attention.latent) return latent_parts(f, layer, hidden, projected);
  const KindDims& dims = layer.dims;
  const Modules& modules = layer.modules;
  Module& projection = modules.at("self_attention.linear_qkv");
  const Tensor qkv = column_linear(f, projection, hidden, AddsBias::here);
  const Size& N = f.dims.N;
  auto [q, k, v] = f.r.split_in_three(qkv, {N * dims.a, dims.d}, {N * dims.k, dims.d}, {N * dims.k, dims.v});
  if (layer.kind.attention.heads != layer.kind.attention.kv_heads && layer.kind.attention.kv_heads > 1)
    q = f.r.contiguous_copy(q, q.shape(), "queries of all groups");
  if (layer.kind.attention.qk_norm) {
    q = megatron_norm(f, modules.at("self_attention.q_layernorm"), q);
    k = megatron_norm(f, modules.at("self_attention.k_layernorm"), k);
  }
  if (!dims.rotary.is_zero()) {
    q = megatron_rotary(f, q, dims.rotary);
    k = megatron_rotary(f, k, dims.rotary);
  }
  return {std::move(q), std::move(k), std::move(v)};
}

Tensor MegatronArchitecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                       const Tensor& mask) const {
  DiscardedResults projected;
  std::vector<Tensor> parts = attention_parts(f, layer, hidden, projected);
  const CoreAttention core{layer.dims, layer.kind, mask};
  const auto attend = [&f, core](const std::vector<Tensor>& of_core) {
    const ItemScope scope(f.r, f.items.block);
    return megatron_core_attention(f, core, of_core);
  };
  Tensor context =
      recomputes_module(f.plan, "core_attn") ? f.r.checkpoint_parts(std::move(parts), attend) : attend(parts);
  context = projected.discard(f.r, context);
  return row_linear(f, layer.modules.at("self_attention.linear_proj"), context);
}

Tensor MegatronArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                   const LayerInputs& inputs) const {
  const Modules& modules = layer.modules;
  Tensor residual = hidden;
  {
    DiscardedResults norm;
    Tensor attended = attention(f, layer, layer_norm_of(f, modules.at("input_layernorm"), hidden, norm), inputs.mask);
    attended = norm.discard(f.r, attended);
    hidden = bias_dropout_add(f, attended, modules.at("self_attention.linear_proj").bias.get(), residual);
  }
  residual = hidden;
  DiscardedResults norm;
  const Tensor normed = layer_norm_of(f, modules.at("pre_mlp_layernorm"), hidden, norm);
  Module* second = modules.find("mlp.linear_fc2");
  const auto feed = [&f, layer, second](const Tensor& x) {
    const ItemScope scope(f.r, f.items.block);
    return second == nullptr ? megatron_moe(f, layer, x)
                             : megatron_mlp(f, layer.modules.at("mlp.linear_fc1"), *second, layer.dims.f, x);
  };
  const bool again = recomputes_module(f.plan, second == nullptr ? "moe" : "mlp");
  Tensor fed = again ? f.r.checkpoint(normed, {.reentrant = true, .finished = held_by_routers({&layer.modules})}, feed)
                     : feed(normed);
  fed = norm.discard(f.r, fed);
  const ItemScope scope(f.r, f.items.boundary);
  return bias_dropout_add(f, fed, second != nullptr ? second->bias.get() : nullptr, residual);
}

Tensor MegatronArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return megatron_norm(f, outer.at("decoder.final_layernorm"), hidden);
}

Tensor MegatronArchitecture::loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                                  Tensor*) const {
  Recorder& r = f.r;
  const bool shared = f.model.tied_embeddings && next_token_layers(f.plan) > 0;
  Parameter& head = (shared ? outer.at(embedding_name()) : head_matrix(outer)).weight;
  Tensor logits_of_later_tokens;
  if (next_token_layers(f.plan) > 0) {
    const std::vector<Tensor> states = next_token_states(f, *this, outer, std::move(hidden));
    hidden = with_next_token_losses(f, head, states, labels, logits_of_later_tokens);
  }
  const Tensor logits = column_linear(f, head, hidden);
  const Tensor losses = parallel_cross_entropy(f, logits, labels);
  const Tensor mask = r.empty({f.dims.N, Size(1)}, DType::fp32, "loss mask");
  return r.mean_of_rows(r.view(r.mul(losses, mask, "masked losses"), {Size(1), f.dims.N}));
}

}  // namespace membill
