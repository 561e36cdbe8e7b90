#include "blocks/torchtitan.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "blocks/attention.h"
#include "blocks/complex_rotary.h"
#include "blocks/fp32_norm.h"
#include "blocks/generations.h"
#include "blocks/layers.h"
#include "blocks/loss.h"
#include "blocks/megatron_norm.h"
#include "blocks/sequence_spread.h"

namespace membill {

Tensor TorchtitanArchitecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  f.labels = f.r.empty({f.dims.N, Size(1)}, DType::int64, "labels");
  if (f.loop_variables != nullptr) *f.loop_variables = {ids, f.labels};
  return embed_tokens(f, outer, ids);
}

// freqs_cis is a buffer of the model, as long as a sequence: its bill is the model's (weights.buffers).
LayerInputs TorchtitanArchitecture::prepare(Forward& f, const Modules&, const Tensor&) const {
  LayerInputs inputs;
  inputs.extra = f.r.placeholder({f.dims.s, f.dims.kinds.at(1).at(0).rotary}, DType::fp32);
  return inputs;
}

namespace {

// torch.nn.RMSNorm: a kernel of its own since torch 2.9, before that written out (aten/src/ATen/native/layer_norm.cpp).
Tensor titan_norm(Forward& f, Module& module, const Tensor& x) {
  if (generations(f.plan).fuses_rms_norm) return megatron_norm(f, module, x);
  Recorder& r = f.r;
  const Tensor wide = r.cast(x, DType::fp32);
  const Tensor scale = r.rsqrt(r.add_scalar(r.mean_of_rows(r.square(wide))));
  Tensor normalised = r.cast(r.mul(wide, scale, "normalised"), x.dtype());
  return r.mul(std::move(normalised), module.weight.value, "norm output");
}

Tensor titan_mlp(Forward& f, const Modules& modules, const Tensor& x) {
  const std::vector<std::string>& kept = f.plan.checkpointing.selective;
  if (std::find(kept.begin(), kept.end(), kWithoutLast) == kept.end()) return tune_mlp(f, modules, x);
  Tensor gate = f.r.silu(apply_linear(f, modules.at("mlp.gate_proj"), x));
  Tensor product = f.r.mul(std::move(gate), apply_linear(f, modules.at("mlp.up_proj"), x), "gated product");
  f.r.set_keeps_results(false);
  Tensor fed = apply_linear(f, modules.at("mlp.down_proj"), std::move(product));
  f.r.set_keeps_results(true);
  return fed;
}

// Compiled, the loss is one kernel over the logits in 16 bits, which its backward reads again.
Tensor loss_kernel(Forward& f, const Tensor& logits) {
  Recorder& r = f.r;
  const Shape one{Size(1), Size(1)}, each{logits.rows(), Size(1)};
  const bool node = r.needs_node({&logits});
  const Tensor sums = r.empty(each, DType::fp32, "log-sum-exp of the logits");
  Tensor result = r.empty(one, DType::fp32, "loss");
  if (node)
    r.record({&result}, {r.edge(logits)},
             [kept = r.saved(logits), kept_sums = r.saved(sums), shape = logits.shape(), type = logits.dtype()](
                 Recorder& rec, Gradients&) { return Gradients{rec.empty(shape, type, "gradient of the logits")}; });
  return result;
}

// models/llama3/model/model.py reshape_for_broadcast: a rank's part of a sequence has positions of its own, looked up in every layer.
Tensor of_rank(Forward& f, const Tensor& positions, const KindDims& dims) {
  if (sequence_ranks(f.plan) == 1) return positions;
  return f.r.empty({f.one_row() ? f.dims.s : f.dims.N, dims.rotary}, DType::fp32, "positions of the rank's tokens");
}

}  // namespace

Tensor TorchtitanArchitecture::attention(Forward& f, const LayerContext& layer, const Tensor& hidden,
                                         const Tensor& positions) const {
  const KindDims& dims = layer.dims;
  const auto project = [&](const char* name, const Size& heads, const Size& width) {
    return f.r.view(apply_linear(f, layer.modules.at(name), hidden), {f.dims.N * heads, width});
  };
  Tensor q = project("self_attn.q_proj", dims.a, dims.d), k = project("self_attn.k_proj", dims.k, dims.d);
  const Tensor v = project("self_attn.v_proj", dims.k, dims.v);
  std::tie(q, k) = rotate_both_complex(f, q, k, of_rank(f, positions, dims));
  AttentionCall call{dims, layer.kind.attention, choose_attention(f, layer.kind, false), {}};
  const bool asked = f.plan.attention == AttentionKernel::mem_efficient;
  if (call.choice.kernel == AttentionKernel::mem_efficient && !asked) call.choice.kernel = AttentionKernel::sdpa_math;
  call.bare = call.choice.kernel != AttentionKernel::sdpa_math;  // which repeats keys and values first
  const Tensor output = run_attention(f, call, q, k, v);
  return apply_linear(f, layer.modules.at("self_attn.o_proj"), output);
}

Tensor TorchtitanArchitecture::layer(Forward& f, const LayerContext& layer, Tensor hidden,
                                     const LayerInputs& inputs) const {
  const Modules& modules = layer.modules;
  const Tensor h = f.r.add(
      hidden, attention(f, layer, titan_norm(f, modules.at("input_layernorm"), hidden), inputs.extra), "residual");
  const Tensor fed = titan_mlp(f, modules, titan_norm(f, modules.at("post_attention_layernorm"), h));
  const ItemScope scope(f.r, f.items.boundary);
  return f.r.add(h, fed, "layer output");
}

Tensor TorchtitanArchitecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  return titan_norm(f, outer.at("model.norm"), hidden);
}

Tensor TorchtitanArchitecture::loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                                    Tensor*) const {
  Recorder& r = f.r;
  Tensor logits = head(f, outer, std::move(hidden));
  if (f.hooks != nullptr) {
    logits = f.hooks->after_head(std::move(logits));
    f.hooks->after_logits();
  }
  r.set_items(f.items.loss_probabilities);
  if (f.plan.loss == LossKind::native) return r.mul_scalar(loss_kernel(f, logits), "loss over valid tokens");
  r.set_items(f.items.loss_upcast);
  const Tensor wide = r.cast(logits, DType::fp32);
  r.set_items(f.items.loss_probabilities);
  return r.mul_scalar(negative_log_likelihood(f, r.log_softmax(wide), labels), "loss over valid tokens");
}

}  // namespace membill
