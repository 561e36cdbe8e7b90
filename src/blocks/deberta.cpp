#include "blocks/deberta.h"

#include "blocks/layer_norm_parts.h"
#include "blocks/layers.h"

namespace membill {
namespace {

// transpose_for_scores: heads before tokens, a copy.
Tensor apart(Forward& f, const LayerContext& layer, const char* name, const Tensor& x) {
  Recorder& r = f.r;
  const Tensor projected = apply_linear(f, layer.modules.at(std::string("attention.self.") + name), x);
  const Shape heads{projected.rows() * layer.dims.a, layer.dims.d};
  return r.contiguous_copy(viewed(r, projected, heads, "gradient, tokens first"), heads, "heads before tokens");
}

struct Content {
  Tensor query, key, value;
};

// The relative places as keys or queries of every row of the batch.
Tensor places_as(Forward& f, const LayerContext& layer, const char* own, const char* shared, const Tensor& places) {
  const bool has_own = layer.modules.find(std::string("attention.self.") + own) != nullptr;
  const Tensor heads = apart(f, layer, has_own ? own : shared, places);
  return f.r.contiguous_copy(heads, {f.dims.b * heads.rows(), heads.width()}, "places of every row");
}

// torch.clamp of places from the span's beginning, for the gather.
Tensor clamped_places(Forward& f, bool negated) {
  const Shape square{f.dims.s, f.dims.s};
  Tensor moved;
  {
    const Tensor turned = negated ? f.r.empty(square, DType::int64, "places, negated") : Tensor();
    moved = f.r.empty(square, DType::int64, "places from the span's beginning");
  }
  return f.r.empty(square, DType::int64, "places in the span");
}

// The scores of content against places.
Tensor against(Forward& f, const LayerContext& layer, const Tensor& content, const Tensor& places) {
  return f.r.batched_matmul(content, places, {f.dims.N * layer.dims.a, f.position_bias.rows()}, "scores of places");
}

// Those of them that each pair of tokens has, by how far the tokens lie apart.
Tensor picked(Forward& f, const Tensor& scores, const Tensor& index) {
  return f.r.gather(scores, f.r.broadcast_view(index, {scores.rows(), f.dims.s}));
}

// disentangled_attention_bias: content to place and place to content.
Tensor scores_of_places(Forward& f, const LayerContext& layer, const Content& content, const Tensor& places) {
  Recorder& r = f.r;
  const bool shared = layer.modules.find("attention.self.pos_key_proj") == nullptr;
  Tensor keys, queries;
  if (shared) queries = places_as(f, layer, "pos_query_proj", "query_proj", places);
  keys = places_as(f, layer, "pos_key_proj", "key_proj", places);
  if (!shared) queries = places_as(f, layer, "pos_query_proj", "query_proj", places);
  Tensor score;
  Tensor to_key = against(f, layer, content.query, keys);
  const Tensor of_keys = clamped_places(f, false);
  to_key = picked(f, to_key, of_keys);
  score = r.add_scalar(r.mul_scalar(to_key, "scaled scores of places"), "scores of places, summed");
  const Tensor of_queries = clamped_places(f, true);
  Tensor to_query = against(f, layer, content.key, queries);
  to_query = picked(f, to_query, of_queries);
  return r.add_in_place(std::move(score), r.mul_scalar(to_query, "scaled scores of places"));
}

// DisentangledSelfAttention.
Tensor deberta_attention(Forward& f, const LayerContext& layer, const Tensor& hidden, const LayerInputs& inputs) {
  Recorder& r = f.r;
  const KindDims& dims = layer.dims;
  const Size rows = f.dims.N * dims.a;
  const Content content{apart(f, layer, "query_proj", hidden), apart(f, layer, "key_proj", hidden),
                        apart(f, layer, "value_proj", hidden)};
  Tensor scores =
      r.batched_matmul(content.query, r.mul_scalar(content.key, "scaled keys"), {rows, f.dims.s}, "attention scores");
  Tensor places, of_places;
  if (f.position_bias.defined()) {
    places = r.dropout(f.position_bias, f.hidden_dropout);
    of_places = scores_of_places(f, layer, content, places);
    scores = r.add(scores, of_places, "scores with places");
  }
  const Tensor mask = r.empty(inputs.mask.shape(), DType::boolean, "attention mask, boolean");
  const auto masked = [&] {
    const Tensor inverted = r.empty(mask.shape(), DType::boolean, "attention mask, inverted");
    return r.masked_fill(scores, inverted, "masked scores");
  };
  scores = masked();
  Tensor weights = r.softmax(scores, std::nullopt);
  weights = r.dropout(weights, f.attention_dropout);
  Tensor context = r.batched_matmul(r.autocast_input(weights), content.value, {rows, dims.d}, "attention output");
  if (!f.one_row()) context = viewed(r, context, context.shape(), "gradient, heads first");
  context = r.contiguous_copy(context, {f.dims.N, f.dims.h}, "attention output, heads last");
  return context;
}

// make_log_bucket_position, of every pair of tokens.
Tensor places_in_buckets(Forward& f, const Tensor& apart) {
  Recorder& r = f.r;
  const auto make = [&](DType type, const char* label) { return r.empty(apart.shape(), type, label); };
  const Tensor sign = make(DType::int64, "sign of the distance");
  Tensor near = make(DType::boolean, "whether tokens are near");
  {
    const Tensor before = make(DType::boolean, "whether tokens are near, before");
    near = make(DType::boolean, "whether tokens are near, on both sides");
  }
  Tensor distance = make(DType::int64, "distance");
  distance = make(DType::int64, "distance of far tokens");
  near.drop();
  Tensor logarithm = make(DType::fp32, "part of the span");
  for (const char* label : {"its logarithm", "part of the logarithm", "bucket", "whole bucket", "bucket of far tokens"})
    logarithm = make(DType::fp32, label);
  const Tensor inside = make(DType::boolean, "whether tokens have a bucket each");
  const Tensor plain = make(DType::fp32, "distance in fp32"), far = make(DType::fp32, "bucket with its sign");
  return make(DType::fp32, "bucket");
}

// build_relative_position. Without buckets the distance itself is the place.
Tensor relative_places(Forward& f, const Size& rows) {
  Recorder& r = f.r;
  const Shape square{f.dims.s, f.dims.s};
  Tensor places = r.empty(square, DType::int64, "how far tokens lie apart");
  if (r.symbols().evaluate(rows) == 2 * f.model.max_positions) return places;
  places = places_in_buckets(f, places);
  places = r.empty(square, DType::int64, "relative places");
  return places;
}

}  // namespace

Tensor DebertaArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  Recorder& r = f.r;
  const Shape tokens{f.dims.N, Size(1)};
  const Tensor mask = r.empty(tokens, f.plan.attention_mask ? DType::int64 : DType::fp32, "attention mask");
  const Tensor types = r.empty(tokens, DType::int64, "token types");
  const Tensor words = made_to_need_gradient(f, apply_embedding(f, *base(outer, "embeddings.word_embeddings"), ids));
  Tensor embeddings = words;
  Tensor placed;
  if (Module* positions = base(outer, "embeddings.position_embeddings")) {
    placed = apply_embedding(f, *positions, r.placeholder({f.dims.s, Size(1)}, DType::int64));
    embeddings = r.add(embeddings, placed, "words and positions");
  } else {
    placed = r.empty(words.shape(), words.dtype(), "positions, zeros");
  }
  Tensor of_types;
  if (Module* table = base(outer, "embeddings.token_type_embeddings")) {
    of_types = apply_embedding(f, *table, types);
    embeddings = r.add(embeddings, of_types, "words, positions and types");
  }
  if (Module* projection = base(outer, "embeddings.embed_proj")) embeddings = apply_linear(f, *projection, embeddings);
  embeddings = layer_norm(f, *base(outer, "embeddings.LayerNorm"), embeddings);
  const Tensor factor =
      mask.dtype() == embeddings.dtype() ? mask : r.empty(tokens, embeddings.dtype(), "attention mask as a factor");
  embeddings = r.mul(embeddings, factor, "embeddings of tokens that count");
  embeddings = r.dropout(embeddings, f.hidden_dropout);
  f.locals = {mask, types, embeddings};
  return embeddings;
}

