// phi and phi3; phimoe lies with the mixtures of experts.
#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

ModelSpec describe_phi(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "phi", "PhiForCausalLM");
  spec.norm = NormKind::layer;
  spec.hidden_dropout = config.dropout("resid_pdrop");
  spec.embedding_dropout = config.dropout("embd_pdrop");
  LayerKind kind;
  kind.attention = read_attention(config, spec.hidden);
  kind.attention.rotary_dim = read_rotary_dim(config, kind.attention.head_dim, 0.5);
  kind.attention.qkv_bias = kind.attention.output_bias = true;
  kind.mlp = read_plain_mlp(config, config.size("intermediate_size"), true);
  TensorList list("model.layers.*.");
  separate_attention(list, kind.attention, spec.hidden, "dense");
  kind.attention.qk_norm = config.flag("qk_layernorm", false);
  if (kind.attention.qk_norm) {
    list.norm("self_attn.q_layernorm", kind.attention.head_dim, true);
    list.norm("self_attn.k_layernorm", kind.attention.head_dim, true);
  }
  plain_mlp(list, "mlp.fc1", "mlp.fc2", kind.mlp, spec.hidden);
  norms(list, {"input_layernorm"}, spec.hidden, true);
  kind.tensors = list.take();
  Frame frame;
  frame.final_norm = "model.final_layernorm";
  frame.final_norm_bias = frame.head_bias = true;
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

ModelSpec describe_phi3(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "phi3", "Phi3ForCausalLM");
  spec.hidden_dropout = config.dropout("resid_pdrop");
  spec.embedding_dropout = config.dropout("embd_pdrop");
  LayerKind kind;
  kind.attention = read_attention(config, spec.hidden);
  kind.attention.fused_qkv = true;
  kind.attention.sliding_window = config.optional_size("sliding_window");
  kind.mlp = read_gated_mlp(config);
  kind.mlp.fused_gate_up = true;
  TensorList list("model.layers.*.");
  const std::int64_t q = checked_mul(kind.attention.heads, kind.attention.head_dim);
  list.linear("self_attn.o_proj", q, spec.hidden, false, TensorRole::attention, SplitAxis::row);
  list.linear("self_attn.qkv_proj", spec.hidden, fused_qkv_width(kind.attention), false, TensorRole::attention,
              SplitAxis::column);
  gated_mlp(list, "mlp", kind.mlp, spec.hidden);
  pre_norms(list, spec.hidden);
  kind.tensors = list.take();
  assemble(spec, {}, uniform_stack(spec.layers, kind));
  return spec;
}

}  // namespace membill::census
