// nemotron_h (Nemotron-H, Nemotron 3): blocks of one mixer each, mamba's second version, attention, an MLP or experts.
#include "catalog/families/list.h"
#include "catalog/families/state_space.h"

namespace membill::census {

namespace {

enum Mixer { space_mixer, attention_mixer, mlp_mixer, expert_mixer, mixer_count };

// hybrid_override_pattern, a letter a layer, or the words of layers_block_type.
std::vector<Mixer> read_mixers(const ConfigReader& config) {
  std::vector<Mixer> mixers;
  if (const std::string pattern = config.word("hybrid_override_pattern", ""); !pattern.empty()) {
    for (const char letter : pattern) {
      const std::size_t found = std::string_view("M*-E").find(letter);
      if (found == std::string_view::npos)
        config.problem("hybrid_override_pattern", std::string("'") + letter + "' is no layer", "M, *, - or E");
      else
        mixers.push_back(static_cast<Mixer>(found));
    }
    return mixers;
  }
  const char* const key = config.holds("layers_block_type") ? "layers_block_type" : "layer_types";
  for (const std::string& word : config.words(key)) {
    if (word == "mamba" || word == "linear_attention")
      mixers.push_back(space_mixer);
    else if (word == "attention" || word == "full_attention")
      mixers.push_back(attention_mixer);
    else if (word == "mlp")
      mixers.push_back(mlp_mixer);
    else if (word == "moe")
      mixers.push_back(expert_mixer);
    else
      config.problem(key, "'" + word + "' is no layer", "linear_attention, full_attention, mlp or moe");
  }
  return mixers;
}

StateSpaceShape read_space(const ConfigReader& config) {
  StateSpaceShape shape;
  shape.heads = config.listed("mamba_num_heads");
  shape.head_dim = config.size("mamba_head_dim");
  shape.groups = config.size_or("mamba_n_groups", config.size("n_groups"));
  if (shape.heads % shape.groups != 0)
    config.problem("n_groups",
                   std::to_string(shape.groups) + " groups do not divide " + std::to_string(shape.heads) + " heads");
  shape.state = config.size("ssm_state_size");
  shape.kernel = config.size_or("mamba_d_conv", config.size("conv_kernel"));
  shape.chunk = config.size_or("mamba_chunk_size", config.size("chunk_size"));
  return shape;
}

void attention_tensors(TensorList& list, const AttentionShape& shape, std::int64_t hidden) {
  const std::int64_t q = checked_mul(shape.heads, shape.head_dim), kv = checked_mul(shape.kv_heads, shape.head_dim);
  list.linear("mixer.q_proj", hidden, q, false, TensorRole::attention, SplitAxis::column);
  list.linear("mixer.k_proj", hidden, kv, false, TensorRole::attention, SplitAxis::column);
  list.linear("mixer.v_proj", hidden, kv, false, TensorRole::attention, SplitAxis::column);
  list.linear("mixer.o_proj", q, hidden, false, TensorRole::attention, SplitAxis::row);
}

MoeShape read_latent_moe(const ConfigReader& config) {
  MoeShape moe = read_moe(config, "moe_intermediate_size");
  moe.shared_intermediate = config.size("moe_shared_expert_intermediate_size");
  moe.groups = config.size_or("n_group", 1);
  moe.normalised = config.flag("norm_topk_prob", true);
  moe.latent = config.size_or("moe_latent_size", 0);
  return moe;
}

void expert_tensors(TensorList& list, const MoeShape& moe, MlpShape like, std::int64_t hidden) {
  const std::int64_t width = moe.latent > 0 ? moe.latent : hidden;
  list.experts("mixer.experts.up_proj", {moe.experts, moe.intermediate, width}, SplitAxis::column);
  list.experts("mixer.experts.down_proj", {moe.experts, width, moe.intermediate}, SplitAxis::row);
  router(list, "mixer.gate", moe.experts, hidden, DType::fp32);
  list.buffer("mixer.gate.e_score_correction_bias", {moe.experts});
  like.intermediate = moe.shared_intermediate;
  plain_mlp(list, "mixer.shared_experts.up_proj", "mixer.shared_experts.down_proj", like, hidden);
  if (moe.latent == 0) return;
  list.linear("mixer.fc1_latent_proj", hidden, width, like.bias, TensorRole::mlp, SplitAxis::none);
  list.linear("mixer.fc2_latent_proj", width, hidden, like.bias, TensorRole::mlp, SplitAxis::none);
}

LayerKind mixer_layer(const ConfigReader& config, std::int64_t hidden, Mixer mixer) {
  LayerKind kind;
  kind.mlp.gated = false;
  kind.mlp.activation = config.word("mlp_hidden_act", "relu2");
  kind.mlp.bias = config.flag("mlp_bias", false);
  TensorList list("model.layers.*.");
  list.norm("norm", hidden);
  if (mixer == space_mixer) {
    kind.state_space = read_space(config);
    const bool bias = config.flag("use_bias", false);
    mamba2_mixer(list, "mixer", *kind.state_space, hidden, {config.flag("use_conv_bias", true), bias, bias, true});
  } else if (mixer == attention_mixer) {
    kind.attention = read_attention(config, hidden);
    kind.attention.rotary_dim = 0;
    attention_tensors(list, kind.attention, hidden);
  } else if (mixer == mlp_mixer) {
    kind.mlp.intermediate = config.size("intermediate_size");
    plain_mlp(list, "mixer.up_proj", "mixer.down_proj", kind.mlp, hidden);
  } else {
    kind.moe = read_latent_moe(config);
    expert_tensors(list, *kind.moe, kind.mlp, hidden);
  }
  kind.tensors = list.take();
  return kind;
}

}  // namespace

ModelSpec describe_nemotron_h(const Value& values, Problems& problems) {
  const ConfigReader config(values, problems);
  ModelSpec spec = read_dimensions(config, "nemotron_h", "NemotronHForCausalLM");
  spec.position = PositionKind::none;
  const std::vector<Mixer> mixers = read_mixers(config);
  spec.layers = static_cast<std::int64_t>(mixers.size());
  const auto kind_of = [&](std::int64_t layer) { return static_cast<int>(mixers[static_cast<std::size_t>(layer)]); };
  const auto make = [&](int kind) { return mixer_layer(config, spec.hidden, static_cast<Mixer>(kind)); };
  Frame frame;
  frame.embedding = "model.embeddings";
  frame.final_norm = "model.norm_f";
  frame.rotary = {};
  assemble(spec, frame, stack(spec.layers, mixer_count, kind_of, make));
  return spec;
}

}  // namespace membill::census
