#include "catalog/families/decoder.h"

#include <algorithm>
#include <utility>

namespace membill::census {

ModelSpec read_dimensions(const ConfigReader& config, std::string_view model_type, std::string_view class_name) {
  ModelSpec spec;
  spec.model_type = config.word("model_type", model_type);
  spec.class_name = class_name;
  spec.vocab = config.size("vocab_size");
  spec.hidden = config.size("hidden_size");
  spec.layers = config.listed("num_hidden_layers");
  spec.max_positions = config.count_or("max_position_embeddings", 0);
  spec.tied_embeddings = config.flag("tie_word_embeddings", false);
  spec.stored_dtype = config.word("dtype", config.word("torch_dtype", ""));
  return spec;
}

AttentionShape read_attention(const ConfigReader& config, std::int64_t hidden) {
  AttentionShape shape;
  shape.heads = config.listed("num_attention_heads");
  shape.kv_heads = config.size_or("num_key_value_heads", shape.heads);
  if (const auto given = config.optional_size("head_dim")) {
    shape.head_dim = *given;
  } else {
    if (hidden % shape.heads != 0) {
      config.problem("num_attention_heads", std::to_string(shape.heads) + " heads do not divide a hidden size of " +
                                                std::to_string(hidden) + " and no head_dim is given");
    }
    shape.head_dim = std::max<std::int64_t>(hidden / shape.heads, 1);
  }
  if (shape.heads % shape.kv_heads != 0) {
    config.problem("num_key_value_heads", std::to_string(shape.kv_heads) + " key/value heads do not divide " +
                                              std::to_string(shape.heads) + " attention heads");
  }
  shape.value_head_dim = shape.head_dim;
  shape.rotary_dim = read_rotary_dim(config, shape.head_dim);
  shape.dropout = config.dropout("attention_dropout");
  return shape;
}

AttentionShape read_plain_attention(const ConfigReader& config, std::int64_t hidden) {
  AttentionShape shape;
  shape.heads = shape.kv_heads = config.listed("num_attention_heads");
  if (hidden % shape.heads != 0) {
    config.problem("num_attention_heads",
                   std::to_string(shape.heads) + " heads do not divide a hidden size of " + std::to_string(hidden));
  }
  shape.head_dim = shape.value_head_dim = std::max<std::int64_t>(hidden / shape.heads, 1);
  shape.dropout = config.dropout("attention_dropout");
  return shape;
}

std::int64_t read_rotary_dim(const ConfigReader& config, std::int64_t head_dim, double fallback) {
  const double nested = config.inner("rope_parameters").real_or("partial_rotary_factor", fallback);
  const double share = config.real_or("partial_rotary_factor", nested);
  if (!(share > 0.0 && share <= 1.0)) {
    config.problem("partial_rotary_factor", "must be above 0 and at most 1");
    return head_dim;
  }
  return static_cast<std::int64_t>(static_cast<double>(head_dim) * share);
}

MlpShape read_gated_mlp(const ConfigReader& config) {
  MlpShape shape;
  shape.intermediate = config.size("intermediate_size");
  shape.activation = config.word("hidden_act", "silu");
  return shape;
}

MlpShape read_plain_mlp(const ConfigReader& config, std::int64_t intermediate, bool bias) {
  MlpShape shape;
  shape.intermediate = intermediate;
  shape.gated = false;
  shape.bias = bias;
  shape.activation = config.word("hidden_act", "gelu");
  return shape;
}

LayerKind read_encoder_layer(const ConfigReader& config, std::int64_t hidden) {
  LayerKind kind;
  kind.attention = read_plain_attention(config, hidden);
  kind.attention.dropout = config.dropout("attention_probs_dropout_prob", 0.1);
  kind.attention.qkv_bias = kind.attention.output_bias = true;
  kind.mlp = read_plain_mlp(config, config.size("intermediate_size"), true);
  return kind;
}

void separate_attention(TensorList& list, const AttentionShape& shape, std::int64_t hidden, std::string_view output) {
  const std::int64_t q = checked_mul(shape.heads, shape.head_dim);
  const std::int64_t kv = checked_mul(shape.kv_heads, shape.head_dim);
  const std::int64_t with_gate = shape.output_gate ? checked_mul(2, q) : q;
  list.linear("self_attn.q_proj", hidden, with_gate, shape.qkv_bias, TensorRole::attention, SplitAxis::column);
  list.linear("self_attn.k_proj", hidden, kv, shape.qkv_bias, TensorRole::attention, SplitAxis::column);
  list.linear("self_attn.v_proj", hidden, kv, shape.qkv_bias, TensorRole::attention, SplitAxis::column);
  list.linear("self_attn." + std::string(output), q, hidden, shape.output_bias, TensorRole::attention, SplitAxis::row);
  if (!shape.qk_norm) return;
  list.norm("self_attn.q_norm", shape.qk_norm_full_width ? q : shape.head_dim);
  list.norm("self_attn.k_norm", shape.qk_norm_full_width ? kv : shape.head_dim);
}

std::int64_t fused_qkv_width(const AttentionShape& shape) {
  return checked_mul(checked_add(shape.heads, checked_mul(2, shape.kv_heads)), shape.head_dim);
}

void gated_mlp(TensorList& list, std::string_view module, const MlpShape& shape, std::int64_t hidden) {
  const std::string start = std::string(module) + ".";
  if (shape.fused_gate_up) {
    list.linear(start + "gate_up_proj", hidden, checked_mul(shape.intermediate, 2), shape.bias, TensorRole::mlp,
                SplitAxis::column);
  } else {
    list.linear(start + "gate_proj", hidden, shape.intermediate, shape.bias, TensorRole::mlp, SplitAxis::column);
    list.linear(start + "up_proj", hidden, shape.intermediate, shape.bias, TensorRole::mlp, SplitAxis::column);
  }
  list.linear(start + "down_proj", shape.intermediate, hidden, shape.bias, TensorRole::mlp, SplitAxis::row);
}

void plain_mlp(TensorList& list, std::string_view first, std::string_view second, const MlpShape& shape,
               std::int64_t hidden) {
  list.linear(first, hidden, shape.intermediate, shape.bias, TensorRole::mlp, SplitAxis::column);
  list.linear(second, shape.intermediate, hidden, shape.bias, TensorRole::mlp, SplitAxis::row);
}

void fused_experts(TensorList& list, std::string_view module, const MoeShape& shape, std::int64_t hidden) {
  const std::string start = std::string(module) + ".";
  list.experts(start + "gate_up_proj", {shape.experts, checked_mul(shape.intermediate, 2), hidden}, SplitAxis::column);
  list.experts(start + "down_proj", {shape.experts, hidden, shape.intermediate}, SplitAxis::row);
}

void router(TensorList& list, std::string_view module, std::int64_t experts, std::int64_t hidden,
            std::optional<DType> own_dtype) {
  list.parameter(std::string(module) + ".weight", {experts, hidden}, TensorRole::router, SplitAxis::none, own_dtype);
}

MoeShape read_moe(const ConfigReader& config, std::string_view width_key) {
  MoeShape moe;
  moe.experts = config.size("num_experts");
  moe.experts_per_token = config.size("num_experts_per_tok");
  if (moe.experts_per_token > moe.experts) {
    config.problem("num_experts_per_tok", std::to_string(moe.experts_per_token) +
                                              " experts a token, but there are only " + std::to_string(moe.experts));
  }
  moe.intermediate = config.size(width_key);
  moe.normalised = config.flag("norm_topk_prob", false);
  return moe;
}

MoeShape read_moe_with_shared(const ConfigReader& config) {
  MoeShape moe = read_moe(config, "moe_intermediate_size");
  moe.shared_intermediate = checked_mul(config.count_or("n_shared_experts", 0), moe.intermediate);
  moe.groups = config.size_or("n_group", 1);
  return moe;
}

void experts_with_shared(TensorList& list, const MoeShape& moe, const MlpShape& like, std::int64_t hidden,
                         bool score_buffer) {
  fused_experts(list, "mlp.experts", moe, hidden);
  router(list, "mlp.gate", moe.experts, hidden, DType::fp32);
  if (score_buffer) list.buffer("mlp.gate.e_score_correction_bias", {moe.experts});
  if (moe.shared_intermediate == 0) return;
  MlpShape shared = like;
  shared.intermediate = moe.shared_intermediate;
  gated_mlp(list, "mlp.shared_experts", shared, hidden);
}

void norms(TensorList& list, std::initializer_list<std::string_view> modules, std::int64_t hidden, bool bias) {
  for (const std::string_view module : modules) list.norm(module, hidden, bias);
}

void pre_norms(TensorList& list, std::int64_t hidden, bool bias) {
  norms(list, {"input_layernorm", "post_attention_layernorm"}, hidden, bias);
}

LayerKind dense_layer(std::int64_t hidden, const AttentionShape& attention, const MlpShape& mlp,
                      std::initializer_list<std::string_view> norm_modules) {
  LayerKind kind;
  kind.attention = attention;
  kind.mlp = mlp;
  TensorList list("model.layers.*.");
  separate_attention(list, attention, hidden);
  gated_mlp(list, "mlp", mlp, hidden);
  norms(list, norm_modules, hidden);
  kind.tensors = list.take();
  return kind;
}

std::vector<bool> sliding_layers(const ConfigReader& config, std::int64_t layers,
                                 const std::function<bool(std::int64_t)>& slides) {
  const std::vector<std::string> types = config.words("layer_types");
  if (!types.empty() && static_cast<std::int64_t>(types.size()) != layers) {
    config.problem("layer_types",
                   "names " + std::to_string(types.size()) + " layers, but the model has " + std::to_string(layers));
  }
  std::vector<bool> result(static_cast<std::size_t>(layers));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = i < types.size() ? types[i] == "sliding_attention" || types[i] == "chunked_attention"
                                 : slides(static_cast<std::int64_t>(i));
  }
  return result;
}

