// Mixtures of experts with llama's attention: mixtral, qwen2_moe, qwen3_moe, olmoe, granitemoe, phimoe, minimax_m2, ernie4_5_moe.
#include <algorithm>

#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

// A layer's tensors are written by `ffn` between attention and norms.
template <typename FeedForward>
LayerKind sparse_layer(std::int64_t hidden, const AttentionShape& attention, const MoeShape& moe, FeedForward ffn) {
  LayerKind kind;
  kind.attention = attention;
  kind.moe = moe;
  TensorList list("model.layers.*.");
  separate_attention(list, attention, hidden);
  ffn(list);
  pre_norms(list, hidden);
  kind.tensors = list.take();
  return kind;
}

LayerKind router_first(std::int64_t hidden, const AttentionShape& attention, const MoeShape& moe) {
  return sparse_layer(hidden, attention, moe, [&](TensorList& list) {
    router(list, "mlp.gate", moe.experts, hidden);
    fused_experts(list, "mlp.experts", moe, hidden);
  });
}

}  // namespace

ModelSpec describe_mixtral(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "mixtral", "MixtralForCausalLM");
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.sliding_window = config.optional_size("sliding_window");
  const MoeShape moe = read_moe(config, "intermediate_size");
  assemble(spec, {}, uniform_stack(spec.layers, router_first(spec.hidden, attention, moe)));
  return spec;
}

ModelSpec describe_qwen2_moe(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "qwen2_moe", "Qwen2MoeForCausalLM");
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.qkv_bias = config.flag("qkv_bias", true);
  MoeShape moe = read_moe(config, "moe_intermediate_size");
  moe.shared_intermediate = config.size("shared_expert_intermediate_size");
  const MlpShape dense = read_gated_mlp(config);
  MlpShape shared = dense;
  shared.intermediate = moe.shared_intermediate;
  const std::vector<bool> sparse = sparse_layers(config, spec.layers);
  const bool used = config.flag("use_sliding_window", false);
  const std::int64_t windows_end = config.count_or("max_window_layers", spec.layers);
  const std::vector<bool> slides = sliding_layers(
      config, spec.layers, [&](std::int64_t layer) { return used && layer % 2 == 0 && layer < windows_end; });
  const auto kind_of = [&](std::int64_t layer) {
    const auto i = static_cast<std::size_t>(layer);
    return (sparse[i] ? 1 : 0) + (slides[i] ? 2 : 0);
  };
  assemble(spec, {}, stack(spec.layers, 4, kind_of, [&](int number) {
             AttentionShape here = attention;
             if (number >= 2) here.sliding_window = config.optional_size("sliding_window");
             if (number % 2 == 0) return dense_layer(spec.hidden, here, dense);
             return sparse_layer(spec.hidden, here, moe, [&](TensorList& list) {
               router(list, "mlp.gate", moe.experts, spec.hidden);
               fused_experts(list, "mlp.experts", moe, spec.hidden);
               gated_mlp(list, "mlp.shared_expert", shared, spec.hidden);
               list.linear("mlp.shared_expert_gate", spec.hidden, 1, false, TensorRole::router, SplitAxis::none);
             });
           }));
  return spec;
}

ModelSpec describe_qwen3_moe(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "qwen3_moe", "Qwen3MoeForCausalLM");
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  attention.qk_norm = true;
  if (config.flag("use_sliding_window", false)) attention.sliding_window = config.optional_size("sliding_window");
  const MoeShape moe = read_moe(config, "moe_intermediate_size");
  const MlpShape dense = read_gated_mlp(config);
  const std::vector<bool> sparse = sparse_layers(config, spec.layers);
  const auto kind_of = [&](std::int64_t layer) { return sparse[static_cast<std::size_t>(layer)] ? 1 : 0; };
  assemble(spec, {}, stack(spec.layers, 2, kind_of, [&](int number) {
             if (number == 0) return dense_layer(spec.hidden, attention, dense);
             return sparse_layer(spec.hidden, attention, moe, [&](TensorList& list) {
               fused_experts(list, "mlp.experts", moe, spec.hidden);
               router(list, "mlp.gate", moe.experts, spec.hidden);
             });
           }));
  return spec;
}

ModelSpec describe_olmoe(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "olmoe", "OlmoeForCausalLM");
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  attention.qk_norm = attention.qk_norm_full_width = true;
  const MoeShape moe = read_moe(config, "intermediate_size");
  assemble(spec, {}, uniform_stack(spec.layers, router_first(spec.hidden, attention, moe)));
  return spec;
}

