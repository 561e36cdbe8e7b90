#include "blocks/layer_norm_parts.h"

#include "blocks/layers.h"
#include "blocks/llama.h"

namespace membill {

Tensor layer_norm(Forward& f, Module& module, Tensor x) {
  return f.r.layer_norm(std::move(x), module.weight, module.bias.get());
}

Tensor plain_mlp(Forward& f, Modules& modules, const PlainMlp& names, const Tensor& x) {
  Tensor hidden = apply_linear(f, modules.at(names.up), x);
  hidden = activation(f, names.activation, hidden);
  return apply_linear(f, modules.at(names.down), hidden);
}

Tensor gelu_new(Forward& f, const Tensor& x) {
  Recorder& r = f.r;
  const Tensor half = r.mul_scalar(x, "half of the input");
  Tensor inner = r.mul_scalar(r.cube(x), "scaled cube");
  inner = r.add(x, std::move(inner), "input and cube");
  inner = r.tanh(r.mul_scalar(std::move(inner), "argument of tanh"));
  inner = r.add_scalar(std::move(inner), "one and tanh");
  return r.mul(half, std::move(inner), "gelu");
}

Tensor position_ids(Forward& f) { return f.r.empty({f.dims.s, Size(1)}, DType::int64, "position ids"); }

LayerInputs rotary_inputs(Forward& f, const Size& rotary, const Tensor& hidden) {
  LayerInputs inputs;
  inputs.position_ids = position_ids(f);
  make_masks(f, inputs);
  RotaryTables tables = rotary_tables(f, rotary, hidden.dtype());
  inputs.cos = std::move(tables.cos);
  inputs.sin = std::move(tables.sin);
  return inputs;
}

std::pair<Tensor, Tensor> rotate_partly(Forward& f, const Tensor& q, const Tensor& k, const LayerInputs& inputs) {
  Recorder& r = f.r;
  const Size& rotary = inputs.cos.width();
  const Size rest = q.width() - rotary;
  const Tensor q_rotating = r.slice(q, rotary), q_rest = r.slice(q, rest);
  const Tensor k_rotating = r.slice(k, rotary), k_rest = r.slice(k, rest);
  Tensor queries = apply_rotary(f, q_rotating, inputs.cos, inputs.sin);
  Tensor keys = apply_rotary(f, k_rotating, inputs.cos, inputs.sin);
  queries = r.concatenate(queries, q_rest, q.shape());
  keys = r.concatenate(keys, k_rest, k.shape());
  return {std::move(queries), std::move(keys)};
}

}  // namespace membill