std::vector<bool> sparse_layers(const ConfigReader& config, std::int64_t layers) {
  const std::int64_t step = config.size_or("decoder_sparse_step", 1);
  const std::vector<std::int64_t> dense = config.counts("mlp_only_layers");
  std::vector<bool> sparse(static_cast<std::size_t>(layers));
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool named = std::find(dense.begin(), dense.end(), i) != dense.end();
    sparse[static_cast<std::size_t>(i)] = !named && (i + 1) % step == 0;
  }
  return sparse;
}

std::vector<bool> rotating_layers(const ConfigReader& config, std::int64_t layers) {
  const std::vector<std::int64_t> given = config.counts("no_rope_layers");
  if (!given.empty() && static_cast<std::int64_t>(given.size()) != layers) {
    config.problem("no_rope_layers",
                   "names " + std::to_string(given.size()) + " layers, but the model has " + std::to_string(layers));
  }
  const std::int64_t interval = config.size_or("no_rope_layer_interval", 4);
  std::vector<bool> result(static_cast<std::size_t>(layers));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = i < given.size() ? given[i] != 0 : (static_cast<std::int64_t>(i) + 1) % interval != 0;
  }
  return result;
}

std::int64_t read_window_pattern(const ConfigReader& config, std::int64_t fallback) {
  const std::string_view key =
      config.holds("_sliding_window_pattern") ? "_sliding_window_pattern" : "sliding_window_pattern";
  const Value* value = config.find(key);
  if (value != nullptr && value->is_string()) {
    return std::max<std::int64_t>(static_cast<std::int64_t>(value->as_string().size()), 1);
  }
  return config.size_or(key, fallback);
}

