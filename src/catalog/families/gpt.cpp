// The GPT line: gpt2, gpt_bigcode, gptj, codegen, gpt_neo, gpt_neox.
#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

std::int64_t inner_width(const ConfigReader& config, std::int64_t hidden) {
  return config.size_or("intermediate_size", checked_mul(4, hidden));
}

}  // namespace

ModelSpec describe_gpt2(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "gpt2", "GPT2LMHeadModel");
  spec.max_positions = config.size("max_position_embeddings");
  spec.norm = NormKind::layer;
  spec.position = PositionKind::learned;
  spec.hidden_dropout = config.dropout("resid_pdrop", 0.1);
  spec.embedding_dropout = config.dropout("embd_pdrop", 0.1);
  LayerKind kind;
  kind.attention = read_plain_attention(config, spec.hidden);
  kind.attention.fused_qkv = kind.attention.qkv_bias = kind.attention.output_bias = true;
  kind.mlp = read_plain_mlp(config, inner_width(config, spec.hidden), true);
  TensorList list("transformer.h.*.");
  norms(list, {"ln_1"}, spec.hidden, true);
  list.conv1d("attn.c_attn", spec.hidden, checked_mul(3, spec.hidden), TensorRole::attention, SplitAxis::column);
  list.conv1d("attn.c_proj", spec.hidden, spec.hidden, TensorRole::attention, SplitAxis::row);
  norms(list, {"ln_2"}, spec.hidden, true);
  list.conv1d("mlp.c_fc", spec.hidden, kind.mlp.intermediate, TensorRole::mlp, SplitAxis::column);
  list.conv1d("mlp.c_proj", kind.mlp.intermediate, spec.hidden, TensorRole::mlp, SplitAxis::row);
  kind.tensors = list.take();
  Frame frame;
  frame.embedding = "transformer.wte";
  frame.positions = "transformer.wpe";
  frame.final_norm = "transformer.ln_f";
  frame.final_norm_bias = true;
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

ModelSpec describe_gpt_bigcode(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "gpt_bigcode", "GPTBigCodeForCausalLM");
  spec.max_positions = config.size("max_position_embeddings");
  spec.norm = NormKind::layer;
  spec.position = PositionKind::learned;
  spec.hidden_dropout = config.dropout("resid_pdrop", 0.1);
  spec.embedding_dropout = config.dropout("embd_pdrop", 0.1);
  LayerKind kind;
  kind.attention = read_plain_attention(config, spec.hidden);
  if (config.flag("multi_query", true)) kind.attention.kv_heads = 1;
  kind.attention.fused_qkv = kind.attention.qkv_bias = kind.attention.output_bias = true;
  kind.mlp = read_plain_mlp(config, inner_width(config, spec.hidden), true);
  TensorList list("transformer.h.*.");
  norms(list, {"ln_1"}, spec.hidden, true);
  list.linear("attn.c_attn", spec.hidden, fused_qkv_width(kind.attention), true, TensorRole::attention,
              SplitAxis::column);
  list.linear("attn.c_proj", spec.hidden, spec.hidden, true, TensorRole::attention, SplitAxis::row);
  norms(list, {"ln_2"}, spec.hidden, true);
  plain_mlp(list, "mlp.c_fc", "mlp.c_proj", kind.mlp, spec.hidden);
  kind.tensors = list.take();
  TensorList mask;
  mask.buffer("transformer.bias", {spec.max_positions, spec.max_positions}, DType::boolean);
  Frame frame;
  frame.embedding = "transformer.wte";
  frame.positions = "transformer.wpe";
  frame.final_norm = "transformer.ln_f";
  frame.final_norm_bias = true;
  frame.last = mask.take();
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

