// Decoders with linear position biases or fused q, k, v: bloom, falcon, mpt.
#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

// Falcon's K/V heads: as given by the new architecture; one when several queries share one; else one each.
std::int64_t falcon_kv_heads(const ConfigReader& config, std::int64_t heads, bool new_architecture) {
  if (!new_architecture) return config.flag("multi_query", true) ? 1 : heads;
  const std::int64_t kv_heads = config.size_or("num_key_value_heads", heads);
  if (heads % kv_heads != 0) {
    config.problem("num_key_value_heads", std::to_string(kv_heads) + " key/value heads do not divide " +
                                              std::to_string(heads) + " attention heads");
  }
  return kv_heads;
}

void falcon_norms(TensorList& list, const ConfigReader& config, std::int64_t hidden, bool new_architecture) {
  if (!config.flag("parallel_attn", true)) {
    norms(list, {"post_attention_layernorm", "input_layernorm"}, hidden, true);
  } else if (config.size_or("num_ln_in_parallel_attn", new_architecture ? 2 : 1) == 2) {
    norms(list, {"ln_attn", "ln_mlp"}, hidden, true);
  } else {
    norms(list, {"input_layernorm"}, hidden, true);
  }
}

}  // namespace

ModelSpec describe_bloom(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "bloom", "BloomForCausalLM");
  spec.norm = NormKind::layer;
  spec.position = PositionKind::alibi;
  spec.hidden_dropout = config.dropout("hidden_dropout");
  LayerKind kind;
  kind.attention = read_plain_attention(config, spec.hidden);
  kind.attention.fused_qkv = kind.attention.qkv_bias = kind.attention.output_bias = true;
  kind.mlp = read_plain_mlp(config, checked_mul(4, spec.hidden), true);
  TensorList list("transformer.h.*.");
  norms(list, {"input_layernorm"}, spec.hidden, true);
  list.linear("self_attention.query_key_value", spec.hidden, checked_mul(3, spec.hidden), true, TensorRole::attention,
              SplitAxis::column);
  list.linear("self_attention.dense", spec.hidden, spec.hidden, true, TensorRole::attention, SplitAxis::row);
  norms(list, {"post_attention_layernorm"}, spec.hidden, true);
  plain_mlp(list, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h", kind.mlp, spec.hidden);
  kind.tensors = list.take();
  Frame frame;
  frame.embedding = "transformer.word_embeddings";
  frame.embedding_norm = "transformer.word_embeddings_layernorm";
  frame.final_norm = "transformer.ln_f";
  frame.final_norm_bias = true;
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

ModelSpec describe_falcon(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "falcon", "FalconForCausalLM");
  spec.norm = NormKind::layer;
  if (config.flag("alibi", false)) spec.position = PositionKind::alibi;
  spec.hidden_dropout = config.dropout("hidden_dropout");
  const bool new_architecture = config.flag("new_decoder_architecture", false);
  const bool bias = config.flag("bias", false);
  LayerKind kind;
  kind.attention = read_plain_attention(config, spec.hidden);
  kind.attention.kv_heads = falcon_kv_heads(config, kind.attention.heads, new_architecture);
  kind.attention.rotary_dim = spec.position == PositionKind::alibi ? 0 : kind.attention.head_dim;
  kind.attention.fused_qkv = true;
  kind.attention.qkv_bias = kind.attention.output_bias = bias;
  kind.mlp = read_plain_mlp(config, config.size_or("intermediate_size", checked_mul(4, spec.hidden)), bias);
  TensorList list("transformer.h.*.");
  list.linear("self_attention.query_key_value", spec.hidden, fused_qkv_width(kind.attention), bias,
              TensorRole::attention, SplitAxis::column);
  list.linear("self_attention.dense", spec.hidden, spec.hidden, bias, TensorRole::attention, SplitAxis::row);
  plain_mlp(list, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h", kind.mlp, spec.hidden);
  falcon_norms(list, config, spec.hidden, new_architecture);
  kind.tensors = list.take();
  TensorList rotary;
  rotary.rotary_buffers("transformer.rotary_emb", kind.attention.head_dim);
  Frame frame;
  frame.embedding = "transformer.word_embeddings";
  frame.final_norm = "transformer.ln_f";
  frame.final_norm_bias = true;
  frame.rotary = {};
  frame.last = rotary.take();
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

// Hugging Face's class has no biases and an MLP of four times the width, whatever no_bias and expansion_ratio say.
ModelSpec describe_mpt(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "mpt", "MptForCausalLM");
  spec.norm = NormKind::layer;
  spec.position = PositionKind::alibi;
  spec.hidden_dropout = config.dropout("resid_pdrop");
  spec.embedding_dropout = config.dropout("emb_pdrop");
  LayerKind kind;
  kind.attention = read_plain_attention(config, spec.hidden);
  kind.attention.fused_qkv = true;
  kind.attention.dropout = config.inner("attn_config").dropout("attn_pdrop");
  kind.attention.clips_qkv = config.inner("attn_config").real_or("clip_qkv", 0) > 0;
  kind.mlp = read_plain_mlp(config, checked_mul(4, spec.hidden), false);
  TensorList list("transformer.blocks.*.");
  norms(list, {"norm_1"}, spec.hidden);
  list.linear("attn.Wqkv", spec.hidden, checked_mul(3, spec.hidden), false, TensorRole::attention, SplitAxis::column);
  list.linear("attn.out_proj", spec.hidden, spec.hidden, false, TensorRole::attention, SplitAxis::row);
  norms(list, {"norm_2"}, spec.hidden);
  plain_mlp(list, "ffn.up_proj", "ffn.down_proj", kind.mlp, spec.hidden);
  kind.tensors = list.take();
  Frame frame;
  frame.embedding = "transformer.wte";
  frame.final_norm = "transformer.norm_f";
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

}  // namespace membill::census
