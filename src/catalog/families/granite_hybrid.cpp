// granitemoehybrid (Granite 4): mamba's second version or attention, experts or none beside an MLP.
#include "catalog/families/list.h"
#include "catalog/families/state_space.h"

namespace membill::census {

namespace {

struct GraniteHybrid {
  AttentionShape attention;
  StateSpaceShape space;
  MlpShape mlp;
  std::optional<MoeShape> moe;
  Mamba2Options options;
};

GraniteHybrid read_granite_hybrid(const ConfigReader& config, std::int64_t hidden, bool has_spaces) {
  GraniteHybrid model;
  model.attention = read_attention(config, hidden);
  model.attention.qkv_bias = model.attention.output_bias = config.flag("attention_bias", false);
  if (config.word("position_embedding_type", "") != "rope") model.attention.rotary_dim = 0;
  if (has_spaces) model.space = read_mamba2(config, checked_mul(config.size("mamba_expand"), hidden));
  model.options.convolution_bias = config.flag("mamba_conv_bias", true);
  model.options.input_bias = model.options.output_bias = config.flag("mamba_proj_bias", false);
  model.mlp.intermediate = config.size("shared_intermediate_size");
  model.mlp.fused_gate_up = true;
  model.mlp.activation = config.word("hidden_act", "silu");
  if (config.count_or("num_experts", 0) > 0) {
    model.moe = read_moe(config, "intermediate_size");
    model.moe->shared_intermediate = model.mlp.intermediate;
  }
  return model;
}

LayerKind granite_layer(const GraniteHybrid& model, std::int64_t hidden, bool attends) {
  LayerKind kind;
  kind.mlp = model.mlp;
  kind.moe = model.moe;
  TensorList list("model.layers.*.");
  pre_norms(list, hidden);
  if (kind.moe) {
    router(list, "block_sparse_moe.router", kind.moe->experts, hidden);
    fused_experts(list, "block_sparse_moe.experts", *kind.moe, hidden);
  }
  list.linear("shared_mlp.input_linear", hidden, checked_mul(2, kind.mlp.intermediate), false, TensorRole::mlp,
              SplitAxis::column);
  list.linear("shared_mlp.output_linear", kind.mlp.intermediate, hidden, false, TensorRole::mlp, SplitAxis::row);
  if (attends) {
    kind.attention = model.attention;
    separate_attention(list, kind.attention, hidden);
  } else {
    kind.state_space = model.space;
    mamba2_mixer(list, "mamba", model.space, hidden, model.options);
  }
  kind.tensors = list.take();
  return kind;
}

}  // namespace

ModelSpec describe_granitemoehybrid(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "granitemoehybrid", "GraniteMoeHybridForCausalLM");
  const std::vector<std::string> words = layer_words(config, spec.layers);
  const auto attends = [&](std::int64_t layer) {
    const std::string& word = words[static_cast<std::size_t>(layer)];
    return word == "attention" || word == "full_attention";
  };
  bool has_spaces = false;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) has_spaces |= !attends(layer);
  const GraniteHybrid model = read_granite_hybrid(config, spec.hidden, has_spaces);
  if (model.attention.rotary_dim == 0) spec.position = PositionKind::none;
  const auto kind_of = [&](std::int64_t layer) { return attends(layer) ? 1 : 0; };
  const auto make = [&](int kind) { return granite_layer(model, spec.hidden, kind == 1); };
  Frame frame;
  frame.rotary = model.attention.rotary_dim == 0 ? std::string_view() : frame.rotary;
  Section layers = stack(spec.layers, 2, kind_of, make);
  assemble(spec, frame, std::move(layers));
  return spec;
}

}  // namespace membill::census
