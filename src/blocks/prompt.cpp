#include "blocks/prompt.h"

namespace membill {
namespace {

// tuners/p_tuning/model.py PromptEncoder.forward: a linear, and two more behind a relu each.
Tensor reparametrised(Forward& f, PromptEncoder& encoder, Tensor tokens) {
  Recorder& r = f.r;
  bool first = true;
  for (const auto& linear : encoder.linears) {
    if (!first) tokens = r.relu(std::move(tokens));
    first = false;
    tokens = r.linear(std::move(tokens), linear->weight, &linear->bias);
  }
  return tokens;
}

}  // namespace

Tensor with_prompt(Forward& f, const Tensor& ids, const Tensor& embedded) {
  Recorder& r = f.r;
  PromptEncoder& encoder = *f.prompt;
  const Size rows = f.dims.b * f.dims.t;
  Tensor prefix = r.empty({rows, Size(1)}, ids.dtype(), "labels of the virtual tokens");
  f.labels = r.empty({f.dims.N, Size(1)}, ids.dtype(), "labels with those of the virtual tokens");
  f.caller_locals.push_back(std::move(prefix));
  Tensor prompts;
  {
    const Tensor tokens = r.empty({f.dims.t, Size(1)}, DType::int64, "virtual tokens");
    prompts = r.embedding(tokens, encoder.embedding);
    prompts = reparametrised(f, encoder, std::move(prompts));
  }
  prompts = r.contiguous_copy(std::move(prompts), {rows, embedded.width()}, "virtual tokens of every row");
  prompts = r.cast(std::move(prompts), embedded.dtype());
  f.caller_locals.push_back(prompts);
  Tensor all = r.concatenate(prompts, embedded, {f.dims.N, embedded.width()});
  f.caller_locals.push_back(all);
  return all;
}

}  // namespace membill
