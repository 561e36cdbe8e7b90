// How one model type runs: the part of a block program that differs between families. One file per group of families, one line in
// registry.cpp.
#pragma once

#include <span>
#include <string_view>

#include "blocks/forward.h"

namespace membill {

class Architecture {
 public:
  virtual ~Architecture() = default;

  // Hidden states from token ids: the embedding and what the model adds to it before its first layer. Local variables of the model
  // that outlive the call go to f.locals; without any, the result is one.
  [[nodiscard]] virtual Tensor embed(Forward& f, const Modules& outer, const Tensor& ids) const;
  // What the model makes once and passes to every layer: masks and rotary tables. `hidden` is the first layer's input.
  [[nodiscard]] virtual LayerInputs prepare(Forward& f, const Modules& outer, const Tensor& hidden) const;
  // What runs between two stacks of layers, before the first layer of `section`. Returns that layer's input.
  [[nodiscard]] virtual Tensor enter_section(Forward& f, const Modules& outer, const Section& section, Tensor hidden,
                                             LayerInputs& inputs) const;
  // What the model does for the next layer before it calls that.
  virtual void before_layer(Forward& f) const;
  // One decoder layer.
  [[nodiscard]] virtual Tensor layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                     const LayerInputs& inputs) const = 0;
  // The final norm.
  [[nodiscard]] virtual Tensor finish(Forward& f, const Modules& outer, Tensor hidden) const = 0;
  // Logits of the final hidden states.
  [[nodiscard]] virtual Tensor head(Forward& f, const Modules& outer, Tensor hidden) const;
  // The loss of the final hidden states: the head, then ForCausalLMLoss over whole logits, which `outputs` receives if given.
  [[nodiscard]] virtual Tensor loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                                    Tensor* outputs) const;

  // The module whose weight the head multiplies by: the embedding's when they are tied. A tied head may keep a bias of its own.
  [[nodiscard]] Module& head_matrix(const Modules& outer) const;

  // The token embedding as the model calls it, made to need a gradient where adapters ask for that.
  [[nodiscard]] Tensor embed_tokens(Forward& f, const Modules& outer, const Tensor& ids) const;

  // The embedding module's output as enable_input_require_grads leaves it.
  [[nodiscard]] static Tensor made_to_need_gradient(Forward& f, Tensor embedded);

  // What the implementation makes in its first forward and keeps for the rest of the job.
  [[nodiscard]] virtual std::vector<Tensor> lasting(Forward& f) const;

  // False for encoders, which predict no next word.
  [[nodiscard]] virtual bool causal() const { return true; }

  // What a checkpointed layer takes and returns beside its hidden states.
  [[nodiscard]] virtual Recorder::CheckpointVariables checkpoint_variables(Forward& f) const {
    return {{}, {&f.second_output}};
  }

  // What happens to the input of a reentrant checkpoint over these layers, and to its gradient, after its backward.
  [[nodiscard]] virtual CheckpointEnd after_checkpoint(const std::vector<Modules*>& layers) const;

  // Whether the model holds what each of its layers gets until it returns, whatever it is asked for.
  [[nodiscard]] virtual bool keeps_hidden_states() const { return false; }

  // Names that the census gives to what every causal model has.
  [[nodiscard]] virtual std::string_view embedding_name() const { return "model.embed_tokens"; }
  [[nodiscard]] virtual std::string_view head_name() const { return "lm_head"; }
};

// The program of `model_type` under `implementation`, or nullptr when its activations are not modelled yet.
[[nodiscard]] const Architecture* find_architecture(std::string_view model_type, Implementation implementation);
// True for classes without scaled_dot_product_attention: they write attention out whatever attn_implementation says
// (transformers 5.24, _supports_sdpa of the model's class).
[[nodiscard]] bool writes_attention_out(std::string_view model_type, AttentionKernel asked);
// Every model type with a program.
[[nodiscard]] std::span<const std::string_view> modelled_types();

}  // namespace membill
