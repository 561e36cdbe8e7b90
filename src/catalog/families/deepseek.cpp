// Multi-head latent attention: deepseek_v2, deepseek_v3 (kimi_k2 is the same class), deepseek_v32, glm_moe_dsa, glm4_moe_lite.
#include <algorithm>

#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

// How the classes of this shape differ.
struct Variant {
  std::string_view model_type;
  std::string_view class_name;
  bool score_buffer = true;     // the router's correction bias, a saved buffer
  bool mlp_bias = false;        // mlp_bias is read
  bool indexer = false;         // sparse attention's indexer
  bool shared_indexer = false;  // some layers reuse the indexer of an earlier one
};

AttentionShape read_latent_attention(const ConfigReader& config) {
  AttentionShape shape;
  shape.latent = true;
  shape.heads = shape.kv_heads = config.listed("num_attention_heads");
  shape.rope_head_dim = shape.rotary_dim = config.size("qk_rope_head_dim");
  shape.head_dim = checked_add(config.size("qk_nope_head_dim"), shape.rope_head_dim);
  shape.value_head_dim = config.size("v_head_dim");
  shape.q_lora_rank = config.count_or("q_lora_rank", 0);
  shape.kv_lora_rank = config.size("kv_lora_rank");
  shape.output_bias = config.flag("attention_bias", false);
  shape.dropout = config.dropout("attention_dropout");
  return shape;
}

void latent_attention(TensorList& list, const AttentionShape& shape, std::int64_t hidden) {
  const bool bias = shape.output_bias;
  const std::int64_t q = checked_mul(shape.heads, shape.head_dim);
  if (shape.q_lora_rank > 0) {
    list.linear("self_attn.q_a_proj", hidden, shape.q_lora_rank, bias, TensorRole::attention, SplitAxis::none);
    list.norm("self_attn.q_a_layernorm", shape.q_lora_rank);
    list.linear("self_attn.q_b_proj", shape.q_lora_rank, q, false, TensorRole::attention, SplitAxis::column);
  } else {
    list.linear("self_attn.q_proj", hidden, q, false, TensorRole::attention, SplitAxis::column);
  }
  list.linear("self_attn.kv_a_proj_with_mqa", hidden, checked_add(shape.kv_lora_rank, shape.rope_head_dim), bias,
              TensorRole::attention, SplitAxis::none);
  list.norm("self_attn.kv_a_layernorm", shape.kv_lora_rank);
  const std::int64_t both = checked_add(shape.head_dim - shape.rope_head_dim, shape.value_head_dim);
  list.linear("self_attn.kv_b_proj", shape.kv_lora_rank, checked_mul(shape.heads, both), false, TensorRole::attention,
              SplitAxis::column);
  list.linear("self_attn.o_proj", checked_mul(shape.heads, shape.value_head_dim), hidden, bias, TensorRole::attention,
              SplitAxis::row);
}

void indexer(TensorList& list, const ConfigReader& config, const AttentionShape& shape, std::int64_t hidden) {
  const std::int64_t heads = config.listed("index_n_heads");
  const std::int64_t width = config.size("index_head_dim");
  list.linear("self_attn.indexer.wq_b", shape.q_lora_rank, checked_mul(heads, width), false, TensorRole::attention,
              SplitAxis::none);
  list.linear("self_attn.indexer.wk", hidden, width, false, TensorRole::attention, SplitAxis::none);
  list.norm("self_attn.indexer.k_norm", width, true);
  list.linear("self_attn.indexer.weights_proj", hidden, heads, false, TensorRole::attention, SplitAxis::none);
}

