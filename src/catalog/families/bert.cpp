// Encoders: bert, roberta, xlm-roberta. The class that the file's `architectures` names decides what follows the encoder: nothing
// but the pooler, or the masked-word head, or a classifier.
#include "catalog/families/decoder.h"
#include "catalog/families/encoder_head.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

void layer_norm(TensorList& list, std::string_view module, std::int64_t hidden) { list.norm(module, hidden, true); }

std::vector<TensorSpec> bert_embedding(const ConfigReader& config, const ModelSpec& spec, const std::string& start,
                                       bool positions_last) {
  TensorList list(start + "embeddings.");
  list.embedding("word_embeddings", spec.vocab, spec.hidden);
  if (!positions_last) list.embedding("position_embeddings", spec.max_positions, spec.hidden, TensorRole::position);
  list.embedding("token_type_embeddings", config.size("type_vocab_size"), spec.hidden, TensorRole::position);
  layer_norm(list, "LayerNorm", spec.hidden);
  if (positions_last) list.embedding("position_embeddings", spec.max_positions, spec.hidden, TensorRole::position);
  list.buffer("position_ids", {1, spec.max_positions}, DType::int64);
  list.buffer("token_type_ids", {1, spec.max_positions}, DType::int64);
  return list.take();
}

LayerKind bert_layer(const ConfigReader& config, const ModelSpec& spec, const std::string& start) {
  LayerKind kind = read_encoder_layer(config, spec.hidden);
  TensorList list(start + "encoder.layer.*.");
  for (const std::string_view name : {"attention.self.query", "attention.self.key", "attention.self.value"}) {
    list.linear(name, spec.hidden, spec.hidden, true, TensorRole::attention, SplitAxis::column);
  }
  list.linear("attention.output.dense", spec.hidden, spec.hidden, true, TensorRole::attention, SplitAxis::row);
  layer_norm(list, "attention.output.LayerNorm", spec.hidden);
  plain_mlp(list, "intermediate.dense", "output.dense", kind.mlp, spec.hidden);
  layer_norm(list, "output.LayerNorm", spec.hidden);
  kind.tensors = list.take();
  return kind;
}

// The head that predicts masked words: its matrix is the embedding's, its bias is its own.
void bert_words(TensorList& list, const ModelSpec& spec) {
  list.parameter("cls.predictions.bias", {spec.vocab}, TensorRole::head, SplitAxis::vocab);
  list.linear("cls.predictions.transform.dense", spec.hidden, spec.hidden, true, TensorRole::other, SplitAxis::none);
  layer_norm(list, "cls.predictions.transform.LayerNorm", spec.hidden);
  if (!spec.tied_embeddings) {
    list.linear("cls.predictions.decoder", spec.hidden, spec.vocab, true, TensorRole::head, SplitAxis::vocab);
  }
}

void roberta_words(TensorList& list, const ModelSpec& spec) {
  list.parameter("lm_head.bias", {spec.vocab}, TensorRole::head, SplitAxis::vocab);
  list.linear("lm_head.dense", spec.hidden, spec.hidden, true, TensorRole::other, SplitAxis::none);
  layer_norm(list, "lm_head.layer_norm", spec.hidden);
  if (!spec.tied_embeddings)
    list.linear("lm_head.decoder", spec.hidden, spec.vocab, true, TensorRole::head, SplitAxis::vocab);
}

void bert_head(TensorList& list, const ConfigReader& config, const ModelSpec& spec, EncoderHead head,
               const std::string& start) {
  if (head != EncoderHead::words) {
    list.linear(start + "pooler.dense", spec.hidden, spec.hidden, true, TensorRole::other, SplitAxis::none);
  }
  if (head == EncoderHead::words || head == EncoderHead::pretraining) bert_words(list, spec);
  if (head == EncoderHead::pretraining) {
    list.linear("cls.seq_relationship", spec.hidden, 2, true, TensorRole::head, SplitAxis::none);
  }
  if (head == EncoderHead::classifier) {
    list.linear("classifier", spec.hidden, label_count(config), true, TensorRole::head, SplitAxis::none);
  }
}

void roberta_head(TensorList& list, const ConfigReader& config, const ModelSpec& spec, EncoderHead head,
                  const std::string& start) {
  if (head == EncoderHead::words || head == EncoderHead::pretraining) {
    roberta_words(list, spec);
  } else if (head == EncoderHead::classifier) {
    list.linear("classifier.dense", spec.hidden, spec.hidden, true, TensorRole::head, SplitAxis::none);
    list.linear("classifier.out_proj", spec.hidden, label_count(config), true, TensorRole::head, SplitAxis::none);
  } else {
    list.linear(start + "pooler.dense", spec.hidden, spec.hidden, true, TensorRole::other, SplitAxis::none);
  }
}

// `stem` is the base model's name inside of a class with a head.
ModelSpec describe_encoder(const ConfigReader& config, std::string_view model_type, std::string_view stem,
                           bool is_bert) {
  const EncoderHead head = read_encoder_head(config);
  const std::vector<std::string> classes = config.words("architectures");
  const std::string base_class = is_bert                     ? "BertModel"
                                 : model_type == "roberta"   ? "RobertaModel"
                                 : model_type == "camembert" ? "CamembertModel"
                                                             : "XLMRobertaModel";
  ModelSpec spec = read_dimensions(config, model_type, head == EncoderHead::pooler ? base_class : classes.front());
  spec.tied_embeddings = config.flag("tie_word_embeddings", true);
  spec.max_positions = config.size("max_position_embeddings");
  spec.norm = NormKind::layer;
  spec.position = PositionKind::learned;
  spec.hidden_dropout = config.dropout("hidden_dropout_prob", 0.1);
  const std::string start = head == EncoderHead::pooler ? "" : std::string(stem) + ".";
  spec.sections.push_back(single("embedding", bert_embedding(config, spec, start, !is_bert)));
  spec.sections.push_back(uniform_stack(spec.layers, bert_layer(config, spec, start)));
  TensorList list;
  if (is_bert) {
    bert_head(list, config, spec, head, start);
  } else {
    roberta_head(list, config, spec, head, start);
  }
  spec.sections.push_back(single("head", list.take()));
  return spec;
}

}  // namespace

ModelSpec describe_bert(const Value& values, Problems& problems) {
  return describe_encoder(ConfigReader(values, problems), "bert", "bert", true);
}

ModelSpec describe_roberta(const Value& values, Problems& problems) {
  return describe_encoder(ConfigReader(values, problems), "roberta", "roberta", false);
}

ModelSpec describe_camembert(const Value& values, Problems& problems) {
  return describe_encoder(ConfigReader(values, problems), "camembert", "roberta", false);
}

ModelSpec describe_xlm_roberta(const Value& values, Problems& problems) {
  return describe_encoder(ConfigReader(values, problems), "xlm-roberta", "roberta", false);
}

}  // namespace membill::census
