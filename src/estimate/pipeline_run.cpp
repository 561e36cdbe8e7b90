#include "estimate/pipeline_run.h"

#include <algorithm>
#include <vector>

#include "blocks/megatron_parallel.h"
#include "estimate/engines/placement.h"

namespace membill {
namespace {

struct LayerPlace {
  UnitModules* unit;
  std::size_t layer;
};

Tensor run_layers(Forward& f, const Architecture& architecture, const std::vector<LayerPlace>& layers,
                  const LayerInputs& inputs, Tensor hidden) {
  const ItemScope scope(f.r, f.items.block);
  for (const LayerPlace& place : layers) {
    UnitModules& unit = *place.unit;
    const auto kind = static_cast<std::size_t>(unit.kinds[place.layer]);
    const LayerContext context{unit.layers[place.layer], f.model.sections[unit.section].kinds[kind],
                               f.dims.kinds[unit.section][kind]};
    hidden = architecture.layer(f, context, std::move(hidden), inputs);
  }
  return hidden;
}

std::vector<LayerPlace> layers_of(ModelModules& modules, std::size_t section) {
  std::vector<LayerPlace> layers;
  for (UnitModules& unit : modules.units)
    for (std::size_t i = 0; unit.section == section && i < unit.layers.size(); ++i) layers.push_back({&unit, i});
  return layers;
}

// Layers that are recomputed together (uniform), and how many are recomputed at all (block).
struct Recompute {
  std::size_t group = 1, layers = 0;
};
Recompute recompute_of(const CheckpointPlan& plan, std::size_t layers) {
  if (plan.mode != Checkpointing::full) return {};
  const auto given = static_cast<std::size_t>(plan.layers.value_or(1));
  if (plan.method == "block") return {1, std::min(given, layers)};
  return {given, layers};
}

std::vector<Modules*> modules_of(const std::vector<LayerPlace>& layers) {
  std::vector<Modules*> modules;
  modules.reserve(layers.size());
  for (const LayerPlace& place : layers) modules.push_back(&place.unit->layers[place.layer]);
  return modules;
}

bool is_stack(const Section& section) { return !section.layer_kinds.empty(); }

}  // namespace

// transformer_block.py _checkpointed_forward.
Tensor run_written_out(Forward& f, const Architecture& architecture, ModelModules& modules, std::size_t section,
                       Tensor hidden) {
  const std::vector<LayerPlace> layers = layers_of(modules, section);
  const LayerInputs inputs = architecture.prepare(f, modules.outer, hidden);
  const Recompute recompute = recompute_of(f.plan.checkpointing, layers.size());
  for (std::size_t at = 0; at < layers.size();) {
    const std::size_t end = at < recompute.layers ? std::min(at + recompute.group, layers.size()) : at + 1;
    const std::vector<LayerPlace> group(layers.begin() + static_cast<std::ptrdiff_t>(at),
                                        layers.begin() + static_cast<std::ptrdiff_t>(end));
    const auto body = [&f, &architecture, group, inputs](Tensor x) {
      return run_layers(f, architecture, group, inputs, std::move(x));
    };
    const ItemScope scope(f.r, f.items.boundary);
    hidden = at < recompute.layers ? f.r.checkpoint(hidden, layer_checkpoint(f, architecture, modules_of(group)), body)
                                   : body(std::move(hidden));
    at = end;
  }
  return hidden;
}

void PipelineRun::step() {
  const std::vector<PipelineTurn> order = pipeline_order(place_);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool pair = is_interleaved() && i + 1 < order.size() && order[i].forward && !order[i + 1].forward;
    if (pair) receive_gradient(order[i + 1]);
    order[i].forward ? forward(order[i]) : backward(order[i]);
    if (order[i].forward && !pair) send(order[i]);
    if (is_interleaved() && !order[i].forward && i > 0 && order[i - 1].forward) send(order[i - 1]);
  }
  for (Tensor* last : {&output_gradient_, &input_gradient_}) last->drop();
  drop_finished();
}

Tensor PipelineRun::received(const char* label) {
  return f_.r.empty({stream_rows(f_), f_.dims.h}, f_.stream, label, f_.r.writer().item("buffers.pipeline"));
}

