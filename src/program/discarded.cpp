#include "program/discarded.h"

#include <algorithm>
#include <utility>

#include "program/leaves.h"

namespace membill {

struct DiscardedResults::State {
  Body body;
  std::vector<Tensor> inputs, again;
  std::vector<std::shared_ptr<Storage>> results;
  std::unique_ptr<Leaves> leaves;

  // The new results are copied to where the nodes expect them, and stay beside.
  void make_again(Recorder& r) {
    const ItemPair items = r.items();
    leaves = std::make_unique<Leaves>(r, inputs);
    r.set_grad_enabled(true);
    again = body(leaves->inputs);
    r.set_grad_enabled(false);
    r.set_items(items);
    for (std::size_t i = 0; i < results.size(); ++i)
      results[i]->take_again(again[i].shape().elements() * Size(bytes_per_element(again[i].dtype())),
                             "result, made again");
    results.clear();
  }

  Gradients backward(Recorder& r, const Gradients& gradients) {
    r.backward_from(again, gradients);
    again.clear();
    inputs.clear();
    return std::exchange(leaves, nullptr)->gradients();
  }
};

std::vector<Tensor> DiscardedResults::run(Recorder& r, std::vector<Tensor> inputs, Body body) {
  std::vector<Edge> edges;
  if (r.grad_enabled())
    for (const Tensor& input : inputs) edges.push_back(r.edge(input));
  if (std::none_of(edges.begin(), edges.end(), [](const Edge& edge) { return edge.valid(); })) return body(inputs);
  state_ = std::make_shared<State>();
  r.set_grad_enabled(false);
  std::vector<Tensor> results = body(inputs);
  r.set_grad_enabled(true);
  std::vector<Tensor*> outputs;
  for (Tensor& result : results) {
    result = r.detach(result);
    outputs.push_back(&result);
    state_->results.push_back(result.body().storage);
  }
  state_->body = std::move(body);
  state_->inputs = std::move(inputs);
  r.record(outputs, std::move(edges),
           [state = state_](Recorder& recorder, Gradients& gradients) { return state->backward(recorder, gradients); });
  return results;
}

Tensor DiscardedResults::discard(Recorder& r, const Tensor& after) {
  if (state_ == nullptr) return after;
  for (const std::shared_ptr<Storage>& result : state_->results) result->give_up();
  return r.with_backward_hook(after, [&r, state = std::exchange(state_, nullptr)] { state->make_again(r); });
}

}  // namespace membill
