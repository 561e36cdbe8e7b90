#include "blocks/own_rotary.h"

#include <cstddef>
#include <vector>

namespace membill {
namespace {

// x[..., :columns]: an alias when that is all of it.
Tensor leading(Recorder& r, const Tensor& x, const Size& columns) {
  if (!(columns == x.width())) return r.slice(x, columns);
  Tensor alias = r.view(x, x.shape());
  if (r.needs_node({&x}))
    r.record({&alias}, {r.edge(x)}, [](Recorder&, Gradients& g) { return Gradients{std::move(g[0])}; });
  return alias;
}

// Columns of the tables of sliding layers, or of full ones; null when there are none.
const Size* columns_of(const Forward& f, bool sliding) {
  const std::vector<LayerKind>& kinds = f.model.sections.at(1).kinds;
  const Size* found = nullptr;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i].attention.sliding_window.has_value() != sliding) continue;
    found = &f.dims.kinds.at(1).at(i).rotary;
    if (!found->is_zero()) return found;
  }
  return found == nullptr ? nullptr : &rotary_columns(f);
}

}  // namespace

LayerInputs inputs_by_layer_type(Forward& f, DType table_type) {
  LayerInputs inputs;
  inputs.position_ids = f.r.empty({f.dims.s, Size(1)}, DType::int64, "position ids");
  make_masks(f, inputs);
  if (const Size* columns = columns_of(f, false)) {
    RotaryTables tables = rotary_tables(f, *columns, table_type);
    inputs.cos = std::move(tables.cos), inputs.sin = std::move(tables.sin);
  }
  if (const Size* columns = columns_of(f, true)) {
    RotaryTables tables = rotary_tables(f, *columns, table_type);
    inputs.local_cos = std::move(tables.cos), inputs.local_sin = std::move(tables.sin);
  }
  return inputs;
}

LayerInputs tables_of(const LayerContext& layer, const LayerInputs& inputs) {
  LayerInputs own;
  const bool local = layer.kind.attention.sliding_window.has_value();
  own.cos = local ? inputs.local_cos : inputs.cos;
  own.sin = local ? inputs.local_sin : inputs.sin;
  return own;
}

void rotate_by_wide_tables(Forward& f, const LayerInputs& inputs, Heads& heads) {
  const Tensor q = apply_rotary(f, heads.q, inputs.cos, inputs.sin);
  const Tensor k = apply_rotary(f, heads.k, inputs.cos, inputs.sin);
  Tensor q_back = f.r.cast(q, heads.q.dtype()), k_back = f.r.cast(k, heads.k.dtype());
  heads.q = std::move(q_back);
  heads.k = std::move(k_back);
}

void rotate_in_fp32(Forward& f, const LayerInputs& inputs, Heads& heads) {
  const Tensor q_wide = f.r.cast(heads.q, DType::fp32), k_wide = f.r.cast(heads.k, DType::fp32);
  const Tensor q = apply_rotary(f, q_wide, inputs.cos, inputs.sin);
  const Tensor k = apply_rotary(f, k_wide, inputs.cos, inputs.sin);
  Tensor q_back = f.r.cast(q, heads.q.dtype()), k_back = f.r.cast(k, heads.k.dtype());
  heads.q = std::move(q_back);
  heads.k = std::move(k_back);
}

void rotate_in_fp32_twice(Forward& f, const LayerInputs& inputs, Heads& heads) {
  Recorder& r = f.r;
  const auto rotated = [&](const Tensor& x) {
    Tensor straight = r.mul(r.cast(x, DType::fp32), inputs.cos, "rotated by cos");
    Tensor turned = rotate_half(f, r.cast(x, DType::fp32));
    turned = r.mul(std::move(turned), inputs.sin, "rotated by sin");
    return r.add(std::move(straight), std::move(turned), "rotated");
  };
  const Tensor q = rotated(heads.q), k = rotated(heads.k);
  Tensor q_back = r.cast(q, heads.q.dtype()), k_back = r.cast(k, heads.k.dtype());
  heads.q = std::move(q_back);
  heads.k = std::move(k_back);
}

