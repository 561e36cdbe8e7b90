// gemma4_text: dense models (31B), those with embeddings of each layer and shared keys and values (E2B, E4B), those with experts beside
// each MLP (26B-A4B).
#include <algorithm>
#include <iterator>

#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

constexpr std::int64_t kGlobalHeadDim = 512;  // configuration_gemma4.py: kwargs.pop("global_head_dim", 512)

// Full layers may take their values from the key projection: they have none of their own. The last layers may take both from another.
struct Gemma4Layer {
  AttentionShape shape;
  MlpShape mlp;
  bool has_keys = true, has_values = true;
  std::int64_t input = 0;  // width of an embedding of its own
  std::optional<MoeShape> moe = {};
};

LayerKind gemma4_layer(std::int64_t hidden, const Gemma4Layer& layer) {
  const auto& [shape, mlp, has_keys, has_values, input, moe] = layer;
  LayerKind kind;
  kind.moe = moe;
  kind.attention = shape;
  kind.mlp = mlp;
  TensorList list("model.layers.*.");
  const std::int64_t q = checked_mul(shape.heads, shape.head_dim), kv = checked_mul(shape.kv_heads, shape.head_dim);
  list.linear("self_attn.q_proj", hidden, q, shape.qkv_bias, TensorRole::attention, SplitAxis::column);
  list.norm("self_attn.q_norm", shape.head_dim);
  if (has_keys) {
    list.norm("self_attn.k_norm", shape.head_dim);
    list.linear("self_attn.k_proj", hidden, kv, shape.qkv_bias, TensorRole::attention, SplitAxis::column);
  }
  if (has_keys && has_values)
    list.linear("self_attn.v_proj", hidden, kv, shape.qkv_bias, TensorRole::attention, SplitAxis::column);
  list.linear("self_attn.o_proj", q, hidden, shape.output_bias, TensorRole::attention, SplitAxis::row);
  gated_mlp(list, "mlp", mlp, hidden);
  norms(list,
        {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"},
        hidden);
  list.buffer("layer_scalar", {1}, {});
  if (input > 0) {
    list.linear("per_layer_input_gate", hidden, input, false, TensorRole::other, SplitAxis::none);
    list.linear("per_layer_projection", input, hidden, false, TensorRole::other, SplitAxis::none);
    list.norm("post_per_layer_input_norm", hidden);
  }
  if (moe) {
    list.parameter("router.scale", {hidden}, TensorRole::router);
    list.parameter("router.per_expert_scale", {moe->experts}, TensorRole::router);
    list.linear("router.proj", hidden, moe->experts, false, TensorRole::other, SplitAxis::none);
    fused_experts(list, "experts", *moe, hidden);
    norms(list, {"post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2"},
          hidden);
  }
  kind.tensors = list.take();
  return kind;
}

// What the model has for embeddings of each layer: `input` columns of a table for each.
void inputs_of_layers(TensorList& list, const ConfigReader& config, const ModelSpec& spec, std::int64_t input) {
  const std::int64_t all = checked_mul(spec.layers, input);
  list.embedding("model.embed_tokens_per_layer", config.size_or("vocab_size_per_layer_input", spec.vocab), all,
                 TensorRole::position);  // a table beside the words'
  list.buffer("model.embed_tokens_per_layer.embed_scale", {}, {});
  list.linear("model.per_layer_model_projection", spec.hidden, all, false, TensorRole::other, SplitAxis::none);
  list.norm("model.per_layer_projection_norm", input);
}

// Layers from the first that takes its keys and values from another; `slides` says the types.
std::int64_t first_reusing(const ConfigReader& config, const std::vector<bool>& slides) {
  const auto layers = static_cast<std::int64_t>(slides.size());
  const std::int64_t reusing = config.count_or("num_kv_shared_layers", 0), first = layers - reusing;
  if (reusing == 0) return layers;
  const auto begin = slides.begin(), own_end = begin + std::max<std::int64_t>(first, 0);
  const auto lacks = [&](bool sliding) {
    return std::find(begin, own_end, sliding) == own_end && std::find(own_end, slides.end(), sliding) != slides.end();
  };
  if (lacks(false) || lacks(true))
    config.problem("num_kv_shared_layers", "leaves no layer of each type that has keys and values");
  return std::max<std::int64_t>(first, 0);
}

}  // namespace

ModelSpec describe_gemma4_text(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "gemma4_text", "Gemma4ForCausalLM");
  std::optional<MoeShape> moe;
  if (config.flag("enable_moe_block", false)) moe = read_moe(config, "moe_intermediate_size");
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
  const std::int64_t first = first_reusing(config, slides), input = config.count_or("hidden_size_per_layer_input", 0);
  const auto last_of = [&](bool sliding) {
    const auto end = std::make_reverse_iterator(slides.begin() + first);
    const auto found = std::find(end, slides.rend(), sliding);
    return static_cast<std::int64_t>(slides.rend() - found) - 1;
  };
  const auto kind_of = [&](std::int64_t layer) {
    const bool sliding = slides[static_cast<std::size_t>(layer)];
    return (sliding ? 1 : 0) + (layer >= first ? 4 : layer == last_of(sliding) ? 2 : 0);
  };
  Frame frame;
  frame.embedding_scale = true;
  frame.rotary = {};
  TensorList tables;
  tables.rotary_buffers("model.rotary_emb", whole.rotary_dim, "full_attention_");
  if (std::find(slides.begin(), slides.end(), true) != slides.end())
    tables.rotary_buffers("model.rotary_emb", local.rotary_dim, "sliding_attention_");
  if (input > 0) inputs_of_layers(tables, config, spec, input);
  frame.last = tables.take();
  const bool wide = config.flag("use_double_wide_mlp", false);
  assemble(spec, frame, stack(spec.layers, 6, kind_of, [&](int number) {
             const bool sliding = number % 2 == 1, reuses = number >= 4;
             Gemma4Layer layer{sliding ? local : whole, mlp, !reuses, sliding || !keys_are_values, input, moe};
             layer.shape.shares_keys = number == 2 || number == 3;  // the last of each type stores keys and values
             if (wide && reuses) layer.mlp.intermediate = checked_mul(2, mlp.intermediate);
             return gemma4_layer(spec.hidden, layer);
           }));
  return spec;
}

}  // namespace membill::census
