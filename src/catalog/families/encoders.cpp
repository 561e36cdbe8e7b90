// Further encoders: electra, distilbert, modernbert.
#include "catalog/families/decoder.h"
#include "catalog/families/encoder_head.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

void dense(TensorList& list, const std::string& name, std::int64_t in, std::int64_t out, bool bias = true) {
  list.linear(name, in, out, bias, TensorRole::other, SplitAxis::none);
}

ModelSpec read_encoder(const ConfigReader& config, std::string_view model_type, std::string_view base_class) {
  ModelSpec spec = read_dimensions(config, model_type, encoder_class(config, base_class));
  spec.tied_embeddings = config.flag("tie_word_embeddings", true);
  spec.max_positions = config.size("max_position_embeddings");
  spec.norm = NormKind::layer;
  spec.position = PositionKind::learned;
  return spec;
}

// A head over the vocabulary whose matrix is the embedding's when they are tied; its bias is its own.
void word_head(TensorList& list, const ModelSpec& spec, const std::string& name, std::int64_t width, bool bias) {
  if (!spec.tied_embeddings)
    list.linear(name, width, spec.vocab, bias, TensorRole::head, SplitAxis::vocab);
  else if (bias)
    list.head_bias(name, spec.vocab);
}

void classifier(TensorList& list, const ConfigReader& config, const std::string& name, std::int64_t width) {
  list.linear(name, width, label_count(config), true, TensorRole::head, SplitAxis::none);
}

LayerKind electra_layer(const ConfigReader& config, const ModelSpec& spec, const std::string& start) {
  LayerKind kind;
  kind.attention = read_plain_attention(config, spec.hidden);
  kind.attention.qkv_bias = kind.attention.output_bias = true;
  kind.mlp = read_plain_mlp(config, config.size("intermediate_size"), true);
  TensorList list(start + "encoder.layer.*.");
  for (const std::string_view name : {"attention.self.query", "attention.self.key", "attention.self.value"})
    list.linear(name, spec.hidden, spec.hidden, true, TensorRole::attention, SplitAxis::column);
  list.linear("attention.output.dense", spec.hidden, spec.hidden, true, TensorRole::attention, SplitAxis::row);
  list.norm("attention.output.LayerNorm", spec.hidden, true);
  plain_mlp(list, "intermediate.dense", "output.dense", kind.mlp, spec.hidden);
  list.norm("output.LayerNorm", spec.hidden, true);
  kind.tensors = list.take();
  return kind;
}

LayerKind distilbert_layer(const ConfigReader& config, const ModelSpec& spec, const std::string& start) {
  LayerKind kind;
  kind.attention = read_plain_attention(config, spec.hidden);
  kind.attention.qkv_bias = kind.attention.output_bias = true;
  kind.mlp = read_plain_mlp(config, config.size("hidden_dim"), true);
  TensorList list(start + "transformer.layer.*.");
  for (const std::string_view name : {"attention.q_lin", "attention.k_lin", "attention.v_lin"})
    list.linear(name, spec.hidden, spec.hidden, true, TensorRole::attention, SplitAxis::column);
  list.linear("attention.out_lin", spec.hidden, spec.hidden, true, TensorRole::attention, SplitAxis::row);
  list.norm("sa_layer_norm", spec.hidden, true);
  plain_mlp(list, "ffn.lin1", "ffn.lin2", kind.mlp, spec.hidden);
  list.norm("output_layer_norm", spec.hidden, true);
  kind.tensors = list.take();
  return kind;
}

// `first`: the first layer has no norm before its attention.
LayerKind modernbert_layer(const ConfigReader& config, const ModelSpec& spec, const std::string& start, bool first,
                           std::optional<std::int64_t> window) {
  const bool norm_bias = config.flag("norm_bias", false), attention_bias = config.flag("attention_bias", false);
  LayerKind kind;
  kind.attention = read_plain_attention(config, spec.hidden);
  kind.attention.rotary_dim = kind.attention.head_dim;
  kind.attention.fused_qkv = true;
  kind.attention.qkv_bias = kind.attention.output_bias = attention_bias;
  kind.attention.sliding_window = window;
  kind.mlp = read_gated_mlp(config);
  kind.mlp.activation = config.word("hidden_act", "gelu");
  kind.mlp.fused_gate_up = true;
  kind.mlp.bias = config.flag("mlp_bias", false);
  TensorList list(start + "layers.*.");
  if (!first) list.norm("attn_norm", spec.hidden, norm_bias);
  list.linear("attn.Wqkv", spec.hidden, checked_mul(3, spec.hidden), attention_bias, TensorRole::attention,
              SplitAxis::column);
  list.linear("attn.Wo", spec.hidden, spec.hidden, attention_bias, TensorRole::attention, SplitAxis::row);
  list.norm("mlp_norm", spec.hidden, norm_bias);
  list.linear("mlp.Wi", spec.hidden, checked_mul(2, kind.mlp.intermediate), kind.mlp.bias, TensorRole::mlp,
              SplitAxis::column);
  list.linear("mlp.Wo", kind.mlp.intermediate, spec.hidden, kind.mlp.bias, TensorRole::mlp, SplitAxis::row);
  kind.tensors = list.take();
  return kind;
}