void rotate_part(Forward& f, const LayerInputs& inputs, Heads& heads) {
  Recorder& r = f.r;
  const Size& rotary = inputs.cos.width();
  const Tensor q_rotating = leading(r, heads.q, rotary), q_rest = r.slice(heads.q, heads.q.width() - rotary);
  const Tensor k_rotating = leading(r, heads.k, rotary), k_rest = r.slice(heads.k, heads.k.width() - rotary);
  Tensor q = r.concatenate(apply_rotary(f, q_rotating, inputs.cos, inputs.sin), q_rest, heads.q.shape());
  Tensor k = r.concatenate(apply_rotary(f, k_rotating, inputs.cos, inputs.sin), k_rest, heads.k.shape());
  heads.q = std::move(q);
  heads.k = std::move(k);
  heads.contiguous = true;
}

void rotate_part_together(Forward& f, const LayerInputs& inputs, Heads& heads) {
  Recorder& r = f.r;
  const Size& rotary = inputs.cos.width();
  const Tensor q_rotating = r.slice(heads.q, rotary), q_rest = r.slice(heads.q, heads.q.width() - rotary);
  const Tensor k_rotating = r.slice(heads.k, rotary), k_rest = r.slice(heads.k, heads.k.width() - rotary);
  Tensor q = apply_rotary(f, q_rotating, inputs.cos, inputs.sin);
  Tensor k = apply_rotary(f, k_rotating, inputs.cos, inputs.sin);
  q = r.concatenate(q, q_rest, heads.q.shape());
  k = r.concatenate(k, k_rest, heads.k.shape());
  heads.q = std::move(q);
  heads.k = std::move(k);
  heads.contiguous = true;
}

void rotate_neighbours_in_fp32(Forward& f, const LayerInputs& inputs, Heads& heads) {
  Recorder& r = f.r;
  const Tensor cos = r.empty(inputs.cos.shape(), inputs.cos.dtype(), "cos, each column twice");
  const Tensor sin = r.empty(inputs.sin.shape(), inputs.sin.dtype(), "sin, each column twice");
  const auto rotated = [&](const Tensor& x) {
    const Tensor by_cos = r.mul(r.cast(x, DType::fp32), cos, "rotated by cos");
    return r.add(by_cos, r.mul(r.cast(rotate_half(f, x), DType::fp32), sin, "rotated by sin"), "rotated");
  };
  const Tensor q = rotated(heads.q), k = rotated(heads.k);
  Tensor q_back = r.cast(q, heads.q.dtype()), k_back = r.cast(k, heads.k.dtype());
  heads.q = std::move(q_back);
  heads.k = std::move(k_back);
}

void rotate_neighbours(Forward& f, const LayerInputs& inputs, Heads& heads) {
  Recorder& r = f.r;
  const Size& rotary = inputs.cos.width();
  const Tensor cos = r.empty(inputs.cos.shape(), inputs.cos.dtype(), "cos, each column twice");
  const Tensor sin = r.empty(inputs.sin.shape(), inputs.sin.dtype(), "sin, each column twice");
  const Tensor q_rotating = leading(r, heads.q, rotary), q_rest = r.slice(heads.q, heads.q.width() - rotary);
  const Tensor k_rotating = leading(r, heads.k, rotary), k_rest = r.slice(heads.k, heads.k.width() - rotary);
  Tensor q = apply_rotary(f, q_rotating, cos, sin);
  Tensor k = apply_rotary(f, k_rotating, cos, sin);
  q = r.concatenate(q, q_rest, heads.q.shape());
  k = r.concatenate(k, k_rest, heads.k.shape());
  heads.q = std::move(q);
  heads.k = std::move(k);
  heads.contiguous = true;
}

}  // namespace membill
