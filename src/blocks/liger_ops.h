// Liger's fused operators (liger-kernel 0.8.5, liger_kernel/ops) as the autograd functions that they are.
#pragma once

#include "blocks/forward.h"

namespace membill {

// LigerRMSNormFunction: keeps its input and one fp32 statistic a row. `in_place`: the gradient is written over the incoming one.
[[nodiscard]] Tensor liger_rms_norm(Forward& f, Parameter& weight, bool in_place, Tensor x);

// LigerRopeFunction: rotates q and k where they are.
struct LigerRotary {
  Tensor cos, sin;
  bool strided = false;       // q and k are parts of wider rows: copied first
  bool copies_query = false;  // the gradient of q arrives in another layout
  bool copies_key = false;
};
void liger_rotary(Forward& f, const LigerRotary& call, Tensor& q, Tensor& k);

// LigerSiLUMulFunction, LigerGELUMulFunction: act(gate) * up; the gradients are written over gate and up.
// `strided`: they are parts of wider rows and copied first.
[[nodiscard]] Tensor liger_gated_product(Forward& f, bool strided, Tensor gate, Tensor up);

// LigerFusedLinearCrossEntropyFunction behind LigerForCausalLMLoss: logits of a chunk of rows at a time, gradients made in forward.
[[nodiscard]] Tensor liger_fused_loss(Forward& f, Parameter& head, const Tensor& hidden, const Tensor& labels);

// ForCausalLMLoss with LigerCrossEntropyFunction: the fp32 logits become their own gradient.
[[nodiscard]] Tensor liger_whole_loss(Forward& f, Tensor logits, const Tensor& labels);

}  // namespace membill
