// falcon_h1: mamba's second version beside attention in each layer.
#include "catalog/families/list.h"
#include "catalog/families/state_space.h"

namespace membill::census {

ModelSpec describe_falcon_h1(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "falcon_h1", "FalconH1ForCausalLM");
  LayerKind kind;
  kind.attention = read_attention(config, spec.hidden);
  kind.attention.qkv_bias = kind.attention.output_bias = config.flag("attention_bias", false);
  const std::int64_t expanded = checked_mul(config.size_or("mamba_expand", 2), spec.hidden);
  kind.state_space = read_mamba2(config, config.size_or("mamba_d_ssm", expanded));
  kind.state_space->gate_after_norm = config.flag("mamba_norm_before_gate", true);
  kind.mlp = read_gated_mlp(config);
  kind.mlp.bias = config.flag("mlp_bias", false);
  const Mamba2Options options{config.flag("mamba_conv_bias", true), config.flag("mamba_proj_bias", false),
                              config.flag("projectors_bias", false), config.flag("mamba_rms_norm", false)};
  TensorList list("model.layers.*.");
  gated_mlp(list, "feed_forward", kind.mlp, spec.hidden);
  mamba2_mixer(list, "mamba", *kind.state_space, spec.hidden, options);
  const StateSpaceShape& space = *kind.state_space;
  list.buffer(
      "mamba.mup_vector",
      {1, 1,
       checked_add(checked_mul(2, checked_add(space.inner(), checked_mul(space.groups, space.state))), space.heads)},
      {});
  separate_attention(list, kind.attention, spec.hidden);
  norms(list, {"input_layernorm", "pre_ff_layernorm"}, spec.hidden);
  kind.tensors = list.take();
  Frame frame;
  frame.final_norm = "model.final_layernorm";
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

}  // namespace membill::census
