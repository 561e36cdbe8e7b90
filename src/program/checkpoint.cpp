// torch.utils.checkpoint, both kinds (torch 2.15 torch/utils/checkpoint.py). The one that is not reentrant recomputes when the first
// saved tensor is unpacked: the nodes after the last that saved one have run by then.
#include <algorithm>
#include <memory>
#include <utility>

#include "program/recorder.h"

namespace membill {

struct Recorder::CheckpointCall {
  std::function<Tensor(Tensor)> body;
  std::optional<DType> autocast;
  std::int64_t saves = 0;  // tensors that autograd saves inside
  bool reentrant = false;
  bool offload = false;
  Tensor input;
  ItemId boundary = 0;     // item of an input that comes back from the host
  FirstGraph first;        // of the kind that is not reentrant
  std::vector<Held> held;  // by the graph of a reentrant recomputation
  Tensor returned;         // the input that came back from the host, which a reentrant function's variable holds
  std::vector<std::pair<AtenOperator, Tensor>> results;  // of operators that selective checkpointing keeps, in order
  Tensor* second = nullptr;                              // where the body leaves its second result
  Shape second_shape;
  DType second_type = DType::fp32;
  bool has_second = false;

  // The block's output again; its second result, where the reentrant kind has one, in `other`.
  Tensor recompute(Recorder& recorder, Parameter& leaf, Tensor& other);
  Gradients backward(Recorder& recorder, Gradients& gradients);
};

// The recomputation inside backward: with gradients, in the autocast state of the first forward. The non-reentrant kind stops at
// the last saved tensor.
Tensor Recorder::run_checkpoint_again(CheckpointCall& call, const Tensor& input) {
  grad_enabled_ = true;
  std::vector<CachedCopy> outer_copies = std::move(copies_);
  copies_.clear();
  if (call.autocast) begin_autocast(*call.autocast);
  if (!call.reentrant) {
    saving_ = Saving::stop_at_last;
    saves_ = call.saves;
    muted_ = saves_ == 0;
  }
  std::vector<Held> outer_held = std::move(held_);
  held_.clear();
  kept_results_ = &call.results;
  Tensor output = call.body(input);
  kept_results_ = nullptr;
  saving_ = Saving::keep;
  muted_ = false;
  if (call.reentrant) call.held = std::move(held_);
  held_ = std::move(outer_held);
  if (call.autocast) end_autocast();
  copies_ = std::move(outer_copies);
  grad_enabled_ = false;
  return output;
}

Tensor Recorder::checkpoint(Tensor input, CheckpointKind kind, const std::function<Tensor(Tensor)>& body,
                            Tensor* second) {
  if (!grad_enabled_) return body(std::move(input));
  auto call = std::make_shared<CheckpointCall>();
  call->body = body;
  call->autocast = autocast_;
  call->reentrant = kind.reentrant;
  call->offload = kind.offload;
  Tensor output;
  if (kind.reentrant) {
    grad_enabled_ = false;
    output = body(input);
    grad_enabled_ = true;
  } else {
    saving_ = Saving::count;
    saves_ = 0;
    saved_since_record_ = false;
    call->first.from = next_sequence_;
    kept_results_ = &call->results;
    output = body(input);
    kept_results_ = nullptr;
    saving_ = Saving::keep;
    call->saves = saves_;
    call->first.output = edge(output);
    call->first.input = edge(input);
  }
  call->second = second;
  call->has_second = second != nullptr && second->defined();
  if (call->has_second) {
    call->second_shape = second->shape();
    call->second_type = second->dtype();
  }
  const bool trains = kind.reentrant ? input.requires_grad() : output.requires_grad();
  if (!trains) return output;
  output = detach(output);
  Tensor kept_input = input;
  if (kind.offload) {
    offloaded_ += input.shape().elements() * Size(bytes_per_element(input.dtype())) * writer_.turns(writer_.unit());
    kept_input = placeholder(input.shape(), input.dtype());
    kept_input.body().requires_grad = input.requires_grad();
  }
  call->input = kept_input;
  call->boundary = items_.forward;
  record({&output}, {edge(input)},
         [call](Recorder& recorder, Gradients& gradients) { return call->backward(recorder, gradients); });
  return output;
}

Tensor Recorder::CheckpointCall::recompute(Recorder& recorder, Parameter& leaf, Tensor& other) {
  Tensor again = offload ? recorder.empty(input.shape(), input.dtype(), "layer input, back from the host", boundary)
                         : recorder.detach(input);
  again.body().requires_grad = input.requires_grad();
  again.body().leaf = input.requires_grad() ? &leaf : nullptr;
  if (offload && reentrant) returned = again;
  const ItemPair backward_items = recorder.items();
  Tensor output = recorder.run_checkpoint_again(*this, again);
  recorder.set_items(backward_items);
  if (has_second) other = std::move(*second);
  if (!reentrant) other.drop();
  return output;
}

Gradients Recorder::CheckpointCall::backward(Recorder& recorder, Gradients& gradients) {
  Parameter leaf;
  Tensor other;
  if (reentrant) {
    // torch.autograd.Function makes zeros of a missing gradient.
    const Tensor zeros =
        has_second ? recorder.empty(second_shape, second_type, "gradient of the attention weights, zeros") : Tensor();
    const Tensor output = recompute(recorder, leaf, other);
    recorder.backward_from(output, gradients[0], other, zeros);
    returned.drop();
  } else {
    recorder.backward_recomputing(first, leaf, std::move(gradients[0]),
                                  [&] { return recompute(recorder, leaf, other); });
  }
  held.clear();
  return Gradients{std::move(leaf.gradient)};
}

Recorder::OperatorResult Recorder::result_of(AtenOperator op, const Shape& shape, DType dtype, const char* label) {
  return result_of(op, shape, dtype, label, items_.forward);
}

Recorder::OperatorResult Recorder::result_of(AtenOperator op, const Shape& shape, DType dtype, const char* label,
                                             ItemId item) {
  if (kept_results_ == nullptr || muted_ || !kept_operators_.has(op)) return {empty(shape, dtype, label, item), true};
  if (saving_ == Saving::count) {
    OperatorResult result{empty(shape, dtype, label, item), true};
    kept_results_->emplace_back(op, detach(result.tensor));
    return result;
  }
  const auto kept = std::find_if(kept_results_->begin(), kept_results_->end(),
                                 [&](const auto& entry) { return entry.first == op && entry.second.defined(); });
  return {std::exchange(kept->second, Tensor()), false};
}

namespace {

// A detached copy of each input that gives its gradient to a leaf of its own.
struct Leaves {
  std::vector<Parameter> parameters;
  std::vector<Tensor> inputs;

