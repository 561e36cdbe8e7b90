// mllama (Llama 3.2 Vision): llama's shape, and between its layers others that attend to an image's states.
#include <algorithm>

#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

constexpr std::int64_t kImageTokens = 8;  // rows of the embedding beyond the vocabulary

void image_attention(TensorList& list, const std::string& layer, const LayerKind& kind, std::int64_t hidden) {
  for (const char* gate : {"cross_attn_attn_gate", "cross_attn_mlp_gate"})
    list.parameter(layer + gate, {1}, TensorRole::other);
  const AttentionShape& shape = kind.attention;
  const std::int64_t q = checked_mul(shape.heads, shape.head_dim), kv = checked_mul(shape.kv_heads, shape.head_dim);
  list.linear(layer + "cross_attn.q_proj", hidden, q, false, TensorRole::attention, SplitAxis::column);
  list.linear(layer + "cross_attn.k_proj", hidden, kv, false, TensorRole::attention, SplitAxis::column);
  list.linear(layer + "cross_attn.v_proj", hidden, kv, false, TensorRole::attention, SplitAxis::column);
  list.linear(layer + "cross_attn.o_proj", q, hidden, false, TensorRole::attention, SplitAxis::row);
  list.norm(layer + "cross_attn.q_norm", shape.head_dim);
  list.norm(layer + "cross_attn.k_norm", shape.head_dim);
  list.norm(layer + "input_layernorm", hidden);
  gated_mlp(list, layer + "mlp", kind.mlp, hidden);
  list.norm(layer + "post_attention_layernorm", hidden);
}

std::vector<std::int64_t> image_layers(const ConfigReader& config, std::int64_t layers) {
  std::vector<std::int64_t> places = config.counts("cross_attention_layers");
  if (config.find("cross_attention_layers") == nullptr) places = {3, 8, 13, 18, 23, 28, 33, 38};
  for (const std::int64_t place : places)
    if (place < 0 || place >= layers)
      config.problem("cross_attention_layers",
                     "names layer " + std::to_string(place) + ", but the model has " + std::to_string(layers));
  return places;
}

}  // namespace

// Layers that attend to images are a section of their own: a batch of text runs none of them.
ModelSpec describe_mllama(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "mllama_text_model", "MllamaForConditionalGeneration");
  spec.tied_embeddings = false;
  AttentionShape attention = read_attention(config, spec.hidden);
  attention.dropout = config.dropout("dropout");
  const LayerKind kind = dense_layer(spec.hidden, attention, read_gated_mlp(config));
  TensorList embedding, images, last;
  embedding.embedding("model.embed_tokens", checked_add(spec.vocab, kImageTokens), spec.hidden);
  const std::vector<std::int64_t> places = image_layers(config, spec.layers);
  for (const std::int64_t place : places)
    image_attention(images, "model.layers." + std::to_string(place) + ".", kind, spec.hidden);
  spec.layers = std::max<std::int64_t>(spec.layers - static_cast<std::int64_t>(places.size()), 1);
  last.norm("model.norm", spec.hidden);
  last.rotary_buffers("model.rotary_emb", attention.rotary_dim);
  TensorList head;
  head.linear("lm_head", spec.hidden, spec.vocab, false, TensorRole::head, SplitAxis::vocab);
  spec.sections.push_back(single("embedding", embedding.take()));
  spec.sections.push_back(uniform_stack(spec.layers, kind));
  if (!images.empty()) spec.sections.push_back(single("vision", images.take()));
  spec.sections.push_back(single("final", last.take()));
  spec.sections.push_back(single("head", head.take()));
  if (!places.empty())
    spec.warnings.push_back(std::to_string(places.size()) +
                            " layers attend to images: their weights are billed, what they do beside an image is not");
  return spec;
}

}  // namespace membill::census
