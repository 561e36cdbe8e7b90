#include "blocks/architecture.h"

#include "blocks/layers.h"
#include "blocks/loss.h"
#include "blocks/prompt.h"
#include "blocks/tensor_parallel_head.h"

namespace membill {

Tensor Architecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  return embed_tokens(f, outer, ids);
}

Tensor Architecture::embed_tokens(Forward& f, const Modules& outer, const Tensor& ids) const {
  if (f.hooks != nullptr) f.hooks->before_embedding();
  Module& words = outer.at(embedding_name());
  Tensor embedded = made_to_need_gradient(
      f, keeps_split_vocabulary(f.model, f.plan) ? embed_own_words(f, words, ids) : apply_embedding(f, words, ids));
  if (f.hooks != nullptr) embedded = f.hooks->after_embedding(std::move(embedded));
  return f.prompt != nullptr && f.adapters && f.dims.past.is_zero() ? with_prompt(f, ids, embedded) : embedded;
}

Tensor Architecture::made_to_need_gradient(Forward& f, Tensor embedded) {
  if (f.input_leaf == nullptr || embedded.requires_grad()) return embedded;
  embedded.body().requires_grad = true;
  if (!f.r.grad_enabled()) return embedded;
  Parameter* leaf = f.input_leaf;
  if (leaf->value.defined()) leaf = f.leaves.emplace_back(std::make_unique<Parameter>()).get();  // a decoder's own
  embedded.body().leaf = leaf;
  leaf->value = embedded;  // the graph's leaf node holds it
  leaf->trainable = true;
  return embedded;
}

Tensor Architecture::enter_section(Forward&, const Modules&, const Section&, Tensor hidden, LayerInputs&) const {
  return hidden;
}

void Architecture::before_layer(Forward&) const {}

LayerInputs Architecture::prepare(Forward&, const Modules&, const Tensor&) const { return {}; }

std::vector<Tensor> Architecture::lasting(Forward&) const { return {}; }

CheckpointEnd Architecture::after_checkpoint(const std::vector<Modules*>&) const { return {}; }

Module& Architecture::head_matrix(const Modules& outer) const {
  Module* own = outer.find(head_name());
  const bool has_matrix = own != nullptr && (own->weight.value.defined() || own->quantized != nullptr);
  return has_matrix ? *own : outer.at(embedding_name());
}

Tensor Architecture::head(Forward& f, const Modules& outer, Tensor hidden) const {
  const Module* own = outer.find(head_name());
  Module& matrix = head_matrix(outer);
  if (own == nullptr || own == &matrix) return apply_linear(f, matrix, std::move(hidden));
  return f.r.linear(std::move(hidden), matrix.weight, own->bias.get());
}

Tensor Architecture::loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                          Tensor* outputs) const {
  if (f.plan.loss == LossKind::fused) return cut_loss(f, head_matrix(outer).weight, hidden);
  Tensor logits = head(f, outer, hidden);
  if (keeps_split_vocabulary(f.model, f.plan)) return loss_of_split_logits(f, logits, labels);
  if (gathers_split_logits(f.plan)) logits = with_gathered_logits(f, std::move(logits));
  if (f.hooks != nullptr) logits = f.hooks->after_head(std::move(logits));
  Tensor result = causal_lm_loss(f, logits, labels);
  if (outputs != nullptr) *outputs = std::move(logits);
  return result;
}

}  // namespace membill
