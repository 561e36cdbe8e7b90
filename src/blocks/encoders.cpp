#include "blocks/encoders.h"

#include "blocks/attention.h"
#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"
#include "blocks/loss.h"
#include "blocks/own_rotary.h"

namespace membill {
namespace {

// The head of masked words: a matrix of its own, or the embedding's with a bias.
Tensor word_logits(Forward& f, const Modules& outer, const char* name, Module& embedding, const Tensor& x) {
  Module* head = outer.find(name);
  if (head != nullptr && head->weight.value.defined()) return apply_linear(f, *head, x);
  return f.r.linear(x, embedding.weight, head != nullptr ? head->bias.get() : nullptr);
}

Tensor attend(Forward& f, const LayerContext& layer, const Heads& heads, const Tensor& mask, bool native_softmax,
              Tensor& weights) {
  AttentionCall call{layer.dims, layer.kind.attention, choose_attention(f, layer.kind, mask.defined()), mask};
  call.native_softmax = call.keeps_softmax = native_softmax;
  call.weights = &weights;
  return run_attention(f, call, heads.q, heads.k, heads.v);
}

Heads project_heads(Forward& f, const LayerContext& layer, std::initializer_list<const char*> names,
                    const Tensor& hidden) {
  const auto make = [&](const char* name) {
    return seen_as_heads(f, apply_linear(f, layer.modules.at(name), hidden), layer.dims.a, layer.dims.d);
  };
  Heads heads;
  heads.q = make(names.begin()[0]);
  heads.k = make(names.begin()[1]);
  heads.v = make(names.begin()[2]);
  return heads;
}

}  // namespace

Tensor ElectraArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  Tensor embedded = BertArchitecture::embed(f, outer, ids);
  Module* projection = base(outer, "embeddings_project");
  if (projection == nullptr) return embedded;
  f.locals.clear();
  embedded = apply_linear(f, *projection, embedded);
  f.locals = {embedded};
  return embedded;
}

bool ElectraArchitecture::predicts_words(const Modules& outer) const {
  return outer.find("generator_predictions.dense") != nullptr;
}

Tensor ElectraArchitecture::words(Forward& f, const Modules& outer, const Tensor& hidden) const {
  Tensor x = apply_linear(f, outer.at("generator_predictions.dense"), hidden);
  x = activation(f, "gelu", x);
  x = layer_norm(f, outer.at("generator_predictions.LayerNorm"), x);
  return word_logits(f, outer, "generator_lm_head", *base(outer, "embeddings.word_embeddings"), x);
}

Tensor ElectraArchitecture::classify(Forward& f, const Modules& outer, const Tensor& hidden) const {
  Recorder& r = f.r;
  Tensor x = r.dropout(first_tokens(f, hidden), f.hidden_dropout);
  Module* dense = outer.find("classifier.dense");
  if (dense == nullptr) return x;
  x = activation(f, "gelu", apply_linear(f, *dense, x));
  return apply_linear(f, outer.at("classifier.out_proj"), r.dropout(x, f.hidden_dropout));
}

Tensor DistilBertArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  Recorder& r = f.r;
  const Tensor words = made_to_need_gradient(f, apply_embedding(f, *base(outer, "embeddings.word_embeddings"), ids));
  const Tensor positions = r.placeholder({f.dims.s, Size(1)}, DType::int64);  // the first columns of a buffer
  const Tensor placed = apply_embedding(f, *base(outer, "embeddings.position_embeddings"), positions);
  Tensor embeddings = r.add(words, placed, "words and positions");
  embeddings = layer_norm(f, *base(outer, "embeddings.LayerNorm"), embeddings);
  return r.dropout(embeddings, f.hidden_dropout);
}

Tensor DistilBertArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                     const LayerInputs& inputs) const {
  Recorder& r = f.r;
  Tensor weights, attended;
  {
    const Heads heads = project_heads(f, layer, {"attention.q_lin", "attention.k_lin", "attention.v_lin"}, hidden);
    attended = attend(f, layer, heads, inputs.mask, true, weights);
    attended = apply_linear(f, layer.modules.at("attention.out_lin"), attended);
  }
  attended = layer_norm(f, layer.modules.at("sa_layer_norm"), r.add(attended, hidden, "residual stream"));
  Tensor fed = plain_mlp(f, layer.modules, {"ffn.lin1", "ffn.lin2", layer.kind.mlp.activation}, attended);
  fed = r.dropout(fed, f.hidden_dropout);
  const ItemScope scope(r, f.items.boundary);
  return layer_norm(f, layer.modules.at("output_layer_norm"), r.add(fed, attended, "residual stream"));
}

bool DistilBertArchitecture::predicts_words(const Modules& outer) const {
  return outer.find("vocab_transform") != nullptr;
}

Tensor DistilBertArchitecture::words(Forward& f, const Modules& outer, const Tensor& hidden) const {
  Tensor x = apply_linear(f, outer.at("vocab_transform"), hidden);
  x = activation(f, f.model.sections.at(1).kinds.at(0).mlp.activation, x);
  x = layer_norm(f, outer.at("vocab_layer_norm"), x);
  return word_logits(f, outer, "vocab_projector", *base(outer, "embeddings.word_embeddings"), x);
}

