// Korthikanti et al. 2022, equation 2: a layer keeps s·b·h·(34 + 5·a·s/h) bytes, which "ignores" the layer norms' statistics.
#include "blocks/megatron.h"
#include "support/catch.h"
#include "trace/fold.h"

namespace membill {
namespace {

struct Layer {
  SymbolTable symbols;
  TraceWriter writer;
  Recorder recorder{writer, symbols};
  MegatronLayerSizes sizes;
  MegatronLayerWeights weights;

  Layer(std::int64_t s, std::int64_t b, std::int64_t h, std::int64_t a) {
    sizes = {symbols.define("s", "sequence", s), symbols.define("b", "micro-batch", b),
             symbols.define("h", "hidden", h), symbols.define("a", "heads", a)};
    const ItemId item = writer.item("weights");
    recorder.set_items({item, item});
    const Size& width = sizes.h;
    make(weights.input_norm, {width, Size(1)});
    make(weights.input_norm_bias, {width, Size(1)});
    make(weights.qkv, {Size(3) * width, width});
    make(weights.projection, {width, width});
    make(weights.mlp_norm, {width, Size(1)});
    make(weights.mlp_norm_bias, {width, Size(1)});
    make(weights.up, {Size(4) * width, width});
    make(weights.down, {width, Size(4) * width});
  }

  void make(Parameter& parameter, const Shape& shape) {
    parameter.value = recorder.empty(shape, DType::bf16, "weight");
    parameter.trainable = true;
    parameter.value.body().requires_grad = true;
    parameter.value.body().leaf = &parameter;
  }

  // What lives after the layer's forward beyond its weights and its output, with the formula.
  Size kept() {
    const ItemId item = writer.item("kept");
    recorder.set_items({item, item});
    Tensor hidden = recorder.empty({sizes.s * sizes.b, sizes.h}, DType::bf16, "input");
    Tensor output = megatron_layer(recorder, sizes, weights, hidden);
    hidden.drop();
    writer.moment("kept");
    const int mark = writer.allocate(Size(1), writer.item("mark"), "mark");
    const Trace trace = writer.finish();
    const auto bytes = trace.evaluate(symbols);
    Size live;
    for (const LiveItem& part : live_at(trace, bytes, trace.events.size() - 1))
      if (part.item == item) live += part.bytes;
    writer.release(mark);
    return live - Size(2) * sizes.s * sizes.b * sizes.h;  // less the output: the next layer's input
  }
};

}  // namespace

TEST_CASE("a layer keeps 34 sbh and 5 as2b bytes and the norms statistics") {
  Layer layer(2048, 4, 12288, 96);  // GPT-3 175B
  const Size s = layer.sizes.s, b = layer.sizes.b, h = layer.sizes.h, a = layer.sizes.a;
  const Size statistics = Size(16) * s * b;
  CHECK(layer.kept() - statistics == Size(34) * s * b * h + Size(5) * a * s * s * b);
}

TEST_CASE("table 2 of the paper in bytes") {
  // 22B: a 64, h 6144; 175B: a 96, h 12288; 530B: a 128, h 20480; 1T: a 160, h 25600; s 2048.
  const struct { std::int64_t a, h, b; } models[] = {{64, 6144, 4}, {96, 12288, 1}, {128, 20480, 1}, {160, 25600, 1}};
  for (const auto& model : models) {
    Layer layer(2048, model.b, model.h, model.a);
    const Size kept = layer.kept();
    const std::int64_t tokens = 2048 * model.b;
    CHECK(layer.symbols.evaluate(kept) == tokens * model.h * 34 + 5 * model.a * tokens * 2048 + 16 * tokens);
  }
}

}  // namespace membill
