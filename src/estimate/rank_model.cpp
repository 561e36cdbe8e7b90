#include "estimate/rank_model.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "blocks/megatron_next_token.h"
#include "blocks/megatron_router.h"
#include "estimate/engines/placement.h"
#include "membill/vision_part.h"

namespace membill {
namespace {

const Section& stack_of(const ModelSpec& model) {
  return *std::find_if(model.sections.begin(), model.sections.end(),
                       [](const Section& section) { return !section.layer_kinds.empty(); });
}

class TensorWriter {
 public:
  explicit TensorWriter(std::string prefix) : prefix_(std::move(prefix)) {}

  void matrix(const std::string& module, std::int64_t rows, std::int64_t columns, TensorRole role, SplitAxis split,
              bool bias) {
    add(module + ".weight", {rows, columns}, role, ModuleKind::linear, split);
    if (bias) add(module + ".bias", {rows}, role, ModuleKind::linear, split);
  }

  void norm(const std::string& module, std::int64_t width, bool bias) {
    add(module + ".weight", {width}, TensorRole::norm, ModuleKind::norm, SplitAxis::none);
    if (bias) add(module + ".bias", {width}, TensorRole::norm, ModuleKind::norm, SplitAxis::none);
  }

  void buffer(const std::string& name, std::int64_t elements) {
    add(name, {elements}, TensorRole::other, ModuleKind::parameter, SplitAxis::none);
    tensors_.back().buffer = true;
    tensors_.back().own_dtype = DType::fp32;
  }

  void add(const std::string& name, std::vector<std::int64_t> shape, TensorRole role, ModuleKind module,
           SplitAxis split) {
    TensorSpec spec;
    spec.name = prefix_ + name;
    spec.shape = std::move(shape);
    spec.role = role;
    spec.module = module;
    spec.split = split;
    tensors_.push_back(std::move(spec));
  }

  [[nodiscard]] std::vector<TensorSpec> take() { return std::move(tensors_); }

 private:
  std::string prefix_;
  std::vector<TensorSpec> tensors_;
};

class RankModel {
 public:
  RankModel(const ModelSpec& model, const TrainingPlan& plan, std::int64_t stage)
      : model_(model), plan_(plan), stage_(stage), tp_(plan.parallel.tp) {}

  ModelSpec make() {
    ModelSpec rank = model_;
    rank.sections.clear();
    rank.vocab = padded_vocabulary(model_, plan_) / tp_;
    const std::int64_t further = next_token_layers(plan_);
    rank.tied_embeddings = model_.tied_embeddings && (plan_.parallel.pp == 1 || further > 0);
    rank.stated_parameters.reset();
    const bool first = stage_ == 0, last = stage_ == plan_.parallel.pp - 1;
    if (first || (last && further > 0)) rank.sections.push_back(embedding(rank.vocab));
    if (first)
      std::copy_if(model_.sections.begin(), model_.sections.end(), std::back_inserter(rank.sections), is_vision_part);
    rank.layers = 0;
    for (const ChunkLayers& chunk : chunks_of_stage(model_, plan_, stage_)) {
      rank.sections.push_back(stack(chunk));
      rank.layers += chunk.count;
    }
    if (!last) return rank;
    rank.sections.push_back(final_norm());
    for (std::int64_t layer = 0; layer < further; ++layer) rank.sections.push_back(next_token_layer(layer));
    if (!model_.tied_embeddings || plan_.parallel.pp > 1) rank.sections.push_back(head(rank));
    return rank;
  }

 private:
  [[nodiscard]] bool norm_bias() const { return model_.norm == NormKind::layer; }

  Section embedding(std::int64_t rows) const {
    TensorWriter list("embedding.");
    list.add("word_embeddings.weight", {rows, model_.hidden}, TensorRole::embedding, ModuleKind::embedding,
             SplitAxis::vocab);
    if (model_.position == PositionKind::learned)
      list.add("position_embeddings.weight", {model_.max_positions, model_.hidden}, TensorRole::position,
               ModuleKind::embedding, SplitAxis::none);
    return single("embedding", list.take());
  }

  Section final_norm() const {
    TensorWriter list("");
    list.norm("decoder.final_layernorm", model_.hidden, norm_bias());
    return single("final", list.take());
  }

  // Ends of the pipeline that share a matrix each have a copy of it. Beside next-token layers, which bring the embedding to the last
  // stage, a shared head has one all the same, which nothing uses.
  Section head(const ModelSpec& rank) const {
    TensorWriter list("");
    list.matrix("output_layer", rank.vocab, model_.hidden, TensorRole::head, SplitAxis::vocab, false);
    return single("head", list.take());
  }

