#include "blocks/adapters.h"

#include "blocks/adalora.h"
#include "blocks/kept.h"
#include "blocks/layers.h"
#include "blocks/quantized.h"
#include "membill/catalog.h"

namespace membill {
namespace {

// tuners/lora/dora.py get_lora_weight: the adapter's product as a matrix, made from an identity matrix.
Tensor adapter_matrix(Forward& f, LoraAdapter& adapter) {
  Recorder& r = f.r;
  const Size& in = adapter.down.value.width();
  const Tensor identity = r.empty({in, in}, adapter.down.value.dtype(), "identity matrix of DoRA");
  return r.linear(r.linear(identity, adapter.down), adapter.up);
}

// The column norms of weight plus adapter, without gradient.
Tensor weight_norm(Forward& f, const Tensor& weight, const Tensor& adapter_product) {
  Recorder& r = f.r;
  const Tensor sum =
      r.add(weight, r.mul_scalar(r.detach(adapter_product), "scaled adapter matrix"), "weight and adapter");
  return r.empty({weight.rows(), Size(1)}, weight.dtype(), "weight norm of DoRA");
}

// tuners/lora/dora.py DoraLinearLayer.forward.
Tensor dora_output(Forward& f, Module& module, const Tensor& x, Tensor base_result) {
  Recorder& r = f.r;
  LoraAdapter& adapter = *module.adapter;
  const Tensor product = r.cast(r.view(adapter_matrix(f, adapter), module.weight.value.shape()), x.dtype());
  const Tensor weight = r.cast(whole_weight(f, module), x.dtype());
  const Tensor norm = weight_norm(f, weight, product);
  const Tensor scale = r.mul(adapter.magnitude->value, norm, "magnitude over norm");
  const Tensor row_scale = r.view(scale, {Size(1), module.weight.value.rows()});
  const Tensor lora_result = r.linear(r.linear(x, adapter.down), adapter.up, adapter.bias.get());
  if (base_result.defined() && module.bias != nullptr)
    base_result = r.add(std::move(base_result), module.bias->value, "base result less bias");
  if (!base_result.defined()) {
    Parameter copy;
    copy.value = weight;
    copy.label = "base result of DoRA";
    base_result = r.linear(x, copy);
  }
  Tensor base_part = r.mul(r.add_scalar(row_scale, "scale less one"), base_result, "scaled base result");
  return r.add(std::move(base_part),
               r.mul_scalar(r.mul(row_scale, lora_result, "scaled adapter result"), "scaled adapter result"),
               "DoRA output");
}

Tensor dora(Forward& f, Module& module, Tensor x, const Tensor& result) {
  LoraAdapter& adapter = *module.adapter;
  Tensor base_result = result;
  if (adapter.dropout > 0) {
    x = f.r.dropout(std::move(x), adapter.dropout);
    base_result.drop();
  }
  return f.r.add(result, dora_output(f, module, x, std::move(base_result)), "base and DoRA output");
}

Tensor low_rank(Forward& f, LoraAdapter& adapter, const Tensor& x) {
  Recorder& r = f.r;
  Tensor narrow;
  {
    const Tensor dropped = r.dropout(x, adapter.dropout);
    narrow = r.linear(dropped, adapter.down);
  }
  return r.mul_scalar(r.linear(std::move(narrow), adapter.up, adapter.bias.get()), "scaled adapter output");
}

// lora.Linear, lora.GPTQLoraLinear: the input is cast to the adapter's type, autocast or not.
Tensor over_plain(Forward& f, Module& module, Tensor x) {
  Recorder& r = f.r;
  LoraAdapter& adapter = *module.adapter;
  Tensor result = apply_base(f, module, x);
  const DType type = result.dtype();
  x = r.cast(std::move(x), adapter.seen.value_or(adapter.down.value.dtype()));
  if (adapter.values != nullptr) return r.add_in_place(result, adalora_output(f, adapter, x, std::nullopt));
  result = adapter.magnitude != nullptr ? dora(f, module, x, result)
                                        : r.add(result, low_rank(f, adapter, x), "base and adapter output");
  return r.cast(std::move(result), type);
}

// lora.Linear4bit: the base result is cloned; without autocast the input is cast to the adapter's type and the output back.
Tensor over_quantized(Forward& f, Module& module, Tensor x) {
  Recorder& r = f.r;
  LoraAdapter& adapter = *module.adapter;
  Tensor result = apply_base(f, module, x);
  result = cloned_base_result(f, module, std::move(result));
  const DType type = result.dtype();
  const bool converts = !r.autocast();
  if (converts) x = r.cast(std::move(x), adapter.down.value.dtype());
  if (adapter.values != nullptr)
    return r.add_in_place(result, adalora_output(f, adapter, x, converts ? std::optional(type) : std::nullopt));
  if (adapter.magnitude != nullptr) {
    result = dora(f, module, x, result);
    return converts ? r.cast(std::move(result), type) : result;
  }
  Tensor output = low_rank(f, adapter, x);
  if (converts) output = r.cast(output, type);
  result = r.add(result, output, "base and adapter output");
  return result;
}

}  // namespace

Tensor cloned_base_result(Forward& f, const Module& module, Tensor result) {
  if (module.quantized == nullptr || !is_4bit(module.quantized->format)) return result;
  const Shape shape = result.shape();
  return f.r.contiguous_copy(std::move(result), shape, "clone of the base result");
}

Tensor apply_litgpt_adapter(Forward& f, Module& module, const Tensor& x, LitgptInput& shared) {
  Recorder& r = f.r;
  Tensor result = apply_base(f, module, x);
  if (module.adapter == nullptr || !f.adapters) return result;
  LoraAdapter& adapter = *module.adapter;
  if (!shared.dropped.defined()) shared.dropped = r.dropout(x, adapter.dropout);
  Tensor output = r.linear(r.linear(shared.dropped, adapter.down), adapter.up);
  // index_copy_ into zeros saves what it copies (tools/autograd/derivatives.yaml).
  if (shared.padded) output = also_keeping(r, output, output);
  return r.add(std::move(result), r.mul_scalar(std::move(output), "scaled adapter output"), "base and adapter output");
}

// lora.Embedding.forward: rows of the one matrix, transposed, times the other.
Tensor apply_embedding_adapter(Forward& f, Module& module, const Tensor& ids) {
  Recorder& r = f.r;
  LoraAdapter& adapter = *module.adapter;
  Tensor result = r.embedding(ids, module.weight);
  const DType type = result.dtype();
  Parameter turned;
  turned.value = r.view(adapter.down.value, {adapter.down.value.width(), adapter.down.value.rows()});
  Tensor output = r.linear(r.embedding(ids, turned), adapter.up);
  result = r.add(result, r.mul_scalar(std::move(output), "scaled adapter output"), "base and adapter output");
  return r.cast(std::move(result), type);
}

Tensor apply_adapter(Forward& f, Module& module, Tensor x) {
  const Tensor argument = x;  // the call's arguments live until it returns
  if (f.plan.implementation == Implementation::litgpt) {
    LitgptInput own;
    return apply_litgpt_adapter(f, module, x, own);
  }
  const bool plain = module.quantized == nullptr || weight_format(module.quantized->format).packing == Packing::gptq;
  return plain ? over_plain(f, module, std::move(x)) : over_quantized(f, module, std::move(x));
}

}  // namespace membill
