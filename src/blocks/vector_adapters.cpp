#include "blocks/vector_adapters.h"

#include "blocks/adapters.h"
#include "blocks/layers.h"

namespace membill {
namespace {

// tuners/vera/layer.py Linear.forward.
Tensor vera(Forward& f, Module& module, Tensor x) {
  Recorder& r = f.r;
  VectorAdapter& adapter = *module.vectors;
  const DType previous = x.dtype();
  Tensor result = apply_base(f, module, x);
  const DType type = result.dtype();
  result = cloned_base_result(f, module, std::move(result));
  x = r.cast(std::move(x), adapter.scale.value.dtype());
  Tensor narrow;
  {
    const Tensor dropped = r.dropout(x, adapter.dropout);
    narrow = r.mul(adapter.inner_scale->value, r.linear(dropped, *adapter.down), "scaled projection");
  }
  Tensor output = r.mul(adapter.scale.value, r.linear(std::move(narrow), *adapter.up), "scaled adapter output");
  result = r.add(result, std::move(output), "base and adapter output");
  result = r.cast(std::move(result), type);
  return r.cast(std::move(result), previous);
}

// tuners/ia3/layer.py Linear.forward.
Tensor ia3_over_plain(Forward& f, Module& module, Tensor x, const Tensor& scale) {
  Recorder& r = f.r;
  const DType previous = x.dtype();
  if (module.vectors->feed_forward) {
    x = r.cast(std::move(x), module.vectors->scale.value.dtype());
    const Tensor scaled = r.cast(r.mul(x, scale, "scaled input"), previous);
    return apply_base(f, module, scaled);
  }
  Tensor result = apply_base(f, module, x);
  const DType type = result.dtype();
  result = r.mul(result, scale, "scaled result");
  return r.cast(std::move(result), type);
}

// tuners/ia3/bnb.py Linear4bit.forward.
Tensor ia3_over_quantized(Forward& f, Module& module, Tensor x, const Tensor& scale) {
  Recorder& r = f.r;
  const bool converts = !r.autocast() && x.dtype() != DType::fp32;
  if (converts) x = r.cast(std::move(x), DType::fp32);
  Tensor result;
  DType type = DType::fp32;
  if (module.vectors->feed_forward) {
    result = apply_base(f, module, r.mul(x, scale, "scaled input"));
    type = result.dtype();
  } else {
    result = apply_base(f, module, x);
    type = result.dtype();
    result = r.mul(result, scale, "scaled result");
  }
  result = r.contiguous_copy(result, result.shape(), "clone of the result");
  return converts ? r.cast(std::move(result), type) : result;
}

}  // namespace

Tensor apply_vectors(Forward& f, Module& module, Tensor x) {
  const Tensor argument = x;  // the call's arguments live until it returns
  if (module.vectors->down != nullptr) return vera(f, module, std::move(x));
  const Tensor scale = f.r.mul_scalar(module.vectors->scale.value, "scale");
  return module.quantized != nullptr ? ia3_over_quantized(f, module, std::move(x), scale)
                                     : ia3_over_plain(f, module, std::move(x), scale);
}

}  // namespace membill