  // Its transformer layer is like the stack's last one.
  Section next_token_layer(std::int64_t number) const {
    const Section& whole = stack_of(model_);
    Section section = single(next_token_section(number), {});
    LayerKind& kind = section.kinds.back();
    kind = layer(whole.kinds[static_cast<std::size_t>(whole.layer_kinds.back())]);
    TensorWriter list("mtp.layers.*.");
    list.norm("enorm", model_.hidden, norm_bias());
    list.norm("hnorm", model_.hidden, norm_bias());
    list.matrix("eh_proj", model_.hidden / tp_, 2 * model_.hidden, TensorRole::other, SplitAxis::column, false);
    std::vector<TensorSpec> tensors = list.take();
    tensors.insert(tensors.end(), kind.tensors.begin(), kind.tensors.end());
    TensorWriter last("mtp.layers.*.");
    last.norm("final_layernorm", model_.hidden, norm_bias());
    for (TensorSpec& tensor : last.take()) tensors.push_back(std::move(tensor));
    kind.tensors = std::move(tensors);
    return section;
  }

  static Section single(std::string name, std::vector<TensorSpec> tensors) {
    Section section;
    section.name = std::move(name);
    section.kinds.emplace_back();
    section.kinds.back().tensors = std::move(tensors);
    return section;
  }

  Section stack(const ChunkLayers& chunk) const {
    const Section& whole = stack_of(model_);
    Section section;
    section.name = "layers";
    for (const LayerKind& kind : whole.kinds) section.kinds.push_back(layer(kind));
    const auto begin = whole.layer_kinds.begin() + chunk.first;
    section.layer_kinds.assign(begin, begin + chunk.count);
    return section;
  }

  LayerKind layer(const LayerKind& whole) const {
    LayerKind kind = whole;
    kind.attention.heads /= tp_;
    kind.attention.kv_heads /= tp_;
    kind.mlp.intermediate /= tp_;
    if (whole.moe) {
      kind.moe->experts /= plan_.parallel.ep;
      kind.moe->intermediate /= plan_.parallel.expert_tp;
      kind.moe->shared_intermediate /= tp_;
    }
    kind.tensors = layer_tensors(kind, whole);
    return kind;
  }

  std::vector<TensorSpec> layer_tensors(const LayerKind& kind, const LayerKind& whole) const {
    const AttentionShape& a = kind.attention;
    const std::int64_t h = model_.hidden;
    TensorWriter list("decoder.layers.*.");
    list.norm("input_layernorm", h, norm_bias());
    if (a.latent) {
      latent_tensors(list, a);
    } else {
      attention_tensors(list, a);
    }
    list.norm("pre_mlp_layernorm", h, norm_bias());
    if (kind.moe) {
      expert_tensors(list, kind, whole);
    } else {
      mlp(list, "mlp.", kind.mlp.intermediate, kind.mlp, TensorRole::mlp);
    }
    return list.take();
  }

  void attention_tensors(TensorWriter& list, const AttentionShape& a) const {
    const std::int64_t h = model_.hidden, width = a.heads * a.head_dim, groups = a.kv_heads * a.head_dim;
    list.matrix("self_attention.linear_proj", h, width, TensorRole::attention, SplitAxis::row, a.output_bias);
    list.matrix("self_attention.linear_qkv", width + 2 * groups, h, TensorRole::attention, SplitAxis::column,
                a.qkv_bias);
    if (!a.qk_norm) return;
    list.norm("self_attention.q_layernorm", a.head_dim, norm_bias());
    list.norm("self_attention.k_layernorm", a.head_dim, norm_bias());
  }

  // The down-projections are whole on every tensor-parallel rank, as Transformer Engine's linear makes them; the local layers split them.
  void latent_tensors(TensorWriter& list, const AttentionShape& a) const {
    const std::int64_t h = model_.hidden, q = a.heads * a.head_dim, plain = a.head_dim - a.rope_head_dim;
    const auto split = [&](const char* name, std::int64_t rows, std::int64_t columns, SplitAxis axis) {
      list.matrix("self_attention." + std::string(name), rows, columns, TensorRole::attention, axis, false);
    };
    split("linear_proj", h, a.heads * a.value_head_dim, SplitAxis::row);
    if (a.q_lora_rank == 0) split("linear_q_proj", q, h, SplitAxis::column);
    if (a.q_lora_rank > 0) split("linear_q_down_proj", a.q_lora_rank, h, SplitAxis::none);
    if (a.q_lora_rank > 0) split("linear_q_up_proj", q, a.q_lora_rank, SplitAxis::column);
    split("linear_kv_down_proj", a.kv_lora_rank + a.rope_head_dim, h, SplitAxis::none);
    split("linear_kv_up_proj", a.heads * (plain + a.value_head_dim), a.kv_lora_rank, SplitAxis::column);
    if (a.q_lora_rank > 0) list.norm("self_attention.q_layernorm", a.q_lora_rank, norm_bias());
    list.norm("self_attention.kv_layernorm", a.kv_lora_rank, norm_bias());
  }