  Leaves(Recorder& recorder, const std::vector<Tensor>& kept) : parameters(kept.size()) {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      Tensor again = recorder.detach(kept[i]);
      again.body().requires_grad = kept[i].requires_grad();
      again.body().leaf = again.requires_grad() ? &parameters[i] : nullptr;
      inputs.push_back(std::move(again));
    }
  }

  Gradients gradients() {
    Gradients result;
    for (Parameter& parameter : parameters) result.push_back(std::move(parameter.gradient));
    return result;
  }
};

}  // namespace

Tensor Recorder::checkpoint_parts(std::vector<Tensor> inputs,
                                  const std::function<Tensor(const std::vector<Tensor>&)>& body) {
  if (!grad_enabled_) return body(inputs);
  grad_enabled_ = false;
  Tensor output = detach(body(inputs));
  grad_enabled_ = true;
  std::vector<Edge> edges;
  edges.reserve(inputs.size());
  for (const Tensor& input : inputs) edges.push_back(edge(input));
  if (std::none_of(edges.begin(), edges.end(), [](const Edge& e) { return e.valid(); })) return output;
  record({&output}, std::move(edges), [kept = std::move(inputs), body](Recorder& recorder, Gradients& gradients) {
    Leaves leaves(recorder, kept);
    const ItemPair backward_items = recorder.items();
    recorder.set_grad_enabled(true);
    const Tensor again = body(leaves.inputs);
    recorder.set_grad_enabled(false);
    recorder.set_items(backward_items);
    recorder.backward_from(again, gradients[0]);
    return leaves.gradients();
  });
  return output;
}

void Recorder::hold_in_graph(const Tensor& x) { held_.push_back({writer_.unit(), detach(x)}); }

void Recorder::drop_graph() { release_in_units(held_); }

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
