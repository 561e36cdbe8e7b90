#include "blocks/prefix.h"

namespace membill {
namespace {

// tuners/prefix_tuning/model.py PrefixEncoder.forward: with a projection a linear, a tanh and another linear.
Tensor encoded(Forward& f, PromptEncoder& encoder) {
  Recorder& r = f.r;
  const Tensor tokens = r.empty({f.dims.b * f.dims.past, Size(1)}, DType::int64, "virtual tokens");
  Tensor past = r.embedding(tokens, encoder.embedding);
  bool first = true;
  for (const auto& linear : encoder.linears) {
    if (!first) past = r.tanh(std::move(past));
    first = false;
    past = r.linear(std::move(past), linear->weight, &linear->bias);
  }
  return r.cast(std::move(past), f.stream);
}

// torch.cat of nothing and a part; its gradient is a view.
Tensor copied(Recorder& r, const Tensor& part, const char* label) {
  Tensor copy = r.empty(part.shape(), part.dtype(), label);
  r.record({&copy}, {r.edge(part)}, [](Recorder&, Gradients& g) { return Gradients{std::move(g[0])}; });
  return copy;
}

}  // namespace

PrefixCache::PrefixCache(Forward& f, PromptEncoder& encoder, std::vector<UnitModules>& units) : f_(f) {
  split(encoded(f, encoder), units);
}

PrefixCache::~PrefixCache() {
  TraceWriter& writer = f_.r.writer();
  for (Entry& entry : layers_) {
    writer.visit(entry.unit, true);
    entry.keys.drop();
    entry.values.drop();
  }
  writer.visit(TraceWriter::kNoUnit, true);
}

// permute().split(2): backward joins the gradients of all layers, each of which stacks those of its keys and values.
void PrefixCache::split(const Tensor& past, std::vector<UnitModules>& units) {
  Recorder& r = f_.r;
  std::vector<Tensor> pairs;
  for (const UnitModules& unit : units) {
    for (const std::int32_t kind : unit.kinds) {
      const KindDims& dims = f_.dims.kinds[unit.section][static_cast<std::size_t>(kind)];
      pairs.push_back(r.view(past, {Size(2) * f_.dims.b * f_.dims.past * dims.k, dims.d}));
    }
  }
  std::vector<Tensor*> outputs;
  outputs.reserve(pairs.size());
  for (Tensor& pair : pairs) outputs.push_back(&pair);
  r.record(outputs, {r.edge(past)}, [shape = past.shape(), type = past.dtype()](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(shape, type, "gradient of the prefix of all layers")};
  });
  std::size_t next = 0;
  for (const UnitModules& unit : units) {
    r.writer().visit(unit.unit, true);
    for (std::size_t layer = 0; layer < unit.layers.size(); ++layer) {
      const Tensor& pair = pairs[next++];
      const KindDims& dims = f_.dims.kinds[unit.section][static_cast<std::size_t>(unit.kinds[layer])];
      const Shape half{f_.dims.b * f_.dims.past * dims.k, dims.d};
      Tensor keys = r.view(pair, half), values = r.view(pair, half);
      r.record({&keys, &values}, {r.edge(pair)},
               [shape = pair.shape(), type = pair.dtype()](Recorder& rec, Gradients&) {
                 return Gradients{rec.empty(shape, type, "gradient of a layer's prefix")};
               });
      layers_.push_back({unit.unit, copied(r, keys, "keys of the prefix"), copied(r, values, "values of the prefix")});
    }
  }
  r.writer().visit(TraceWriter::kNoUnit, true);
}

void PrefixCache::extend(const KindDims& dims, Tensor& keys, Tensor& values) {
  Recorder& r = f_.r;
  Entry& layer = layers_.at(next_++);
  const Size rows = f_.dims.b * (f_.dims.past + f_.dims.s) * dims.k;
  keys = r.concatenate(layer.keys, keys, {rows, dims.d});
  layer.keys = keys;
  values = r.concatenate(layer.values, values, {rows, dims.v});
  layer.values = values;
}

}  // namespace membill