  void mlp(TensorWriter& list, const std::string& prefix, std::int64_t width, const MlpShape& like,
           TensorRole role) const {
    const std::int64_t h = model_.hidden;
    list.matrix(prefix + "linear_fc1", like.gated ? 2 * width : width, h, role, SplitAxis::column, like.bias);
    list.matrix(prefix + "linear_fc2", h, width, role, SplitAxis::row, like.bias);
  }

  static bool is_gated(const LayerKind& kind) {
    return std::any_of(kind.tensors.begin(), kind.tensors.end(), [](const TensorSpec& tensor) {
      return tensor.name.find("shared_expert_gate") != std::string::npos;
    });
  }

  // Two matrices each.
  void expert_tensors(TensorWriter& list, const LayerKind& kind, const LayerKind& whole) const {
    list.matrix("mlp.router", whole.moe->experts, model_.hidden, TensorRole::router, SplitAxis::none, false);
    if (scores_by_sigmoid(model_)) {
      list.buffer("mlp.router.local_tokens_per_expert", whole.moe->experts);
      list.buffer("mlp.router.expert_bias", whole.moe->experts);
    }
    for (std::int64_t expert = 0; expert < kind.moe->experts; ++expert)
      mlp(list, "mlp.experts.local_experts." + std::to_string(expert) + ".", kind.moe->intermediate, kind.mlp,
          TensorRole::expert);
    if (kind.moe->shared_intermediate == 0) return;
    if (is_gated(whole))
      list.matrix("mlp.shared_experts.gate", 1, model_.hidden, TensorRole::router, SplitAxis::none, false);
    mlp(list, "mlp.shared_experts.", kind.moe->shared_intermediate, kind.mlp, TensorRole::mlp);
  }

  const ModelSpec& model_;
  const TrainingPlan& plan_;
  std::int64_t stage_, tp_;
};

}  // namespace

// megatron-core 0.16 transformer/transformer_block.py get_num_layers_to_build.
StageLayers layers_of_stages(std::int64_t layers, const TrainingPlan& plan) {
  const std::int64_t pp = plan.parallel.pp;
  const auto given = [&](const char* key) { return static_cast<std::int64_t>(engine_number(plan, key, 0)); };
  StageLayers stages{given("decoder_first_pipeline_num_layers"), 0, given("decoder_last_pipeline_num_layers")};
  const std::int64_t even = pp - (stages.first > 0 ? 1 : 0) - (pp > 1 && stages.last > 0 ? 1 : 0);
  const std::int64_t rest = layers - stages.first - stages.last;
  if (even > 0 && rest >= 0 && rest % even == 0) stages.middle = rest / even;
  if (stages.first == 0) stages.first = stages.middle;
  if (stages.last == 0) stages.last = stages.middle;
  return stages;
}

std::vector<ChunkLayers> chunks_of_stage(const ModelSpec& model, const TrainingPlan& plan, std::int64_t stage) {
  const std::int64_t pp = plan.parallel.pp, chunks = plan.parallel.virtual_pp;
  const StageLayers stages = layers_of_stages(model.layers, plan);
  const auto of = [&](std::int64_t at) {
    return (at == 0 ? stages.first : at == pp - 1 ? stages.last : stages.middle) / chunks;
  };
  std::vector<ChunkLayers> result;
  std::int64_t next = 0;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    for (std::int64_t at = 0; at < pp; ++at) {
      if (at == stage) result.push_back({next, of(at)});
      next += of(at);
    }
  return result;
}

std::int64_t pipeline_stage(const TrainingPlan& plan, const Hardware& hardware) {
  return hardware.rank.value_or(0) / std::max<std::int64_t>(hardware.count / plan.parallel.pp, 1);
}

std::int64_t padded_vocabulary(const ModelSpec& model, const TrainingPlan& plan) {
  return round_up(model.vocab, plan.vocab_pad_to.value_or(1));
}

ModelSpec rank_model(const ModelSpec& model, const TrainingPlan& plan, std::int64_t stage) {
  return RankModel(model, plan, stage).make();
}

ModelSpec with_sections(const ModelSpec& model) {
  ModelSpec whole = model;
  if (!whole.sections.empty() || !whole.stated_parameters) return whole;
  TensorSpec all;
  all.name = "parameters.weight";
  all.shape = {*whole.stated_parameters};
  all.module = ModuleKind::linear;
  Section section;
  section.name = "parameters";
  section.kinds.emplace_back();
  section.kinds.back().tensors.push_back(std::move(all));
  whole.sections.push_back(std::move(section));
  return whole;
}

}  // namespace membill
