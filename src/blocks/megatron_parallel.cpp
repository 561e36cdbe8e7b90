#include "blocks/megatron_parallel.h"

#include <algorithm>
#include <utility>

#include "base/engine_keys.h"
#include "blocks/layers.h"
#include "blocks/megatron_attention.h"
#include "blocks/megatron_next_token.h"
#include "blocks/megatron_router.h"
#include "program/reduction.h"

namespace membill {
namespace {

bool is_split(const Forward& f) { return f.plan.parallel.tp > 1; }

// True where outputs are summed over ranks into as many parts as there are ranks.
bool splits_sequence(const Forward& f) { return f.plan.parallel.sp && is_split(f); }

// x summed over the ranks: in place, or this rank's rows of it, whose gradient is gathered.
Tensor reduced_to_stream(Forward& f, const Tensor& x) {
  Recorder& r = f.r;
  if (!splits_sequence(f)) return x;
  Tensor part = r.empty({stream_rows(f), x.width()}, x.dtype(), "sum over ranks, this rank's rows");
  if (!r.needs_node({&x})) return part;
  r.record({&part}, {r.edge(x)}, [whole = x.shape(), type = x.dtype()](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(whole, type, "gathered gradient")};
  });
  return part;
}

// Ids of other ranks' rows: compared, masked, shifted.
struct LocalIds {
  Tensor mask, ids;
};
LocalIds local_ids(Forward& f, const Tensor& ids) {
  Recorder& r = f.r;
  LocalIds local;
  {
    const Tensor below = r.empty(ids.shape(), DType::boolean, "ids below this rank's");
    const Tensor above = r.empty(ids.shape(), DType::boolean, "ids above this rank's");
    local.mask = r.empty(ids.shape(), DType::boolean, "ids of other ranks");
  }
  const Tensor copy = r.empty(ids.shape(), DType::int64, "ids, copied");
  local.ids = r.empty(ids.shape(), DType::int64, "ids within this rank's rows");
  return local;
}

// --cross-entropy-loss-fusion: kernels of torch.compile, which work out of place.
bool fuses_loss(const Forward& f) { return engine_flag(f.plan, "cross_entropy_loss_fusion", false); }

// Weight gradients are added to the main gradients inside the matrix product.
bool fuses_accumulation(const Forward& f) { return engine_flag(f.plan, "gradient_accumulation_fusion", false); }

Tensor column(Forward& f, const Size& rows, DType type, const char* label) {
  return f.r.empty({rows, Size(1)}, type, label);
}

// linear_with_frozen_weight: keeps the weight only. The rows that sequence parallelism gathers are a tensor of their own.
Tensor frozen_linear(Forward& f, const Parameter& weight, const Parameter* bias, Tensor x, bool scatters) {
  Recorder& r = f.r;
  if (scatters) x = moved(r, x, {f.dims.N, x.width()}, "input gathered from the ranks");
  const bool node = r.needs_node({&x});
  const Tensor kept_weight = node ? r.saved(weight.value) : Tensor();
  Tensor out = r.empty({x.rows(), weight.value.rows()}, x.dtype(), weight.label);
  r.use_matmul_workspace();
  if (bias != nullptr) out = r.empty(out.shape(), x.dtype(), "output with its bias");
  if (!node) return out;
  r.record({&out}, {r.edge(x)}, [kept_weight, shape = x.shape(), type = x.dtype()](Recorder& rec, Gradients&) {
    Gradients result{rec.empty(shape, type, "input gradient")};
    rec.use_matmul_workspace();
    return result;
  });
  return out;
}

// LinearWithGradAccumulationAndAsyncCommunication.
Tensor parallel_linear(Forward& f, Parameter& weight, Parameter* bias, const Tensor& x, bool scatters) {
  Recorder& r = f.r;
  if (!weight.trainable) return frozen_linear(f, weight, bias, x, scatters);
  const Tensor offset = bias != nullptr ? bias->value : Tensor();
  const bool node = r.needs_node({&x, &weight.value, &offset});
  const Tensor kept = node ? r.saved(x) : Tensor(), kept_weight = node ? r.saved(weight.value) : Tensor();
  const Shape whole{scatters ? f.dims.N : x.rows(), x.width()};
  Tensor out = r.empty({whole.rows, weight.value.rows()}, x.dtype(), weight.label);
  r.use_matmul_workspace();
  if (offset.defined()) out = r.empty(out.shape(), x.dtype(), "output with its bias");
  if (!node) return out;
  r.record({&out}, {r.edge(x), r.edge(weight.value), r.edge(offset)},
           [kept, kept_weight, scatters, whole, part = x.shape(), w = weight.value.shape(), type = x.dtype(),
            own = r.writer().item("gradients"), biased = offset.defined(),
            fused = fuses_accumulation(f)](Recorder& rec, Gradients&) {
             Gradients result(3);
             Tensor gathered = rec.empty(whole, type, "input gradient");
             rec.use_matmul_workspace();
             if (scatters) result[0] = rec.empty(part, type, "input gradient, this rank's rows");
             if (!fused) result[1] = rec.empty(w, type, "weight gradient", own);
             rec.use_matmul_workspace();
             if (!scatters) result[0] = std::move(gathered);
             if (!biased) return result;
             result[2] = rec.empty({w.rows, Size(1)}, type, "bias gradient", own);
             use_reduction_scratch(rec, whole.rows, w.rows);
             return result;
           });
  return out;
}

bool runs_adapter(const Forward& f, const Module& module) { return module.adapter != nullptr && f.adapters; }

bool has_experts(const ModelSpec& model) {
  return std::any_of(model.sections.begin(), model.sections.end(), [](const Section& section) {
    return std::any_of(section.kinds.begin(), section.kinds.end(),
                       [](const LayerKind& kind) { return kind.moe.has_value(); });
  });
}

// Transformer Engine's (transformer_engine 2.5 pytorch/triton/cross_entropy.py): three numbers a row, and the logits become their gradient.
Tensor engine_cross_entropy(Forward& f, const Tensor& logits, const Tensor& labels) {
  Recorder& r = f.r;
  const Size& N = f.dims.N;
  const Tensor targets = f.one_row() ? labels : column(f, N, DType::int64, "labels, tokens first");
  Tensor loss = column(f, N, DType::fp32, "loss of each token");
  Tensor statistics = column(f, N * Size(3), DType::fp32, "statistics of the logits");
  if (is_split(f))
    statistics = column(f, N * Size(3 * f.plan.parallel.tp), DType::fp32, "statistics of all ranks' logits");
  if (!r.needs_node({&logits})) return loss;
  const Tensor kept = r.saved(logits), kept_targets = r.saved(targets), kept_statistics = r.saved(statistics);
  r.record({&loss}, {r.edge(logits)},
           [kept, kept_targets, kept_statistics](Recorder& rec, Gradients&) { return Gradients{rec.detach(kept)}; });
  return loss;
}

// Query heads of this rank's layers.
Size heads_of(const Forward& f) {
  for (const auto& section : f.dims.kinds)
    for (const KindDims& kind : section)
      if (!kind.a.is_zero()) return kind.a;
  return {};
}

}  // namespace

