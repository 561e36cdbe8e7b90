// lfm2: short convolutions in the place of most attentions.
#include <algorithm>
#include <cmath>

#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

// Lfm2MLP: two thirds of what the file says, times a factor, rounded up.
std::int64_t lfm2_width(const ConfigReader& config) {
  std::int64_t width = config.size_or("block_ff_dim", config.size("intermediate_size"));
  if (!config.flag("block_auto_adjust_ff_dim", true)) return width;
  width = 2 * width / 3;
  const double factor = config.real_or("block_ffn_dim_multiplier", 1.0);
  width = static_cast<std::int64_t>(factor * static_cast<double>(width));
  const std::int64_t multiple = config.size_or("block_multiple_of", 256);
  return checked_mul(ceil_div(std::max<std::int64_t>(width, 1), multiple), multiple);
}

std::vector<bool> layers_without_convolution(const ConfigReader& config, std::int64_t layers) {
  const std::vector<std::string> types = config.words("layer_types");
  const std::vector<std::int64_t> listed = config.counts("full_attn_idxs");
  if (!types.empty() && static_cast<std::int64_t>(types.size()) != layers)
    config.problem("layer_types",
                   "names " + std::to_string(types.size()) + " layers, but the model has " + std::to_string(layers));
  std::vector<bool> result(static_cast<std::size_t>(layers), listed.empty());
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (!types.empty())
      result[i] = i >= types.size() || types[i] != "conv";
    else if (std::find(listed.begin(), listed.end(), static_cast<std::int64_t>(i)) != listed.end())
      result[i] = true;
  }
  return result;
}

LayerKind lfm2_layer(const ConfigReader& config, const ModelSpec& spec, bool attends) {
  LayerKind kind;
  kind.mlp = read_gated_mlp(config);
  kind.mlp.intermediate = lfm2_width(config);
  TensorList list("model.layers.*.");
  if (attends) {
    kind.attention = read_attention(config, spec.hidden);
    separate_attention(list, kind.attention, spec.hidden, "out_proj");
    kind.attention.qk_norm = true;
    norms(list, {"self_attn.q_layernorm", "self_attn.k_layernorm"}, kind.attention.head_dim);
  } else {
    kind.linear_attention = LinearAttentionShape{.kernel = config.size_or("conv_L_cache", 3)};
    list.parameter("conv.conv.weight", {spec.hidden, 1, kind.linear_attention->kernel}, TensorRole::other);
    list.linear("conv.in_proj", spec.hidden, checked_mul(3, spec.hidden), false, TensorRole::other, SplitAxis::none);
    list.linear("conv.out_proj", spec.hidden, spec.hidden, false, TensorRole::other, SplitAxis::none);
  }
  for (const char* name : {"feed_forward.w1", "feed_forward.w3"})
    list.linear(name, spec.hidden, kind.mlp.intermediate, false, TensorRole::mlp, SplitAxis::column);
  list.linear("feed_forward.w2", kind.mlp.intermediate, spec.hidden, false, TensorRole::mlp, SplitAxis::row);
  norms(list, {"operator_norm", "ffn_norm"}, spec.hidden);
  kind.tensors = list.take();
  return kind;
}

}  // namespace

ModelSpec describe_lfm2(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "lfm2", "Lfm2ForCausalLM");
  spec.tied_embeddings = config.flag("tie_embedding", config.flag("tie_word_embeddings", true));
  if (config.flag("conv_bias", false)) config.problem("conv_bias", "biases of the convolutions are not modelled");
  const std::vector<bool> attends = layers_without_convolution(config, spec.layers);
  Frame frame;
  frame.rotary = {};
  frame.final_norm = {};
  TensorList last;
  last.rotary_buffers("model.rotary_emb", read_attention(config, spec.hidden).head_dim);
  last.norm("model.embedding_norm", spec.hidden);
  frame.last = last.take();
  const auto kind_of = [&](std::int64_t layer) { return attends[static_cast<std::size_t>(layer)] ? 1 : 0; };
  assemble(spec, frame, stack(spec.layers, 2, kind_of, [&](int kind) { return lfm2_layer(config, spec, kind == 1); }));
  return spec;
}

}  // namespace membill::census
