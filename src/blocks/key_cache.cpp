#include "blocks/key_cache.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "blocks/attention.h"
#include "blocks/generations.h"
#include "blocks/llama.h"

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

// Classes whose text part has a configuration of its own, which its forward reads alone.
constexpr std::array kFilling = {
    std::string_view("Qwen2VLForConditionalGeneration"), std::string_view("Qwen2_5_VLForConditionalGeneration"),
    std::string_view("Qwen3VLForConditionalGeneration"), std::string_view("Qwen3VLMoeForConditionalGeneration"),
    std::string_view("Qwen3_5ForConditionalGeneration"), std::string_view("Qwen3_5MoeForConditionalGeneration"),
    std::string_view("Gemma3ForConditionalGeneration"),  std::string_view("LlavaForConditionalGeneration"),
    std::string_view("MllamaForConditionalGeneration"),  std::string_view("InternVLForConditionalGeneration")};

}  // namespace

bool fills_cache(const Forward& f) {
  const bool filling = std::find(kFilling.begin(), kFilling.end(), f.model.class_name) != kFilling.end();
  const bool checkpointed = f.plan.checkpointing.mode != Checkpointing::none && f.r.grad_enabled();
  return filling && !checkpointed && !has_own_model_code(f.plan) && generations(f.plan).trl == Generations::Trl::none;
}

bool turns_keys(const Forward& f, const LayerKind& kind) {
  if (f.cache == nullptr || f.unpads()) return false;
  return choose_attention(f, kind, needs_mask(f, kind)).kernel == AttentionKernel::flash;
}

KeyCache::~KeyCache() {
  TraceWriter& writer = f_.r.writer();
  for (Entry& entry : layers_) {
    writer.visit(entry.unit, true);
    entry.states.clear();
    entry.keys.drop();
    entry.values.drop();
  }
  writer.visit(TraceWriter::kNoUnit, true);
}

void KeyCache::begin_with_prefix(PromptEncoder& encoder, std::vector<UnitModules>& units) {
  split(encoded(f_, encoder), units);
  prefixed_ = layers_.size();
}

// torch.cat of nothing and a part; its gradient is a view.
Tensor KeyCache::copied(const Tensor& part, const char* label) {
  Recorder& r = f_.r;
  Tensor copy = r.empty(part.shape(), part.dtype(), label);
  if (r.needs_node({&part}))
    r.record({&copy}, {r.edge(part)}, [](Recorder&, Gradients& g) { return Gradients{std::move(g[0])}; });
  return copy;
}

// permute().split(2): backward joins the gradients of all layers, each of which stacks those of its keys and values.
void KeyCache::split(const Tensor& past, std::vector<UnitModules>& units) {
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
      layers_.push_back({unit.unit, copied(keys, "keys of the prefix"), copied(values, "values of the prefix"), {}});
    }
  }
  r.writer().visit(TraceWriter::kNoUnit, true);
}

void KeyCache::extend(const AttentionCall& call, Tensor& keys, Tensor& values) {
  Recorder& r = f_.r;
  Tensor all_keys, all_values;
  if (next_ < prefixed_) {
    Entry& layer = layers_[next_++];
    const Size rows = f_.dims.b * (f_.dims.past + f_.dims.s) * call.dims.k;
    all_keys = r.concatenate(layer.keys, keys, {rows, call.dims.d});
    layer.keys = all_keys;
    all_values = r.concatenate(layer.values, values, {rows, call.dims.v});
    layer.values = all_values;
  } else {
    Entry& layer = layers_.emplace_back(Entry{r.writer().unit(), {}, {}, {}});
    if (call.shape.sliding_window) layer.states.push_back(r.empty({Size(1), Size(1)}, DType::int64, "window"));
    layer.keys = all_keys = copied(keys, "keys of the cache");
    layer.values = all_values = copied(values, "values of the cache");
  }
  keys = std::move(all_keys);
  values = std::move(all_values);
}

void KeyCache::hold(const Tensor& state) { layers_.push_back({f_.r.writer().unit(), {}, {}, {state}}); }

}  // namespace membill
