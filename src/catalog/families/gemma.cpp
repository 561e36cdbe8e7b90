// gemma, gemma2, gemma3_text; olmo, olmo2, olmo3.
#include <algorithm>

#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

AttentionShape biased_attention(const ConfigReader& config, std::int64_t hidden) {
  AttentionShape attention = read_attention(config, hidden);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  return attention;
}

// Layer types that rotate on their own have a table each, in the order of their names.
std::vector<std::string_view> rotary_names(const std::vector<bool>& slides) {
  std::vector<std::string_view> names;
  if (std::find(slides.begin(), slides.end(), false) != slides.end()) names.emplace_back("full_attention_");
  if (std::find(slides.begin(), slides.end(), true) != slides.end()) names.emplace_back("sliding_attention_");
  return names;
}

MlpShape gemma_mlp(const ConfigReader& config) {
  MlpShape mlp = read_gated_mlp(config);
  mlp.activation = config.word("hidden_activation", config.word("hidden_act", "gelu_pytorch_tanh"));
  return mlp;
}

}  // namespace

ModelSpec describe_gemma(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "gemma", "GemmaForCausalLM");
  const LayerKind kind = dense_layer(spec.hidden, biased_attention(config, spec.hidden), gemma_mlp(config));
  Frame frame;
  frame.embedding_scale = true;
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

ModelSpec describe_gemma2(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "gemma2", "Gemma2ForCausalLM");
  spec.final_logit_softcap = config.optional_real("final_logit_softcapping");
  AttentionShape attention = biased_attention(config, spec.hidden);
  attention.logit_softcap = config.optional_real("attn_logit_softcapping");
  const LayerKind kind = dense_layer(
      spec.hidden, attention, gemma_mlp(config),
      {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"});
  const std::vector<bool> slides =
      sliding_layers(config, spec.layers, [](std::int64_t layer) { return layer % 2 == 0; });
  Frame frame;
  frame.embedding_scale = true;
  assemble(spec, frame, windowed_stack(slides, config.optional_size("sliding_window"), kind));
  return spec;
}

ModelSpec describe_gemma3_text(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "gemma3_text", "Gemma3ForCausalLM");
  spec.final_logit_softcap = config.optional_real("final_logit_softcapping");
  AttentionShape attention = biased_attention(config, spec.hidden);
  attention.logit_softcap = config.optional_real("attn_logit_softcapping");
  attention.qk_norm = true;
  const LayerKind kind = dense_layer(
      spec.hidden, attention, gemma_mlp(config),
      {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"});
  const std::int64_t period = read_window_pattern(config, 6);
  const std::vector<bool> slides =
      sliding_layers(config, spec.layers, [&](std::int64_t layer) { return (layer + 1) % period != 0; });
  Frame frame;
  frame.embedding_scale = true;
  frame.rotary_names = rotary_names(slides);
  assemble(spec, frame, windowed_stack(slides, config.optional_size("sliding_window"), kind));
  return spec;
}

// OLMo's norms have no weights.
ModelSpec describe_olmo(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "olmo", "OlmoForCausalLM");
  spec.norm = NormKind::layer;
  const LayerKind kind = dense_layer(spec.hidden, biased_attention(config, spec.hidden), read_gated_mlp(config), {});
  Frame frame;
  frame.final_norm = {};
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

namespace {

LayerKind olmo2_layer(const ConfigReader& config, std::int64_t hidden) {
  AttentionShape attention = biased_attention(config, hidden);
  attention.qk_norm = attention.qk_norm_full_width = true;
  return dense_layer(hidden, attention, read_gated_mlp(config),
                     {"post_attention_layernorm", "post_feedforward_layernorm"});
}

}  // namespace

ModelSpec describe_olmo2(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "olmo2", "Olmo2ForCausalLM");
  assemble(spec, {}, uniform_stack(spec.layers, olmo2_layer(config, spec.hidden)));
  return spec;
}

ModelSpec describe_olmo3(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "olmo3", "Olmo3ForCausalLM");
  const std::vector<bool> slides =
      sliding_layers(config, spec.layers, [](std::int64_t layer) { return (layer + 1) % 4 != 0; });
  Frame frame;
  frame.rotary_names = rotary_names(slides);
  assemble(spec, frame,
           windowed_stack(slides, config.optional_size("sliding_window"), olmo2_layer(config, spec.hidden)));
  return spec;
}

}  // namespace membill::census