bool recomputes_module(const TrainingPlan& plan, std::string_view module) {
  if (plan.checkpointing.mode == Checkpointing::full) return false;
  const std::vector<std::string>& names = plan.checkpointing.selective;
  return std::find(names.begin(), names.end(), module) != names.end();
}

Size stream_rows(const Forward& f) {
  return splits_sequence(f) ? f.r.symbols().ceil_div(f.dims.N, Size(f.plan.parallel.tp)) : f.dims.N;
}

Tensor with_adapter_output(Recorder& r, const Tensor& base, Tensor wide) {
  return r.add(base, r.mul_scalar(std::move(wide), "scaled adapter output"), "base and adapter output");
}

Tensor column_linear(Forward& f, Parameter& weight, const Tensor& x) {
  return parallel_linear(f, weight, nullptr, x, splits_sequence(f));
}

// mcore_bridge 1.6 tuners/lora.py LoraParallelLinear: beside split columns lora_A is whole and sees the rank's rows, lora_B is split.
Tensor column_linear(Forward& f, Module& module, const Tensor& x, AddsBias bias) {
  const bool split = splits_sequence(f);
  Tensor base = parallel_linear(f, module.weight, bias == AddsBias::here ? module.bias.get() : nullptr, x, split);
  if (!runs_adapter(f, module)) return base;
  LoraAdapter& adapter = *module.adapter;
  Tensor narrow = parallel_linear(f, adapter.down, nullptr, f.r.dropout(x, adapter.dropout), false);
  return with_adapter_output(f.r, base, parallel_linear(f, adapter.up, nullptr, narrow, split));
}

