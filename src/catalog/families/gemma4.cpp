// gemma4_text without per-layer embeddings, shared keys and values, or experts: the dense models (31B).
#include <algorithm>

#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

constexpr std::int64_t kGlobalHeadDim = 512;  // configuration_gemma4.py: kwargs.pop("global_head_dim", 512)

// Full layers may take their values from the key projection: they have none of their own.
LayerKind gemma4_layer(std::int64_t hidden, const AttentionShape& shape, const MlpShape& mlp, bool has_values) {
  LayerKind kind;
  kind.attention = shape;
  kind.mlp = mlp;
  TensorList list("model.layers.*.");
  const std::int64_t q = checked_mul(shape.heads, shape.head_dim), kv = checked_mul(shape.kv_heads, shape.head_dim);
  list.linear("self_attn.q_proj", hidden, q, shape.qkv_bias, TensorRole::attention, SplitAxis::column);
  norms(list, {"self_attn.q_norm", "self_attn.k_norm"}, shape.head_dim);
  list.linear("self_attn.k_proj", hidden, kv, shape.qkv_bias, TensorRole::attention, SplitAxis::column);
  if (has_values) list.linear("self_attn.v_proj", hidden, kv, shape.qkv_bias, TensorRole::attention, SplitAxis::column);
  list.linear("self_attn.o_proj", q, hidden, shape.output_bias, TensorRole::attention, SplitAxis::row);
  gated_mlp(list, "mlp", mlp, hidden);
  norms(list,
        {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"},
        hidden);
  list.buffer("layer_scalar", {1});
  kind.tensors = list.take();
  return kind;
}

void refuse_other_parts(const ConfigReader& config) {
  if (config.count_or("hidden_size_per_layer_input", 0) > 0)
    config.problem("hidden_size_per_layer_input", "embeddings of each layer (E2B, E4B) are not modelled",
                   "0: a dense model without them");
  if (config.count_or("num_kv_shared_layers", 0) > 0)
    config.problem("num_kv_shared_layers", "layers that share keys and values are not modelled");
  if (config.flag("enable_moe_block", false)) config.problem("enable_moe_block", "gemma4's experts are not modelled");
}

}  // namespace

ModelSpec describe_gemma4_text(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "gemma4_text", "Gemma4ForCausalLM");
  refuse_other_parts(config);
  spec.final_logit_softcap = config.optional_real("final_logit_softcapping");
  AttentionShape local = read_attention(config, spec.hidden);
  local.qkv_bias = local.output_bias = config.flag("attention_bias", false);
  local.qk_norm = true;
  local.rotary_dim = local.head_dim;
  AttentionShape whole = local;
  whole.head_dim = whole.value_head_dim = whole.rotary_dim = config.size_or("global_head_dim", kGlobalHeadDim);
  const bool keys_are_values = config.flag("attention_k_eq_v", false);
  if (keys_are_values) whole.kv_heads = config.size_or("num_global_key_value_heads", local.kv_heads);
  local.sliding_window = config.optional_size("sliding_window");
  MlpShape mlp = read_gated_mlp(config);
  mlp.activation = config.word("hidden_activation", "gelu_pytorch_tanh");
  std::vector<bool> slides =
      sliding_layers(config, spec.layers, [](std::int64_t layer) { return (layer + 1) % 6 != 0; });
  if (!slides.empty()) slides.back() = false;  // the class makes the last one a full layer
  const auto last_of = [&](bool sliding) {
    const auto found = std::find(slides.rbegin(), slides.rend(), sliding);
    return static_cast<std::int64_t>(slides.rend() - found) - 1;
  };
  const auto kind_of = [&](std::int64_t layer) {
    const bool sliding = slides[static_cast<std::size_t>(layer)];
    return (sliding ? 1 : 0) + (layer == last_of(sliding) ? 2 : 0);
  };
  Frame frame;
  frame.embedding_scale = true;
  frame.rotary = {};
  TensorList tables;
  tables.rotary_buffers("model.rotary_emb", whole.rotary_dim, "full_attention_");
  if (std::find(slides.begin(), slides.end(), true) != slides.end())
    tables.rotary_buffers("model.rotary_emb", local.rotary_dim, "sliding_attention_");
  frame.last = tables.take();
  assemble(spec, frame, stack(spec.layers, 4, kind_of, [&](int number) {
             const bool sliding = number % 2 == 1;
             AttentionShape shape = sliding ? local : whole;
             shape.shares_keys = number >= 2;  // the last layer of each type stores its keys and values
             return gemma4_layer(spec.hidden, shape, mlp, sliding || !keys_are_values);
           }));
  return spec;
}

}  // namespace membill::census