Section stack(std::int64_t layers, int kind_count, const std::function<int(std::int64_t)>& kind_of,
              const std::function<LayerKind(int)>& make) {
  Section section;
  section.name = "layers";
  std::vector<std::int32_t> place(static_cast<std::size_t>(kind_count), -1);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const int kind = kind_of(layer);
    std::int32_t& index = place[static_cast<std::size_t>(kind)];
    if (index < 0) {
      index = static_cast<std::int32_t>(section.kinds.size());
      section.kinds.push_back(make(kind));
    }
    section.layer_kinds.push_back(index);
  }
  return section;
}

Section uniform_stack(std::int64_t layers, LayerKind kind) {
  Section section;
  section.name = "layers";
  section.kinds.push_back(std::move(kind));
  section.layer_kinds.assign(static_cast<std::size_t>(layers), 0);
  return section;
}

Section windowed_stack(const std::vector<bool>& slides, std::optional<std::int64_t> window, const LayerKind& kind) {
  const auto kind_of = [&](std::int64_t layer) { return window && slides[static_cast<std::size_t>(layer)] ? 1 : 0; };
  return stack(static_cast<std::int64_t>(slides.size()), 2, kind_of, [&](int sliding) {
    LayerKind copy = kind;
    copy.attention.sliding_window = sliding == 1 ? window : std::nullopt;
    return copy;
  });
}