Tensor local_linear(Forward& f, Module& module, const Tensor& x) {
  Tensor base = parallel_linear(f, module.weight, nullptr, x, false);
  if (!runs_adapter(f, module)) return base;
  LoraAdapter& adapter = *module.adapter;
  Tensor narrow = parallel_linear(f, adapter.down, nullptr, f.r.dropout(x, adapter.dropout), false);
  return with_adapter_output(f.r, base, parallel_linear(f, adapter.up, nullptr, narrow, false));
}

// Beside split rows lora_A is split, too, its output summed over the ranks; lora_B is whole.
Tensor row_linear(Forward& f, Module& module, const Tensor& x) {
  Tensor base = reduced_to_stream(f, parallel_linear(f, module.weight, nullptr, x, false));
  if (!runs_adapter(f, module)) return base;
  LoraAdapter& adapter = *module.adapter;
  Tensor narrow =
      reduced_to_stream(f, parallel_linear(f, adapter.down, nullptr, f.r.dropout(x, adapter.dropout), false));
  return with_adapter_output(f.r, base, parallel_linear(f, adapter.up, nullptr, narrow, false));
}

Tensor parallel_embedding(Forward& f, Parameter& words, Parameter* positions, const Tensor& ids) {
  Recorder& r = f.r;
  const LocalIds local = is_split(f) ? local_ids(f, ids) : LocalIds{{}, ids};
  Tensor rows = r.embedding(local.ids, words);
  if (is_split(f)) rows = part_of(f, rows, rows.shape(), "masked gradient");
  const bool strided = !f.one_row();
  if (positions != nullptr) {
    const Tensor places = r.embedding(column(f, f.dims.N, DType::int64, "positions"), *positions);
    rows = r.add(std::move(rows), places, "words and positions");
  }
  if (strided) rows = r.contiguous_copy(std::move(rows), {f.dims.N, f.dims.h}, "embedding, tokens first");
  if (splits_sequence(f)) {
    const Shape part{stream_rows(f), f.dims.h};
    Tensor stream = positions != nullptr ? part_of(f, rows, rows.shape(), "gathered gradient")
                                         : reduced_to_stream(f, std::exchange(rows, {}));
    rows.drop();
    rows = r.contiguous_copy(std::move(stream), part, "this rank's rows, copied");
  }
  return r.dropout(std::move(rows), f.hidden_dropout);
}

Tensor parallel_cross_entropy(Forward& f, const Tensor& logits, const Tensor& labels) {
  Recorder& r = f.r;
  const Size& N = f.dims.N;
  const bool node = r.needs_node({&logits});
  if (fuses_loss(f) && engine_word(f.plan, "cross_entropy_fusion_impl", "native") == "te")
    return engine_cross_entropy(f, logits, labels);
  const Tensor targets = f.one_row() ? labels : column(f, N, DType::int64, "labels, tokens first");
  r.set_items(f.items.loss_probabilities);
  const Tensor softmax = r.empty(logits.shape(), DType::fp32, "softmax of the logits");
  Tensor largest = column(f, N, DType::fp32, "largest logit of each row");
  { const Tensor places = column(f, N, DType::int64, "place of the largest logit"); }
  LocalIds local = local_ids(f, targets);
  Tensor predicted, sums;
  {
    const Tensor rows = column(f, N, DType::int64, "rows");
    const Tensor indexed = column(f, N, DType::fp32, "logits of the labels");
    predicted = column(f, N, DType::fp32, "logits of the labels, copied");
    sums = column(f, N, DType::fp32, "sums of the exponentials");
  }
  const bool fused = fuses_loss(f);
  if (fused) r.empty(logits.shape(), DType::fp32, "exponentials of the logits");
  Tensor loss;
  {
    const Tensor logarithm = column(f, N, DType::fp32, "log of the sums");
    loss = column(f, N, DType::fp32, "loss of each token");
  }
  if (!node) return loss;
  const Tensor kept = r.saved(softmax), kept_mask = r.saved(local.mask), kept_ids = r.saved(local.ids);
  r.record(
      {&loss}, {r.edge(logits)},
      [kept, kept_mask, kept_ids, fused, shape = logits.shape(), type = logits.dtype(), N](Recorder& rec, Gradients&) {
        const Tensor wide = fused ? rec.empty(shape, DType::fp32, "gradient of the logits in fp32") : Tensor();
        const Tensor rows = rec.empty({N, Size(1)}, DType::int64, "rows");
        const Tensor update = rec.empty({N, Size(1)}, DType::fp32, "what the labels' columns lose");
        if (type == DType::fp32) return Gradients{rec.detach(kept)};
        return Gradients{rec.empty(shape, type, "gradient of the logits")};
      });
  return loss;
}