void PipelineRun::forward(const PipelineTurn& turn) {
  Recorder& r = f_.r;
  r.writer().moment("forward");
  auto pass = std::make_unique<Pass>();
  if (!is_first(turn.chunk)) {
    pass->input = received("output of the stage before");
    held_.erase(turn.chunk);
    pass->input.body().requires_grad = true;
    pass->input.body().leaf = &pass->leaf;
  }
  if (is_first(turn.chunk) || is_last(turn.chunk))
    pass->ids = r.empty({f_.dims.N, Size(1)}, DType::int64, "token ids", r.writer().item("activations.inputs"));
  pass->output = run_chunk(*pass, turn.chunk);
  drop_finished();
  passes_[{turn.chunk, turn.micro_batch}] = std::move(pass);
}

Tensor PipelineRun::run_chunk(Pass& pass, std::int64_t chunk) {
  Recorder& r = f_.r;
  const auto stack = std::find_if(f_.model.sections.begin(), f_.model.sections.end(), is_stack) + chunk;
  const auto section = static_cast<std::size_t>(stack - f_.model.sections.begin());
  r.set_items(f_.items.embedding);
  f_.input_leaf = f_.plan.method == Method::lora ? &pass.leaf : nullptr;
  Tensor hidden = is_first(chunk) ? architecture_.embed(f_, modules_.outer, pass.ids) : pass.input;
  const Tensor embedded = is_first(chunk) ? r.detach(hidden) : Tensor();  // a variable of the model's forward
  hidden = run_written_out(f_, architecture_, modules_, section, std::move(hidden));
  if (!is_last(chunk)) return hidden;
  r.set_items(f_.items.head);
  hidden = architecture_.finish(f_, modules_.outer, hidden);
  r.writer().moment("loss");
  r.set_items(f_.items.loss_logits);
  Tensor loss = architecture_.loss(f_, modules_.outer, std::move(hidden), pass.ids, nullptr);
  return place_.micro_batches > 1 ? r.mul_scalar(loss, "loss over micro-batches") : loss;
}

void PipelineRun::receive_gradient(const PipelineTurn& turn) {
  if (is_last(turn.chunk)) return;
  Tensor gradient = received("gradient of the next stage");
  if (!is_interleaved()) output_gradient_ = gradient;
  pass_of(turn).output_gradient = std::move(gradient);
}

// deallocate_output_tensor: the graph stays, the data goes once they are sent.
void PipelineRun::send(const PipelineTurn& turn) {
  if (is_last(turn.chunk) || !engine_flag(f_.plan, "pipeline_deallocate", true)) return;
  const auto at = passes_.find({turn.chunk, turn.micro_batch});
  if (at == passes_.end()) return;  // its own backward has followed
  Tensor& output = at->second->output;
  Tensor sent = f_.r.placeholder(output.shape(), output.dtype());
  sent.body().requires_grad = output.requires_grad();
  sent.body().node = output.body().node;
  sent.body().output = output.body().output;
  output = std::move(sent);
}

// AccumulateGrad takes what nobody else holds, and copies what a router holds of a recomputed layer.
Tensor PipelineRun::accumulated(Tensor gradient) {
  if (!gradient.defined() || gradient.sole_owner()) return gradient;
  return f_.r.empty(gradient.shape(), gradient.dtype(), "gradient for the stage before", f_.items.gradients);
}

void PipelineRun::backward(const PipelineTurn& turn) {
  Recorder& r = f_.r;
  r.writer().moment("backward");
  drop_finished();
  if (!pass_of(turn).output_gradient.defined()) receive_gradient(turn);
  const auto at = passes_.find({turn.chunk, turn.micro_batch});
  const std::unique_ptr<Pass> pass = std::move(at->second);
  passes_.erase(at);
  if (is_last(turn.chunk)) {
    r.set_items({f_.items.loss_logits.backward, f_.items.loss_logits.backward});
    r.backward(std::move(pass->output));
  } else {
    r.set_items({f_.items.block.backward, f_.items.block.backward});
    r.backward_from({std::exchange(pass->output, {})}, {pass->output_gradient});
  }
  r.drop_graph();
  const bool first = is_first(turn.chunk);
  input_gradient_ = first ? Tensor() : accumulated(std::move(pass->leaf.gradient));
  // megatron-core 0.16 transformer_block.py set_input_tensor
  if (!first && turn.micro_batch == place_.micro_batches - 1) held_[turn.chunk] = {pass->input, input_gradient_};
  if (is_interleaved()) return;
  finished_input_ = first ? std::move(pass->leaf.value) : std::move(pass->input);
  if (first) finished_gradient_ = std::move(pass->leaf.gradient);
}

}  // namespace membill
