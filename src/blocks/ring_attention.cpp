#include "blocks/ring_attention.h"

#include <utility>

namespace membill {
namespace {

struct RingShapes {
  Shape q, k, pair;  // pair: keys and values of one rank
  Size statistic;    // rows of the log-sum-exp
  DType type = DType::bf16;
  std::int64_t ranks = 1;
  bool grouped = false, heads_first = false;
  Size delta_rows, rounded;

  [[nodiscard]] Shape half() const { return {k.rows, k.width}; }
};

RingShapes shapes_of(Forward& f, const AttentionCall& call, const Tensor& q, const Tensor& k) {
  SymbolTable& symbols = f.r.symbols();
  RingShapes s;
  s.q = q.shape(), s.k = k.shape(), s.pair = {k.rows() * Size(2), k.width()};
  s.statistic = f.dims.N * call.dims.a;
  s.type = q.dtype();
  s.ranks = f.plan.parallel.cp;
  s.grouped = call.shape.heads != call.shape.kv_heads;
  s.heads_first = call.query_contiguous;
  s.delta_rows = f.dims.b * call.dims.a * (symbols.ceil_div(f.dims.s, Size(128)) * Size(128));
  s.rounded = symbols.ceil_div(call.dims.d, Size(32)) * Size(32);
  return s;
}

struct Block {
  Tensor output, statistic;
};

Block flash_block(Recorder& r, const RingShapes& s, Tensor* seeds) {
  Block block{r.empty(s.q, s.type, "attention output of a block"),
              r.empty({s.statistic, Size(1)}, DType::fp32, "attention log-sum-exp of a block")};
  Tensor made = r.empty({Size(3), Size(1)}, DType::int64, "attention seeds");
  if (seeds != nullptr) *seeds = std::move(made);
  return block;
}

// _SDPAMerger._merge_one.
void merge(Recorder& r, const RingShapes& s, const Block& block, Block& merged) {
  const Shape column{s.statistic, Size(1)};
  const Tensor wide = r.empty(s.q, DType::fp32, "block's output in fp32");
  if (!merged.output.defined()) {
    merged = {wide, block.statistic};
    return;
  }
  Tensor weight = r.empty(column, DType::fp32, "difference of the log-sum-exps");
  weight = r.empty(column, DType::fp32, "weight of the block");
  Tensor difference = r.empty(s.q, DType::fp32, "difference of the outputs");
  const Tensor weighed = r.empty(s.q, DType::fp32, "weighed difference");
  weight.drop(), difference.drop();
  Tensor output = r.empty(s.q, DType::fp32, "merged output");
  merged = {std::move(output), r.empty(column, DType::fp32, "merged log-sum-exp")};
}

Tensor contiguous_heads(Recorder& r, const RingShapes& s, const Tensor& x, bool copies) {
  return copies ? r.empty(s.k, s.type, "contiguous heads") : r.detach(x);
}

struct Kept {
  Tensor q, k, v, output, statistic, seeds;
};

Gradients ring_backward(Recorder& r, const RingShapes& s, const Kept& kept);

Tensor ring_forward(Recorder& r, const RingShapes& s, const Tensor& k, const Tensor& v, Kept* kept) {
  Tensor keys = contiguous_heads(r, s, k, !s.heads_first), values = contiguous_heads(r, s, v, true), gathered, seeds;
  Block block, merged;
  for (std::int64_t turn = 0; turn < s.ranks; ++turn) {
    if (turn > 0) keys.drop(), values.drop();  // views of what was gathered
    if (turn + 1 < s.ranks) {
      const Tensor sent = r.empty(s.pair, s.type, "keys and values, joined");
      if (turn == 0)
        gathered = r.empty({s.pair.rows * Size(s.ranks), s.pair.width}, s.type, "keys and values of all ranks");
    }
    block = flash_block(r, s, turn == 0 ? &seeds : nullptr);
    merge(r, s, block, merged);
  }
  Tensor output = r.empty(s.q, s.type, "attention output");
  if (kept != nullptr) {
    kept->output = r.detach(r.saved_strided(output));
    kept->statistic = r.saved(merged.statistic);
    kept->seeds = r.saved(seeds);
  }
  return output;
}

// To a checkpoint that keeps results of operators the ring is one of them: what it made is not made again.
Tensor ring_with_results(Recorder& r, const RingShapes& s, const Tensor& k, const Tensor& v, Kept* kept) {
  const auto made = [&](const Shape& shape, DType type, const char* label) {
    return r.result_of(AtenOperator::flash, shape, type, label);
  };
  const Recorder::OperatorResult output = made(s.q, s.type, "attention output"),
                                 statistic = made({s.statistic, Size(1)}, DType::fp32, "merged log-sum-exp"),
                                 seeds = made({Size(3), Size(1)}, DType::int64, "attention seeds");
  if (output.computed) ring_forward(r, s, k, v, nullptr);
  if (kept != nullptr) {
    kept->output = r.detach(r.saved_strided(output.tensor));
    kept->statistic = r.saved(statistic.tensor);
    kept->seeds = r.saved(seeds.tensor);
  }
  return output.tensor;
}

struct BlockGradients {
  Tensor q, k, v;
};

// aten's flash backward over a block: of all keys, or of their first half.
BlockGradients flash_backward(Recorder& r, const RingShapes& s, bool all) {
  const Shape keys{all ? s.k.rows : r.symbols().ceil_div(s.k.rows, Size(2)), s.k.width};
  BlockGradients made{r.empty(s.q, s.type, "query gradient of a block"),
                      r.empty(keys, s.type, "key gradient of a block"),
                      r.empty(keys, s.type, "value gradient of a block")};
  const Tensor delta = r.empty({s.delta_rows, Size(1)}, DType::fp32, "softmax delta");
  const Tensor accumulator = r.empty({s.delta_rows, s.rounded}, DType::fp32, "query gradient accumulator");
  if (!s.grouped) return made;
  const Shape heads{all ? s.q.rows : r.symbols().ceil_div(s.q.rows, Size(2)), s.q.width};
  const Tensor all_keys = r.empty(heads, s.type, "key gradient of all heads");
  const Tensor all_values = r.empty(heads, s.type, "value gradient of all heads");
  return made;
}

// _templated_ring_attention_backward: sums in fp32; those of keys and values travel from rank to rank.
Gradients ring_backward(Recorder& r, const RingShapes& s, const Kept& kept) {
  const Tensor sum_q = r.empty(s.q, DType::fp32, "query gradient, summed");
  Tensor sum_k = r.empty(s.k, DType::fp32, "key gradient, summed"),
         sum_v = r.empty(s.k, DType::fp32, "value gradient, summed");
  Tensor keys = contiguous_heads(r, s, kept.k, !s.heads_first), values = contiguous_heads(r, s, kept.v, true);
  Tensor sent, gathered, travelling, received;
  BlockGradients block;
  for (std::int64_t turn = 0; turn < s.ranks; ++turn) {
    if (turn > 0) keys.drop(), values.drop();
    if (turn + 1 < s.ranks) {
      sent = r.empty(s.pair, s.type, "keys and values, joined");
      if (turn == 0)
        gathered = r.empty({s.pair.rows * Size(s.ranks), s.pair.width}, s.type, "keys and values of all ranks");
    }
    block = flash_backward(r, s, turn == 0);
    if (turn > 0) {
      travelling = received;
      sum_k = r.empty(s.k, DType::fp32, "key gradient, summed");
      sum_v = r.empty(s.k, DType::fp32, "value gradient, summed");
    }
    travelling = r.empty(s.pair, DType::fp32, "gradients for the next rank");
    received = r.empty(s.pair, DType::fp32, "gradients of the rank before");
  }
  Gradients result{r.empty(s.q, s.type, "query gradient")};
  const Tensor both = r.empty(s.pair, s.type, "key and value gradients");
  result.push_back(r.view(both, s.k));
  result.push_back(r.view(both, s.k));
  return result;
}

// One head of keys and values of all ranks at a time, and the queries that belong to it.
struct HeadShapes {
  Shape q, k, all, head, buffer;
  Size statistic, delta_rows, rounded;
  std::int64_t turns = 1, queries = 1;
  DType type = DType::bf16;
};

HeadShapes head_shapes(Forward& f, const AttentionCall& call, const Tensor& q, const Tensor& k) {
  const Size whole = f.dims.N * Size(f.plan.parallel.cp);
  HeadShapes s;
  s.q = q.shape(), s.k = k.shape(), s.all = {whole, call.dims.d}, s.head = {f.dims.N, call.dims.d};
  s.buffer = {whole * Size(2), call.dims.d};
  s.turns = call.shape.kv_heads;
  s.queries = call.shape.heads / call.shape.kv_heads;
  s.statistic = f.dims.N;
  s.delta_rows = f.dims.N + Size(128);  // of one document
  s.rounded = f.r.symbols().ceil_div(call.dims.d, Size(32)) * Size(32);
  s.type = q.dtype();
  return s;
}

// Copies of the head that is sent next, which replace those of the one before.
void send_head(Recorder& r, const HeadShapes& s, Tensor& keys, Tensor& values) {
  keys = r.empty(s.head, s.type, "keys of one head");
  values = r.empty(s.head, s.type, "values of one head");
}

Tensor gathered_forward(Recorder& r, const HeadShapes& s, Tensor& statistic) {
  const Tensor buffer = r.empty(s.buffer, s.type, "keys and values of one head, all ranks");
  const Tensor other = r.empty(s.buffer, s.type, "keys and values of the next head, all ranks");
  Tensor first_keys, first_values, keys, values;
  send_head(r, s, first_keys, first_values);
  std::vector<Tensor> parts;
  const Size queries(s.queries);
  Tensor seeds;
  for (std::int64_t turn = 0; turn < s.turns; ++turn) {
    if (turn + 1 < s.turns) send_head(r, s, keys, values);
    Tensor part = r.empty({s.statistic * queries, Size(1)}, DType::fp32, "attention log-sum-exp of some heads");
    parts.push_back(r.empty({s.statistic * queries, s.q.width}, s.type, "attention output of some heads"));
    parts.push_back(std::move(part));
    seeds = r.empty({Size(2), Size(1)}, DType::int64, "attention seeds");
  }
  Tensor output = r.empty(s.q, s.type, "attention output");
  statistic = r.empty({s.statistic * queries * Size(s.turns), Size(1)}, DType::fp32, "attention log-sum-exp");
  return output;
}

Gradients gathered_backward(Recorder& r, const HeadShapes& s) {
  const Tensor buffer = r.empty(s.buffer, s.type, "keys and values of one head, all ranks");
  const Tensor other = r.empty(s.buffer, s.type, "keys and values of the next head, all ranks");
  const Tensor gradients = r.empty(s.buffer, s.type, "their gradients, all ranks");
  const Tensor own =
      s.turns > 1 ? r.empty({s.head.rows * Size(2), s.head.width}, s.type, "their gradients, this rank's") : Tensor();
  Gradients result{r.empty(s.q, s.type, "query gradient"), r.empty(s.k, s.type, "key gradient"),
                   r.empty(s.k, s.type, "value gradient")};
  Tensor first_keys, first_values, keys, values;
  send_head(r, s, first_keys, first_values);
  const Size queries(s.queries);
  for (std::int64_t turn = 0; turn < s.turns; ++turn) {
    if (turn + 1 < s.turns) send_head(r, s, keys, values);
    const Tensor delta = r.empty({s.delta_rows * queries, Size(1)}, DType::fp32, "softmax delta");
    const Tensor accumulator = r.empty({s.delta_rows * queries, s.rounded}, DType::fp32, "query gradient accumulator");
    if (s.queries == 1) continue;
    const Tensor all_keys = r.empty({s.all.rows * queries, s.all.width}, s.type, "key gradient of all heads");
    const Tensor all_values = r.empty({s.all.rows * queries, s.all.width}, s.type, "value gradient of all heads");
  }
  return result;
}

}  // namespace

Tensor torch_ring(Forward& f, const AttentionCall& call, const Tensor& q, const Tensor& k, const Tensor& v) {
  Recorder& r = f.r;
  const RingShapes s = shapes_of(f, call, q, k);
  const bool node = r.needs_node({&q, &k, &v});
  Kept kept;
  if (node) kept = {r.saved_strided(q), r.saved_strided(k), r.saved_strided(v), {}, {}, {}};
  const bool results = f.plan.checkpointing.mode == Checkpointing::selective;
  Tensor output = results ? ring_with_results(r, s, k, v, node ? &kept : nullptr)
                          : ring_forward(r, s, k, v, node ? &kept : nullptr);
  if (node)
    r.record({&output}, {r.edge(q), r.edge(k), r.edge(v)},
             [s, kept](Recorder& rec, Gradients&) { return ring_backward(rec, s, kept); });
  const Shape result{f.dims.N, call.dims.a * call.dims.v};
  // What the blocks were merged into lies heads first; torchtitan asks for the other order whatever its queries' is.
  if (s.heads_first || call.bare) return r.contiguous_copy(std::move(output), result, "attention output, heads last");
  return r.view(std::move(output), result);
}

Tensor gathered_ring(Forward& f, const AttentionCall& call, const Tensor& q, const Tensor& k, const Tensor& v) {
  Recorder& r = f.r;
  const HeadShapes s = head_shapes(f, call, q, k);
  const bool node = r.needs_node({&q, &k, &v});
  Tensor statistic;
  Tensor output = gathered_forward(r, s, statistic);
  if (node) {
    const Kept kept{r.saved(q), r.saved(k), r.saved(v), r.detach(r.saved(output)), r.saved(statistic), {}};
    r.record({&output}, {r.edge(q), r.edge(k), r.edge(v)},
             [s, kept](Recorder& rec, Gradients&) { return gathered_backward(rec, s); });
  }
  return r.view(std::move(output), {f.dims.N, call.dims.a * call.dims.v});
}

}  // namespace membill