namespace {

// gptj and codegen, which differ in how queries, keys and values are made.
ModelSpec describe_parallel(const ConfigReader& config, ModelSpec spec, bool fused) {
  spec.max_positions = config.size("max_position_embeddings");
  spec.norm = NormKind::layer;
  spec.hidden_dropout = config.dropout("resid_pdrop");
  spec.embedding_dropout = config.dropout("embd_pdrop");
  LayerKind kind;
  kind.attention = read_plain_attention(config, spec.hidden);
  kind.attention.rotary_dim = config.size_or("rotary_dim", spec.hidden);
  kind.mlp = read_plain_mlp(config, inner_width(config, spec.hidden), true);
  TensorList list("transformer.h.*.");
  norms(list, {"ln_1"}, spec.hidden, true);
  const auto project = [&](std::string_view name, std::int64_t parts) {
    list.linear(name, spec.hidden, checked_mul(parts, spec.hidden), false, TensorRole::attention, SplitAxis::column);
  };
  if (!fused) project("attn.k_proj", 1), project("attn.v_proj", 1), project("attn.q_proj", 1);
  list.linear("attn.out_proj", spec.hidden, spec.hidden, false, TensorRole::attention, SplitAxis::row);
  if (fused) project("attn.qkv_proj", 3);
  plain_mlp(list, "mlp.fc_in", "mlp.fc_out", kind.mlp, spec.hidden);
  kind.tensors = list.take();
  TensorList rotary;
  rotary.buffer("transformer.rotary_emb.embed_positions", {spec.max_positions, kind.attention.rotary_dim});
  Frame frame;
  frame.embedding = "transformer.wte";
  frame.final_norm = "transformer.ln_f";
  frame.final_norm_bias = true;
  frame.rotary = {};
  frame.last = rotary.take();
  frame.head_bias = true;
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

}  // namespace

ModelSpec describe_gptj(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  return describe_parallel(config, read_dimensions(config, "gptj", "GPTJForCausalLM"), false);
}

ModelSpec describe_codegen(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  return describe_parallel(config, read_dimensions(config, "codegen", "CodeGenForCausalLM"), true);
}

// Local layers differ from global ones in what their mask says, not in its size.
ModelSpec describe_gpt_neo(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "gpt_neo", "GPTNeoForCausalLM");
  spec.max_positions = config.size("max_position_embeddings");
  spec.norm = NormKind::layer;
  spec.position = PositionKind::learned;
  spec.hidden_dropout = config.dropout("resid_dropout");
  spec.embedding_dropout = config.dropout("embed_dropout");
  LayerKind kind;
  kind.attention = read_plain_attention(config, spec.hidden);
  kind.attention.output_bias = true;
  kind.mlp = read_plain_mlp(config, inner_width(config, spec.hidden), true);
  TensorList list("transformer.h.*.");
  norms(list, {"ln_1"}, spec.hidden, true);
  list.buffer("attn.attention.bias", {1, 1, spec.max_positions, spec.max_positions}, DType::boolean);
  for (const char* name : {"attn.attention.k_proj", "attn.attention.v_proj", "attn.attention.q_proj"})
    list.linear(name, spec.hidden, spec.hidden, false, TensorRole::attention, SplitAxis::column);
  list.linear("attn.attention.out_proj", spec.hidden, spec.hidden, true, TensorRole::attention, SplitAxis::row);
  norms(list, {"ln_2"}, spec.hidden, true);
  plain_mlp(list, "mlp.c_fc", "mlp.c_proj", kind.mlp, spec.hidden);
  kind.tensors = list.take();
  Frame frame;
  frame.embedding = "transformer.wte";
  frame.positions = "transformer.wpe";
  frame.final_norm = "transformer.ln_f";
  frame.final_norm_bias = true;
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

ModelSpec describe_gpt_neox(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "gpt_neox", "GPTNeoXForCausalLM");
  spec.norm = NormKind::layer;
  spec.hidden_dropout = spec.embedding_dropout = config.dropout("hidden_dropout");
  LayerKind kind;
  kind.attention = read_plain_attention(config, spec.hidden);
  kind.attention.rotary_dim = read_rotary_dim(config, kind.attention.head_dim, 0.25);
  kind.attention.fused_qkv = true;
  kind.attention.qkv_bias = kind.attention.output_bias = config.flag("attention_bias", true);
  kind.mlp = read_plain_mlp(config, config.size("intermediate_size"), true);
  kind.parallel_residual = config.flag("use_parallel_residual", true);
  TensorList list("gpt_neox.layers.*.");
  pre_norms(list, spec.hidden, true);
  list.linear("attention.query_key_value", spec.hidden, checked_mul(3, spec.hidden), kind.attention.qkv_bias,
              TensorRole::attention, SplitAxis::column);
  list.linear("attention.dense", spec.hidden, spec.hidden, kind.attention.output_bias, TensorRole::attention,
              SplitAxis::row);
  plain_mlp(list, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h", kind.mlp, spec.hidden);
  kind.tensors = list.take();
  Frame frame;
  frame.embedding = "gpt_neox.embed_in";
  frame.final_norm = "gpt_neox.final_layer_norm";
  frame.final_norm_bias = true;
  frame.rotary = "gpt_neox.rotary_emb";
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

}  // namespace membill::census
