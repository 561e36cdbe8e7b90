#include "estimate/dimension_names.h"

namespace membill {

Shape DimensionNames::shape(const TensorSpec& spec) const {
  if (spec.shape.size() == 1)
    return {name(spec.shape[0], {dims_.h, kind_.d, kind_.f, (kind_.a + Size(2) * kind_.k) * kind_.d}), Size(1)};
  constexpr std::size_t kConvolution = 4;  // axes, or more
  if (spec.shape.size() >= kConvolution) return {Size(spec.shape[0]), Size(spec.elements() / spec.shape[0])};
  if (spec.shape.size() != 2) return {Size(spec.elements()), Size(1)};
  if (spec.module == ModuleKind::conv1d) {
    const Shape linear = matrix(spec, spec.shape[1], spec.shape[0]);
    return {linear.width, linear.rows};
  }
  return matrix(spec, spec.shape[0], spec.shape[1]);
}

Shape DimensionNames::matrix(const TensorSpec& spec, std::int64_t out, std::int64_t in) const {
  const Size heads = kind_.a * kind_.d, groups = kind_.k * kind_.d;
  switch (spec.role) {
    case TensorRole::embedding:
    case TensorRole::head: return {name(out, {dims_.V}), name(in, {dims_.h})};
    case TensorRole::attention:
      if (spec.split == SplitAxis::row) return {name(out, {dims_.h}), name(in, {heads, dims_.h})};
      return {name(out, {heads, groups, heads + Size(2) * groups}), name(in, {dims_.h})};
    default: break;
  }
  const std::vector<Size> mlp{kind_.f, Size(2) * kind_.f, kind_.expert_width, kind_.shared_width, kind_.experts,
                              dims_.h};
  return {name(out, mlp), name(in, mlp)};
}

Size DimensionNames::name(std::int64_t value, const std::vector<Size>& candidates) const {
  for (const Size& candidate : candidates)
    if (!candidate.is_zero() && symbols_.evaluate(candidate) == value) return candidate;
  return value;
}

}  // namespace membill
