// Encoder and decoder with relative position biases: t5, mt5, umt5.
#include "catalog/families/decoder.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

struct T5Shape {
  AttentionShape attention;
  MlpShape mlp;
  std::int64_t buckets = 0;
  bool bias_everywhere = false;  // umt5: a table in every layer, not only in the first
};

void t5_attention(TensorList& list, const std::string& module, const T5Shape& shape, std::int64_t hidden,
                  bool with_bias) {
  const std::int64_t width = checked_mul(shape.attention.heads, shape.attention.head_dim);
  for (const std::string_view name : {".q", ".k", ".v"}) {
    list.linear(module + std::string(name), hidden, width, false, TensorRole::attention, SplitAxis::column);
  }
  list.linear(module + ".o", width, hidden, false, TensorRole::attention, SplitAxis::row);
  if (with_bias) {
    list.embedding(module + ".relative_attention_bias", shape.buckets, shape.attention.heads, TensorRole::position);
  }
}

void t5_mlp(TensorList& list, const std::string& module, const MlpShape& mlp, std::int64_t hidden) {
  if (mlp.gated) {
    list.linear(module + ".wi_0", hidden, mlp.intermediate, false, TensorRole::mlp, SplitAxis::column);
    list.linear(module + ".wi_1", hidden, mlp.intermediate, false, TensorRole::mlp, SplitAxis::column);
  } else {
    list.linear(module + ".wi", hidden, mlp.intermediate, false, TensorRole::mlp, SplitAxis::column);
  }
  list.linear(module + ".wo", mlp.intermediate, hidden, false, TensorRole::mlp, SplitAxis::row);
}

LayerKind t5_layer(const T5Shape& shape, std::int64_t hidden, bool decoder, bool with_bias) {
  LayerKind kind;
  kind.attention = shape.attention;
  kind.mlp = shape.mlp;
  TensorList list(decoder ? "decoder.block.*.layer." : "encoder.block.*.layer.");
  t5_attention(list, "0.SelfAttention", shape, hidden, with_bias);
  list.norm("0.layer_norm", hidden);
  if (decoder) {
    t5_attention(list, "1.EncDecAttention", shape, hidden, false);
    list.norm("1.layer_norm", hidden);
  }
  const std::string last = decoder ? "2" : "1";
  t5_mlp(list, last + ".DenseReluDense", shape.mlp, hidden);
  list.norm(last + ".layer_norm", hidden);
  kind.tensors = list.take();
  return kind;
}

void add_stack(ModelSpec& spec, const T5Shape& shape, std::int64_t layers, bool decoder) {
  const auto kind_of = [&](std::int64_t layer) { return layer == 0 || shape.bias_everywhere ? 1 : 0; };
  Section section =
      stack(layers, 2, kind_of, [&](int number) { return t5_layer(shape, spec.hidden, decoder, number == 1); });
  section.name = decoder ? "decoder" : "encoder";
  spec.sections.push_back(std::move(section));
  TensorList last;
  last.norm(decoder ? "decoder.final_layer_norm" : "encoder.final_layer_norm", spec.hidden);
  spec.sections.push_back(single(decoder ? "final" : "encoder_final", last.take()));
}

T5Shape read_t5_shape(const ConfigReader& config) {
  T5Shape shape;
  shape.attention.heads = shape.attention.kv_heads = config.listed("num_attention_heads");
  shape.attention.head_dim = shape.attention.value_head_dim = config.size("head_dim");
  shape.attention.dropout = config.dropout("dropout_rate", 0.1);
  shape.mlp.intermediate = config.size("intermediate_size");
  const std::string projection = config.word("feed_forward_proj", "relu");
  const bool says_gated = projection.starts_with("gated-");
  shape.mlp.gated = config.flag("is_gated_act", says_gated);
  shape.mlp.activation = projection == "gated-gelu" ? "gelu_new" : says_gated ? projection.substr(6) : projection;
  shape.buckets = config.size("relative_attention_num_buckets");
  return shape;
}

// transformers 5 ties the head when it builds a T5 from its config, whatever the file says. A checkpoint that holds a head of its own
// (lm_head_in_checkpoint, stated by presets) keeps it.
ModelSpec describe_t5_shape(const ConfigReader& config, std::string_view model_type, std::string_view class_name,
                            bool bias_everywhere) {
  ModelSpec spec = read_dimensions(config, model_type, class_name);
  spec.tied_embeddings = !config.flag("lm_head_in_checkpoint", false);
  if (spec.tied_embeddings && !config.flag("tie_word_embeddings", true)) {
    spec.warnings.push_back(
        "the file unties the head, but transformers builds it tied; a checkpoint with its own lm_head holds " +
        std::to_string(checked_mul(spec.vocab, spec.hidden)) + " parameters more");
  }
  spec.scales_head_input = model_type != "mt5" && config.flag("tie_word_embeddings", true);
  spec.position = PositionKind::relative;
  spec.hidden_dropout = config.dropout("dropout_rate", 0.1);
  T5Shape shape = read_t5_shape(config);
  shape.bias_everywhere = bias_everywhere;
  TensorList embedding;
  embedding.embedding("shared", spec.vocab, spec.hidden);
  spec.sections.push_back(single("embedding", embedding.take()));
  add_stack(spec, shape, spec.layers, false);
  const std::int64_t decoder_layers =
      config.find("num_decoder_layers") == nullptr ? spec.layers : config.listed("num_decoder_layers");
  add_stack(spec, shape, decoder_layers, true);
  if (!spec.tied_embeddings) {
    TensorList head;
    head.linear("lm_head", spec.hidden, spec.vocab, false, TensorRole::head, SplitAxis::vocab);
    spec.sections.push_back(single("head", head.take()));
  }
  return spec;
}

}  // namespace

ModelSpec describe_t5(const Value& values, Problems& problems) {
  return describe_t5_shape(ConfigReader(values, problems), "t5", "T5ForConditionalGeneration", false);
}

ModelSpec describe_mt5(const Value& values, Problems& problems) {
  return describe_t5_shape(ConfigReader(values, problems), "mt5", "MT5ForConditionalGeneration", false);
}

ModelSpec describe_umt5(const Value& values, Problems& problems) {
  return describe_t5_shape(ConfigReader(values, problems), "umt5", "UMT5ForConditionalGeneration", true);
}

}  // namespace membill::census
