// The llama block as Transformers 5.24 runs it: llama, mistral, qwen2, qwen3 and what follows them to the letter. Its relatives
// replace single parts.
#pragma once

#include "blocks/architecture.h"
#include "blocks/layers.h"

namespace membill {

// Queries, keys and values of one attention call: rows of heads.
struct Heads {
  Tensor q, k, v;
  bool contiguous = false;  // q and k lie as (b, heads, s, d)
};

class LlamaArchitecture : public Architecture {
 public:
  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const override;
  [[nodiscard]] Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                             const LayerInputs& inputs) const override;
  [[nodiscard]] Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const override;

 protected:
  // Norms of a layer around its two blocks, by module name; nullptr where there is none.
  struct NormNames {
    const char* before_attention;
    const char* after_attention;
    const char* before_mlp;
    const char* after_mlp;
  };
  [[nodiscard]] virtual NormNames norm_names() const;
  [[nodiscard]] virtual Tensor norm(Forward& f, Module& module, Tensor x) const;
  // The rotary tables' type when the residual stream has `stream`.
  [[nodiscard]] virtual DType rotary_type(DType stream) const { return stream; }
  [[nodiscard]] virtual Heads project(Forward& f, const LayerContext& layer, const Tensor& hidden) const;
  // The three projections without norms on q and k; `turns`: parts of q's and k's heads are cut out next.
  [[nodiscard]] Heads project_plain(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                    bool turns = false) const;
  // The same with norms on each head of q and k, where the layer has them, after all three projections.
  [[nodiscard]] Heads project_then_norm(Forward& f, const LayerContext& layer, const Tensor& hidden) const;
  // Norms over all heads of q and of k together.
  [[nodiscard]] Heads project_with_whole_norms(Forward& f, const LayerContext& layer, const Tensor& hidden) const;
  virtual void rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const;
  // Whether a kernel rotates q and k: it takes and gives heads behind tokens, whatever lies before and after it.
  [[nodiscard]] virtual bool rotates_by_kernel(const Forward& f) const;
  // A projection of q or k as heads that are rotated next; `copied`: its gradient comes with heads first whatever the attention.
  [[nodiscard]] Tensor seen_to_rotate(Forward& f, const KindDims& dims, const Tensor& x, const Size& heads,
                                      bool copied) const;
  // Modules of an attention beside q_proj, k_proj and v_proj.
  struct AttentionNames {
    const char* output;
    const char* q_norm;
    const char* k_norm;
  };
  [[nodiscard]] virtual AttentionNames attention_names() const;
  // `weights` receives the attention weights of an eager layer, which the caller holds.
  [[nodiscard]] virtual Tensor attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                         const LayerInputs& inputs, Tensor& weights) const;
  [[nodiscard]] virtual Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const;
  // The second block of a layer: the MLP over the normed `hidden`, which nobody else holds; `residual` is the stream beside it.
  [[nodiscard]] virtual Tensor feed_forward(Forward& f, const LayerContext& layer, Tensor hidden,
                                            const Tensor& residual) const;
  // What a block's output passes through before it is added to the residual stream.
  [[nodiscard]] virtual Tensor branch(Forward& f, const Tensor& output) const;
  // Whether a layer holds what its attention gave in a variable of its own.
  [[nodiscard]] virtual bool holds_attention_output() const { return false; }
};

// Columns of the rotary tables: those of the first layer kind that rotates.
[[nodiscard]] const Size& rotary_columns(const Forward& f);

// Masks and rotary tables of a model without or with sliding layers, as create_causal_mask and create_sliding_window_causal_mask
// make them: none where the kernel needs none.
void make_masks(Forward& f, LayerInputs& inputs);
// Positions and masks of layers that turn nothing.
[[nodiscard]] LayerInputs inputs_without_rotary(Forward& f);
// Whether a layer of `kind` gets a mask tensor under SDPA: a padding mask, or a window that the sequence reaches.
[[nodiscard]] bool needs_mask(const Forward& f, const LayerKind& kind);

}  // namespace membill
