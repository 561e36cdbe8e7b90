#include "blocks/t5.h"

#include <memory>
#include <string>

#include "blocks/attention.h"
#include "blocks/kept.h"
#include "blocks/layers.h"
#include "blocks/llama.h"
#include "blocks/loss.h"

namespace membill {
namespace {

// T5LayerNorm: the variance in fp32, no mean, the product in the weight's type.
Tensor norm(Forward& f, Module& module, const Tensor& x) {
  Recorder& r = f.r;
  const Tensor variance = r.mean_of_rows(r.square(r.cast(x, DType::fp32)));
  Tensor hidden = r.mul(x, r.rsqrt(r.add_scalar(variance)), "normalised");
  const DType type = module.weight.value.dtype();
  if (type != DType::fp32) hidden = r.cast(std::move(hidden), type);
  return r.mul(module.weight.value, hidden, "norm output");
}

// The distance of every pair of positions, in both directions or backwards only.
struct Distances {
  Tensor sides, distance;  // `sides`: the buckets of the positions that follow
};

Distances distances(Forward& f, bool decoder, const Shape& square) {
  Recorder& r = f.r;
  Distances result;
  Tensor last;
  const auto next = [&](DType type, const char* label) { return last = r.empty(square, type, label); };
  if (decoder) {
    for (const char* label : {"zeros", "distance, not positive"}) next(DType::int64, label);
  } else {
    next(DType::boolean, "positions that follow");
    for (const char* label : {"positions that follow, 0 or 1", "their buckets"}) next(DType::int64, label);
    result.sides = r.empty(square, DType::int64, "buckets");
    last.drop();
  }
  result.distance = r.empty(square, DType::int64, "distance");
  return result;
}

// T5Attention._relative_position_bucket.
Tensor buckets(Forward& f, bool decoder) {
  Recorder& r = f.r;
  const Shape square{f.dims.s * f.dims.s, Size(1)};
  Distances pairs = distances(f, decoder, square);
  const Tensor is_small = r.empty(square, DType::boolean, "distances with a bucket of their own");
  Tensor last;
  for (const char* label :
       {"distance in fp32", "distance over the exact ones", "its logarithm", "its share", "its bucket"})
    last = r.empty(square, DType::fp32, label);
  for (const char* label : {"bucket of a far distance", "its number"}) last = r.empty(square, DType::int64, label);
  Tensor far;
  {
    const Tensor most = r.empty(square, DType::int64, "the last bucket");
    far = r.empty(square, DType::int64, "bucket of a far distance, bounded");
  }
  last.drop();
  Tensor chosen = r.empty(square, DType::int64, "bucket of the distance");
  return decoder ? r.empty(square, DType::int64, "buckets") : pairs.sides;
}

// T5Attention.compute_bias: (heads, s, s), with the heads last in memory.
Tensor compute_bias(Forward& f, const KindDims& dims, Module& table, bool decoder) {
  Recorder& r = f.r;
  const Shape line{f.dims.s, Size(1)};
  Tensor context = r.empty(line, DType::int64, "positions");
  context = r.empty(line, DType::int64, "positions of the queries");
  const Tensor memory = r.empty(line, DType::int64, "positions of the keys");
  const Tensor relative = r.empty({f.dims.s * f.dims.s, Size(1)}, DType::int64, "relative positions");
  return r.view(r.embedding(buckets(f, decoder), table.weight), {dims.a * f.dims.s, f.dims.s});
}

// torch.where(causal mask, bias, the lowest number).
Tensor causal_bias(Forward& f, const Tensor& bias) {
  Recorder& r = f.r;
  Tensor mask;
  {
    const Shape line{f.dims.s, Size(1)};
    const Tensor rows = r.empty(line, DType::int64, "positions of the queries"),
                 columns = r.empty(line, DType::int64, "positions of the keys");
    mask = r.empty({f.dims.s, f.dims.s}, DType::boolean, "causal mask, boolean");
  }
  const Shape one{Size(1), Size(1)};
  const Tensor lowest = r.empty(one, bias.dtype(), "lowest number");
  Tensor out = r.empty(bias.shape(), bias.dtype(), "causal position bias");
  if (!r.needs_node({&bias})) return out;
  r.record({&out}, {r.edge(bias)},
           [kept = r.saved(mask), shape = bias.shape(), type = bias.dtype(), one](Recorder& rec, Gradients&) {
             const Tensor zero = rec.empty(one, type, "zero");
             return Gradients{rec.empty(shape, type, "gradient of the position bias")};
           });
  return out;
}

// create_position_bias_mask: what scaled_dot_product_attention takes as its mask.
Tensor mask_of_bias(Forward& f, const Tensor& bias, bool decoder) {
  const Tensor masked = decoder ? causal_bias(f, bias) : bias;
  return f.r.contiguous_copy(masked, masked.shape(), "position bias as a mask");
}

// umt5: each layer has a table and zeros of its own; t5's stacks share what their first layer makes.
bool shares_biases(const Forward& f) {
  for (const Section& section : f.model.sections)
    if (section.kinds.size() > 1) return true;
  return false;
}

// Under checkpointing a stack's common zeros are a leaf that needs a gradient.
Tensor zero_bias(Forward& f, const KindDims& dims, DType type) {
  Tensor bias = f.r.empty({dims.a * f.dims.s, f.dims.s}, type, "zero position bias");
  if (f.plan.checkpointing.mode == Checkpointing::none || !shares_biases(f)) return bias;
  f.leaves.push_back(std::make_unique<Parameter>());
  bias.body().requires_grad = true;
  bias.body().leaf = f.leaves.back().get();
  if (f.r.grad_enabled()) f.r.hold_in_graph(bias);  // its node has the leaf
  return bias;
}

struct T5Call {
  const LayerContext& layer;
  std::string module;
  const LayerInputs& inputs;
  bool crosses = false, decoder = false;
};

Tensor t5_attention(Forward& f, const T5Call& call, const Tensor& hidden) {
  const KindDims& dims = call.layer.dims;
  const AttentionChoice choice = choose_attention(f, call.layer.kind, true, true);
  const bool eager = choice.kernel == AttentionKernel::eager;
  const auto project = [&](const char* name, const Tensor& from) {
    return seen_as_heads(f, apply_linear(f, call.layer.modules.at(call.module + name), from), dims.a, dims.d);
  };
  const Tensor& from = call.crosses ? f.encoder_states : hidden;
  const Tensor q = project(".q", hidden);
  const Tensor k = project(".k", from);
  const Tensor v = project(".v", from);
  Tensor& bias = call.crosses ? f.cross_bias : f.position_bias;
  if (Module* table = call.layer.modules.find(call.module + ".relative_attention_bias"))
    bias = compute_bias(f, dims, *table, call.decoder);
  else if (!bias.defined())
    bias = zero_bias(f, dims, q.dtype());
  AttentionCall attend{dims, call.layer.kind.attention, choice, {}};
  attend.native_softmax = attend.keeps_softmax = true;
  attend.bias = eager || call.crosses ? bias : mask_of_bias(f, bias, call.decoder);
  if (eager && !call.crosses) attend.mask = call.inputs.mask;
  return apply_linear(f, call.layer.modules.at(call.module + ".o"), run_attention(f, attend, q, k, v));
}

Tensor feed_forward(Forward& f, const LayerContext& layer, const std::string& module, const Tensor& hidden) {
  Recorder& r = f.r;
  const std::string& act = layer.kind.mlp.activation;
  const Tensor normed = norm(f, layer.modules.at(module + ".layer_norm"), hidden);
  Tensor x;
  const auto dense = [&](const char* name, const Tensor& from) {
    return apply_linear(f, layer.modules.at(module + ".DenseReluDense." + name), from);
  };
  if (layer.kind.mlp.gated) {
    const Tensor gate = activation(f, act, dense("wi_0", normed));
    const Tensor linear = dense("wi_1", normed);
    x = r.mul(gate, linear, "gated product");
  } else {
    x = activation(f, act, dense("wi", normed));
  }
  x = r.dropout(std::move(x), f.hidden_dropout);
  x = r.cast(std::move(x), layer.modules.at(module + ".DenseReluDense.wo").weight.value.dtype());
  return r.add(hidden, r.dropout(dense("wo", x), f.hidden_dropout), "residual stream");
}

}  // namespace

Tensor T5Architecture::embed(Forward& f, const Modules& outer, const Tensor& ids) const {
  Tensor tokens = embed_tokens(f, outer, ids);
  f.locals = {tokens};
  return f.r.dropout(std::move(tokens), f.hidden_dropout);
}

// The labels, shifted right, are the decoder's input.
Tensor T5Architecture::enter_section(Forward& f, const Modules& outer, const Section& section, Tensor hidden,
                                     LayerInputs& inputs) const {
  if (section.name != "decoder") return hidden;
  Recorder& r = f.r;
  const ItemScope scope(r, f.items.embedding);
  hidden = norm(f, outer.at("encoder.final_layer_norm"), hidden);
  f.encoder_states = r.dropout(std::move(hidden), f.hidden_dropout);
  f.locals.clear();
  f.position_bias.drop();
  const Shape per_token{f.dims.N, Size(1)};
  const Tensor shifted = r.empty(per_token, DType::int64, "labels, shifted right");
  { const Tensor copy = r.empty({f.dims.N - f.dims.b, Size(1)}, DType::int64, "labels without the last"); }
  { const Tensor ignored = r.empty(per_token, DType::boolean, "ignored labels"); }
  if (f.plan.attention == AttentionKernel::eager) make_masks(f, inputs);
  Tensor tokens = embed_tokens(f, outer, shifted);
  f.locals = {tokens};
  f.caller_locals.push_back(shifted);
  return r.dropout(std::move(tokens), f.hidden_dropout);
}

namespace {

// "clamp inf values to enable fp16 training": whether one is infinite decides on the bounds, which are tensors.
Tensor clamped_in_fp16(Forward& f, Tensor x) {
  if (x.dtype() != DType::fp16) return x;
  Recorder& r = f.r;
  {
    Tensor infinite;
    {
      const Tensor sizes = r.empty(x.shape(), x.dtype(), "absolute values");
      infinite = r.empty(x.shape(), DType::boolean, "infinite values");
    }
    const Tensor any = r.empty({Size(1), Size(1)}, DType::boolean, "whether there is one");
  }
  const Tensor most = r.empty({Size(1), Size(1)}, DType::fp32, "largest value");
  const Tensor least = r.empty({Size(1), Size(1)}, DType::fp32, "smallest value");
  return also_keeping(r, also_keeping(r, r.clamp(std::move(x), Recorder::Bounds::both), most), least);
}

}  // namespace

Tensor T5Architecture::layer(Forward& f, const LayerContext& layer, Tensor hidden, const LayerInputs& inputs) const {
  Recorder& r = f.r;
  const bool decoder = f.encoder_states.defined();
  const auto attend = [&](const std::string& place, const char* name, bool crosses) {
    const Tensor normed = norm(f, layer.modules.at(place + ".layer_norm"), hidden);
    const T5Call call{layer, place + "." + name, inputs, crosses, decoder};
    Tensor attended = r.dropout(t5_attention(f, call, normed), f.hidden_dropout);
    hidden = clamped_in_fp16(f, r.add(hidden, attended, "residual stream"));
  };
  attend("layer.0", "SelfAttention", false);
  if (!shares_biases(f)) f.position_bias.drop();
  if (decoder) attend("layer.1", "EncDecAttention", true);
  if (!shares_biases(f)) f.cross_bias.drop();
  const ItemScope scope(r, f.items.boundary);
  return clamped_in_fp16(f, feed_forward(f, layer, decoder ? "layer.2" : "layer.1", hidden));
}

Recorder::CheckpointVariables T5Architecture::checkpoint_variables(Forward& f) const {
  return {{&f.position_bias, &f.encoder_states, &f.cross_bias}, {&f.position_bias, &f.cross_bias}};
}

Tensor T5Architecture::finish(Forward& f, const Modules& outer, Tensor hidden) const {
  f.position_bias.drop();
  f.cross_bias.drop();
  return f.r.dropout(norm(f, outer.at("decoder.final_layer_norm"), hidden), f.hidden_dropout);
}

// A tied head works on scaled states.
Tensor T5Architecture::loss(Forward& f, const Modules& outer, Tensor hidden, const Tensor& labels,
                            Tensor* outputs) const {
  const Tensor scaled = f.model.scales_head_input ? f.r.mul_scalar(hidden, "scaled states") : hidden;
  Tensor logits = head(f, outer, scaled);
  if (f.hooks != nullptr) logits = f.hooks->after_head(std::move(logits));
  Tensor result = plain_loss(f, logits, labels);
  if (outputs != nullptr) *outputs = std::move(logits);
  f.encoder_states.drop();
  return result;
}

}  // namespace membill
