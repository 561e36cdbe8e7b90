// Dense decoders that differ from llama in biases, norms, windows or positions: granite, smollm3, seed_oss, ernie4_5, exaone4, arcee,
// minicpm, nemotron, cohere, cohere2, stablelm, starcoder2.
#include "catalog/families/decoder.h"
#include "catalog/families/list.h"
#include "catalog/families/llama_shape.h"

namespace membill::census {

namespace {

// A stack whose layers slide or not and rotate or not.
Section sliding_rotating_stack(const std::vector<bool>& slides, const std::vector<bool>& rotates,
                               std::optional<std::int64_t> window, const LayerKind& kind) {
  const auto kind_of = [&](std::int64_t layer) {
    const auto i = static_cast<std::size_t>(layer);
    return (slides[i] && window ? 1 : 0) + (rotates[i] ? 2 : 0);
  };
  return stack(static_cast<std::int64_t>(slides.size()), 4, kind_of, [&](int number) {
    LayerKind copy = kind;
    copy.attention.sliding_window = number % 2 == 1 ? window : std::nullopt;
    if (number < 2) copy.attention.rotary_dim = 0;
    return copy;
  });
}

// Cohere's norm on q and k has a weight for each head.
void per_head_norms(TensorList& list, const AttentionShape& shape) {
  list.norm_of_heads("self_attn.q_norm", shape.heads, shape.head_dim);
  list.norm_of_heads("self_attn.k_norm", shape.kv_heads, shape.head_dim);
}

LayerKind cohere_layer(std::int64_t hidden, const AttentionShape& attention, const MlpShape& mlp) {
  LayerKind kind;
  kind.attention = attention;
  kind.mlp = mlp;
  TensorList list("model.layers.*.");
  AttentionShape without_norm = attention;
  without_norm.qk_norm = false;
  separate_attention(list, without_norm, hidden);
  if (attention.qk_norm) per_head_norms(list, attention);
  gated_mlp(list, "mlp", mlp, hidden);
  norms(list, {"input_layernorm"}, hidden);
  kind.tensors = list.take();
  return kind;
}

LayerKind plain_mlp_layer(std::int64_t hidden, const AttentionShape& attention, const MlpShape& mlp,
                          std::string_view first, std::string_view second, bool norm_bias) {
  LayerKind kind;
  kind.attention = attention;
  kind.mlp = mlp;
  TensorList list("model.layers.*.");
  separate_attention(list, attention, hidden);
  plain_mlp(list, first, second, mlp, hidden);
  pre_norms(list, hidden, norm_bias);
  kind.tensors = list.take();
  return kind;
}

}  // namespace

ModelSpec describe_granite(const Value& values, Problems& problems) {
  return describe_llama_shape(ConfigReader(values, problems), "granite", "GraniteForCausalLM");
}

ModelSpec describe_minicpm(const Value& values, Problems& problems) {
  return describe_llama_shape(ConfigReader(values, problems), "minicpm", "MiniCPMForCausalLM");
}

ModelSpec describe_smollm3(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "smollm3", "SmolLM3ForCausalLM");
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  MlpShape mlp = read_gated_mlp(config);
  mlp.bias = config.flag("mlp_bias", false);
  const std::vector<bool> rotates = rotating_layers(config, spec.layers);
  const bool window_used = config.flag("use_sliding_window", false);
  const std::vector<bool> slides = sliding_layers(
      config, spec.layers, [&](std::int64_t layer) { return window_used && rotates[static_cast<std::size_t>(layer)]; });
  const LayerKind kind = dense_layer(spec.hidden, attention, mlp);
  assemble(spec, {}, sliding_rotating_stack(slides, rotates, config.optional_size("sliding_window"), kind));
  return spec;
}

ModelSpec describe_seed_oss(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "seed_oss", "SeedOssForCausalLM");
  spec.hidden_dropout = config.dropout("residual_dropout");
  spec.embedding_dropout = config.dropout("embedding_dropout");
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.qkv_bias = config.flag("attention_bias", true);
  attention.output_bias = config.flag("attention_out_bias", false);
  MlpShape mlp = read_gated_mlp(config);
  mlp.bias = config.flag("mlp_bias", false);
  assemble(spec, {}, uniform_stack(spec.layers, dense_layer(spec.hidden, attention, mlp)));
  return spec;
}

ModelSpec describe_ernie4_5(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "ernie4_5", "Ernie4_5ForCausalLM");
  AttentionShape attention = read_attention(config, spec.hidden);
  MlpShape mlp = read_gated_mlp(config);
  attention.qkv_bias = attention.output_bias = mlp.bias = config.flag("use_bias", false);
  assemble(spec, {}, uniform_stack(spec.layers, dense_layer(spec.hidden, attention, mlp)));
  return spec;
}

// Norms follow attention and MLP; full layers do not rotate where others slide.
ModelSpec describe_exaone4(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "exaone4", "Exaone4ForCausalLM");
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.qk_norm = true;
  const std::optional<std::int64_t> window = config.optional_size("sliding_window");
  const std::int64_t period = read_window_pattern(config, 4);
  const std::vector<bool> slides = sliding_layers(
      config, spec.layers, [&](std::int64_t layer) { return window.has_value() && (layer + 1) % period != 0; });
  const std::vector<bool> rotates = window ? slides : std::vector<bool>(slides.size(), true);
  const LayerKind kind = dense_layer(spec.hidden, attention, read_gated_mlp(config),
                                     {"post_attention_layernorm", "post_feedforward_layernorm"});
  assemble(spec, {}, sliding_rotating_stack(slides, rotates, window, kind));
  return spec;
}