Section single(std::string name, std::vector<TensorSpec> tensors) {
  Section section;
  section.name = std::move(name);
  section.kinds.emplace_back();
  section.kinds.back().tensors = std::move(tensors);
  return section;
}

namespace {

std::int64_t widest_rotation(const Section& layers) {
  std::int64_t widest = 0;
  for (const LayerKind& kind : layers.kinds) widest = std::max(widest, kind.attention.rotary_dim);
  return widest;
}

std::vector<TensorSpec> embedding_part(const ModelSpec& spec, const Frame& frame) {
  TensorList list;
  list.embedding(frame.embedding, spec.vocab, spec.hidden);
  if (frame.embedding_scale) list.buffer(std::string(frame.embedding) + ".embed_scale", {}, {});
  if (!frame.positions.empty()) list.embedding(frame.positions, spec.max_positions, spec.hidden, TensorRole::position);
  if (!frame.embedding_norm.empty()) list.norm(frame.embedding_norm, spec.hidden, true);
  return list.take();
}

std::vector<TensorSpec> final_part(const ModelSpec& spec, const Frame& frame, std::int64_t rotary_dim) {
  TensorList list;
  if (!frame.final_norm.empty()) list.norm(frame.final_norm, spec.hidden, frame.final_norm_bias);
  if (!frame.rotary.empty() && rotary_dim > 0) {
    for (const std::string_view name : frame.rotary_names) list.rotary_buffers(frame.rotary, rotary_dim, name);
  }
  std::vector<TensorSpec> tensors = list.take();
  tensors.insert(tensors.end(), frame.last.begin(), frame.last.end());
  return tensors;
}

std::vector<TensorSpec> head_part(const ModelSpec& spec, const Frame& frame) {
  TensorList list;
  if (!spec.tied_embeddings)
    list.linear(frame.head, spec.hidden, spec.vocab, false, TensorRole::head, SplitAxis::vocab);
  if (frame.head_bias) list.head_bias(frame.head, spec.vocab);
  return list.take();
}

}  // namespace

void assemble(ModelSpec& spec, const Frame& frame, Section layers) {
  const std::int64_t rotary_dim = widest_rotation(layers);
  spec.sections.push_back(single("embedding", embedding_part(spec, frame)));
  spec.sections.push_back(std::move(layers));
  if (std::vector<TensorSpec> last = final_part(spec, frame, rotary_dim); !last.empty()) {
    spec.sections.push_back(single("final", std::move(last)));
  }
  if (std::vector<TensorSpec> head = head_part(spec, frame); !head.empty()) {
    spec.sections.push_back(single("head", std::move(head)));
  }
}

}  // namespace membill::census
