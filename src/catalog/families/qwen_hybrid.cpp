// Qwen3-Next and Qwen3.5: three layers of Gated DeltaNet to one of attention with a gate, dense or with experts.
#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

LinearAttentionShape read_linear_attention(const ConfigReader& config) {
  LinearAttentionShape shape;
  shape.key_heads = config.size("linear_num_key_heads");
  shape.value_heads = config.size("linear_num_value_heads");
  shape.key_head_dim = config.size("linear_key_head_dim");
  shape.value_head_dim = config.size("linear_value_head_dim");
  shape.kernel = config.size("linear_conv_kernel_dim");
  return shape;
}

// How the inputs of the linear attention are projected: two fused matrices (qwen3_next) or four (qwen3_5).
enum class Projections : std::uint8_t { fused, apart };

void gated_delta_net(TensorList& list, const LinearAttentionShape& shape, std::int64_t hidden,
                     Projections projections) {
  const std::int64_t keys = checked_mul(shape.key_heads, shape.key_head_dim),
                     values = checked_mul(shape.value_heads, shape.value_head_dim),
                     convolved = checked_add(checked_mul(2, keys), values);
  const auto project = [&](const char* name, std::int64_t width) {
    list.linear(std::string("linear_attn.") + name, hidden, width, false, TensorRole::attention, SplitAxis::column);
  };
  list.parameter("linear_attn.dt_bias", {shape.value_heads}, TensorRole::attention);
  list.parameter("linear_attn.A_log", {shape.value_heads}, TensorRole::attention);
  list.parameter("linear_attn.conv1d.weight", {convolved, 1, shape.kernel}, TensorRole::attention);
  if (projections == Projections::fused) {
    project("in_proj_qkvz", checked_add(convolved, values));
    project("in_proj_ba", checked_mul(2, shape.value_heads));
  }
  list.norm("linear_attn.norm", shape.value_head_dim);
  list.linear("linear_attn.out_proj", values, hidden, false, TensorRole::attention, SplitAxis::row);
  if (projections == Projections::fused) return;
  project("in_proj_qkv", convolved);
  project("in_proj_z", values);
  project("in_proj_b", shape.value_heads);
  project("in_proj_a", shape.value_heads);
}

AttentionShape read_gated_attention(const ConfigReader& config, std::int64_t hidden) {
  AttentionShape shape = read_attention(config, hidden);
  shape.rotary_dim = read_rotary_dim(config, shape.head_dim, 0.25);
  shape.qkv_bias = shape.output_bias = config.flag("attention_bias", false);
  shape.qk_norm = shape.output_gate = true;
  return shape;
}

// True for layers with attention: from layer_types, else every full_attention_interval-th.
std::vector<bool> attending_layers(const ConfigReader& config, std::int64_t layers) {
  std::vector<bool> attends(static_cast<std::size_t>(layers));
  const std::int64_t interval = config.size_or("full_attention_interval", 4);
  for (std::int64_t i = 0; i < layers; ++i) attends[static_cast<std::size_t>(i)] = (i + 1) % interval == 0;
  if (config.find("layer_types") == nullptr) return attends;
  const std::vector<std::string> types = config.words("layer_types");
  if (types.size() != attends.size()) {
    config.problem("layer_types",
                   "has " + std::to_string(types.size()) + " entries for " + std::to_string(layers) + " layers");
    return attends;
  }
  for (std::size_t i = 0; i < types.size(); ++i) attends[i] = types[i] == "full_attention";
  return attends;
}

void feed_forward(TensorList& list, LayerKind& kind, std::int64_t hidden) {
  if (!kind.moe) return gated_mlp(list, "mlp", kind.mlp, hidden);
  MlpShape shared = kind.mlp;
  shared.intermediate = kind.moe->shared_intermediate;
  router(list, "mlp.gate", kind.moe->experts, hidden);
  fused_experts(list, "mlp.experts", *kind.moe, hidden);
  gated_mlp(list, "mlp.shared_expert", shared, hidden);
  list.linear("mlp.shared_expert_gate", hidden, 1, false, TensorRole::router, SplitAxis::none);
}

struct Hybrid {
  std::string_view model_type, class_name;
  Projections projections = Projections::apart;
  bool experts = false, dense_layers = true;
};

ModelSpec describe_hybrid(const ConfigReader& config, const Hybrid& hybrid) {
  ModelSpec spec = read_dimensions(config, hybrid.model_type, hybrid.class_name);
  LayerKind common;
  common.attention = read_gated_attention(config, spec.hidden);
  if (hybrid.dense_layers) common.mlp = read_gated_mlp(config);
  const LinearAttentionShape linear = read_linear_attention(config);
  std::optional<MoeShape> moe;
  if (hybrid.experts) {
    moe = read_moe(config, "moe_intermediate_size");
    moe->shared_intermediate = config.size("shared_expert_intermediate_size");
  }
  const std::vector<bool> attends = attending_layers(config, spec.layers);
  const std::vector<bool> sparse =
      hybrid.experts ? sparse_layers(config, spec.layers) : std::vector<bool>(static_cast<std::size_t>(spec.layers));
  const auto kind_of = [&](std::int64_t layer) {
    const auto i = static_cast<std::size_t>(layer);
    return (attends[i] ? 1 : 0) + (sparse[i] ? 2 : 0);
  };
  assemble(spec, {}, stack(spec.layers, 4, kind_of, [&](int number) {
             LayerKind kind = common;
             if ((number & 2) != 0) kind.moe = moe;
             TensorList list("model.layers.*.");
             if ((number & 1) != 0) {
               separate_attention(list, kind.attention, spec.hidden);
             } else {
               kind.linear_attention = linear;
               gated_delta_net(list, linear, spec.hidden, hybrid.projections);
             }
             feed_forward(list, kind, spec.hidden);
             pre_norms(list, spec.hidden);
             kind.tensors = list.take();
             return kind;
           }));
  return spec;
}

}  // namespace

ModelSpec describe_qwen3_next(const Value& values, Problems& problems) {
  return describe_hybrid(ConfigReader(values, problems),
                         {"qwen3_next", "Qwen3NextForCausalLM", Projections::fused, true, true});
}

ModelSpec describe_qwen3_5(const Value& values, Problems& problems) {
  return describe_hybrid(ConfigReader(values, problems), {"qwen3_5_text", "Qwen3_5ForCausalLM"});
}

ModelSpec describe_qwen3_5_moe(const Value& values, Problems& problems) {
  return describe_hybrid(ConfigReader(values, problems),
                         {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", Projections::apart, true, false});
}

}  // namespace membill::census
