// deberta-v2 (deberta-v3's checkpoints are of this type): bert's layers with positions in the scores, relative to one another.
#include <algorithm>
#include <string>

#include "catalog/families/decoder.h"
#include "catalog/families/encoder_head.h"
#include "catalog/families/list.h"

namespace membill::census {

namespace {

// A count that the file may say is unknown, by -1.
std::int64_t positive_or(const ConfigReader& config, std::string_view key, std::int64_t fallback) {
  const Value* value = config.find(key);
  return value != nullptr && value->is_int() && value->as_int() < 1 ? fallback : config.size_or(key, fallback);
}

// The members of a list, or of a word with bars.
bool names(const ConfigReader& config, std::string_view key, std::string_view member) {
  const Value* value = config.find(key);
  if (value != nullptr && value->is_string())
    return ("|" + value->as_string() + "|").find("|" + std::string(member) + "|") != std::string::npos;
  const std::vector<std::string> words = config.words(key);
  return std::find(words.begin(), words.end(), member) != words.end();
}

// How queries, keys and places meet.
struct Places {
  bool relative = false, shared = false, to_key = false, to_query = false;
  std::int64_t span = 0;
};

Places read_places(const ConfigReader& config, std::int64_t max_positions) {
  Places places;
  places.relative = config.flag("relative_attention", false);
  places.shared = config.flag("share_att_key", false);
  places.to_key = names(config, "pos_att_type", "c2p");
  places.to_query = names(config, "pos_att_type", "p2c");
  const std::int64_t most = positive_or(config, "max_relative_positions", max_positions);
  places.span = positive_or(config, "position_buckets", most);
  const bool one_of_two = places.to_key != places.to_query;
  if (places.relative && (one_of_two || !places.to_key))
    config.problem("pos_att_type", "only both kinds of relative attention are modelled", "p2c|c2p");
  return places;
}

LayerKind deberta_layer(const ConfigReader& config, const ModelSpec& spec, const Places& places,
                        const std::string& start) {
  LayerKind kind = read_encoder_layer(config, spec.hidden);
  TensorList list(start + "encoder.layer.*.");
  const auto square = [&](std::string_view name, SplitAxis split) {
    list.linear(name, spec.hidden, spec.hidden, true, TensorRole::attention, split);
  };
  for (const char* name : {"attention.self.query_proj", "attention.self.key_proj", "attention.self.value_proj"})
    square(name, SplitAxis::column);
  if (places.relative && !places.shared) {
    square("attention.self.pos_key_proj", SplitAxis::column);
    square("attention.self.pos_query_proj", SplitAxis::column);
  }
  square("attention.output.dense", SplitAxis::row);
  list.norm("attention.output.LayerNorm", spec.hidden, true);
  plain_mlp(list, "intermediate.dense", "output.dense", kind.mlp, spec.hidden);
  list.norm("output.LayerNorm", spec.hidden, true);
  kind.tensors = list.take();
  return kind;
}

std::vector<TensorSpec> deberta_embedding(const ConfigReader& config, const ModelSpec& spec, const std::string& start) {
  const std::int64_t width = config.size_or("embedding_size", spec.hidden),
                     types = config.count_or("type_vocab_size", 0);
  TensorList list(start + "embeddings.");
  list.embedding("word_embeddings", spec.vocab, width);
  if (config.flag("position_biased_input", true))
    list.embedding("position_embeddings", spec.max_positions, width, TensorRole::position);
  if (types > 0) list.embedding("token_type_embeddings", types, width, TensorRole::position);
  if (width != spec.hidden) list.linear("embed_proj", width, spec.hidden, false, TensorRole::other, SplitAxis::none);
  list.norm("LayerNorm", spec.hidden, true);
  list.buffer("position_ids", {1, spec.max_positions}, DType::int64);
  return list.take();
}

std::vector<TensorSpec> deberta_end(const ConfigReader& config, const ModelSpec& spec, EncoderHead head,
                                    const Places& places, const std::string& start) {
  TensorList list;
  const auto square = [&](const std::string& name) {
    list.linear(name, spec.hidden, spec.hidden, true, TensorRole::other, SplitAxis::none);
  };
  if (places.relative)
    list.embedding(start + "encoder.rel_embeddings", checked_mul(2, places.span), spec.hidden, TensorRole::position);
  if (names(config, "norm_rel_ebd", "layer_norm")) list.norm(start + "encoder.LayerNorm", spec.hidden, true);
  if (head == EncoderHead::words) {
    list.parameter("cls.predictions.bias", {spec.vocab}, TensorRole::head, SplitAxis::vocab);
    square("cls.predictions.transform.dense");
    list.norm("cls.predictions.transform.LayerNorm", spec.hidden, true);
    if (!spec.tied_embeddings)
      list.linear("cls.predictions.decoder", spec.hidden, spec.vocab, true, TensorRole::head, SplitAxis::vocab);
  } else if (head == EncoderHead::classifier) {
    square("pooler.dense");
    list.linear("classifier", spec.hidden, label_count(config), true, TensorRole::head, SplitAxis::none);
  }
  return list.take();
}

}  // namespace

ModelSpec describe_deberta_v2(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  const EncoderHead head = read_encoder_head(config);
  ModelSpec spec = read_dimensions(config, "deberta-v2", encoder_class(config, "DebertaV2Model"));
  spec.tied_embeddings = config.flag("tie_word_embeddings", true);
  spec.max_positions = config.size("max_position_embeddings");
  spec.norm = NormKind::layer;
  spec.position = PositionKind::relative;
  spec.hidden_dropout = config.dropout("hidden_dropout_prob", 0.1);
  spec.embedding_dropout = config.dropout("cls_dropout", spec.hidden_dropout);  // of the classifier
  if (config.count_or("conv_kernel_size", 0) > 0)
    config.problem("conv_kernel_size", "the convolution behind the first layer is not modelled");
  if (head == EncoderHead::words && !config.flag("legacy", true))
    config.problem("legacy", "only the older head over words is modelled", "true");
  const Places places = read_places(config, spec.max_positions);
  const std::string start = head == EncoderHead::pooler ? "" : "deberta.";
  spec.sections.push_back(single("embedding", deberta_embedding(config, spec, start)));
  spec.sections.push_back(uniform_stack(spec.layers, deberta_layer(config, spec, places, start)));
  if (std::vector<TensorSpec> end = deberta_end(config, spec, head, places, start); !end.empty())
    spec.sections.push_back(single("head", std::move(end)));
  return spec;
}

}  // namespace membill::census