LayerInputs DebertaArchitecture::prepare(Forward& f, const Modules& outer, const Tensor&) const {
  LayerInputs inputs;
  inputs.mask =
      f.r.empty({f.dims.N, f.dims.s}, f.plan.attention_mask ? DType::int64 : DType::fp32, "mask of all pairs");
  Module* table = base(outer, "encoder.rel_embeddings");
  if (table == nullptr) return inputs;
  inputs.position_ids = relative_places(f, table->weight.value.rows());
  Module* norm = base(outer, "encoder.LayerNorm");
  f.position_bias = norm != nullptr ? layer_norm(f, *norm, table->weight.value) : table->weight.value;
  return inputs;
}

Recorder::CheckpointVariables DebertaArchitecture::checkpoint_variables(Forward& f) const {
  if (!f.position_bias.defined()) return {};
  return {{&f.position_bias}, {}};
}

Tensor DebertaArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                  const LayerInputs& inputs) const {
  Tensor attended = deberta_attention(f, layer, hidden, inputs);
  attended = end_block(f, layer.modules, "attention.output", attended, hidden);
  const Tensor expanded =
      activation(f, layer.kind.mlp.activation, apply_linear(f, layer.modules.at("intermediate.dense"), attended));
  const ItemScope scope(f.r, f.items.boundary);
  return end_block(f, layer.modules, "output", expanded, attended);
}

Tensor DebertaArchitecture::finish(Forward& f, const Modules&, Tensor hidden) const {
  f.position_bias.drop();
  return hidden;
}

// ContextPooler, dropout, the classifier.
Tensor DebertaArchitecture::classify(Forward& f, const Modules& outer, const Tensor& hidden) const {
  Recorder& r = f.r;
  Tensor pooled = first_tokens(f, hidden);
  Module* dense = outer.find("pooler.dense");
  if (dense == nullptr) return pooled;
  pooled = activation(f, "gelu", apply_linear(f, *dense, pooled));
  pooled = r.dropout(pooled, f.plan.dropout.value_or(f.model.embedding_dropout));
  return apply_linear(f, outer.at("classifier"), pooled);
}

}  // namespace membill
