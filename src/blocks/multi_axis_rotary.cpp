#include "blocks/multi_axis_rotary.h"

namespace membill {
namespace {

constexpr int kAxes = 3;

// Runs `make` without gradients.
template <typename Make>
RotaryTables without_gradients(Forward& f, const Make& make) {
  const bool grad = f.r.grad_enabled();
  f.r.set_grad_enabled(false);
  RotaryTables tables = make();
  f.r.set_grad_enabled(grad);
  return tables;
}

Tensor angles(Forward& f, const Size& columns) {
  const Size rows = Size(kAxes) * f.dims.N;
  const Tensor positions = f.r.empty({rows, Size(1)}, DType::fp32, "positions in fp32");
  return f.r.empty({rows, columns}, DType::fp32, "rotary angles");
}

Tensor scaled(Forward& f, const Shape& shape, const char* label) {
  return f.r.mul_scalar(f.r.empty(shape, DType::fp32, label));
}

}  // namespace

RotaryTables interleaved_tables(Forward& f, const Size& rotary_dim, DType type) {
  return without_gradients(f, [&] {
    Recorder& r = f.r;
    const Tensor half = angles(f, r.symbols().ceil_div(rotary_dim, Size(2)));
    Tensor cos = scaled(f, half.shape(), "cos"), sin = scaled(f, half.shape(), "sin");
    const Shape table{f.dims.N, rotary_dim};
    sin = r.empty(table, DType::fp32, "sin, twice");
    cos = r.empty(table, DType::fp32, "cos, twice");
    return RotaryTables{r.cast(cos, type), r.cast(sin, type)};
  });
}

RotaryTables sectioned_tables(Forward& f, const Size& rotary_dim, DType type) {
  return without_gradients(f, [&] {
    Recorder& r = f.r;
    const Size columns = r.symbols().ceil_div(rotary_dim, Size(2));
    const Tensor half = angles(f, columns);
    const Tensor cos = scaled(f, half.shape(), "cos"), sin = scaled(f, half.shape(), "sin");
    const auto recomposed = [&](const char* label) {
      const Tensor chosen = r.empty({f.dims.N, columns}, DType::fp32, "columns of the three axes");
      return r.empty({f.dims.N, rotary_dim}, DType::fp32, label);
    };
    const Tensor all_sin = recomposed("sin, twice"), all_cos = recomposed("cos, twice");
    return RotaryTables{r.cast(all_cos, type), r.cast(all_sin, type)};
  });
}

}  // namespace membill