ModelSpec describe_ministral3(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "ministral3", "Ministral3ForCausalLM");
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.sliding_window = config.optional_size("sliding_window");
  assemble(spec, {}, uniform_stack(spec.layers, dense_layer(spec.hidden, attention, read_gated_mlp(config))));
  return spec;
}

ModelSpec describe_hunyuan_v1_dense(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM");
  LayerKind kind;
  kind.attention = read_attention(config, spec.hidden);
  kind.attention.qkv_bias = kind.attention.output_bias = config.flag("attention_bias", false);
  kind.mlp = read_gated_mlp(config);
  TensorList list("model.layers.*.");
  separate_attention(list, kind.attention, spec.hidden);
  kind.attention.qk_norm = true;
  norms(list, {"self_attn.query_layernorm", "self_attn.key_layernorm"}, kind.attention.head_dim);
  gated_mlp(list, "mlp", kind.mlp, spec.hidden);
  pre_norms(list, spec.hidden);
  kind.tensors = list.take();
  assemble(spec, {}, uniform_stack(spec.layers, kind));
  return spec;
}

ModelSpec describe_arcee(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "arcee", "ArceeForCausalLM");
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  const MlpShape mlp = read_plain_mlp(config, config.size("intermediate_size"), config.flag("mlp_bias", false));
  const LayerKind kind = plain_mlp_layer(spec.hidden, attention, mlp, "mlp.up_proj", "mlp.down_proj", false);
  assemble(spec, {}, uniform_stack(spec.layers, kind));
  return spec;
}

ModelSpec describe_nemotron(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "nemotron", "NemotronForCausalLM");
  spec.norm = NormKind::layer;
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.rotary_dim = read_rotary_dim(config, attention.head_dim, 0.5);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  const MlpShape mlp = read_plain_mlp(config, config.size("intermediate_size"), config.flag("mlp_bias", false));
  const LayerKind kind = plain_mlp_layer(spec.hidden, attention, mlp, "mlp.up_proj", "mlp.down_proj", true);
  Frame frame;
  frame.final_norm_bias = true;
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

ModelSpec describe_starcoder2(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "starcoder2", "Starcoder2ForCausalLM");
  spec.norm = NormKind::layer;
  spec.hidden_dropout = config.dropout("residual_dropout");
  spec.embedding_dropout = config.dropout("embedding_dropout");
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.sliding_window = config.optional_size("sliding_window");
  const bool bias = config.flag("use_bias", true);
  attention.qkv_bias = attention.output_bias = bias;
  const MlpShape mlp = read_plain_mlp(config, config.size("intermediate_size"), bias);
  Frame frame;
  frame.final_norm_bias = true;
  const LayerKind kind = plain_mlp_layer(spec.hidden, attention, mlp, "mlp.c_fc", "mlp.c_proj", true);
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

ModelSpec describe_cohere(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "cohere", "CohereForCausalLM");
  spec.norm = NormKind::layer;
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  attention.qk_norm = config.flag("use_qk_norm", false);
  assemble(spec, {}, uniform_stack(spec.layers, cohere_layer(spec.hidden, attention, read_gated_mlp(config))));
  return spec;
}

// Sliding layers rotate, full ones do not.
ModelSpec describe_cohere2(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "cohere2", "Cohere2ForCausalLM");
  spec.norm = NormKind::layer;
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  const std::int64_t period = read_window_pattern(config, 4);
  const std::vector<bool> slides =
      sliding_layers(config, spec.layers, [&](std::int64_t layer) { return (layer + 1) % period != 0; });
  const LayerKind kind = cohere_layer(spec.hidden, attention, read_gated_mlp(config));
  assemble(spec, {}, sliding_rotating_stack(slides, slides, config.optional_size("sliding_window"), kind));
  return spec;
}

ModelSpec describe_stablelm(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "stablelm", "StableLmForCausalLM");
  spec.norm = NormKind::layer;
  spec.hidden_dropout = config.dropout("hidden_dropout");
  LayerKind kind;
  kind.attention = read_attention(config, spec.hidden);
  kind.attention.rotary_dim = read_rotary_dim(config, kind.attention.head_dim, 0.25);
  kind.attention.qkv_bias = config.flag("use_qkv_bias", false);
  kind.mlp = read_gated_mlp(config);
  TensorList list("model.layers.*.");
  separate_attention(list, kind.attention, spec.hidden);
  kind.attention.qk_norm = config.flag("qk_layernorm", false);
  if (kind.attention.qk_norm) {
    list.separate_head_norms("self_attn.q_layernorm.norms", kind.attention.heads, kind.attention.head_dim);
    list.separate_head_norms("self_attn.k_layernorm.norms", kind.attention.kv_heads, kind.attention.head_dim);
  }
  gated_mlp(list, "mlp", kind.mlp, spec.hidden);
  norms(list, {"input_layernorm"}, spec.hidden, true);
  if (!config.flag("use_parallel_residual", false)) norms(list, {"post_attention_layernorm"}, spec.hidden, true);
  kind.tensors = list.take();
  Frame frame;
  frame.final_norm_bias = true;
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

}  // namespace membill::census
