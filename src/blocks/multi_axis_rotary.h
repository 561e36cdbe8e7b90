// Rotary positions of time, height and width, as the language models of the Qwen-VL families and qwen3_5 make them.
#pragma once

#include <utility>

#include "blocks/layers.h"
#include "blocks/llama.h"

namespace membill {

// qwen3_5, qwen3_vl: a table of every row of the batch, its columns from the three axes in turn.
[[nodiscard]] RotaryTables interleaved_tables(Forward& f, const Size& rotary_dim, DType type);
// qwen2_vl, qwen2_5_vl: the same, its columns in sections of one axis each.
[[nodiscard]] RotaryTables sectioned_tables(Forward& f, const Size& rotary_dim, DType type);

// `Base` with such tables. `to_layers`: layers are given the position ids.
template <class Base, auto make_tables, bool to_layers = true>
class MultiAxis : public Base {
 public:
  using Base::Base;

  [[nodiscard]] LayerInputs prepare(Forward& f, const Modules&, const Tensor& hidden) const override {
    LayerInputs inputs;
    inputs.position_ids =
        f.position_ids.defined() ? f.position_ids : f.r.empty({f.dims.s, Size(1)}, DType::int64, "position ids");
    make_masks(f, inputs);
    RotaryTables tables = make_tables(f, rotary_columns(f), hidden.dtype());
    inputs.cos = std::move(tables.cos);
    inputs.sin = std::move(tables.sin);
    if (!to_layers) f.locals.push_back(std::exchange(inputs.position_ids, Tensor()));
    return inputs;
  }
};

}  // namespace membill
