// Layers and reductions with their derivatives (torch 2.15).
#include "program/recorder.h"
#include "program/reduction.h"

namespace membill {
namespace {

bool is_leaf_of(const Tensor& x, const Parameter& parameter) {
  return x.handle() == parameter.value.handle() && x.body().leaf != nullptr;
}

}  // namespace

Tensor Recorder::linear(Tensor x, Parameter& weight, Parameter* bias) {
  const bool function = linear_saves_input_ && autocast_;
  const auto run = [&] {
    return function ? run_function_linear(x, weight, bias) : run_linear(std::move(x), weight, bias);
  };
  if (parameter_use_ == nullptr) return run();
  x = parameter_use_->before(std::move(x), weight, bias);
  return parameter_use_->after(run(), weight, bias);
}

// torch.nn.functional.linear: mm, whose weight gradient is made before the input's; or addmm with a bias, the other way round.
// Autocast converts an operator's arguments from the last to the first, as GCC evaluates them.
// deepspeed 0.19 runtime/zero/linear.py LinearFunctionForZeroStage3 under autocast: input and weight are saved as they are, and what
// autocast casts lives inside of the function only.
Tensor Recorder::run_function_linear(const Tensor& x, Parameter& weight, Parameter* bias) {
  const DType type = *autocast_;
  const Shape w = weight.value.shape();
  const Tensor offset = bias != nullptr ? bias->value : Tensor();
  const auto cast_inside = [type](Recorder& r, const Tensor& tensor) {
    return tensor.dtype() == type ? tensor : r.empty(tensor.shape(), type, "as autocast casts it");
  };
  Tensor out;
  {
    const Tensor in = cast_inside(*this, x), matrix = cast_inside(*this, weight.value);
    out = empty({x.rows(), w.rows}, type, weight.label);
    use_matmul_workspace();
  }
  if (!needs_node({&x, &weight.value, &offset})) return out;
  record({&out}, {edge(x), edge(weight.value), edge(offset)},
         [kept = saved(x), kept_weight = saved(weight.value), cast_inside, type, w, own = writer_.item("gradients"),
          biased = offset.defined() && offset.requires_grad()](Recorder& r, Gradients&) {
           Gradients result(3);
           const Tensor matrix = cast_inside(r, kept_weight);
           result[0] = r.empty(kept.shape(), type, "input gradient");
           r.use_matmul_workspace();
           if (kept_weight.requires_grad()) {
             const Tensor in = cast_inside(r, kept);
             result[1] = r.empty(w, type, "weight gradient", own);
             r.use_matmul_workspace();
           }
           if (biased) result[2] = r.empty({w.rows, Size(1)}, type, "bias gradient", own);
           return result;
         });
  return out;
}

Tensor Recorder::run_linear(Tensor x, Parameter& weight, Parameter* bias) {
  const DType type = autocast_.value_or(weight.value.dtype());
  const Tensor offset = bias != nullptr ? working_copy(*bias, type) : Tensor();
  const Tensor matrix = working_copy(weight, type);
  const Tensor in = autocast_input(std::move(x));
  const Shape& w = matrix.shape();
  const bool node = needs_node({&in, &matrix, &offset});
  const Size& outputs = weight.in_by_out ? w.width : w.rows;
  const bool to_input = node && in.requires_grad(), to_weight = node && matrix.requires_grad();
  const bool to_bias = node && offset.defined() && offset.requires_grad();
  Tensor kept_input = to_weight || (node && linear_saves_input_) ? saved(in) : Tensor(),
         kept_weight = to_input ? saved(matrix) : Tensor();
  auto [out, computed] = result_of(offset.defined() ? AtenOperator::addmm : AtenOperator::mm, {in.rows(), outputs},
                                   in.dtype(), weight.label);
  if (computed) offset.defined() ? use_fused_bias_workspace() : use_matmul_workspace();
  if (!node) return out;
  const ItemId own = writer_.item("gradients");
  const ItemId weight_item = is_leaf_of(matrix, weight) ? own : items_.backward;
  record({&out}, {edge(in), edge(matrix), edge(offset)},
         [kept_input, kept_weight, to_input, to_weight, to_bias, type, weight_item, outputs, shape = in.shape(),
          width = w, permuted = !weight.in_by_out, input_first = offset.defined(),
          recomputed = saving_ == Saving::stop_at_last](Recorder& r, Gradients&) mutable {
           Gradients result(3);
           const auto make_input_gradient = [&] {
             result[0] = r.empty(shape, type, "input gradient");
             result[0].body().summed_apart = true;
             r.use_matmul_workspace();
           };
           if (to_input && input_first) make_input_gradient();
           if (to_weight) {
             result[1] = r.empty(width, type, "weight gradient", weight_item);
             result[1].body().summed_apart = permuted;
             r.use_matmul_workspace();
           }
           if (to_input && !input_first) make_input_gradient();
           if (recomputed) kept_input.drop();  // a checkpoint's hook hands its tensor over; nobody else holds it
           if (!to_bias) return result;
           result[2] = r.empty({outputs, Size(1)}, type, "bias gradient", weight_item);
           use_reduction_scratch(r, shape.rows, outputs);
           return result;
         });
  return out;
}

namespace {

// aten/src/ATen/native/cuda/Embedding.cu embedding_dense_backward_cuda and EmbeddingBackwardKernel.cu: above 3072 ids these are
// sorted, and rows of the gradient are summed in fp32 by pieces of ten of the same id.
Tensor embedding_gradient(Recorder& r, const Size& count, const Shape& table, DType type, ItemId own) {
  constexpr std::int64_t kSortedAbove = 3072, kRowsOfAPiece = 10;
  SymbolTable& symbols = r.symbols();
  if (symbols.evaluate(count) <= kSortedAbove) return r.empty(table, type, "embedding gradient", own);
  const auto indices = [&](const Size& elements) { return r.empty({elements, Size(1)}, DType::int64, "sorted ids"); };
  const Tensor sorted = indices(count), origin = indices(count);
  Tensor gradient = r.empty(table, type, "embedding gradient", own);
  const Size distinct = symbols.evaluate(count) < symbols.evaluate(table.rows) ? count : table.rows;
  const Size pieces = symbols.ceil_div(count - Size(kRowsOfAPiece - 1), Size(kRowsOfAPiece)) + distinct;
  const Tensor starts = indices(distinct), pieces_of_each = indices(distinct), first_pieces = indices(distinct);
  const Tensor rows_of_pieces = indices(pieces);
  const Tensor sums = r.empty({pieces, table.width}, DType::fp32, "pieces of the embedding gradient");
  return gradient;
}

}  // namespace

Tensor Recorder::embedding(const Tensor& ids, Parameter& table) {
  if (parameter_use_ == nullptr) return run_embedding(ids, table);
  const Tensor in = parameter_use_->before(ids, table, nullptr);
  return parameter_use_->after(run_embedding(in, table), table, nullptr);
}

Tensor Recorder::run_embedding(const Tensor& ids, Parameter& table) {
  const Shape& shape = table.value.shape();
  const bool node = needs_node({&table.value});
  Tensor kept = node ? saved(ids) : Tensor();
  Tensor out = empty({ids.rows(), shape.width}, table.value.dtype(), "embedding output");
  if (!node) return out;
  record({&out}, {edge(table.value)},
         [kept, count = ids.rows(), shape, type = table.value.dtype(), own = writer_.item("gradients")](
             Recorder& r, Gradients&) { return Gradients{embedding_gradient(r, count, shape, type, own)}; });
  return out;
}

// at::native_layer_norm: mean and rstd in fp32; under autocast input, weight and bias in fp32.
Tensor Recorder::layer_norm(Tensor x, Parameter& weight, Parameter* bias) {
  const Tensor offset = bias != nullptr ? autocast_fp32(bias->value) : Tensor();
  const Tensor scale = autocast_fp32(weight.value);
  const Tensor in = autocast_fp32(std::move(x));
  const bool node = needs_node({&in, &scale, &offset});
  Tensor kept_input = node ? saved(in) : Tensor(), kept_scale = node ? saved(scale) : Tensor();
  Tensor kept_offset = node && offset.defined() ? saved(offset) : Tensor();
  Tensor out = empty(in.shape(), in.dtype(), "layer norm output");
  const Shape statistic{in.rows(), Size(1)};
  Tensor mean = empty(statistic, DType::fp32, "layer norm mean"),
         rstd = empty(statistic, DType::fp32, "layer norm rstd");
  if (!node) return out;
  Tensor kept_mean = saved(mean), kept_rstd = saved(rstd);
  const bool gx = in.requires_grad(), gw = scale.requires_grad(), gb = offset.defined() && offset.requires_grad();
  const ItemId own = writer_.item("gradients");
  record({&out}, {edge(in), edge(scale), edge(offset)},
         [kept_input, kept_scale, kept_offset, kept_mean, kept_rstd, gx, gw, gb, own, shape = in.shape(),
          type = in.dtype(), width = Shape{in.width(), Size(1)}](Recorder& r, Gradients&) {
           Gradients result(3);
           if (gx) result[0] = r.empty(shape, type, "layer norm input gradient");
           if (gw) result[1] = r.empty(width, type, "layer norm weight gradient", own);
           if (gb) result[2] = r.empty(width, type, "layer norm bias gradient", own);
           return result;
         });
  return out;
}

Tensor Recorder::batched_matmul(Tensor a, Tensor b, const Shape& shape, const char* label) {
  const Tensor y = autocast_input(std::move(b)), x = autocast_input(std::move(a));
  const bool node = needs_node({&x, &y});
  const bool gx = node && x.requires_grad(), gy = node && y.requires_grad();
  Tensor kept_x = gy ? saved(x) : Tensor(), kept_y = gx ? saved(y) : Tensor();
  auto [out, computed] = result_of(AtenOperator::bmm, shape, x.dtype(), label);
  if (computed) use_matmul_workspace();
  if (!node) return out;
  record({&out}, {edge(x), edge(y)},
         [gx, gy, kept_x, kept_y, xs = x.shape(), ys = y.shape(), type = x.dtype()](Recorder& r, Gradients&) {
           Gradients result(2);
           const auto product = [&](const Shape& of) {
             Tensor gradient = r.empty(of, type, "matrix product gradient");
             r.use_matmul_workspace();
             return gradient;
           };
           if (gy) result[1] = product(ys);
           if (gx) result[0] = product(xs);
           return result;
         });
  return out;
}

// softmax(x, dtype=float32): fp16 input is converted inside the kernel, any other by a copy. Its gradient is made in the output's type.
Tensor Recorder::softmax(Tensor x, std::optional<DType> dtype) {
  Tensor in = std::move(x);
  if (autocast_ && !dtype) dtype = DType::fp32;
  const DType result_type = dtype.value_or(in.dtype());
  const bool inside = in.dtype() == DType::fp16 && result_type == DType::fp32;
  if (!inside) in = cast(std::move(in), result_type);
  Tensor out = result_of(AtenOperator::softmax, in.shape(), result_type, "softmax").tensor;
  if (!needs_node({&in})) return out;
  Tensor kept = detach(saved(out));
  record({&out}, {edge(in)}, [kept, shape = in.shape(), type = in.dtype(), result_type](Recorder& r, Gradients&) {
    Tensor gradient = r.empty(shape, type, "softmax gradient");
    const Tensor weighted = r.empty(shape, result_type, "gradient times softmax");
    return Gradients{std::move(gradient)};
  });
  return out;
}

Tensor Recorder::log_softmax(Tensor x) {
  Tensor in = autocast_fp32(std::move(x));
  Tensor out = empty(in.shape(), in.dtype(), "log-softmax");
  if (!needs_node({&in})) return out;
  Tensor kept = detach(saved(out));
  record({&out}, {edge(in)}, [kept, shape = in.shape(), type = in.dtype()](Recorder& r, Gradients&) {
    return Gradients{r.empty(shape, type, "log-softmax gradient")};
  });
  return out;
}

}  // namespace membill
