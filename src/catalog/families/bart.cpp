// Encoder and decoder with learned positions: bart, mbart.
#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

constexpr std::int64_t kFirstPlaces = 2;  // rows of a position table before the first place

struct Stack {
  const char* name;  // "encoder"
  bool decoder = false;
  AttentionShape attention;
  MlpShape mlp;
  std::int64_t layers = 0;
};

void bart_attention(TensorList& list, const std::string& module, std::int64_t hidden) {
  for (const std::string_view name : {".k_proj", ".v_proj", ".q_proj"})
    list.linear(module + std::string(name), hidden, hidden, true, TensorRole::attention, SplitAxis::column);
  list.linear(module + ".out_proj", hidden, hidden, true, TensorRole::attention, SplitAxis::row);
}

LayerKind bart_layer(const Stack& stack, std::int64_t hidden) {
  LayerKind kind;
  kind.attention = stack.attention;
  kind.mlp = stack.mlp;
  TensorList list(std::string("model.") + stack.name + ".layers.*.");
  bart_attention(list, "self_attn", hidden);
  list.norm("self_attn_layer_norm", hidden, true);
  if (stack.decoder) {
    bart_attention(list, "encoder_attn", hidden);
    list.norm("encoder_attn_layer_norm", hidden, true);
  }
  plain_mlp(list, "fc1", "fc2", stack.mlp, hidden);
  list.norm("final_layer_norm", hidden, true);
  kind.tensors = list.take();
  return kind;
}

Stack read_stack(const ConfigReader& config, std::int64_t hidden, bool decoder) {
  const std::string start = decoder ? "decoder_" : "encoder_";
  Stack stack{decoder ? "decoder" : "encoder", decoder, {}, {}, config.listed(start + "layers")};
  AttentionShape& attention = stack.attention;
  attention.heads = attention.kv_heads = config.listed(start + "attention_heads");
  if (hidden % attention.heads != 0)
    config.problem(start + "attention_heads",
                   std::to_string(attention.heads) + " heads do not divide a hidden size of " + std::to_string(hidden));
  attention.head_dim = attention.value_head_dim = std::max<std::int64_t>(hidden / attention.heads, 1);
  attention.qkv_bias = attention.output_bias = true;
  attention.dropout = config.dropout("attention_dropout");
  stack.mlp = read_plain_mlp(config, config.size(start + "ffn_dim"), true);
  return stack;
}

void add_stack(ModelSpec& spec, const Stack& stack, bool norm_behind) {
  TensorList around(std::string("model.") + stack.name + ".");
  around.embedding("embed_positions", checked_add(spec.max_positions, kFirstPlaces), spec.hidden, TensorRole::position);
  around.norm("layernorm_embedding", spec.hidden, true);
  if (norm_behind) around.norm("layer_norm", spec.hidden, true);
  Section layers = uniform_stack(stack.layers, bart_layer(stack, spec.hidden));
  layers.name = stack.name;
  spec.sections.push_back(std::move(layers));
  spec.sections.push_back(single(stack.decoder ? "final" : "encoder_final", around.take()));
}

ModelSpec describe_bart_shape(const ConfigReader& config, std::string_view model_type, std::string_view class_name,
                              bool norm_behind) {
  ModelSpec spec;
  spec.model_type = model_type;
  spec.class_name = class_name;
  spec.vocab = config.size("vocab_size");
  spec.hidden = config.size("hidden_size");
  spec.max_positions = config.size("max_position_embeddings");
  spec.tied_embeddings = true;
  spec.norm = NormKind::layer;
  spec.position = PositionKind::learned;
  spec.hidden_dropout = config.dropout("hidden_dropout", 0.1);
  spec.embedding_dropout = config.dropout("activation_dropout");  // of the MLP's activation
  spec.stored_dtype = config.word("dtype", config.word("torch_dtype", ""));
  const Stack encoder = read_stack(config, spec.hidden, false), decoder = read_stack(config, spec.hidden, true);
  spec.layers = decoder.layers;
  TensorList embedding;
  embedding.embedding("model.shared", spec.vocab, spec.hidden);
  embedding.buffer("final_logits_bias", {1, spec.vocab});
  spec.sections.push_back(single("embedding", embedding.take()));
  add_stack(spec, encoder, norm_behind);
  add_stack(spec, decoder, norm_behind);
  return spec;
}

}  // namespace

ModelSpec describe_bart(const Value& values, Problems& problems) {
  return describe_bart_shape(ConfigReader(values, problems), "bart", "BartForConditionalGeneration", false);
}

ModelSpec describe_mbart(const Value& values, Problems& problems) {
  return describe_bart_shape(ConfigReader(values, problems), "mbart", "MBartForConditionalGeneration", true);
}

}  // namespace membill::census
