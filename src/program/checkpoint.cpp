// torch.utils.checkpoint, both kinds (torch 2.15 torch/utils/checkpoint.py). The one that is not reentrant recomputes when the first
// saved tensor is unpacked: the nodes after the last that saved one have run by then.
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <unordered_set>
#include <utility>

#include "program/leaves.h"
#include "program/recorder.h"
#include "program/saved_on_host.h"

namespace membill {

struct Recorder::CheckpointCall {
  std::function<Tensor(Tensor)> body;
  std::optional<DType> autocast;
  std::vector<CachedCopy> copies;  // of weights, where autocast is on for the whole backward (torch.amp.custom_bwd)
  std::int64_t saves = 0;          // tensors that autograd saves inside
  CheckpointKind kind;
  const char* back = nullptr;     // names an input whose data comes back; null: it has stayed
  std::vector<Tensor> inputs;     // the block's, then those of its variables
  CheckpointVariables variables;  // those that are inputs, in their order, and those that are outputs
  Gradients shapes;               // of the outputs: placeholders
  ItemId boundary = 0;            // item of an input that comes back
  FirstGraph first;               // of the kind that is not reentrant
  std::vector<Held> held;         // by the graph of a reentrant recomputation
  Tensor returned;                // the input that came back, which a reentrant function's variable holds
  std::unique_ptr<KeptInput> kept;
  std::vector<PackedTensor> packed;                      // the input, where a saved-tensor hook has taken it
  std::vector<std::pair<AtenOperator, Tensor>> results;  // of operators that selective checkpointing keeps, in order

