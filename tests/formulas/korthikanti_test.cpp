// Korthikanti et al. 2022 ("Reducing Activation Recomputation in Large Transformer Models"), table 2: what one transformer layer keeps
// under tensor and sequence parallelism and selective recomputation, with the fused softmax that the paper counts. The paper "ignores" the
// layer norms' statistics: two fp32 numbers a row and norm.
#include "blocks/megatron.h"
#include "blocks/megatron_parallel.h"
#include "estimate/parameters.h"
#include "estimate/rank_model.h"
#include "membill/catalog.h"
#include "support/catch.h"
#include "trace/fold.h"

namespace membill {
namespace {

struct Sizes {
  std::int64_t a, h, s = 2048, b = 1;
};

ModelSpec gpt(const Sizes& sizes) {
  Problems problems;
  Value config = Value::make_map({{"model_type", Value::of("gpt2")},
                                  {"n_embd", Value::of(sizes.h)},
                                  {"n_layer", Value::of(std::int64_t{1})},
                                  {"n_head", Value::of(sizes.a)},
                                  {"n_positions", Value::of(sizes.s)},
                                  {"vocab_size", Value::of(std::int64_t{51200})}});
  config.set("attn_pdrop", Value::of(0.1));
  config.set("resid_pdrop", Value::of(0.1));
  return find_family("gpt2")->describe(config, problems);
}

TrainingPlan megatron_plan(const Sizes& sizes, std::int64_t t, bool sp, bool selective) {
  TrainingPlan plan;
  plan.engine = Engine::megatron;
  plan.implementation = Implementation::megatron;
  plan.precision = Precision::master_bf16;
  plan.attention = AttentionKernel::fused_softmax;
  plan.batch = sizes.b;
  plan.seq = sizes.s;
  plan.parallel.tp = t;
  plan.parallel.sp = sp;
  if (selective) plan.checkpointing.selective = {"core_attn"};
  return plan;
}

// What lives after one layer's forward beyond its weights and its output.
std::int64_t kept_bytes(const Sizes& sizes, const TrainingPlan& plan) {
  SymbolTable symbols;
  TraceWriter writer;
  Recorder recorder(writer, symbols);
  const ModelSpec model = rank_model(gpt(sizes), plan, 0);
  const Dims dims = define_dims(symbols, model, plan);
  JobModules job = build_modules(recorder, model, plan, dims, true);
  const Items items = define_items(writer);
  Forward forward{recorder, model, plan, dims, items};
  forward.attention_dropout = forward.hidden_dropout = 0.1;
  UnitModules& unit = job.model.units.front();
  const LayerContext context{unit.layers.front(), model.sections[unit.section].kinds.front(),
                             dims.kinds[unit.section].front()};
  const Shape stream{stream_rows(forward), dims.h};
  recorder.set_items(items.block);
  Tensor hidden = recorder.empty(stream, DType::bf16, "input");
  const Tensor output = MegatronArchitecture().layer(forward, context, std::exchange(hidden, {}), {});
  const int mark = writer.allocate(Size(1), writer.item("mark"), "mark");
  const Trace trace = writer.finish();
  std::int64_t live = 0;
  for (const LiveItem& part : live_at(trace, trace.evaluate(symbols), trace.events.size() - 1))
    if (trace.items[static_cast<std::size_t>(part.item)].rfind("activations.", 0) == 0)
      live += symbols.evaluate(part.bytes);
  writer.release(mark);
  return live - symbols.evaluate(Size(2) * stream.elements());  // less the output: the next layer's input
}

constexpr Sizes kModels[] = {{64, 6144, 2048, 4}, {96, 12288, 2048, 1}, {128, 20480, 2048, 1}, {160, 25600, 2048, 1}};

}  // namespace

TEST_CASE("a layer keeps 34 sbh and 5 as2b bytes, without parallelism") {
  for (const Sizes& m : kModels) {
    const std::int64_t sb = m.s * m.b;
    CHECK(kept_bytes(m, megatron_plan(m, 1, false, false)) == sb * m.h * 34 + 5 * m.a * sb * m.s + 16 * sb);
  }
}

TEST_CASE("table 2 of the paper for t = 1 to 8") {
  for (const Sizes& m : kModels)
    for (const std::int64_t t : {1, 2, 4, 8}) {
      INFO("a " << m.a << ", t " << t);
      const std::int64_t sb = m.s * m.b, sbh = sb * m.h, scores = 5 * m.a * sb * m.s / t;
      CHECK(kept_bytes(m, megatron_plan(m, t, false, false)) == 10 * sbh + 24 * sbh / t + scores + 16 * sb);
      CHECK(kept_bytes(m, megatron_plan(m, t, false, true)) == 10 * sbh + 24 * sbh / t + 16 * sb);
      if (t == 1) continue;
      CHECK(kept_bytes(m, megatron_plan(m, t, true, false)) == 34 * sbh / t + scores + 16 * sb / t);
      CHECK(kept_bytes(m, megatron_plan(m, t, true, true)) == 34 * sbh / t + 16 * sb / t);
    }
}

}  // namespace membill