namespace {

// Shapes of the weights that a rank's linears have, each once.
class WeightShapes {
 public:
  explicit WeightShapes(const Forward& f) : f_(f) {}

  void add(const Shape& shape) {
    const SymbolTable& symbols = f_.r.symbols();
    const bool known = std::any_of(shapes_.begin(), shapes_.end(), [&](const Shape& other) {
      return symbols.equal(other.rows, shape.rows) && symbols.equal(other.width, shape.width);
    });
    if (!known && !shape.rows.is_zero() && !shape.width.is_zero()) shapes_.push_back(shape);
  }

  void add_layer(const LayerKind& kind, const KindDims& dims) {
    if (kind.attention.heads == 0) return;
    if (kind.attention.latent) {
      for (const TensorSpec& tensor : kind.tensors)
        if (tensor.role == TensorRole::attention) add({Size(tensor.shape[0]), Size(tensor.shape[1])});
    } else {
      add({(dims.a + Size(2) * dims.k) * dims.d, f_.dims.h});
      add({f_.dims.h, dims.a * dims.v});
    }
    add_mlp(kind.moe ? dims.expert_width : dims.f, kind.mlp.gated);
    if (kind.moe) add_mlp(dims.shared_width, true);
  }

  [[nodiscard]] const std::vector<Shape>& all() const { return shapes_; }

 private:
  void add_mlp(const Size& width, bool gated) {
    add({width * Size(gated ? 2 : 1), f_.dims.h});
    add({f_.dims.h, width});
  }

  const Forward& f_;
  std::vector<Shape> shapes_;
};

}  // namespace

std::vector<Tensor> dummy_gradients(Forward& f) {
  std::vector<Tensor> kept;
  if (!fuses_accumulation(f) || f.plan.method != Method::full) return kept;
  WeightShapes shapes(f);
  for (std::size_t section = 0; section < f.model.sections.size(); ++section)
    for (std::size_t i = 0; i < f.model.sections[section].kinds.size(); ++i)
      shapes.add_layer(f.model.sections[section].kinds[i], f.dims.kinds[section][i]);
  if (next_token_layers(f.plan) > 0)
    shapes.add({f.r.symbols().ceil_div(f.dims.h, Size(f.plan.parallel.tp)), f.dims.h * Size(2)});
  if (f.model.sections.back().layer_kinds.empty()) shapes.add({f.dims.V, f.dims.h});
  kept.reserve(shapes.all().size());
  for (const Shape& shape : shapes.all())
    kept.push_back(
        f.r.empty(shape, f.stream, "stand-in for a weight gradient", f.r.writer().item("buffers.gradients")));
  return kept;
}

Tensor global_memory_buffer(Forward& f) {
  Recorder& r = f.r;
  // Adapters' second matrices gather what their first ones made; frozen linears gather elsewhere.
  // The next-token layers' projection takes two states of each token.
  const std::vector<Section>& sections = f.model.sections;
  const bool predicts = std::any_of(sections.begin(), sections.end(), is_next_token_part);
  const Size whole = predicts ? f.dims.h * Size(2) : f.dims.h;
  const Size width = f.plan.method == Method::lora ? f.dims.r : whole;
  Size elements = splits_sequence(f) ? f.dims.N * width : Size();
  const auto hold = [&](const Size& wanted) {
    if (r.symbols().at_least(wanted, elements)) elements = wanted;
  };
  if (has_scores(f.plan)) hold(f.dims.N * f.dims.s * heads_of(f));
  const ParallelPlan& p = f.plan.parallel;
  if (expert_plan(f.plan).gathers && p.ep * p.expert_tp > 1 && has_experts(f.model))
    hold(expert_rows(f, {}, 1).seen * f.dims.h);
  if (elements.is_zero()) return {};
  return r.empty({elements, Size(1)}, f.stream, "global memory buffer", r.writer().item("buffers.tensor_parallel"));
}

}  // namespace membill
