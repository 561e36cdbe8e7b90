// gpt_oss and llama4_text: experts whose matrices are stored input first; and dbrx, whose experts share one matrix.
#include <algorithm>

#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

void input_first_experts(TensorList& list, const MoeShape& moe, std::int64_t hidden, std::string_view module,
                         bool bias) {
  const std::string start = std::string(module) + ".";
  const std::int64_t both = checked_mul(moe.intermediate, 2);
  list.experts(start + "gate_up_proj", {moe.experts, hidden, both}, SplitAxis::column);
  if (bias) list.experts(start + "gate_up_proj_bias", {moe.experts, both}, SplitAxis::column);
  list.experts(start + "down_proj", {moe.experts, moe.intermediate, hidden}, SplitAxis::row);
  if (bias) list.experts(start + "down_proj_bias", {moe.experts, hidden}, SplitAxis::none);
}

// Llama 4: the sparse layers by number, else every interleave_moe_layer_step-th.
std::vector<bool> llama4_sparse_layers(const ConfigReader& config, std::int64_t layers) {
  const std::int64_t step = config.size_or("interleave_moe_layer_step", 1);
  std::vector<bool> sparse(static_cast<std::size_t>(layers));
  if (config.find("moe_layers") == nullptr) {
    for (std::int64_t i = step - 1; i < layers; i += step) sparse[static_cast<std::size_t>(i)] = true;
    return sparse;
  }
  for (const std::int64_t layer : config.counts("moe_layers")) {
    if (layer < layers) {
      sparse[static_cast<std::size_t>(layer)] = true;
    } else {
      config.problem("moe_layers",
                     "names layer " + std::to_string(layer) + " of a model with " + std::to_string(layers));
    }
  }
  return sparse;
}

LayerKind llama4_layer(const ModelSpec& spec, const AttentionShape& attention, const MlpShape& dense,
                       const MoeShape* moe) {
  LayerKind kind;
  kind.attention = attention;
  TensorList list("model.layers.*.");
  AttentionShape without_norm_weights = attention;
  without_norm_weights.qk_norm = false;
  separate_attention(list, without_norm_weights, spec.hidden);
  if (moe == nullptr) {
    kind.mlp = dense;
    gated_mlp(list, "feed_forward", dense, spec.hidden);
  } else {
    kind.moe = *moe;
    MlpShape shared = dense;
    shared.intermediate = moe->shared_intermediate;
    input_first_experts(list, *moe, spec.hidden, "feed_forward.experts", false);
    list.linear("feed_forward.router", spec.hidden, moe->experts, false, TensorRole::router, SplitAxis::none);
    gated_mlp(list, "feed_forward.shared_expert", shared, spec.hidden);
  }
  pre_norms(list, spec.hidden);
  kind.tensors = list.take();
  return kind;
}

}  // namespace

ModelSpec describe_gpt_oss(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "gpt_oss", "GptOssForCausalLM");
  LayerKind kind;
  kind.attention = read_attention(config, spec.hidden);
  kind.attention.qkv_bias = kind.attention.output_bias = config.flag("attention_bias", true);
  kind.attention.sinks = true;
  kind.moe = read_moe(config, "intermediate_size");
  TensorList list("model.layers.*.");
  list.parameter("self_attn.sinks", {kind.attention.heads}, TensorRole::attention, SplitAxis::column);
  separate_attention(list, kind.attention, spec.hidden);
  router(list, "mlp.router", kind.moe->experts, spec.hidden);
  list.parameter("mlp.router.bias", {kind.moe->experts}, TensorRole::router);
  input_first_experts(list, *kind.moe, spec.hidden, "mlp.experts", true);
  pre_norms(list, spec.hidden);
  kind.tensors = list.take();
  const std::vector<bool> slides =
      sliding_layers(config, spec.layers, [](std::int64_t layer) { return layer % 2 == 0; });
  assemble(spec, {}, windowed_stack(slides, config.optional_size("sliding_window"), kind));
  return spec;
}

