// apertus: llama's shape with norms on q and k, and an MLP of two matrices around an activation that learns.
#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

ModelSpec describe_apertus(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "apertus", "ApertusForCausalLM");
  LayerKind kind;
  kind.attention = read_attention(config, spec.hidden);
  kind.attention.qkv_bias = kind.attention.output_bias = config.flag("attention_bias", false);
  kind.attention.qk_norm = true;
  kind.mlp = read_plain_mlp(config, config.size("intermediate_size"), false);
  kind.mlp.activation = config.word("hidden_act", "xielu");
  TensorList list("model.layers.*.");
  separate_attention(list, kind.attention, spec.hidden);
  plain_mlp(list, "mlp.up_proj", "mlp.down_proj", kind.mlp, spec.hidden);
  if (kind.mlp.activation == "xielu") {
    for (const char* name : {"mlp.act_fn.alpha_p", "mlp.act_fn.alpha_n"}) list.parameter(name, {1}, TensorRole::mlp);
    for (const char* name : {"mlp.act_fn.beta", "mlp.act_fn.eps"}) list.buffer(name, {}, DType::bf16);
  }
  norms(list, {"attention_layernorm", "feedforward_layernorm"}, spec.hidden);
  kind.tensors = list.take();
  assemble(spec, Frame{}, uniform_stack(spec.layers, kind));
  return spec;
}

}  // namespace membill::census
