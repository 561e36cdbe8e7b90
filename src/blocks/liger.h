// Liger's patches of a model type: any program with llama's parts, with some of them replaced.
#pragma once

#include "blocks/architecture.h"
#include "blocks/attention.h"
#include "blocks/layers.h"
#include "blocks/liger_ops.h"
#include "blocks/llama.h"

namespace membill {

// What apply_liger_kernel_to_<type> replaces by default.
struct LigerPatch {
  bool rotary = true;
  bool norm_in_place = true;            // the norm's gradient overwrites the incoming one
  bool fused_loss = true;               // head and loss together; else LigerCrossEntropy over whole logits
  bool head_norms_of_instances = true;  // the Trainer, which patches a built model, reaches the norms of q and k
  bool mlp = true;
};

// How the rotation of this layer's q and k is called, by the attention that follows.
[[nodiscard]] LigerRotary rotary_call(const Forward& f, const LayerContext& layer, const LayerInputs& inputs);

// The gated MLP with its product in one kernel; for a fused gate_up_proj too.
[[nodiscard]] Tensor liger_mlp(Forward& f, Modules& modules, const Tensor& hidden);
[[nodiscard]] Tensor liger_loss(Forward& f, const Architecture& program, bool fused, const Modules& outer,
                                const Tensor& hidden, const Tensor& labels);

template <typename Base>
class Liger : public Base {
 public:
  Liger() = default;
  explicit Liger(const LigerPatch& patch) : patch_(patch) {}

  [[nodiscard]] Tensor loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                            Tensor* outputs) const override {
    if (!f.plan.liger.cross_entropy) return Base::loss(f, outer, std::move(hidden), labels, outputs);
    const bool whole = f.plan.loss == LossKind::native;  // cross_entropy=True, fused_linear_cross_entropy=False
    return liger_loss(f, *this, patch_.fused_loss && !whole, outer, hidden, labels);
  }

 protected:
  [[nodiscard]] Tensor norm(Forward& f, Module& module, Tensor x) const override {
    const bool of_heads = module.name.ends_with("q_norm") || module.name.ends_with("k_norm");
    const bool missed = of_heads && f.plan.loop == Loop::trainer && !patch_.head_norms_of_instances;
    if (missed || !f.plan.liger.rms_norm) return Base::norm(f, module, std::move(x));
    return liger_rms_norm(f, module.weight, patch_.norm_in_place, std::move(x));
  }

  [[nodiscard]] bool rotates_by_kernel(const Forward& f) const override { return patch_.rotary && f.plan.liger.rope; }

  void rotate(Forward& f, const LayerContext& layer, const LayerInputs& inputs, Heads& heads) const override {
    if (!rotates_by_kernel(f)) return Base::rotate(f, layer, inputs, heads);
    liger_rotary(f, rotary_call(f, layer, inputs), heads.q, heads.k);
  }

  [[nodiscard]] Tensor mlp(Forward& f, const LayerContext& layer, const Tensor& hidden) const override {
    return patch_.mlp && f.plan.liger.swiglu ? liger_mlp(f, layer.modules, hidden) : Base::mlp(f, layer, hidden);
  }

 private:
  LigerPatch patch_;
};

}  // namespace membill
