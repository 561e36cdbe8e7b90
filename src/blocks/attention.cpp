#include "blocks/attention.h"

#include "blocks/generations.h"
#include "blocks/kept.h"
#include "blocks/kernel_sizes.h"
#include "blocks/layers.h"

namespace membill {
namespace {

// Rows of keys or values of `heads` heads.
Size key_rows(const Forward& f, const Size& heads) {
  return f.dims.past.is_zero() ? f.dims.N * heads : f.dims.b * f.keys() * heads;
}

// repeat_kv: expand and reshape, a copy unless every query head has its own.
Tensor repeat_heads(Forward& f, const AttentionCall& call, const Tensor& x, const Size& width) {
  if (call.shape.heads == call.shape.kv_heads) return x;
  if (call.shape.kv_heads == 1) return f.r.broadcast_view(x, {key_rows(f, call.dims.a), width});
  return f.r.contiguous_copy(x, {key_rows(f, call.dims.a), width}, "repeated key/value heads");
}

// What matmul's expand().reshape() does to a (b, heads, s, d) view of a (b, s, heads, d) tensor.
Tensor batch_first(Forward& f, const Tensor& x, bool is_view) {
  if (!is_view || f.one_row()) return x;
  return f.r.contiguous_copy(x, x.shape(), "contiguous heads");
}

// transformers 5.24 models/llama/modeling_llama.py eager_attention_forward.
Tensor eager(Forward& f, const AttentionCall& call, const Tensor& q, const Tensor& k, const Tensor& v) {
  Recorder& r = f.r;
  const Size rows = f.dims.N * call.dims.a;
  const Shape scores_shape{rows, f.keys()};
  const bool repeats = call.shape.heads != call.shape.kv_heads, expands = repeats && call.shape.kv_heads == 1;
  const Tensor keys = repeat_heads(f, call, k, call.dims.d), values = repeat_heads(f, call, v, call.dims.v);
  const auto widened = [&](const Tensor& x) { return call.wide_scores ? r.cast(x, DType::fp32) : x; };
  Tensor scores, left, right;
  {
    const Tensor wide_q = widened(q),
                 wide_k = widened(keys);  // arguments of the product, of which autocast casts the last first
    const Tensor from_k = r.autocast_input(wide_k), from_q = r.autocast_input(wide_q);
    left = batch_first(f, from_q, !call.query_contiguous);
    right = batch_first(f, from_k, expands || (!repeats && !call.query_contiguous && f.cache == nullptr));
    scores = r.batched_matmul(std::move(left), std::move(right), scores_shape, "attention scores");
  }
  scores = r.mul_scalar(std::move(scores), "scaled scores");
  if (call.shape.logit_softcap)
    scores = r.mul_scalar(r.tanh(r.mul_scalar(std::move(scores), "scores over the cap")), "capped scores");
  if (call.bias.defined()) scores = r.add(scores, call.bias, "scores with their bias");
  if (call.mask.defined()) scores = r.add(scores, call.mask, "masked scores");
  Tensor probabilities = r.softmax(scores, call.native_softmax ? std::nullopt : std::optional(DType::fp32));
  if (generations(f.plan).softmax_saves_input) probabilities = also_keeping(r, probabilities, scores);
  if (call.native_softmax && !call.wide_scores) scores.drop();
  scores = call.keeps_softmax ? std::move(probabilities)
                              : r.cast(std::move(probabilities), call.native_softmax ? v.dtype() : q.dtype());
  scores = r.dropout(scores, f.attention_dropout);
  if (call.weights != nullptr) *call.weights = scores;
  Tensor output;
  {
    const Tensor cast_values = r.autocast_input(values);
    left = r.autocast_input(scores);
    right = batch_first(f, cast_values, expands || (!repeats && f.cache == nullptr));
    output = r.batched_matmul(std::move(left), std::move(right), {rows, call.dims.v}, "attention output");
  }
  output = heads_first_gradient(f, output);
  return r.contiguous_copy(std::move(output), {f.dims.N, call.dims.a * call.dims.v}, "attention output, heads last");
}

// sdpa_attention_forward: with a mask, and in earlier releases always, each query head gets its own keys and values. The kernel that
// is asked for by name is the flash-attention package's, which takes them as they are.
void repeat_for_sdpa(Forward& f, const AttentionCall& call, Tensor& k, Tensor& v) {
  const bool always = generations(f.plan).repeats_kv_heads && f.plan.attention != AttentionKernel::flash;
  if (call.bare || (!call.mask.defined() && !always)) return;
  k = repeat_heads(f, call, k, call.dims.d);
  v = repeat_heads(f, call, v, call.dims.v);
}

// Whether q and k (and v, then) lie as (b, heads, s, d) for the kernel: some releases copy them where they do not.
bool makes_heads_contiguous(Forward& f, const AttentionCall& call, Tensor& q, Tensor& k, Tensor& v) {
  if (call.bare || !generations(f.plan).contiguous_heads || f.plan.attention == AttentionKernel::flash)
    return call.query_contiguous;
  const bool repeated =
      call.shape.heads != call.shape.kv_heads && !f.r.symbols().equal(k.rows(), key_rows(f, call.dims.k));
  const auto copy = [&f](Tensor x) {
    const Shape shape = x.shape();
    return f.r.contiguous_copy(std::move(x), shape, "contiguous heads");
  };
  if (!call.query_contiguous) q = copy(std::move(q));
  if (!call.query_contiguous && !repeated) k = copy(std::move(k));
  if (!repeated) v = copy(std::move(v));
  return true;
}

struct Saved {
  Tensor q, k, v, output, statistic, seeds;
};

// aten/native/transformers/cuda/flash_attn/flash_api.cpp mha_fwd, mha_bwd.
Tensor flash_kernel(Forward& f, const AttentionCall& call, Tensor q, Tensor k, Tensor v) {
  Recorder& r = f.r;
  const Size rows = f.dims.N * call.dims.a, padded_s = r.symbols().ceil_div(f.dims.s, Size(128)) * Size(128);
  const Size rounded_d = r.symbols().ceil_div(call.dims.d, Size(32)) * Size(32);
  const bool node = r.needs_node({&q, &k, &v});
  Saved kept;
  if (node) kept = {r.saved_strided(q), r.saved_strided(k), r.saved_strided(v), {}, {}, {}};
  const auto made = [&](const Shape& shape, DType type, const char* label) {
    return r.result_of(AtenOperator::flash, shape, type, label).tensor;
  };
  Tensor output = made({rows, q.width()}, q.dtype(), "attention output");
  Tensor statistic = made({rows, Size(1)}, DType::fp32, "attention log-sum-exp");
  const std::int64_t splits = f.plan.attention_mask ? 1 : key_splits(f, call.dims.a, call.shape.head_dim);
  const Tensor part_statistics =
      splits > 1 ? r.empty({Size(splits) * rows, Size(1)}, DType::fp32, "log-sum-exp of parts of the keys") : Tensor();
  const Tensor part_outputs =
      splits > 1 ? r.empty({Size(splits) * rows, rounded_d}, DType::fp32, "output of parts of the keys") : Tensor();
  Tensor seeds = made({Size(3), Size(1)}, DType::int64, "attention seeds");
  if (!node) return output;
  kept.output = r.detach(r.saved_strided(output));
  kept.statistic = r.saved(statistic);
  kept.seeds = r.saved(seeds);
  const bool grouped = !r.symbols().equal(k.rows(), rows);
  const Size heads_rows = call.dims.a * (call.choice.unpads ? f.dims.N + Size(128) * f.dims.b : f.dims.b * padded_s);
  r.record({&output}, {r.edge(q), r.edge(k), r.edge(v)},
           [kept, grouped, rows, heads_rows, rounded_d, qs = q.shape(), ks = k.shape(), type = q.dtype(),
            copies = call.pads_heads || (call.tokens_first && !f.one_row()),
            heads_first = call.query_contiguous && !call.choice.unpads](Recorder& rec, Gradients&) {
             const Tensor out = copies || heads_first ? rec.empty(qs, type, "attention output, rows first") : Tensor();
             const Tensor in = copies ? rec.empty(qs, type, "gradient of it, rows first") : Tensor();
             Gradients result{rec.empty(qs, type, "query gradient"), rec.empty(ks, type, "key gradient"),
                              rec.empty(ks, type, "value gradient")};
             const Tensor delta = rec.empty({heads_rows, Size(1)}, DType::fp32, "softmax delta");
             const Tensor accumulator = rec.empty({heads_rows, rounded_d}, DType::fp32, "query gradient accumulator");
             if (!grouped) return result;
             const Tensor keys = rec.empty({rows, ks.width}, type, "key gradient of all heads");
             const Tensor values = rec.empty({rows, ks.width}, type, "value gradient of all heads");
             return result;
           });
  return output;
}

// transformers 5.24 modeling_flash_attention_utils.py _index_first_axis: tokens that count. `turned`: heads before tokens.
Tensor counted_rows(Forward& f, const AttentionCall& call, Tensor x, const Tensor& tokens, bool turned) {
  Recorder& r = f.r;
  const Shape heads = x.shape();
  if (turned && !f.one_row()) x = r.contiguous_copy(std::move(x), heads, "heads, tokens first");
  const Size width = r.symbols().equal(heads.rows, f.dims.N * call.dims.a) ? call.dims.a : call.dims.k;
  return r.reshaped(r.index_rows(x, tokens, width * heads.width), heads);
}

// flash-attn bert_padding.py pad_input: zeros, into which the rows are put. `output` counts every token.
Tensor with_padding(Forward& f, const AttentionCall& call, Tensor output, const Tensor& tokens) {
  Recorder& r = f.r;
  const Tensor in = std::move(output);
  const Shape whole{f.dims.N, call.dims.a * call.dims.v};
  Tensor out = r.empty(whole, in.dtype(), "attention output with its padding");
  if (!r.needs_node({&in})) return out;
  Tensor kept = r.saved(tokens);
  r.record({&out}, {r.edge(in)}, [kept, shape = in.shape(), type = in.dtype()](Recorder& rec, Gradients&) {
    return Gradients{rec.empty(shape, type, "gradient of the rows that count")};
  });
  return out;
}

// Flash attention's package over rows with padding.
Tensor flash_unpadded(Forward& f, const AttentionCall& call, Tensor q, Tensor k, Tensor v) {
  Recorder& r = f.r;
  v = r.autocast_input(std::move(v)), k = r.autocast_input(std::move(k)), q = r.autocast_input(std::move(q));
  const Tensor all_q = q, all_k = k, all_v = v;  // variables of the calling function
  const Tensor tokens = r.empty({f.dims.N, Size(1)}, DType::int64, "indices of the tokens that count");
  const bool keys_turned = call.query_contiguous || f.cache != nullptr;
  k = counted_rows(f, call, std::move(k), tokens, keys_turned);
  v = counted_rows(f, call, std::move(v), tokens, keys_turned);
  q = counted_rows(f, call, std::move(q), tokens, call.query_contiguous);
  return with_padding(f, call, flash_kernel(f, call, std::move(q), std::move(k), std::move(v)), tokens);
}

// Copies of q, k and v with the head dimension that the kernel wants.
Tensor flash_padded(Forward& f, const AttentionCall& call, Tensor q, Tensor k, Tensor v) {
  Recorder& r = f.r;
  const Size padded = r.symbols().ceil_div(call.dims.d, Size(8)) * Size(8);
  const Tensor given_q = q, given_k = k, given_v = v;  // arguments of the function that pads
  q = r.contiguous_copy(q, {q.rows(), padded}, "padded queries");
  k = r.contiguous_copy(k, {k.rows(), padded}, "padded keys");
  v = r.contiguous_copy(v, {v.rows(), padded}, "padded values");
  AttentionCall padded_call = call;
  padded_call.pads_heads = true;
  return flash_kernel(f, padded_call, std::move(q), std::move(k), std::move(v));
}

// Flash wants a head dimension that 8 divides: q, k, v are padded, the output is cut back (and copied by contiguous()).
Tensor flash(Forward& f, const AttentionCall& call, Tensor q, Tensor k, Tensor v) {
  Recorder& r = f.r;
  if (call.choice.unpads) return flash_unpadded(f, call, std::move(q), std::move(k), std::move(v));
  repeat_for_sdpa(f, call, k, v);
  const bool contiguous = makes_heads_contiguous(f, call, q, k, v);
  const Tensor held_k = k, held_v = v;  // repeated heads are variables of the calling function
  v = r.autocast_input(v), k = r.autocast_input(k), q = r.autocast_input(std::move(q));
  const Shape result{f.dims.N, call.dims.a * call.dims.v};
  if (call.shape.head_dim % 8 == 0) {
    Tensor output = flash_kernel(f, call, std::move(q), std::move(k), std::move(v));
    if (contiguous) return r.contiguous_copy(std::move(output), result, "attention output, heads last");
    return r.view(std::move(output), result);
  }
  Tensor output = flash_padded(f, call, std::move(q), std::move(k), std::move(v));
  return r.contiguous_copy(std::move(output), result, "attention output, unpadded");
}

// attention_backward.cu: the kernels of 16 bits work delta out themselves, fp32 takes the sums of gradient times output.
Tensor softmax_delta(Recorder& r, const Shape& queries, const Size& rows, DType type) {
  if (type != DType::fp32) return r.empty({rows, Size(1)}, DType::fp32, "softmax delta");
  const Tensor product = r.empty(queries, type, "gradient times output");
  const Tensor sums = r.empty({rows, Size(1)}, type, "softmax delta, tokens first");
  return r.empty({rows, Size(1)}, DType::fp32, "softmax delta");
}

// aten/native/transformers/cuda/attention.cu _efficient_attention_forward, attention_backward.cu.
Tensor efficient_kernel(Forward& f, const AttentionCall& call, const Tensor& mask, Tensor q, Tensor k, Tensor v) {
  Recorder& r = f.r;
  const Size rows = f.dims.N * call.dims.a;
  const Size statistic_rows = f.dims.b * call.dims.a * r.symbols().ceil_div(f.dims.s, Size(32)) * Size(32);
  const bool node = r.needs_node({&q, &k, &v});
  Saved kept;
  Tensor kept_mask;
  if (node) {
    kept_mask = mask.defined() ? r.saved(mask) : Tensor();
    kept = {r.saved_strided(q), r.saved_strided(k), r.saved_strided(v), {}, {}, {}};
  }
  const auto made = [&](const Shape& shape, DType type, const char* label) {
    return r.result_of(AtenOperator::efficient, shape, type, label).tensor;
  };
  Tensor output = made({rows, v.width()}, q.dtype(), "attention output");
  Tensor statistic = node ? made({statistic_rows, Size(1)}, DType::fp32, "attention log-sum-exp") : Tensor();
  const bool drops = f.attention_dropout > 0;  // then the seeds are in host memory
  Tensor seeds = drops ? Tensor() : made({Size(2), Size(1)}, DType::int64, "attention seeds");
  if (!node) return output;
  kept.output = r.detach(r.saved_strided(output));
  kept.statistic = r.saved(statistic);
  if (!drops) kept.seeds = r.saved(seeds);
  std::vector<Edge> edges{r.edge(q), r.edge(k), r.edge(v)};
  const bool learned = mask.defined() && mask.requires_grad();
  const bool grouped = !r.symbols().equal(k.rows(), key_rows(f, call.dims.a));
  if (learned) edges.push_back(r.edge(mask));
  r.record(
      {&output}, std::move(edges),
      [kept, kept_mask, rows, learned, grouped, qs = q.shape(), ks = k.shape(), vs = v.shape(), type = q.dtype(),
       workspace = efficient_workspace(f, call.dims.a, call.shape.head_dim, q.dtype())](Recorder& rec, Gradients&) {
        Gradients result{rec.empty(qs, type, "query gradient"), rec.empty(ks, type, "key gradient"),
                         rec.empty(vs, type, "value gradient")};
        if (learned) {
          const Size padded = rec.symbols().ceil_div(kept_mask.width(), Size(16)) * Size(16);
          result.push_back(rec.empty({rows, padded}, type, "gradient of the position bias"));
        }
        const Tensor all_keys = grouped ? rec.empty({qs.rows, ks.width}, type, "key gradient of all heads") : Tensor();
        const Tensor all_values =
            grouped ? rec.empty({qs.rows, vs.width}, type, "value gradient of all heads") : Tensor();
        Tensor delta = softmax_delta(rec, qs, rows, type);
        const Tensor space = rec.empty({workspace, Size(1)}, DType::uint8, "gradient accumulators");
        delta.drop();
        return result;
      });
  return output;
}

// A boolean mask becomes an additive one of the batch's rows; the last axis is padded to a multiple of 8.
Tensor additive_mask(Forward& f, const Tensor& given, DType type) {
  const Size padded = f.r.symbols().ceil_div(f.keys(), Size(8)) * Size(8);
  Tensor mask = given.dtype() == type ? given : f.r.empty({f.dims.N, f.keys()}, type, "additive mask");
  if (!f.r.symbols().is_multiple(f.keys(), 8)) mask = f.r.empty({f.dims.N, padded}, type, "additive mask, padded");
  return mask;
}

// pad_bias of aten/native/transformers/attention.cpp: the last axis padded to a multiple of 8, of which the kernel sees a part.
Tensor padded_bias(Forward& f, Tensor bias) {
  Recorder& r = f.r;
  if (r.symbols().is_multiple(f.dims.s, 8)) return bias;
  const Shape padded{bias.rows(), r.symbols().ceil_div(f.dims.s, Size(8)) * Size(8)};
  Tensor out = r.empty(padded, bias.dtype(), "padded position bias");
  if (r.needs_node({&bias}))
    r.record({&out}, {r.edge(bias)}, [shape = bias.shape(), type = bias.dtype()](Recorder& rec, Gradients&) {
      return Gradients{rec.empty(shape, type, "gradient of the position bias, cut")};
    });
  return r.slice(std::move(out), f.dims.s);
}

// Its output lies as (b, s, heads, d) whatever the queries do.
Tensor mem_efficient(Forward& f, const AttentionCall& call, Tensor q, Tensor k, Tensor v) {
  Recorder& r = f.r;
  repeat_for_sdpa(f, call, k, v);
  (void)makes_heads_contiguous(f, call, q, k, v);
  const Tensor held_k = k, held_v = v;
  v = r.autocast_input(v), k = r.autocast_input(k), q = r.autocast_input(std::move(q));
  if (call.bias.defined()) {
    const Tensor bias = padded_bias(f, r.autocast_input(call.bias));
    const Tensor whole = r.broadcast_view(bias, {f.dims.N * call.dims.a, f.dims.s});
    Tensor output = efficient_kernel(f, call, whole, std::move(q), std::move(k), std::move(v));
    return r.view(std::move(output), {f.dims.N, call.dims.a * call.dims.v});
  }
  const Tensor bias = call.mask.defined() ? additive_mask(f, call.mask, q.dtype()) : Tensor();
  Tensor output = efficient_kernel(f, call, bias, std::move(q), std::move(k), std::move(v));
  return r.view(std::move(output), {f.dims.N, call.dims.a * call.dims.v});
}

// Keys or values as a matrix product over all heads takes them: fewer heads are expanded, which copies unless there is one row.
Tensor matmul_heads(Forward& f, const AttentionCall& call, const Tensor& x, bool is_view) {
  if (!call.bare || call.shape.heads == call.shape.kv_heads) return batch_first(f, x, is_view);
  const Shape all{f.dims.N * call.dims.a, x.width()};
  return f.one_row() ? f.r.broadcast_view(x, all) : f.r.contiguous_copy(x, all, "key/value heads of all queries");
}

// at::ones(bool).tril(), then an additive mask.
Tensor math_causal_mask(Forward& f) {
  Recorder& r = f.r;
  const Shape square{f.dims.s, f.dims.s};
  Tensor ones = r.empty(square, DType::boolean, "ones");
  const Tensor allowed = r.empty(square, DType::boolean, "causal mask, boolean");
  ones.drop();
  return r.empty(square, DType::fp32, "causal mask");
}

// at::_safe_softmax: a softmax, and the rows that are masked throughout.
Tensor safe_softmax(Forward& f, const Tensor& scores) {
  Recorder& r = f.r;
  Tensor out = r.softmax(scores, std::nullopt);
  const Tensor masked = r.empty(scores.shape(), DType::boolean, "masked scores, boolean");
  const Tensor masked_rows = r.empty({scores.rows(), Size(1)}, DType::boolean, "masked rows, boolean");
  return out;
}

// aten/native/transformers/attention.cpp _scaled_dot_product_attention_math: everything in fp32. The attention weights are a result,
// too, in the type of the queries. The result lies as (b, heads, s, d).
Tensor math_kernel(Forward& f, const AttentionCall& call, const Tensor& q16, Tensor k16, Tensor v16) {
  Recorder& r = f.r;
  const DType type = r.autocast() ? *r.autocast() : q16.dtype();
  const Size rows = f.dims.N * call.dims.a;
  const bool repeats = !call.bare && call.shape.heads != call.shape.kv_heads;
  if (call.mask.defined() && repeats)
    k16 = repeat_heads(f, call, k16, call.dims.d), v16 = repeat_heads(f, call, v16, call.dims.v);
  Tensor given_mask = call.mask;
  if (call.mask.defined() && call.mask.dtype() != type)
    given_mask = r.empty({f.dims.N, f.keys()}, type, "additive mask");
  const Tensor bias = call.bias.defined() ? r.autocast_input(call.bias) : Tensor();
  const Tensor v_in = r.autocast_input(v16), k_in = r.autocast_input(k16), q_in = r.autocast_input(q16);
  const Tensor q_wide = r.cast(q_in, DType::fp32), k_wide = r.cast(k_in, DType::fp32),
               v_wide = r.cast(v_in, DType::fp32);
  r.pause_autocast();
  const Tensor q = r.mul_scalar(q_wide, "scaled queries");
  Tensor mask = given_mask;
  if (!mask.defined() && !bias.defined()) mask = math_causal_mask(f);
  const auto interleave = [&](const Tensor& x) {
    if (!repeats || call.mask.defined()) return x;
    return r.contiguous_copy(x, {key_rows(f, call.dims.a), x.width()}, "repeated key/value heads");
  };
  const Tensor keys = interleave(k_wide), values = interleave(v_wide);
  Tensor right = r.mul_scalar(keys, "scaled keys");
  Tensor left = batch_first(f, q, !call.query_contiguous);
  right = matmul_heads(f, call, right, !repeats && !call.query_contiguous && f.cache == nullptr);
  Tensor scores = r.batched_matmul(std::move(left), std::move(right), {rows, f.keys()}, "attention scores");
  if (bias.defined()) scores = r.add_in_place(std::move(scores), bias);
  scores = safe_softmax(f, scores);
  scores = r.dropout(std::move(scores), f.attention_dropout);
  const Tensor weights = r.cast(scores, type);
  right = matmul_heads(f, call, values, !repeats && f.cache == nullptr);
  Tensor output =
      heads_first_gradient(f, r.batched_matmul(scores, std::move(right), {rows, call.dims.v}, "attention output"));
  output = r.cast(std::move(output), type);
  r.resume_autocast();
  return output;
}

Tensor math(Forward& f, const AttentionCall& call, const Tensor& q, Tensor k, Tensor v) {
  Tensor output = math_kernel(f, call, q, std::move(k), std::move(v));
  return f.r.contiguous_copy(std::move(output), {f.dims.N, call.dims.a * call.dims.v}, "attention output, heads last");
}

}  // namespace

AttentionChoice choose_attention(const Forward& f, const LayerKind& kind, bool masked, bool biased) {
  const DType type = f.r.autocast() ? *f.r.autocast() : f.stream;
  AttentionChoice choice{f.plan.attention, masked, false};
  if (choice.kernel != AttentionKernel::sdpa && choice.kernel != AttentionKernel::flash) return choice;
  choice.unpads = masked && !biased && f.unpads();
  const bool can_flash = (!masked || choice.unpads) && type != DType::fp32 && kind.attention.head_dim <= 256 &&
                         kind.attention.value_head_dim == kind.attention.head_dim;
  choice.kernel = can_flash ? AttentionKernel::flash : AttentionKernel::mem_efficient;
  return choice;
}

Tensor run_whole_attention(Forward& f, const AttentionCall& call, Tensor q, Tensor k, Tensor v) {
  switch (call.choice.kernel) {
    case AttentionKernel::eager: return eager(f, call, q, k, v);
    case AttentionKernel::sdpa_math: return math(f, call, q, k, v);
    case AttentionKernel::mem_efficient: return mem_efficient(f, call, q, k, v);
    case AttentionKernel::sdpa:
    case AttentionKernel::flash:
    case AttentionKernel::fused_softmax: return flash(f, call, q, k, v);
  }
  return {};
}

}  // namespace membill
