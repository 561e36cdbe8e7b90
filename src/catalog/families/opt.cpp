// opt: embeddings may be narrower than the layers, and the final norm is registered before them.
#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

// OPT's position table has two rows that no position uses.
constexpr std::int64_t kUnusedPositions = 2;

struct OptOptions {
  std::int64_t embedding_width = 0;
  bool norm_weights = true;
  bool final_norm = true;
};

LayerKind opt_layer(const ConfigReader& config, const ModelSpec& spec, const OptOptions& options) {
  const bool bias = config.flag("enable_bias", true);
  LayerKind kind;
  kind.attention = read_plain_attention(config, spec.hidden);
  kind.attention.qkv_bias = kind.attention.output_bias = bias;
  kind.mlp = read_plain_mlp(config, config.size("intermediate_size"), bias);
  TensorList list("model.decoder.layers.*.");
  for (const std::string_view name : {"self_attn.k_proj", "self_attn.v_proj", "self_attn.q_proj"}) {
    list.linear(name, spec.hidden, spec.hidden, bias, TensorRole::attention, SplitAxis::column);
  }
  list.linear("self_attn.out_proj", spec.hidden, spec.hidden, bias, TensorRole::attention, SplitAxis::row);
  if (options.norm_weights) norms(list, {"self_attn_layer_norm"}, spec.hidden, true);
  plain_mlp(list, "fc1", "fc2", kind.mlp, spec.hidden);
  if (options.norm_weights) norms(list, {"final_layer_norm"}, spec.hidden, true);
  kind.tensors = list.take();
  return kind;
}

std::vector<TensorSpec> opt_embedding(const ModelSpec& spec, const OptOptions& options) {
  TensorList list("model.decoder.");
  list.embedding("embed_tokens", spec.vocab, options.embedding_width);
  list.embedding("embed_positions", spec.max_positions + kUnusedPositions, spec.hidden, TensorRole::position);
  if (options.embedding_width != spec.hidden) {
    list.linear("project_out", spec.hidden, options.embedding_width, false, TensorRole::other, SplitAxis::none);
    list.linear("project_in", options.embedding_width, spec.hidden, false, TensorRole::other, SplitAxis::none);
  }
  return list.take();
}

}  // namespace

ModelSpec describe_opt(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "opt", "OPTForCausalLM");
  spec.max_positions = config.size("max_position_embeddings");
  spec.norm = NormKind::layer;
  spec.position = PositionKind::learned;
  spec.hidden_dropout = config.dropout("dropout", 0.1);
  OptOptions options;
  options.embedding_width = config.size_or("word_embed_proj_dim", spec.hidden);
  options.norm_weights = config.flag("layer_norm_elementwise_affine", true);
  options.final_norm = config.flag("do_layer_norm_before", true) && !config.flag("_remove_final_layer_norm", false);

  spec.sections.push_back(single("embedding", opt_embedding(spec, options)));
  if (options.final_norm && options.norm_weights) {
    TensorList last;
    last.norm("model.decoder.final_layer_norm", spec.hidden, true);
    spec.sections.push_back(single("final", last.take()));
  }
  spec.sections.push_back(uniform_stack(spec.layers, opt_layer(config, spec, options)));
  if (!spec.tied_embeddings) {
    TensorList head;
    head.linear("lm_head", options.embedding_width, spec.vocab, false, TensorRole::head, SplitAxis::vocab);
    spec.sections.push_back(single("head", head.take()));
  }
  return spec;
}

}  // namespace membill::census