  // Runs the body, at first or again, and finds its outputs.
  void run_first(Recorder& recorder, Tensor& output);
  void choose_outputs(const Recorder& recorder, const Tensor& output);
  // The block's outputs again.
  std::vector<Tensor> recompute(Recorder& recorder, std::vector<Parameter>& leaves);
  [[nodiscard]] Tensor pack_input(Recorder& recorder);
  std::vector<Tensor> inputs_again(Recorder& recorder, std::vector<Parameter>& leaves);
  Gradients backward(Recorder& recorder, Gradients& gradients);
  // What gets a gradient inside of the block, once for each use.
  [[nodiscard]] std::vector<Parameter*> leaves() const;
};

// The recomputation inside backward: with gradients, in the autocast state of the first forward. The non-reentrant kind stops at
// the last saved tensor.
Tensor Recorder::run_checkpoint_again(CheckpointCall& call, const Tensor& input) {
  grad_enabled_ = true;
  std::vector<CachedCopy> outer_copies = std::move(copies_);
  copies_.clear();
  if (call.autocast) begin_autocast(*call.autocast);
  if (!call.kind.reentrant) {
    saving_ = Saving::stop_at_last;
    saves_ = call.kind.early_stop ? call.saves : std::numeric_limits<std::int64_t>::max();
    muted_ = saves_ == 0;
  }
  std::vector<Held> outer_held = std::move(held_);
  held_.clear();
  kept_results_ = &call.results;
  results_counted_ = {};
  Tensor output = call.body(input);
  kept_results_ = nullptr;
  saving_ = Saving::keep;
  muted_ = false;
  if (call.kind.reentrant) call.held = std::move(held_);
  held_ = std::move(outer_held);
  if (call.kind.reentrant && call.kind.offload) call.copies = std::exchange(copies_, {});
  if (call.autocast) end_autocast();
  copies_ = std::move(outer_copies);
  grad_enabled_ = false;
  return output;
}

void Recorder::CheckpointCall::run_first(Recorder& r, Tensor& output) {
  const Tensor& input = inputs.front();
  if (kind.reentrant) {
    r.grad_enabled_ = false;
    output = body(input);
    r.grad_enabled_ = true;
    return;
  }
  r.saving_ = Saving::count;
  r.saves_ = 0;
  r.saved_since_record_ = false;
  first.from = r.next_sequence_;
  r.kept_results_ = &results;
  r.results_counted_ = {};
  output = body(input);
  r.kept_results_ = nullptr;
  r.saving_ = Saving::keep;
  saves = r.saves_;
}

// Variables that the block has not set, or set to what needs no gradient or is no result of its own, are outputs of the reentrant
// kind only, whose function makes results of all that it returns.
void Recorder::CheckpointCall::choose_outputs(const Recorder& r, const Tensor& output) {
  const auto is_output = [&](const Tensor* variable) {
    if (!variable->defined() || kind.reentrant) return variable->defined();
    const bool passed = std::any_of(inputs.begin(), inputs.end(),
                                    [&](const Tensor& input) { return input.handle() == variable->handle(); });
    return !passed && variable->requires_grad() && variable->body().leaf == nullptr;
  };
  std::vector<Tensor*>& outputs = variables.outputs;
  outputs.erase(std::remove_if(outputs.begin(), outputs.end(), std::not_fn(is_output)), outputs.end());
  shapes.push_back(r.placeholder(output.shape(), output.dtype()));
  first.outputs.push_back(r.edge(output));
  for (const Tensor* variable : outputs) {
    shapes.push_back(r.placeholder(variable->shape(), variable->dtype()));
    first.outputs.push_back(r.edge(*variable));
  }
}

Tensor Recorder::checkpoint(Tensor input, const CheckpointKind& kind, const std::function<Tensor(Tensor)>& body,
                            const CheckpointVariables& variables) {
  if (!grad_enabled_) return body(std::move(input));
  auto call = std::make_shared<CheckpointCall>();
  call->body = body;
  call->autocast = autocast_;
  call->kind = kind;
  call->inputs.push_back(std::move(input));
  for (Tensor* variable : variables.inputs) {
    if (!variable->defined()) continue;
    call->variables.inputs.push_back(variable);
    call->inputs.push_back(*variable);
  }
  call->variables.outputs = variables.outputs;
  if (kind.offload) call->back = "layer input, back from the host";
  if (kind.parts > 1) call->back = "layer input, gathered";
  if (kind.keeper != nullptr) call->kept = kind.keeper->keep(*this, call->inputs.front());
  Tensor saved_input = call->pack_input(*this);
  Tensor output;
  call->run_first(*this, output);
  if (call->kept) call->kept->leave(*this, call->inputs.front());
  const auto needs_gradient = [](const Tensor& x) { return x.requires_grad(); };
  const bool trains =
      kind.reentrant ? std::any_of(call->inputs.begin(), call->inputs.end(), needs_gradient) : output.requires_grad();
  if (!trains) return output;
  call->choose_outputs(*this, output);
  for (const Tensor& x : call->inputs) call->first.inputs.push_back(edge(x));
  output = detach(output);
  std::vector<Tensor*> outputs{&output};
  for (Tensor* variable : call->variables.outputs) {
    *variable = detach(*variable);
    outputs.push_back(variable);
  }
  Tensor& kept = call->inputs.front();
  if (saved_input.defined()) kept = std::move(saved_input);
  if (kind.offload) {
    add_offloaded(kept.shape().elements() * Size(bytes_per_element(kept.dtype())));
    Tensor on_host = placeholder(kept.shape(), kept.dtype());
    on_host.body().requires_grad = kept.requires_grad();
    kept = std::move(on_host);
  } else if (kind.parts > 1) {
    const Shape part{kept.rows(), symbols_.ceil_div(kept.width(), Size(kind.parts))};
    kept.body().storage = empty(part, kept.dtype(), "layer input, this rank's part").body().storage;
  }
  call->boundary = items_.forward;
  std::vector<Edge> edges = call->first.inputs;
  record(outputs, std::move(edges),
         [call](Recorder& recorder, Gradients& gradients) { return call->backward(recorder, gradients); });
  if (!kind.reentrant) output.body().node->leaves_inside = call->leaves();
  return output;
}

// The kind that is not reentrant saves its inputs as a node does, before the block runs.
Tensor Recorder::CheckpointCall::pack_input(Recorder& r) {
  if (r.saved_on_host_ == nullptr || kind.reentrant) return {};
  const Tensor& input = inputs.front();
  Tensor result = r.saved_on_host_->pack(input, false);
  packed = r.saved_on_host_->take_packed();
  if (packed.empty()) return {};
  result.body().requires_grad = input.requires_grad();
  return result;
}

std::vector<Parameter*> Recorder::CheckpointCall::leaves() const {
  std::vector<Parameter*> found;
  std::vector<Node*> stack;
  std::unordered_set<Node*> seen;
  const auto is_input = [&](const Edge& edge) {
    return std::any_of(first.inputs.begin(), first.inputs.end(), [&](const Edge& input) {
      return edge.node == input.node && edge.input == input.input && edge.leaf == input.leaf;
    });
  };
  const auto follow = [&](const Edge& edge) {
    if (is_input(edge)) return;
    if (edge.leaf != nullptr) found.push_back(edge.leaf);
    if (edge.node != nullptr && edge.node->sequence >= first.from && seen.insert(edge.node.get()).second)
      stack.push_back(edge.node.get());
  };
  for (const Edge& output : first.outputs) follow(output);
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    found.insert(found.end(), node->leaves_inside.begin(), node->leaves_inside.end());
    for (const Edge& edge : node->edges) follow(edge);
  }
  return found;
}

