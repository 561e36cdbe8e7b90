#include "blocks/megatron_next_token.h"

#include <stdexcept>
#include <utility>

#include "base/engine_keys.h"
#include "blocks/megatron_norm.h"
#include "blocks/megatron_parallel.h"

namespace membill {
namespace {

constexpr std::string_view kSection = "mtp.";

struct NextTokenLayer {
  Modules& modules;
  const LayerKind& kind;
  const KindDims& dims;
};

NextTokenLayer layer_of(const Forward& f, const Modules& outer, std::int64_t number) {
  const std::string name = next_token_section(number);
  for (std::size_t section = 0; section < f.model.sections.size(); ++section)
    if (f.model.sections[section].name == name)
      return {*outer.find_part(name), f.model.sections[section].kinds.front(), f.dims.kinds[section].front()};
  throw std::logic_error("the census has no section " + name);
}

// eh_proj's columns of all ranks side by side; under sequence parallelism this rank's rows of them, a view.
Tensor gathered_columns(Forward& f, const Tensor& x) {
  if (f.plan.parallel.tp == 1) return x;
  Recorder& r = f.r;
  const Shape whole{x.rows(), f.dims.h};
  Tensor out;
  {
    const Tensor parts = r.empty(whole, x.dtype(), "columns of all ranks");
    out = r.empty(whole, x.dtype(), "columns of all ranks, side by side");
  }
  Tensor rows = r.view(out, {stream_rows(f), f.dims.h});
  if (!r.needs_node({&x})) return rows;
  r.record({&rows}, {r.edge(x)},
           [from = x.shape(), whole, type = x.dtype(), sp = f.plan.parallel.sp](Recorder& rec, Gradients& g) {
             const Tensor all = sp ? rec.empty(whole, type, "gradient of all rows") : std::move(g[0]);
             return Gradients{rec.empty(from, type, "gradient of this rank's columns")};
           });
  return rows;
}

Tensor run_next_token_layer(Forward& f, const Architecture& architecture, const Modules& outer,
                            const NextTokenLayer& layer, const std::vector<Tensor>& inputs) {
  Recorder& r = f.r;
  Tensor both;
  {
    const Tensor embedded = megatron_norm(f, layer.modules.at("enorm"), inputs[1]);
    const Tensor states = megatron_norm(f, layer.modules.at("hnorm"), inputs[0]);
    both = r.concatenate(embedded, states, {states.rows(), states.width() + embedded.width()});
  }
  Tensor hidden = gathered_columns(f, column_linear(f, layer.modules.at("eh_proj").weight, both));
  both.drop();
  const LayerInputs shared = architecture.prepare(f, outer, hidden);
  hidden = architecture.layer(f, {layer.modules, layer.kind, layer.dims}, std::move(hidden), shared);
  return megatron_norm(f, layer.modules.at("final_layernorm"), hidden);
}

// MTPLossAutoScaler: the loss hangs on the states, with a gradient of ones.
Tensor with_loss(Recorder& r, const Tensor& hidden, const Tensor& loss) {
  Tensor out = r.view(r.detach(hidden), hidden.shape());
  if (!r.needs_node({&hidden, &loss})) return out;
  const Tensor kept = r.saved(loss);
  r.record({&out}, {r.edge(hidden), r.edge(loss)}, [kept](Recorder& rec, Gradients& g) {
    Gradients result(2);
    const Tensor ones = rec.empty(kept.shape(), kept.dtype(), "ones");
    result[0] = std::move(g[0]);
    result[1] = rec.empty(kept.shape(), kept.dtype(), "gradient of a further loss");
    return result;
  });
  return out;
}

}  // namespace

std::int64_t next_token_layers(const TrainingPlan& plan) {
  return plan.engine == Engine::megatron ? static_cast<std::int64_t>(engine_number(plan, "mtp_num_layers", 0)) : 0;
}

std::string next_token_section(std::int64_t layer) { return std::string(kSection) + std::to_string(layer); }

bool is_next_token_part(const Section& section) { return section.name.starts_with(kSection); }

std::vector<Tensor> next_token_states(Forward& f, const Architecture& architecture, const Modules& outer,
                                      Tensor hidden) {
  Recorder& r = f.r;
  const Shape one = hidden.shape();
  const std::int64_t count = next_token_layers(f.plan);
  std::vector<Tensor> states{hidden};
  const bool again = f.plan.checkpointing.mode == Checkpointing::full && f.plan.checkpointing.method != "block";
  Tensor ids, places;
  for (std::int64_t number = 0; number < count; ++number) {
    ids = r.empty({f.dims.N, Size(1)}, DType::int64, "token ids, shifted");
    places = r.empty({f.dims.N, Size(1)}, DType::int64, "positions, shifted");
    std::vector<Tensor> inputs{std::move(hidden), architecture.embed(f, outer, ids)};
    const ItemScope scope(r, f.items.block);
    const NextTokenLayer layer = layer_of(f, outer, number);
    const auto body = [&f, &architecture, &outer, layer](const std::vector<Tensor>& parts) {
      return run_next_token_layer(f, architecture, outer, layer, parts);
    };
    // The layer's router holds the recomputed graph until its next forward.
    const auto held = [router = layer.modules.find("mlp.router")](std::vector<Tensor> ends) {
      if (router != nullptr) router->remains = std::move(ends);
    };
    hidden = again ? r.checkpoint_parts(std::move(inputs), body, held) : body(inputs);
    states.push_back(hidden);
  }
  hidden.drop();
  const Tensor joined = r.join(states, {one.rows * Size(count + 1), one.width});
  states.clear();
  return r.split(joined, std::vector<Shape>(static_cast<std::size_t>(count + 1), one));
}

Tensor with_next_token_losses(Forward& f, Parameter& head, const std::vector<Tensor>& states, const Tensor& labels,
                              Tensor& kept_logits) {
  Recorder& r = f.r;
  const Shape column{f.dims.N, Size(1)};
  Tensor hidden = states.front();
  Tensor shifted = r.empty(column, DType::int64, "labels, copied"), mask = r.empty(column, DType::int64, "loss mask");
  for (std::size_t at = 1; at < states.size(); ++at) {
    kept_logits = column_linear(f, head, states[at]);
    shifted = r.empty(column, DType::int64, "labels, shifted");
    mask = r.empty(column, DType::int64, "loss mask, shifted");
    Tensor loss = r.mul(parallel_cross_entropy(f, kept_logits, f.one_row() ? shifted : labels), mask, "masked losses");
    hidden = with_loss(r, hidden, r.mul_scalar(r.mul_scalar(std::move(loss)), "loss by tokens"));
  }
  return hidden;
}

}  // namespace membill
