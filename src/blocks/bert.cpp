#include "blocks/bert.h"

#include "blocks/attention.h"
#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"
#include "blocks/loss.h"

namespace membill {
namespace {

// create_position_ids_from_input_ids, or the first columns of a buffer.
Tensor make_position_ids(Forward& f, bool counted) {
  Recorder& r = f.r;
  const Shape per_token{f.dims.N, Size(1)};
  if (!counted) return r.placeholder({f.dims.s, Size(1)}, DType::int64);
  const Tensor mask = r.empty(per_token, DType::int32, "mask of tokens");
  Tensor counts;
  {
    const Tensor sums = r.empty(per_token, DType::int64, "running count of tokens");
    const Tensor narrow = r.empty(per_token, DType::int32, "running count in 32 bits");
    counts = r.empty(per_token, DType::int32, "masked count of tokens");
  }
  const Tensor wide = r.empty(per_token, DType::int64, "masked count in 64 bits");
  return r.empty(per_token, DType::int64, "position ids");
}

// An embedding of ids that every row of the batch shares, for every token.
Tensor embed_for_all(Forward& f, Module& module, const Tensor& ids) {
  return apply_embedding(f, module, f.r.view(ids, {f.dims.N, Size(1)}));
}

Tensor bert_attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs,
                      Tensor& weights) {
  const KindDims& dims = layer.dims;
  const auto project = [&](const char* name) {
    return seen_as_heads(f, apply_linear(f, layer.modules.at(name), hidden), dims.a, dims.d);
  };
  const Tensor q = project("attention.self.query");
  const Tensor k = project("attention.self.key");
  const Tensor v = project("attention.self.value");
  AttentionCall call{dims, layer.kind.attention, choose_attention(f, layer.kind, inputs.mask.defined()), inputs.mask};
  call.native_softmax = call.keeps_softmax = true;
  call.weights = &weights;
  return run_attention(f, call, q, k, v);
}

}  // namespace

// BertSelfOutput and BertOutput: the norm follows the residual.
Tensor BertArchitecture::end_block(Forward& f, const Modules& modules, const std::string& name, const Tensor& x,
                                   const Tensor& residual) {
  Tensor hidden = apply_linear(f, modules.at(name + ".dense"), x);
  hidden = f.r.dropout(hidden, f.hidden_dropout);
  return layer_norm(f, modules.at(name + ".LayerNorm"), f.r.add(hidden, residual, "residual stream"));
}

Module* BertArchitecture::base(const Modules& outer, const std::string& name) const {
  Module* inside = outer.find(names_.stem + name);
  return inside != nullptr ? inside : outer.find(name);
}

Tensor BertArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  Recorder& r = f.r;
  const Tensor positions = make_position_ids(f, names_.counts_positions);
  const Tensor types = r.empty(positions.shape(), DType::int64, "token types");
  const Tensor words = made_to_need_gradient(f, apply_embedding(f, *base(outer, "embeddings.word_embeddings"), ids));
  const Tensor of_types = embed_for_all(f, *base(outer, "embeddings.token_type_embeddings"), types);
  Tensor embeddings = r.add(words, of_types, "words and types");
  const Tensor placed = apply_embedding(f, *base(outer, "embeddings.position_embeddings"), positions);
  embeddings = r.add(embeddings, placed, "words, types and positions");
  embeddings = layer_norm(f, *base(outer, "embeddings.LayerNorm"), embeddings);
  return r.dropout(embeddings, f.hidden_dropout);
}

// Every token sees every other: without padding no kernel gets a mask.
LayerInputs BertArchitecture::prepare(Forward& f, const Modules&, const Tensor&) const {
  LayerInputs inputs;
  if (f.plan.attention_mask)
    inputs.mask = f.r.empty({f.dims.N, f.unpads() ? Size(1) : f.dims.s}, DType::boolean, "padding mask, boolean");
  return inputs;
}

Tensor BertArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden, const LayerInputs& inputs) const {
  Tensor weights;
  Tensor attended = bert_attention(f, layer, hidden, inputs, weights);
  attended = end_block(f, layer.modules, "attention.output", attended, hidden);
  const Tensor expanded =
      activation(f, layer.kind.mlp.activation, apply_linear(f, layer.modules.at("intermediate.dense"), attended));
  const ItemScope scope(f.r, f.items.boundary);
  return end_block(f, layer.modules, "output", expanded, attended);
}

Tensor BertArchitecture::finish(Forward&, const Modules&, Tensor hidden) const { return hidden; }

// The head of masked words: a dense layer, its activation, a norm, and the embedding's matrix with a bias of its own.
Tensor BertArchitecture::words(Forward& f, const Modules& outer, const Tensor& hidden) const {
  const bool bert = outer.find("cls.predictions.transform.dense") != nullptr;
  const std::string start = bert ? "cls.predictions.transform." : "lm_head.";
  Tensor x = apply_linear(f, outer.at(start + "dense"), hidden);
  x = activation(f, bert ? f.model.sections.at(1).kinds.at(0).mlp.activation : "gelu", x);
  x = layer_norm(f, outer.at(start + (bert ? "LayerNorm" : "layer_norm")), x);
  Module* own = outer.find(bert ? "cls.predictions.decoder" : "lm_head.decoder");
  if (own != nullptr) return apply_linear(f, *own, x);
  Parameter& bias = *outer.at(bert ? "cls.predictions" : "lm_head").bias;
  return f.r.linear(x, base(outer, "embeddings.word_embeddings")->weight, &bias);
}

Tensor BertArchitecture::first_tokens(Forward& f, const Tensor& hidden) {
  return f.r.slice(f.r.view(hidden, {f.dims.b, f.dims.s * f.dims.h}), f.dims.h);
}

Tensor BertArchitecture::labels_of_rows(Forward& f) {
  return f.r.empty({f.dims.b, Size(1)}, DType::int64, "a label a row");
}

bool BertArchitecture::predicts_words(const Modules& outer) const {
  return outer.find("cls.predictions.transform.dense") != nullptr || outer.find("lm_head.dense") != nullptr;
}

// The first token of each row through a dense layer and tanh, dropout, and the classifier; roberta's drops before the dense layer, too.
Tensor BertArchitecture::classify(Forward& f, const Modules& outer, const Tensor& hidden) const {
  Recorder& r = f.r;
  Module* own = outer.find("classifier.dense");
  Tensor first = first_tokens(f, hidden);
  if (own != nullptr) first = r.dropout(first, f.hidden_dropout);
  Tensor pooled = apply_linear(f, own != nullptr ? *own : *base(outer, "pooler.dense"), first);
  pooled = r.dropout(r.tanh(pooled), f.hidden_dropout);
  Module* classifier = outer.find(own != nullptr ? "classifier.out_proj" : "classifier");
  return classifier != nullptr ? apply_linear(f, *classifier, pooled) : pooled;
}

Tensor BertArchitecture::loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                              Tensor* outputs) const {
  Tensor logits = predicts_words(outer) ? words(f, outer, hidden) : classify(f, outer, hidden);
  if (f.hooks != nullptr) logits = f.hooks->after_head(std::move(logits));
  Tensor result = plain_loss(f, logits, predicts_words(outer) ? labels : labels_of_rows(f));
  if (outputs != nullptr) *outputs = std::move(logits);
  return result;
}

}  // namespace membill
