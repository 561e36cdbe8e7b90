// torch.utils.checkpoint, both kinds (torch 2.15 torch/utils/checkpoint.py). The one that is not reentrant recomputes when the first
// saved tensor is unpacked: the nodes after the last that saved one have run by then.
#include <memory>

#include "program/recorder.h"

namespace membill {

struct Recorder::CheckpointCall {
  std::function<Tensor(Tensor)> body;
  std::optional<DType> autocast;
  std::int64_t saves = 0;  // tensors that autograd saves inside
  bool reentrant = false;
  bool offload = false;
  Tensor input;
  ItemId boundary = 0;       // item of an input that comes back from the host
  FirstGraph first;          // of the kind that is not reentrant
  std::vector<Held> held;    // by the graph of a reentrant recomputation
  Tensor* second = nullptr;  // where the body leaves its second result
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
  Tensor output = call.body(input);
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
    output = body(input);
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
  if (reentrant || offload) {
    // torch.autograd.Function makes zeros of a missing gradient.
    const Tensor zeros = reentrant && has_second
                             ? recorder.empty(second_shape, second_type, "gradient of the attention weights, zeros")
                             : Tensor();
    const Tensor output = recompute(recorder, leaf, other);
    recorder.backward_from(output, reentrant ? gradients[0] : std::move(gradients[0]), other, zeros);
  } else {
    recorder.backward_recomputing(first, leaf, std::move(gradients[0]),
                                  [&] { return recompute(recorder, leaf, other); });
  }
  held.clear();
  return Gradients{std::move(leaf.gradient)};
}

void Recorder::hold_in_graph(const Tensor& x) { held_.push_back({writer_.unit(), detach(x)}); }

void Recorder::drop_graph() { release_in_units(held_); }

void Recorder::release_in_units(std::vector<Held>& entries) {
  const bool outside = writer_.unit() == TraceWriter::kNoUnit;
  while (!entries.empty()) {
    if (outside) writer_.visit(entries.back().unit, false);
    entries.pop_back();
  }
  if (outside) writer_.visit(TraceWriter::kNoUnit, false);
}

}  // namespace membill
