// The GLM line: glm, glm4, glm4_moe, and chatglm (its first generation, and the second to fourth).
#include <algorithm>

#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

LayerKind glm_layer(const ConfigReader& config, std::int64_t hidden,
                    std::initializer_list<std::string_view> norm_modules) {
  AttentionShape attention = read_attention(config, hidden);
  attention.rotary_dim = read_rotary_dim(config, attention.head_dim, 0.5);
  attention.qkv_bias = config.flag("attention_bias", true);
  MlpShape mlp = read_gated_mlp(config);
  mlp.fused_gate_up = true;
  return dense_layer(hidden, attention, mlp, norm_modules);
}

ModelSpec describe_glm_shape(const ConfigReader& config, std::string_view model_type) {
  ModelSpec spec = read_dimensions(config, model_type, "GlmForCausalLM");
  const LayerKind kind = glm_layer(config, spec.hidden, {"input_layernorm", "post_attention_layernorm"});
  assemble(spec, {}, uniform_stack(spec.layers, kind));
  return spec;
}

// ChatGLM-6B: layer norms, a bias on every linear but the head, 2-D rotary positions, plain MLP.
ModelSpec describe_first_chatglm(const ConfigReader& config) {
  ModelSpec spec = read_dimensions(config, "chatglm", "ChatGLMForConditionalGeneration");
  spec.tied_embeddings = config.flag("tie_word_embeddings", true);
  spec.norm = NormKind::layer;
  LayerKind kind;
  kind.attention = read_plain_attention(config, spec.hidden);
  kind.attention.rotary_dim = kind.attention.head_dim;
  kind.attention.fused_qkv = kind.attention.qkv_bias = kind.attention.output_bias = true;
  kind.mlp = read_plain_mlp(config, config.size_or("inner_hidden_size", checked_mul(4, spec.hidden)), true);
  TensorList list("transformer.layers.*.");
  norms(list, {"input_layernorm"}, spec.hidden, true);
  list.buffer("attention.rotary_emb.inv_freq", {std::max<std::int64_t>(kind.attention.head_dim / 4, 1)}, DType::fp16);
  list.linear("attention.query_key_value", spec.hidden, checked_mul(3, spec.hidden), true, TensorRole::attention,
              SplitAxis::column);
  list.linear("attention.dense", spec.hidden, spec.hidden, true, TensorRole::attention, SplitAxis::row);
  norms(list, {"post_attention_layernorm"}, spec.hidden, true);
  plain_mlp(list, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h", kind.mlp, spec.hidden);
  kind.tensors = list.take();
  Frame frame;
  frame.embedding = "transformer.word_embeddings";
  frame.final_norm = "transformer.final_layernorm";
  frame.final_norm_bias = true;
  frame.rotary = {};
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

AttentionShape read_chatglm_attention(const ConfigReader& config) {
  AttentionShape shape;
  shape.heads = config.listed("num_attention_heads");
  shape.kv_heads =
      config.flag("multi_query_attention", false) ? config.size_or("multi_query_group_num", 1) : shape.heads;
  if (shape.heads % shape.kv_heads != 0) {
    config.problem("multi_query_group_num", std::to_string(shape.kv_heads) + " groups do not divide " +
                                                std::to_string(shape.heads) + " attention heads");
  }
  shape.head_dim = shape.value_head_dim = config.size_or("kv_channels", 128);
  shape.rotary_dim = shape.head_dim / 2;
  shape.fused_qkv = true;
  shape.output_bias = config.flag("add_bias_linear", false);
  shape.qkv_bias = shape.output_bias || config.flag("add_qkv_bias", false);
  shape.dropout = config.dropout("attention_dropout");
  return shape;
}

// ChatGLM2-6B and later, with the names of the model's own code.
ModelSpec describe_later_chatglm(const ConfigReader& config) {
  ModelSpec spec = read_dimensions(config, "chatglm", "ChatGLMForConditionalGeneration");
  spec.vocab = config.size_or("padded_vocab_size", spec.vocab);
  spec.norm = config.flag("rmsnorm", true) ? NormKind::rms : NormKind::layer;
  spec.hidden_dropout = config.dropout("hidden_dropout");
  const bool norm_bias = spec.norm == NormKind::layer;
  LayerKind kind;
  kind.attention = read_chatglm_attention(config);
  kind.mlp.intermediate = config.size_or("ffn_hidden_size", 13696);
  kind.mlp.fused_gate_up = true;
  kind.mlp.bias = kind.attention.output_bias;
  TensorList list("transformer.encoder.layers.*.");
  norms(list, {"input_layernorm"}, spec.hidden, norm_bias);
  list.linear("self_attention.query_key_value", spec.hidden, fused_qkv_width(kind.attention), kind.attention.qkv_bias,
              TensorRole::attention, SplitAxis::column);
  list.linear("self_attention.dense", checked_mul(kind.attention.heads, kind.attention.head_dim), spec.hidden,
              kind.attention.output_bias, TensorRole::attention, SplitAxis::row);
  norms(list, {"post_attention_layernorm"}, spec.hidden, norm_bias);
  list.linear("mlp.dense_h_to_4h", spec.hidden, checked_mul(2, kind.mlp.intermediate), kind.mlp.bias, TensorRole::mlp,
              SplitAxis::column);
  list.linear("mlp.dense_4h_to_h", kind.mlp.intermediate, spec.hidden, kind.mlp.bias, TensorRole::mlp, SplitAxis::row);
  kind.tensors = list.take();
  TensorList rotary;
  rotary.buffer("transformer.rotary_pos_emb.inv_freq", {std::max<std::int64_t>(kind.attention.rotary_dim / 2, 1)});
  Frame frame;
  frame.embedding = "transformer.embedding.word_embeddings";
  frame.final_norm = config.flag("post_layer_norm", true) ? "transformer.encoder.final_layernorm" : "";
  frame.final_norm_bias = norm_bias;
  frame.rotary = {};
  frame.last = rotary.take();
  frame.head = "transformer.output_layer";
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

}  // namespace

ModelSpec describe_glm(const Value& values, Problems& problems) {
  return describe_glm_shape(ConfigReader(values, problems), "glm");
}

ModelSpec describe_glm4(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "glm4", "Glm4ForCausalLM");
  const LayerKind kind =
      glm_layer(config, spec.hidden,
                {"input_layernorm", "post_attention_layernorm", "post_self_attn_layernorm", "post_mlp_layernorm"});
  assemble(spec, {}, uniform_stack(spec.layers, kind));
  return spec;
}

ModelSpec describe_glm4_moe(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "glm4_moe", "Glm4MoeForCausalLM");
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.rotary_dim = read_rotary_dim(config, attention.head_dim, 0.5);
  attention.qkv_bias = config.flag("attention_bias", false);
  attention.qk_norm = config.flag("use_qk_norm", false);
  const MlpShape dense = read_gated_mlp(config);
  const std::int64_t first_sparse = config.count_or("first_k_dense_replace", 0);
  const auto kind_of = [&](std::int64_t layer) { return layer >= first_sparse ? 1 : 0; };
  assemble(spec, {}, stack(spec.layers, 2, kind_of, [&](int number) {
             LayerKind kind;
             kind.attention = attention;
             TensorList list("model.layers.*.");
             separate_attention(list, attention, spec.hidden);
             if (number == 0) {
               kind.mlp = dense;
               gated_mlp(list, "mlp", dense, spec.hidden);
             } else {
               kind.moe = read_moe_with_shared(config);
               experts_with_shared(list, *kind.moe, dense, spec.hidden, true);
             }
             pre_norms(list, spec.hidden);
             kind.tensors = list.take();
             return kind;
           }));
  return spec;
}

// A file in glm's own spelling (head_dim) describes weights that were converted to that class.
ModelSpec describe_chatglm(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  if (config.holds("head_dim")) return describe_glm_shape(config, "chatglm");
  if (config.holds("inner_hidden_size") || config.holds("position_encoding_2d")) return describe_first_chatglm(config);
  return describe_later_chatglm(config);
}

}  // namespace membill::census