std::vector<Tensor> Recorder::CheckpointCall::inputs_again(Recorder& r, std::vector<Parameter>& leaves) {
  std::vector<Tensor> again;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensor& input = inputs[i];
    const bool comes_back = i == 0 && back != nullptr;
    again.push_back(comes_back ? r.empty(input.shape(), input.dtype(), back, boundary) : r.detach(input));
    again.back().body().requires_grad = input.requires_grad();
    if (i == 0 && !packed.empty()) again.back().body().storage = r.saved_on_host_->bring_back(packed);
    if (i == 0 && kept) again.back().body().storage = input.body().storage = kept->bring_back(r);
    if (comes_back && input.body().storage != nullptr) input.body().storage = again.back().body().storage;
    again.back().body().leaf = input.requires_grad() ? &leaves[i] : nullptr;
    const Parameter* own = input.requires_grad() ? input.body().leaf : nullptr;
    leaves[i].trainable = kind.reentrant || (own != nullptr && own->trainable);  // a leaf for autocast, too
  }
  return again;
}

std::vector<Tensor> Recorder::CheckpointCall::recompute(Recorder& recorder, std::vector<Parameter>& leaves) {
  std::vector<Tensor> again = inputs_again(recorder, leaves);
  if ((back != nullptr && kind.reentrant) || kept) returned = again.front();
  for (std::size_t i = 0; i < variables.inputs.size(); ++i) *variables.inputs[i] = std::move(again[i + 1]);
  const ItemPair backward_items = recorder.items();
  std::vector<Tensor> outputs{recorder.run_checkpoint_again(*this, again.front())};
  recorder.set_items(backward_items);
  for (Tensor* variable : variables.outputs) outputs.push_back(std::exchange(*variable, Tensor()));
  for (Tensor* variable : variables.inputs) variable->drop();
  return outputs;
}

Gradients Recorder::CheckpointCall::backward(Recorder& recorder, Gradients& gradients) {
  std::vector<Parameter> leaves(inputs.size());
  if (kind.reentrant) {
    // torch.autograd.Function makes zeros of a missing gradient.
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (!gradients[i].defined())
        gradients[i] = recorder.empty(shapes[i].shape(), shapes[i].dtype(), "gradient of an unused output, zeros");
    recorder.backward_from(recompute(recorder, leaves), gradients);
    copies.clear();
    if (kind.finished)
      kind.finished(recorder.detach(returned.defined() ? returned : inputs.front()),
                    recorder.detach(leaves.front().gradient));
    returned.drop();
  } else {
    recorder.backward_recomputing(first, leaves, gradients, [&] { return recompute(recorder, leaves); });
  }
  held.clear();
  Gradients result;
  for (Parameter& leaf : leaves) result.push_back(std::move(leaf.gradient));
  return result;
}

