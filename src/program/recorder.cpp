#include "program/recorder.h"

namespace membill {

Tensor Recorder::empty(const Shape& shape, DType dtype, const char* label) {
  return empty(shape, dtype, label, items_.forward);
}

Tensor Recorder::empty(const Shape& shape, DType dtype, const char* label, ItemId item) {
  auto body = std::make_shared<TensorBody>();
  body->shape = shape;
  body->dtype = dtype;
  if (!muted_)
    body->storage = std::make_shared<Storage>(writer_, shape.elements() * Size(bytes_per_element(dtype)), item, label);
  return Tensor(std::move(body));
}

void Recorder::use_matmul_workspace() {
  if (muted_ || workspace_.is_zero()) return;
  writer_.release(writer_.allocate(workspace_, writer_.item("runtime.workspace"), "cuBLAS workspace"));
}

void Recorder::use_fused_bias_workspace() {
  if (muted_ || workspace_.is_zero()) return;
  writer_.release(writer_.allocate(Size(1048576), writer_.item("runtime.workspace"), "cuBLASLt workspace"));
}

Tensor Recorder::placeholder(const Shape& shape, DType dtype) const {
  auto body = std::make_shared<TensorBody>();
  body->shape = shape;
  body->dtype = dtype;
  return Tensor(std::move(body));
}

Tensor Recorder::view(Tensor x, const Shape& shape) {
  auto body = std::make_shared<TensorBody>(x.body());
  body->shape = shape;
  return Tensor(std::move(body));
}

Tensor Recorder::detach(const Tensor& x) {
  if (!x.defined()) return {};
  auto body = std::make_shared<TensorBody>(x.body());
  body->requires_grad = false;
  body->node.reset();
  body->leaf = nullptr;
  return Tensor(std::move(body));
}

void Recorder::begin_autocast(DType type) { autocast_ = type; }

void Recorder::end_autocast() {
  autocast_.reset();
  forget_copies();
}

void Recorder::forget_copies() {
  std::vector<CachedCopy> copies = std::move(copies_);
  copies_.clear();
  const bool outside = writer_.unit() == TraceWriter::kNoUnit;
  for (CachedCopy& entry : copies) {
    if (outside) writer_.visit(entry.unit, true);
    entry.copy.drop();
  }
  if (outside) writer_.visit(TraceWriter::kNoUnit, true);
}

// A leaf that needs a gradient (an embedding's output made to, a reentrant checkpoint's input) is cast once, as parameters are.
Tensor Recorder::autocast_input(Tensor x) {
  if (!autocast_ || x.dtype() != DType::fp32) return x;
  Parameter* leaf = x.requires_grad() ? x.body().leaf : nullptr;
  const bool is_view = leaf != nullptr && leaf->value.defined() && leaf->value.handle() != x.handle();
  if (leaf == nullptr || !leaf->trainable || is_view) return cast(std::move(x), *autocast_);
  for (const CachedCopy& entry : copies_)
    if (entry.weight == leaf) return entry.copy;
  Tensor copy = cast(std::move(x), *autocast_);
  copies_.push_back({leaf, writer_.unit(), copy});
  return copy;
}

Tensor Recorder::autocast_fp32(Tensor x) {
  if (!autocast_ || x.dtype() == DType::fp32) return x;
  return cast(std::move(x), DType::fp32);
}

Tensor Recorder::working_copy(Parameter& weight, DType type) {
  if (!autocast_ || weight.value.dtype() == type) return weight.value;
  const bool cached = weight.trainable && !weight.seen_as_view && weight.value.dtype() == DType::fp32;
  if (cached)
    for (const CachedCopy& entry : copies_)
      if (entry.weight == &weight) return entry.copy;
  const bool grad = grad_enabled_;
  // Autocast caches a copy with history even where gradients are off, so that a later use can train it.
  const ItemScope scope(*this, {writer_.item("weights.autocast"), writer_.item("gradients")});
  if (cached) set_grad_enabled(true);
  Tensor copy = cast(weight.value, type);
  set_grad_enabled(grad);
  if (cached) copies_.push_back({&weight, writer_.unit(), copy});
  return copy;
}

}  // namespace membill
