// Types whose classes come with the checkpoint: qwen (v1), internlm2, baichuan. Their files are described with the names of their own
// code. A file that spells out what only the library's classes read (head_dim; num_key_value_heads for qwen and baichuan) holds
// weights that were converted to that class, and gets its names.
#include <algorithm>

#include "catalog/families/decoder.h"
#include "catalog/families/list.h"
#include "catalog/families/llama_shape.h"

namespace membill::census {

// c_attn has a bias, nothing else; intermediate_size counts both halves of the MLP.
ModelSpec describe_qwen(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  if (config.holds("num_key_value_heads")) {
    ModelSpec converted = describe_qwen2(values, problems);
    converted.model_type = config.word("model_type", "qwen");
    return converted;
  }
  ModelSpec spec = read_dimensions(config, "qwen", "QWenLMHeadModel");
  spec.hidden_dropout = config.dropout("emb_dropout_prob");
  const bool bias = !config.flag("no_bias", true);
  LayerKind kind;
  kind.attention = read_attention(config, spec.hidden);
  kind.attention.fused_qkv = kind.attention.qkv_bias = true;
  kind.attention.output_bias = bias;
  kind.mlp = read_gated_mlp(config);
  if (kind.mlp.intermediate % 2 != 0) config.problem("intermediate_size", "must be even: it counts both halves");
  kind.mlp.intermediate = std::max<std::int64_t>(kind.mlp.intermediate / 2, 1);
  kind.mlp.bias = bias;
  const std::int64_t width = checked_mul(kind.attention.heads, kind.attention.head_dim);
  TensorList list("transformer.h.*.");
  norms(list, {"ln_1"}, spec.hidden);
  list.linear("attn.c_attn", spec.hidden, checked_mul(3, width), true, TensorRole::attention, SplitAxis::column);
  list.linear("attn.c_proj", width, spec.hidden, bias, TensorRole::attention, SplitAxis::row);
  norms(list, {"ln_2"}, spec.hidden);
  list.linear("mlp.w1", spec.hidden, kind.mlp.intermediate, bias, TensorRole::mlp, SplitAxis::column);
  list.linear("mlp.w2", spec.hidden, kind.mlp.intermediate, bias, TensorRole::mlp, SplitAxis::column);
  list.linear("mlp.c_proj", kind.mlp.intermediate, spec.hidden, bias, TensorRole::mlp, SplitAxis::row);
  kind.tensors = list.take();
  TensorList rotary;
  rotary.buffer("transformer.rotary_emb.inv_freq", {ceil_div(kind.attention.rotary_dim, 2)});
  Frame frame;
  frame.embedding = "transformer.wte";
  frame.final_norm = "transformer.ln_f";
  frame.rotary = {};
  frame.last = rotary.take();
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

ModelSpec describe_internlm2(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  if (config.holds("head_dim")) return describe_llama_shape(config, "internlm2", "LlamaForCausalLM");
  ModelSpec spec = read_dimensions(config, "internlm2", "InternLM2ForCausalLM");
  LayerKind kind;
  kind.attention = read_attention(config, spec.hidden);
  kind.attention.fused_qkv = true;
  kind.attention.qkv_bias = kind.attention.output_bias = config.flag("bias", true);
  kind.mlp = read_gated_mlp(config);
  const std::int64_t width = checked_mul(kind.attention.heads, kind.attention.head_dim);
  TensorList list("model.layers.*.");
  list.linear("attention.wqkv", spec.hidden, fused_qkv_width(kind.attention), kind.attention.qkv_bias,
              TensorRole::attention, SplitAxis::column);
  list.linear("attention.wo", width, spec.hidden, kind.attention.output_bias, TensorRole::attention, SplitAxis::row);
  list.buffer("attention.rotary_emb.inv_freq", {ceil_div(kind.attention.rotary_dim, 2)});
  list.linear("feed_forward.w1", spec.hidden, kind.mlp.intermediate, false, TensorRole::mlp, SplitAxis::column);
  list.linear("feed_forward.w3", spec.hidden, kind.mlp.intermediate, false, TensorRole::mlp, SplitAxis::column);
  list.linear("feed_forward.w2", kind.mlp.intermediate, spec.hidden, false, TensorRole::mlp, SplitAxis::row);
  norms(list, {"attention_norm", "ffn_norm"}, spec.hidden);
  kind.tensors = list.take();
  Frame frame;
  frame.embedding = "model.tok_embeddings";
  frame.rotary = {};
  frame.head = "output";
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

// The 13B models bias attention by distance and state model_max_length; the 7B ones rotate.
ModelSpec describe_baichuan(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  if (config.holds("num_key_value_heads")) return describe_llama_shape(config, "baichuan", "LlamaForCausalLM");
  ModelSpec spec = read_dimensions(config, "baichuan", "BaichuanForCausalLM");
  if (config.holds("model_max_length") && !config.holds("max_position_embeddings")) spec.position = PositionKind::alibi;
  LayerKind kind;
  kind.attention = read_plain_attention(config, spec.hidden);
  kind.attention.fused_qkv = true;
  kind.attention.rotary_dim = spec.position == PositionKind::alibi ? 0 : kind.attention.head_dim;
  kind.mlp = read_gated_mlp(config);
  TensorList list("model.layers.*.");
  list.linear("self_attn.W_pack", spec.hidden, checked_mul(3, spec.hidden), false, TensorRole::attention,
              SplitAxis::column);
  list.linear("self_attn.o_proj", spec.hidden, spec.hidden, false, TensorRole::attention, SplitAxis::row);
  list.linear("mlp.gate_proj", spec.hidden, kind.mlp.intermediate, false, TensorRole::mlp, SplitAxis::column);
  list.linear("mlp.down_proj", kind.mlp.intermediate, spec.hidden, false, TensorRole::mlp, SplitAxis::row);
  list.linear("mlp.up_proj", spec.hidden, kind.mlp.intermediate, false, TensorRole::mlp, SplitAxis::column);
  pre_norms(list, spec.hidden);
  kind.tensors = list.take();
  Frame frame;
  frame.rotary = {};
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

}  // namespace membill::census