Recorder::OperatorResult Recorder::result_of(AtenOperator op, const Shape& shape, DType dtype, const char* label) {
  return result_of(op, shape, dtype, label, items_.forward);
}

Recorder::OperatorResult Recorder::result_of(AtenOperator op, const Shape& shape, DType dtype, const char* label,
                                             ItemId item) {
  const bool keeps = kept_results_ != nullptr && !muted_ && keeps_results_ && kept_operators_.has(op);
  if (!keeps || (kept_operators_.every_second(op) && ++results_counted_.at(static_cast<std::size_t>(op)) % 2 == 0))
    return {empty(shape, dtype, label, item), true};
  if (saving_ == Saving::count) {
    OperatorResult result{empty(shape, dtype, label, item), true};
    kept_results_->emplace_back(op, detach(result.tensor));
    return result;
  }
  const auto kept = std::find_if(kept_results_->begin(), kept_results_->end(),
                                 [&](const auto& entry) { return entry.first == op && entry.second.defined(); });
  return {std::exchange(kept->second, Tensor()), false};
}

Tensor Recorder::checkpoint_parts(std::vector<Tensor> inputs,
                                  const std::function<Tensor(const std::vector<Tensor>&)>& body,
                                  const std::function<void(std::vector<Tensor>)>& finished) {
  if (!grad_enabled_) return body(inputs);
  grad_enabled_ = false;
  Tensor output = detach(body(inputs));
  grad_enabled_ = true;
  std::vector<Edge> edges;
  edges.reserve(inputs.size());
  for (const Tensor& input : inputs) edges.push_back(edge(input));
  if (std::none_of(edges.begin(), edges.end(), [](const Edge& e) { return e.valid(); })) return output;
  const auto backward = [kept = std::move(inputs), body, finished](Recorder& recorder, Gradients& gradients) {
    Leaves leaves(recorder, kept);
    const ItemPair backward_items = recorder.items();
    recorder.set_grad_enabled(true);
    const Tensor again = body(leaves.inputs);
    recorder.set_grad_enabled(false);
    recorder.set_items(backward_items);
    recorder.backward_from({again}, gradients);
    Gradients made = leaves.gradients();
    if (!finished) return made;
    std::vector<Tensor> ends;
    for (const Tensor& input : kept) ends.push_back(recorder.detach(input));
    for (const Tensor& gradient : made)
      if (gradient.defined()) ends.push_back(recorder.detach(gradient));
    finished(std::move(ends));
    return made;
  };
  record({&output}, std::move(edges), backward);
  return output;
}

void Recorder::hold_in_graph(const Tensor& x) { held_.push_back({writer_.unit(), detach(x)}); }

void Recorder::drop_graph() {
  release_in_units(held_);
  drop_shared();
}

void Recorder::hold_shared(int key, const std::vector<Tensor>& tensors) {
  std::vector<Held> entries;
  entries.reserve(tensors.size() + history_.size());
  for (const Tensor& tensor : tensors) entries.push_back({writer_.unit(), detach(tensor)});
  for (Tensor& tensor : history_) entries.push_back({writer_.unit(), std::move(tensor)});
  history_.clear();
  shared_[key] = std::move(entries);
}

void Recorder::hold_with_shared(int key, const std::vector<Tensor>& tensors) {
  std::vector<Held>& entries = shared_[key];
  for (const Tensor& tensor : tensors) entries.push_back({writer_.unit(), detach(tensor)});
}

void Recorder::drop_shared() {
  for (auto& [key, entries] : shared_) release_in_units(entries);
  shared_.clear();
}

void Recorder::leave_graph() { left_ = std::exchange(held_, {}); }

void Recorder::drop_left_graph() { release_in_units(left_); }

void Recorder::release_in_units(std::vector<Held>& entries) {
  const bool outside = writer_.unit() == TraceWriter::kNoUnit;
  while (!entries.empty()) {
    if (outside) writer_.visit(entries.back().unit, false);
    entries.pop_back();
  }
  if (outside) writer_.visit(TraceWriter::kNoUnit, false);
}

}  // namespace membill