Section modernbert_layers(const ConfigReader& config, const ModelSpec& spec, const std::string& start) {
  const std::int64_t every = config.size_or("global_attn_every_n_layers", 3);
  const std::int64_t window = std::max<std::int64_t>(config.size_or("local_attention", 128) / 2, 1);
  const std::vector<bool> slides =
      sliding_layers(config, spec.layers, [&](std::int64_t layer) { return layer % every != 0; });
  const auto kind_of = [&](std::int64_t layer) {
    return (slides[static_cast<std::size_t>(layer)] ? 1 : 0) + (layer == 0 ? 2 : 0);
  };
  return stack(spec.layers, 4, kind_of, [&](int number) {
    const std::optional<std::int64_t> seen = (number & 1) != 0 ? std::optional(window) : std::nullopt;
    return modernbert_layer(config, spec, start, (number & 2) != 0, seen);
  });
}

std::string stem_of(EncoderHead head, const char* stem) { return head == EncoderHead::pooler ? "" : stem; }

}  // namespace

ModelSpec describe_electra(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  const EncoderHead head = read_encoder_head(config);
  ModelSpec spec = read_encoder(config, "electra", "ElectraModel");
  spec.hidden_dropout = config.dropout("hidden_dropout", 0.1);
  const std::string start = stem_of(head, "electra.");
  const std::int64_t width = config.size_or("embedding_size", spec.hidden);
  TensorList embeddings(start), last;
  embeddings.embedding("embeddings.word_embeddings", spec.vocab, width);
  embeddings.embedding("embeddings.position_embeddings", spec.max_positions, width, TensorRole::position);
  embeddings.embedding("embeddings.token_type_embeddings", config.size("type_vocab_size"), width, TensorRole::position);
  embeddings.norm("embeddings.LayerNorm", width, true);
  embeddings.buffer("embeddings.position_ids", {1, spec.max_positions}, DType::int64);
  embeddings.buffer("embeddings.token_type_ids", {1, spec.max_positions}, DType::int64);
  if (width != spec.hidden) dense(embeddings, "embeddings_project", width, spec.hidden);
  spec.sections.push_back(single("embedding", embeddings.take()));
  spec.sections.push_back(uniform_stack(spec.layers, electra_layer(config, spec, start)));
  if (head == EncoderHead::words) {
    last.norm("generator_predictions.LayerNorm", width, true);
    dense(last, "generator_predictions.dense", spec.hidden, width);
    word_head(last, spec, "generator_lm_head", width, true);
  } else if (head == EncoderHead::classifier) {
    dense(last, "classifier.dense", spec.hidden, spec.hidden);
    classifier(last, config, "classifier.out_proj", spec.hidden);
  }
  if (!last.empty()) spec.sections.push_back(single("head", last.take()));
  return spec;
}

ModelSpec describe_distilbert(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  const EncoderHead head = read_encoder_head(config);
  ModelSpec spec = read_encoder(config, "distilbert", "DistilBertModel");
  spec.hidden_dropout = config.dropout("hidden_dropout", 0.1);
  spec.embedding_dropout = config.dropout("seq_classif_dropout", 0.2);  // of the classifier
  const std::string start = stem_of(head, "distilbert.");
  TensorList embeddings(start + "embeddings."), last;
  embeddings.embedding("word_embeddings", spec.vocab, spec.hidden);
  embeddings.embedding("position_embeddings", spec.max_positions, spec.hidden, TensorRole::position);
  embeddings.norm("LayerNorm", spec.hidden, true);
  embeddings.buffer("position_ids", {1, spec.max_positions}, DType::int64);
  spec.sections.push_back(single("embedding", embeddings.take()));
  spec.sections.push_back(uniform_stack(spec.layers, distilbert_layer(config, spec, start)));
  if (head == EncoderHead::words) {
    dense(last, "vocab_transform", spec.hidden, spec.hidden);
    last.norm("vocab_layer_norm", spec.hidden, true);
    word_head(last, spec, "vocab_projector", spec.hidden, true);
  } else if (head == EncoderHead::classifier) {
    dense(last, "pre_classifier", spec.hidden, spec.hidden);
    classifier(last, config, "classifier", spec.hidden);
  }
  if (!last.empty()) spec.sections.push_back(single("head", last.take()));
  return spec;
}

ModelSpec describe_modernbert(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  const EncoderHead head = read_encoder_head(config);
  ModelSpec spec = read_encoder(config, "modernbert", "ModernBertModel");
  spec.position = PositionKind::rotary;
  spec.hidden_dropout = config.dropout("mlp_dropout");
  spec.embedding_dropout = config.dropout("embedding_dropout");
  const std::string start = stem_of(head, "model.");
  const bool norm_bias = config.flag("norm_bias", false);
  TensorList embeddings(start + "embeddings."), last;
  embeddings.embedding("tok_embeddings", spec.vocab, spec.hidden);
  embeddings.norm("norm", spec.hidden, norm_bias);
  spec.sections.push_back(single("embedding", embeddings.take()));
  spec.sections.push_back(modernbert_layers(config, spec, start));
  last.norm(start + "final_norm", spec.hidden, norm_bias);
  const std::int64_t rotary = spec.sections.back().kinds.front().attention.head_dim;
  for (const char* type : {"full_attention_", "sliding_attention_"})
    last.rotary_buffers(start + "rotary_emb", rotary, type);
  if (head == EncoderHead::words || head == EncoderHead::classifier) {
    dense(last, "head.dense", spec.hidden, spec.hidden, config.flag("classifier_bias", false));
    last.norm("head.norm", spec.hidden, norm_bias);
  }
  if (head == EncoderHead::words) word_head(last, spec, "decoder", spec.hidden, config.flag("decoder_bias", true));
  if (head == EncoderHead::classifier) classifier(last, config, "classifier", spec.hidden);
  spec.sections.push_back(single("final", last.take()));
  return spec;
}

}  // namespace membill::census