// Layers that rotate attend within chunks and normalise q and k (without weights); the others see everything.
ModelSpec describe_llama4_text(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "llama4_text", "Llama4ForCausalLM");
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  attention.qk_norm = config.flag("use_qk_norm", true);
  attention.tunes_temperature = config.flag("attn_temperature_tuning", true);
  MoeShape moe = read_moe(config, "intermediate_size");
  moe.shared_intermediate = moe.intermediate;
  MlpShape dense = read_gated_mlp(config);
  dense.intermediate = config.size("intermediate_size_mlp");
  const std::vector<bool> sparse = llama4_sparse_layers(config, spec.layers);
  const std::vector<bool> rotates = rotating_layers(config, spec.layers);
  const std::vector<bool> chunks =
      sliding_layers(config, spec.layers, [&](std::int64_t layer) { return rotates[static_cast<std::size_t>(layer)]; });
  const auto kind_of = [&](std::int64_t layer) {
    const auto i = static_cast<std::size_t>(layer);
    return (sparse[i] ? 1 : 0) + (rotates[i] ? 2 : 0) + (chunks[i] ? 4 : 0);
  };
  assemble(spec, {}, stack(spec.layers, 8, kind_of, [&](int number) {
             AttentionShape here = attention;
             if ((number & 2) == 0) {
               here.rotary_dim = 0;
               here.qk_norm = false;
             }
             if ((number & 4) != 0) here.sliding_window = config.optional_size("attention_chunk_size");
             return llama4_layer(spec, here, dense, (number & 1) != 0 ? &moe : nullptr);
           }));
  return spec;
}

ModelSpec describe_dbrx(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "dbrx", "DbrxForCausalLM");
  spec.norm = NormKind::layer;
  spec.hidden_dropout = config.dropout("resid_pdrop");
  const ConfigReader attention = config.inner("attn_config");
  const ConfigReader ffn = config.inner("ffn_config");
  LayerKind kind;
  kind.attention = read_plain_attention(config, spec.hidden);
  kind.attention.kv_heads = attention.size_or("kv_n_heads", kind.attention.heads);
  if (kind.attention.heads % kind.attention.kv_heads != 0) {
    attention.problem("kv_n_heads", std::to_string(kind.attention.kv_heads) + " key/value heads do not divide " +
                                        std::to_string(kind.attention.heads) + " attention heads");
  }
  kind.attention.fused_qkv = true;
  kind.attention.rotary_dim = kind.attention.head_dim;
  kind.attention.dropout = attention.dropout("attn_pdrop");
  kind.attention.clips_qkv = true;
  kind.moe = MoeShape{ffn.size("moe_num_experts"), ffn.size("moe_top_k"), ffn.size("ffn_hidden_size"), 0};
  TensorList list("transformer.blocks.*.");
  list.norm("norm_attn_norm.norm_1", spec.hidden);
  list.linear("norm_attn_norm.attn.Wqkv", spec.hidden, fused_qkv_width(kind.attention), false, TensorRole::attention,
              SplitAxis::column);
  list.linear("norm_attn_norm.attn.out_proj", spec.hidden, spec.hidden, false, TensorRole::attention, SplitAxis::row);
  list.norm("norm_attn_norm.norm_2", spec.hidden);
  list.linear("ffn.router.layer", spec.hidden, kind.moe->experts, false, TensorRole::router, SplitAxis::none);
  const std::int64_t rows = checked_mul(kind.moe->experts, kind.moe->intermediate);
  for (const std::string_view name : {"w1", "v1", "w2"}) {
    list.experts("ffn.experts.mlp." + std::string(name), {rows, spec.hidden}, SplitAxis::column);
  }
  kind.tensors = list.take();
  Frame frame;
  frame.embedding = "transformer.wte";
  frame.final_norm = "transformer.norm_f";
  frame.rotary = "transformer.rotary_emb";
  assemble(spec, frame, uniform_stack(spec.layers, kind));
  return spec;
}

}  // namespace membill::census
