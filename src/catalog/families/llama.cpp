// The dense llama shape: llama, mistral, qwen2, qwen3.
#include "catalog/families/decoder.h"
#include "catalog/families/list.h"
#include "catalog/families/llama_shape.h"

namespace membill::census {

namespace {

LayerKind llama_layer(std::int64_t hidden, const AttentionShape& attention, const MlpShape& mlp) {
  return dense_layer(hidden, attention, mlp);
}

// Qwen's layers slide from max_window_layers on, when the file asks for it.
Section qwen_stack(const ConfigReader& config, const ModelSpec& spec, const LayerKind& kind) {
  const std::int64_t first = config.count_or("max_window_layers", spec.layers);
  const std::vector<bool> slides =
      sliding_layers(config, spec.layers, [&](std::int64_t layer) { return layer >= first; });
  const bool used = config.flag("use_sliding_window", false);
  return windowed_stack(slides, used ? config.optional_size("sliding_window") : std::nullopt, kind);
}

}  // namespace

ModelSpec describe_llama_shape(const ConfigReader& config, std::string_view model_type, std::string_view class_name) {
  ModelSpec spec = read_dimensions(config, model_type, class_name);
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  MlpShape mlp = read_gated_mlp(config);
  mlp.bias = config.flag("mlp_bias", false);
  assemble(spec, {}, uniform_stack(spec.layers, llama_layer(spec.hidden, attention, mlp)));
  return spec;
}

ModelSpec describe_llama(const Value& values, Problems& problems) {
  return describe_llama_shape(ConfigReader(values, problems), "llama", "LlamaForCausalLM");
}

ModelSpec describe_mistral(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "mistral", "MistralForCausalLM");
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.sliding_window = config.optional_size("sliding_window");
  assemble(spec, {}, uniform_stack(spec.layers, llama_layer(spec.hidden, attention, read_gated_mlp(config))));
  return spec;
}

ModelSpec describe_qwen2(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "qwen2", "Qwen2ForCausalLM");
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.qkv_bias = true;
  assemble(spec, {}, qwen_stack(config, spec, llama_layer(spec.hidden, attention, read_gated_mlp(config))));
  return spec;
}

ModelSpec describe_qwen3(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "qwen3", "Qwen3ForCausalLM");
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  attention.qk_norm = true;
  assemble(spec, {}, qwen_stack(config, spec, llama_layer(spec.hidden, attention, read_gated_mlp(config))));
  return spec;
}

}  // namespace membill::census
