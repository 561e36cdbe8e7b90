#include "blocks/layers.h"

#include "blocks/adapters.h"
#include "blocks/layer_norm_parts.h"
#include "blocks/matrix_adapters.h"
#include "blocks/quantized.h"
#include "blocks/rotation_adapter.h"
#include "blocks/sequence_spread.h"
#include "blocks/trained_rows.h"
#include "blocks/vector_adapters.h"

namespace membill {

Tensor apply_linear(Forward& f, Module& module, Tensor x) {
  if (module.trained_rows != nullptr && f.adapters) {
    Parameter table = with_trained_rows(f, module);
    return f.r.linear(std::move(x), table);
  }
  if (module.adapter != nullptr && f.adapters) return apply_adapter(f, module, std::move(x));
  if (module.vectors != nullptr && f.adapters) return apply_vectors(f, module, std::move(x));
  if (module.matrix != nullptr && f.adapters) return apply_matrix(f, module, std::move(x));
  if (module.rotation != nullptr && f.adapters) return apply_rotation(f, module, std::move(x));
  return apply_base(f, module, std::move(x));
}

Tensor apply_base(Forward& f, Module& module, Tensor x) {
  if (module.quantized != nullptr) return quantized_linear(f, module, std::move(x));
  return f.r.linear(x, module.weight, module.bias.get());  // the call's arguments live until it returns
}

Tensor whole_weight(Forward& f, Module& module) {
  if (module.quantized == nullptr) return module.weight.value;
  return dequantize(f.r, *module.quantized, module.weight.value.shape());
}

Tensor apply_embedding(Forward& f, Module& module, const Tensor& ids) {
  if (module.adapter != nullptr && f.adapters) return apply_embedding_adapter(f, module, ids);
  if (module.trained_rows != nullptr && f.adapters) {
    Parameter table = with_trained_rows(f, module);
    return f.r.embedding(ids, table);
  }
  return f.r.embedding(ids, module.weight);
}

Tensor llama_rms_norm(Forward& f, Module& module, Tensor x) {
  Recorder& r = f.r;
  const DType type = x.dtype();
  Tensor hidden = r.cast(x, DType::fp32);
  Tensor variance = r.mean_of_rows(r.square(hidden));
  hidden = r.mul(hidden, r.rsqrt(r.add_scalar(variance)), "normalised");
  return r.mul(module.weight.value, r.cast(hidden, type), "norm output");
}

RotaryTables rotary_tables(Forward& f, const Size& rotary_dim, DType type) {
  Recorder& r = f.r;
  const Size& s = brings_positions(f.plan) ? f.dims.N : f.dims.s;
  const bool grad = r.grad_enabled();
  r.set_grad_enabled(false);
  const Size half = r.symbols().ceil_div(rotary_dim, Size(2));
  Tensor positions = r.empty({s, Size(1)}, DType::fp32, "positions in fp32");
  const Tensor product = r.empty({s, half}, DType::fp32, "rotary angles");
  positions.drop();
  const Tensor angles = r.empty({s, rotary_dim}, DType::fp32, "rotary angles, twice");
  const Tensor cos = r.mul_scalar(r.empty({s, rotary_dim}, DType::fp32, "cos"));
  const Tensor sin = r.mul_scalar(r.empty({s, rotary_dim}, DType::fp32, "sin"));
  RotaryTables tables{r.cast(cos, type), r.cast(sin, type)};
  r.set_grad_enabled(grad);
  return tables;
}

Tensor rotate_half(Forward& f, const Tensor& x) {
  Recorder& r = f.r;
  const Size half = r.symbols().ceil_div(x.width(), Size(2));
  const Tensor first = r.slice(x, half), second = r.slice(x, half);
  return r.concatenate(r.neg(second), first, x.shape());
}

Tensor apply_rotary(Forward& f, const Tensor& x, const Tensor& cos, const Tensor& sin) {
  Recorder& r = f.r;
  Tensor straight = r.mul(x, cos, "rotated by cos");
  Tensor turned = r.mul(rotate_half(f, x), sin, "rotated by sin");
  return r.add(std::move(straight), std::move(turned), "rotated");
}

Tensor activation(Forward& f, const std::string& name, Tensor x) {
  Recorder& r = f.r;
  if (name == "silu" || name == "swish") return r.silu(std::move(x));
  if (name == "relu") return r.relu(std::move(x));
  if (name == "gelu_new") return gelu_new(f, x);
  if (name == "relu2") {
    const Tensor applied = r.relu(std::move(x));
    return r.square(applied);
  }
  if (name == "quick_gelu") {
    Tensor gate = r.sigmoid(r.mul_scalar(x, "scaled input of a sigmoid"));
    return r.mul(std::move(x), std::move(gate), "quick gelu");
  }
  return r.gelu(std::move(x));
}

Tensor gated_mlp(Forward& f, Modules& modules, const std::string& prefix, const std::string& activation_name,
                 const Tensor& x) {
  Tensor gate = activation(f, activation_name, apply_linear(f, modules.at(prefix + "gate_proj"), x));
  Tensor product = f.r.mul(std::move(gate), apply_linear(f, modules.at(prefix + "up_proj"), x), "gated product");
  return apply_linear(f, modules.at(prefix + "down_proj"), std::move(product));
}

Tensor viewed(Recorder& r, const Tensor& x, const Shape& shape, const char* label) {
  Tensor out = r.view(x, shape);
  if (!r.needs_node({&x})) return out;
  r.record({&out}, {r.edge(x)}, [whole = x.shape(), type = x.dtype(), label](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(whole, type, label)};
  });
  return out;
}

// As memory goes, the zero-filled tensor is such a copy.
Tensor part_of(Forward& f, const Tensor& x, const Shape& shape, const char* label) {
  return viewed(f.r, x, shape, label);
}

Tensor seen_as_heads(Forward& f, const Tensor& x, const Size& heads, const Size& width, bool turned) {
  const Shape shape{f.dims.N * heads, width};
  const bool product = f.plan.attention == AttentionKernel::eager || f.plan.attention == AttentionKernel::sdpa_math;
  if ((!product && !turned) || heads == Size(1)) return f.r.view(x, shape);
  return viewed(f.r, x, shape, "gradient, tokens first");
}

Tensor heads_first_gradient(Forward& f, const Tensor& x) {
  return f.one_row() ? x : viewed(f.r, x, x.shape(), "gradient, heads first");
}

}  // namespace membill
