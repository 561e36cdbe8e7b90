// What decoder-only families share: the dimensions that nearly every config spells the same way, the parts of a layer, and the
// tensors around the stack of layers.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/families/config_reader.h"
#include "catalog/families/tensor_list.h"
#include "membill/model_spec.h"

namespace membill::census {

// Names and options of what surrounds the layers. Module names as Hugging Face has them; an empty name: no such module.
struct Frame {
  std::string_view embedding = "model.embed_tokens";
  std::string_view final_norm = "model.norm";
  bool final_norm_bias = false;
  std::string_view rotary = "model.rotary_emb";
  std::vector<std::string_view> rotary_names = {
      ""};  // prefixes of its tables; one per layer type where types rotate differently
  std::string_view head = "lm_head";
  bool head_bias = false;
  bool embedding_scale = false;     // gemma: a scalar buffer beside the embedding
  std::string_view positions = {};  // a learned position table of max_positions rows
  std::string_view embedding_norm = {};
  std::vector<TensorSpec> last = {};  // further tensors of the final section
};

// Vocabulary, width, depth, tying and storage type, under llama's key names (or their spellings).
[[nodiscard]] ModelSpec read_dimensions(const ConfigReader& config, std::string_view model_type,
                                        std::string_view class_name);

// Heads, K/V heads, head width (derived from the hidden size only when the config does not say), rotated width, dropout.
[[nodiscard]] AttentionShape read_attention(const ConfigReader& config, std::int64_t hidden);
// Heads that each have their own K/V and split the hidden size evenly.
[[nodiscard]] AttentionShape read_plain_attention(const ConfigReader& config, std::int64_t hidden);
// The share of a head that is rotated, from partial_rotary_factor or rope_parameters; `fallback` when neither says.
[[nodiscard]] std::int64_t read_rotary_dim(const ConfigReader& config, std::int64_t head_dim, double fallback = 1.0);
// A gated MLP of intermediate_size.
[[nodiscard]] MlpShape read_gated_mlp(const ConfigReader& config);
// An MLP of two matrices.
[[nodiscard]] MlpShape read_plain_mlp(const ConfigReader& config, std::int64_t intermediate, bool bias);
// Attention and MLP of a layer as BERT's: biases everywhere, attention_probs_dropout_prob. Without tensors.
[[nodiscard]] LayerKind read_encoder_layer(const ConfigReader& config, std::int64_t hidden);

// self_attn.q_proj, k_proj, v_proj, <output>, and the norms on q and k when the shape has them.
void separate_attention(TensorList& list, const AttentionShape& shape, std::int64_t hidden,
                        std::string_view output = "o_proj");
// Width of the matrix that makes q, k and v at once.
[[nodiscard]] std::int64_t fused_qkv_width(const AttentionShape& shape);
// <module>.gate_proj, up_proj, down_proj; one gate_up_proj when the shape is fused.
void gated_mlp(TensorList& list, std::string_view module, const MlpShape& shape, std::int64_t hidden);
// <module>.<first>, <module>.<second>.
void plain_mlp(TensorList& list, std::string_view first, std::string_view second, const MlpShape& shape,
               std::int64_t hidden);
// <module>.gate_up_proj [E, 2I, h] and <module>.down_proj [E, h, I] as transformers 5 holds routed experts.
void fused_experts(TensorList& list, std::string_view module, const MoeShape& shape, std::int64_t hidden);
// A router without bias: <module>.weight [E, h]. A bare parameter in transformers 5, so no LoRA target.
void router(TensorList& list, std::string_view module, std::int64_t experts, std::int64_t hidden,
            std::optional<DType> own_dtype = {});
// Experts, experts per token, and the width of one expert under `width_key`.
[[nodiscard]] MoeShape read_moe(const ConfigReader& config, std::string_view width_key);
// The same with n_shared_experts experts that every token uses, as one MLP.
[[nodiscard]] MoeShape read_moe_with_shared(const ConfigReader& config);
// mlp.experts, mlp.gate, mlp.shared_experts of the deepseek shape; `score_buffer`: the router's correction bias. `like` gives the
// shared MLP's bias.
void experts_with_shared(TensorList& list, const MoeShape& moe, const MlpShape& like, std::int64_t hidden,
                         bool score_buffer);
// Norms of a layer in order, each of the hidden width.
void norms(TensorList& list, std::initializer_list<std::string_view> modules, std::int64_t hidden, bool bias = false);

// input_layernorm and post_attention_layernorm.
void pre_norms(TensorList& list, std::int64_t hidden, bool bias = false);
// Attention, the gated MLP "mlp" and `norms`, in this order, under model.layers.
[[nodiscard]] LayerKind dense_layer(std::int64_t hidden, const AttentionShape& attention, const MlpShape& mlp,
                                    std::initializer_list<std::string_view> norm_modules = {
                                        "input_layernorm", "post_attention_layernorm"});

// True for each layer that attends within a window: from layer_types, else from `slides`. A list of another length is a problem.
[[nodiscard]] std::vector<bool> sliding_layers(const ConfigReader& config, std::int64_t layers,
                                               const std::function<bool(std::int64_t)>& slides);

// True for each layer whose MLP is a mixture of experts: every decoder_sparse_step-th that mlp_only_layers does not name.
[[nodiscard]] std::vector<bool> sparse_layers(const ConfigReader& config, std::int64_t layers);

// True for each layer that rotates q and k: from no_rope_layers (1 = rotates), else all but every no_rope_layer_interval-th.
[[nodiscard]] std::vector<bool> rotating_layers(const ConfigReader& config, std::int64_t layers);
// Layers from one full layer to the next: sliding_window_pattern, a number or one letter a layer; at least 1.
[[nodiscard]] std::int64_t read_window_pattern(const ConfigReader& config, std::int64_t fallback);

// A stack of `layers` layers of at most `kind_count` kinds: `kind_of` says the kind of a layer, `make` builds a kind. Kinds that no
// layer has are left out.
[[nodiscard]] Section stack(std::int64_t layers, int kind_count, const std::function<int(std::int64_t)>& kind_of,
                            const std::function<LayerKind(int)>& make);
// A stack of identical layers.
[[nodiscard]] Section uniform_stack(std::int64_t layers, LayerKind kind);
// A stack whose layers differ in their window only.
[[nodiscard]] Section windowed_stack(const std::vector<bool>& slides, std::optional<std::int64_t> window,
                                     const LayerKind& kind);
// A section that is no stack.
[[nodiscard]] Section single(std::string name, std::vector<TensorSpec> tensors);

// Puts embedding, `layers`, final norm with rotary tables, and head around the layers.
void assemble(ModelSpec& spec, const Frame& frame, Section layers);

}  // namespace membill::census