// Layers that run their own indexer: indexer_types, a pattern of F and S, or every index_topk_freq-th.
std::vector<bool> indexed_layers(const ConfigReader& config, std::int64_t layers) {
  const std::vector<std::string> types = config.words("indexer_types");
  const std::string pattern = config.find("indexer_types") == nullptr && config.find("index_topk_pattern") != nullptr
                                  ? config.word("index_topk_pattern", "")
                                  : "";
  const std::int64_t period = std::max<std::int64_t>(config.count_or("index_topk_freq", 1), 1);
  const std::int64_t offset = config.count_or("index_skip_topk_offset", 2);
  std::vector<bool> full(static_cast<std::size_t>(layers));
  for (std::size_t i = 0; i < full.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    full[i] = std::max<std::int64_t>(layer - offset + 1, 0) % period == 0;
    if (i < pattern.size()) full[i] = pattern[i] == 'F';
    if (i < types.size()) full[i] = types[i] == "full";
  }
  return full;
}

// The sparse layers: mlp_layer_types, else all from first_k_dense_replace on.
std::vector<bool> expert_layers(const ConfigReader& config, std::int64_t layers) {
  const std::vector<std::string> types = config.words("mlp_layer_types");
  const std::int64_t dense = config.count_or("first_k_dense_replace", 0);
  std::vector<bool> sparse(static_cast<std::size_t>(layers));
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    sparse[i] = i < types.size() ? types[i] == "sparse" : static_cast<std::int64_t>(i) >= dense;
  }
  return sparse;
}

ModelSpec describe_variant(const ConfigReader& config, const Variant& variant) {
  ModelSpec spec = read_dimensions(config, variant.model_type, variant.class_name);
  const AttentionShape attention = read_latent_attention(config);
  MlpShape dense = read_gated_mlp(config);
  dense.bias = variant.mlp_bias && config.flag("mlp_bias", false);
  const std::vector<bool> sparse = expert_layers(config, spec.layers);
  const std::vector<bool> indexed =
      variant.shared_indexer ? indexed_layers(config, spec.layers) : std::vector<bool>(sparse.size(), variant.indexer);
  const auto kind_of = [&](std::int64_t layer) {
    const auto i = static_cast<std::size_t>(layer);
    return (sparse[i] ? 1 : 0) + (indexed[i] ? 2 : 0);
  };
  assemble(spec, {}, stack(spec.layers, 4, kind_of, [&](int number) {
             LayerKind kind;
             kind.attention = attention;
             TensorList list("model.layers.*.");
             latent_attention(list, attention, spec.hidden);
             if (number >= 2) indexer(list, config, attention, spec.hidden);
             if (number % 2 == 0) {
               kind.mlp = dense;
               gated_mlp(list, "mlp", dense, spec.hidden);
             } else {
               kind.moe = read_moe_with_shared(config);
               experts_with_shared(list, *kind.moe, dense, spec.hidden, variant.score_buffer);
             }
             pre_norms(list, spec.hidden);
             kind.tensors = list.take();
             return kind;
           }));
  return spec;
}

}  // namespace

ModelSpec describe_deepseek_v2(const Value& values, Problems& problems) {
  return describe_variant(ConfigReader(values, problems),
                          {"deepseek_v2", "DeepseekV2ForCausalLM", false, true, false, false});
}

ModelSpec describe_deepseek_v3(const Value& values, Problems& problems) {
  return describe_variant(ConfigReader(values, problems), {"deepseek_v3", "DeepseekV3ForCausalLM"});
}

ModelSpec describe_deepseek_v32(const Value& values, Problems& problems) {
  return describe_variant(ConfigReader(values, problems),
                          {"deepseek_v32", "DeepseekV32ForCausalLM", true, false, true, false});
}

ModelSpec describe_glm_moe_dsa(const Value& values, Problems& problems) {
  return describe_variant(ConfigReader(values, problems),
                          {"glm_moe_dsa", "GlmMoeDsaForCausalLM", true, false, true, true});
}

ModelSpec describe_glm4_moe_lite(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  return describe_variant(config, {"glm4_moe_lite", "Glm4MoeLiteForCausalLM"});
}

}  // namespace membill::census
