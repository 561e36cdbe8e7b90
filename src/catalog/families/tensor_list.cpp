#include "catalog/families/tensor_list.h"

namespace membill::census {

TensorSpec& TensorList::add(std::string_view name, std::vector<std::int64_t> shape, TensorRole role, ModuleKind module,
                            SplitAxis split) {
  TensorSpec tensor;
  tensor.name = prefix_ + std::string(name);
  tensor.shape = std::move(shape);
  tensor.role = role;
  tensor.module = module;
  tensor.split = split;
  tensors_.push_back(std::move(tensor));
  return tensors_.back();
}

// The bias of a row-split linear is added once, after the sum over ranks: every rank holds it whole.
void TensorList::bias_of(std::string_view module, std::int64_t width, TensorRole role, ModuleKind kind,
                         SplitAxis split) {
  add(std::string(module) + ".bias", {width}, role, kind, split == SplitAxis::row ? SplitAxis::none : split);
}

void TensorList::linear(std::string_view module, std::int64_t in, std::int64_t out, bool bias, TensorRole role,
                        SplitAxis split) {
  add(std::string(module) + ".weight", {out, in}, role, ModuleKind::linear, split);
  if (bias) bias_of(module, out, role, ModuleKind::linear, split);
}

void TensorList::conv1d(std::string_view module, std::int64_t in, std::int64_t out, TensorRole role, SplitAxis split) {
  add(std::string(module) + ".weight", {in, out}, role, ModuleKind::conv1d, split);
  bias_of(module, out, role, ModuleKind::conv1d, split);
}

void TensorList::embedding(std::string_view module, std::int64_t rows, std::int64_t width, TensorRole role) {
  const SplitAxis split = role == TensorRole::embedding ? SplitAxis::vocab : SplitAxis::none;
  add(std::string(module) + ".weight", {rows, width}, role, ModuleKind::embedding, split);
}

void TensorList::head_bias(std::string_view module, std::int64_t vocab) {
  bias_of(module, vocab, TensorRole::head, ModuleKind::linear, SplitAxis::vocab);
}

void TensorList::norm(std::string_view module, std::int64_t width, bool bias) {
  add(std::string(module) + ".weight", {width}, TensorRole::norm, ModuleKind::norm, SplitAxis::none);
  if (bias) bias_of(module, width, TensorRole::norm, ModuleKind::norm, SplitAxis::none);
}

void TensorList::norm_of_heads(std::string_view module, std::int64_t heads, std::int64_t width) {
  add(std::string(module) + ".weight", {heads, width}, TensorRole::norm, ModuleKind::norm, SplitAxis::none);
}

void TensorList::separate_head_norms(std::string_view modules, std::int64_t heads, std::int64_t width) {
  for (std::int64_t head = 0; head < heads; ++head) norm(std::string(modules) + "." + std::to_string(head), width);
}

void TensorList::parameter(std::string_view name, std::vector<std::int64_t> shape, TensorRole role, SplitAxis split,
                           std::optional<DType> own_dtype) {
  add(name, std::move(shape), role, ModuleKind::parameter, split).own_dtype = own_dtype;
}

void TensorList::experts(std::string_view name, std::vector<std::int64_t> shape, SplitAxis split) {
  add(name, std::move(shape), TensorRole::expert, ModuleKind::parameter, split).expert_parallel = true;
}

void TensorList::buffer(std::string_view name, std::vector<std::int64_t> shape, std::optional<DType> type) {
  TensorSpec& tensor = add(name, std::move(shape), TensorRole::other, ModuleKind::parameter, SplitAxis::none);
  tensor.buffer = true;
  tensor.own_dtype = type;
}

void TensorList::rotary_buffers(std::string_view module, std::int64_t rotary_dim, std::string_view name_prefix) {
  const std::string start = std::string(module) + "." + std::string(name_prefix);
  const std::int64_t frequencies = ceil_div(rotary_dim, 2);
  buffer(start + "inv_freq", {frequencies});
  buffer(start + "original_inv_freq", {frequencies});
}

}  // namespace membill::census