// Norms come before the experts in module order.
ModelSpec describe_granitemoe(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "granitemoe", "GraniteMoeForCausalLM");
  LayerKind kind;
  kind.attention = read_attention(config, spec.hidden);
  kind.attention.qkv_bias = kind.attention.output_bias = config.flag("attention_bias", false);
  kind.moe = read_moe(config, "intermediate_size");
  TensorList list("model.layers.*.");
  separate_attention(list, kind.attention, spec.hidden);
  pre_norms(list, spec.hidden);
  router(list, "block_sparse_moe.router", kind.moe->experts, spec.hidden);
  fused_experts(list, "block_sparse_moe.experts", *kind.moe, spec.hidden);
  kind.tensors = list.take();
  assemble(spec, {}, uniform_stack(spec.layers, kind));
  return spec;
}

// The router is a linear; norms have biases.
ModelSpec describe_phimoe(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "phimoe", "PhimoeForCausalLM");
  spec.norm = NormKind::layer;
  LayerKind kind;
  kind.attention = read_attention(config, spec.hidden);
  kind.attention.qkv_bias = kind.attention.output_bias = config.flag("attention_bias", false);
  kind.attention.sliding_window = config.optional_size("sliding_window");
  kind.moe = read_moe(config, "intermediate_size");
  TensorList list("model.layers.*.");
  separate_attention(list, kind.attention, spec.hidden);
  list.linear("mlp.router", spec.hidden, kind.moe->experts, false, TensorRole::router, SplitAxis::none);
  fused_experts(list, "mlp.experts", *kind.moe, spec.hidden);
  pre_norms(list, spec.hidden, true);
  kind.tensors = list.take();
  Frame frame;
  frame.final_norm_bias = true;
  frame.head_bias = config.flag("lm_head_bias", false);
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

ModelSpec describe_minimax_m2(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "minimax_m2", "MiniMaxM2ForCausalLM");
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.qk_norm = attention.qk_norm_full_width = true;
  if (const auto rotary = config.optional_size("rotary_dim")) {
    if (*rotary > attention.head_dim) config.problem("rotary_dim", "is wider than a head");
    attention.rotary_dim = *rotary;
  }
  const MoeShape moe = read_moe(config, "intermediate_size");
  const LayerKind kind = sparse_layer(spec.hidden, attention, moe, [&](TensorList& list) {
    router(list, "mlp.gate", moe.experts, spec.hidden);
    fused_experts(list, "mlp.experts", moe, spec.hidden);
    list.buffer("mlp.e_score_correction_bias", {moe.experts});
  });
  assemble(spec, {}, uniform_stack(spec.layers, kind));
  return spec;
}

// Layers from moe_layer_start_index to moe_layer_end_index (-1: the last) are sparse, every moe_layer_interval-th.
ModelSpec describe_ernie4_5_moe(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "ernie4_5_moe", "Ernie4_5_MoeForCausalLM");
  AttentionShape attention = read_attention(config, spec.hidden);
  MlpShape dense = read_gated_mlp(config);
  attention.qkv_bias = attention.output_bias = dense.bias = config.flag("use_bias", false);
  MoeShape moe = read_moe(config, "moe_intermediate_size");
  moe.shared_intermediate = checked_mul(config.count_or("moe_num_shared_experts", 0), moe.intermediate);
  MlpShape shared = dense;
  shared.intermediate = moe.shared_intermediate;
  const std::int64_t start = config.count_or("moe_layer_start_index", 1);
  const double end_written = config.real_or("moe_layer_end_index", -1);
  const std::int64_t end = end_written < 0 ? spec.layers - 1 : config.count_or("moe_layer_end_index", spec.layers - 1);
  const std::int64_t interval = config.size_or("moe_layer_interval", 1);
  const auto kind_of = [&](std::int64_t layer) {
    return (layer + 1) % interval == 0 && layer >= start && layer <= end ? 1 : 0;
  };
  Frame frame;
  frame.head_bias = dense.bias;
  assemble(spec, frame, stack(spec.layers, 2, kind_of, [&](int number) {
             if (number == 0) return dense_layer(spec.hidden, attention, dense);
             return sparse_layer(spec.hidden, attention, moe, [&](TensorList& list) {
               router(list, "mlp.gate", moe.experts, spec.hidden, DType::fp32);
               list.parameter("mlp.gate.moe_statics.e_score_correction_bias", {1, moe.experts}, TensorRole::router,
                              SplitAxis::none, DType::fp32);
               fused_experts(list, "mlp.experts", moe, spec.hidden);
               if (shared.intermediate > 0) gated_mlp(list, "mlp.shared_experts", shared, spec.hidden);
             });
           }));
  return spec;
}

}  // namespace membill::census