Tensor DistilBertArchitecture::classify(Forward& f, const Modules& outer, const Tensor& hidden) const {
  Recorder& r = f.r;
  Tensor pooled = first_tokens(f, hidden);
  Module* dense = outer.find("pre_classifier");
  if (dense == nullptr) return pooled;
  pooled = r.relu(apply_linear(f, *dense, pooled));
  return apply_linear(f, outer.at("classifier"), r.dropout(pooled, f.plan.dropout.value_or(f.model.embedding_dropout)));
}

Tensor ModernBertArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  const Tensor positions = f.r.empty({f.dims.s, Size(1)}, DType::int64, "position ids");
  const Tensor words = made_to_need_gradient(f, apply_embedding(f, *base(outer, "embeddings.tok_embeddings"), ids));
  Tensor embedded = f.r.dropout(layer_norm(f, *base(outer, "embeddings.norm"), words), f.embedding_dropout);
  f.locals = {positions, f.r.detach(embedded)};  // what the masks are made for is a variable until the end
  return embedded;
}

// A window needs a mask where the sequence is longer; every token sees every other in full layers. Tables by layer type.
LayerInputs ModernBertArchitecture::prepare(Forward& f, const Modules&, const Tensor& hidden) const {
  LayerInputs inputs = inputs_by_layer_type(f, hidden.dtype());
  inputs.position_ids.drop();
  if (!f.plan.attention_mask) inputs.mask.drop();
  return inputs;
}

namespace {

Tensor modernbert_attention(Forward& f, const LayerContext& layer, const Tensor& normed, const LayerInputs& inputs,
                            Tensor& weights) {
  const Shape heads_shape{f.dims.N * layer.dims.a, layer.dims.d};
  const Tensor qkv = apply_linear(f, layer.modules.at("attn.Wqkv"), normed);
  auto [q, k, v] = f.r.split_in_three(qkv, heads_shape);
  Heads heads{q, k, v};
  rotate_in_fp32_twice(f, tables_of(layer, inputs), heads);
  const bool local = layer.kind.attention.sliding_window.has_value();
  Tensor attended = attend(f, layer, heads, local ? inputs.local_mask : inputs.mask, false, weights);
  attended = apply_linear(f, layer.modules.at("attn.Wo"), attended);
  return f.r.dropout(attended, f.attention_dropout);
}

Tensor modernbert_mlp(Forward& f, const LayerContext& layer, const Tensor& normed) {
  const Tensor both = apply_linear(f, layer.modules.at("mlp.Wi"), normed);
  auto [input, gate] = f.r.split_in_two(both, {f.dims.N, layer.dims.f});
  Tensor product = f.r.mul(activation(f, layer.kind.mlp.activation, input), gate, "gated product");
  return apply_linear(f, layer.modules.at("mlp.Wo"), f.r.dropout(std::move(product), f.hidden_dropout));
}

}  // namespace

Tensor ModernBertArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                     const LayerInputs& inputs) const {
  Recorder& r = f.r;
  Module* norm = layer.modules.find("attn_norm");
  Tensor weights;
  const auto attention = [&] {
    return modernbert_attention(f, layer, norm != nullptr ? layer_norm(f, *norm, hidden) : hidden, inputs, weights);
  };
  const Tensor attended = attention();
  hidden = r.add(hidden, attended, "residual stream");
  const auto feed = [&] { return modernbert_mlp(f, layer, layer_norm(f, layer.modules.at("mlp_norm"), hidden)); };
  const Tensor fed = feed();
  const ItemScope scope(r, f.items.boundary);
  return r.add(hidden, fed, "layer output");
}

Tensor ModernBertArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return layer_norm(f, *base(outer, "final_norm"), hidden);
}

// The prediction head over every token or the first of each row; masked words over fp32 logits.
Tensor ModernBertArchitecture::loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                                    Tensor* outputs) const {
  Module* dense = outer.find("head.dense");
  const bool classifies = outer.find("classifier") != nullptr;
  if (classifies || dense == nullptr) hidden = first_tokens(f, hidden);
  Tensor x = hidden;
  if (dense != nullptr) x = layer_norm(f, outer.at("head.norm"), activation(f, "gelu", apply_linear(f, *dense, x)));
  if (dense != nullptr && !classifies)
    x = word_logits(f, outer, "decoder", *base(outer, "embeddings.tok_embeddings"), x);
  if (classifies) x = apply_linear(f, outer.at("classifier"), x);
  if (f.hooks != nullptr) x = f.hooks->after_head(std::move(x));
  Tensor result = classifies ? plain_loss(f, x, labels_of_rows(f)) : plain_loss(f, f.r.cast(x, DType::fp32), labels);
  if (outputs != nullptr) *outputs = std::move(x);
  return result;
}

}  // namespace membill
