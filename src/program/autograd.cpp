#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "program/recorder.h"

namespace membill {

bool Recorder::needs_node(std::initializer_list<const Tensor*> inputs) const {
  if (!grad_enabled_) return false;
  return std::any_of(inputs.begin(), inputs.end(), [](const Tensor* x) { return x->defined() && x->requires_grad(); });
}

Edge Recorder::edge(const Tensor& x) const {
  if (!x.defined() || !x.requires_grad()) return {};
  const TensorBody& body = *x.handle();
  return {body.node, body.output, body.leaf};
}

void Recorder::record(std::span<Tensor* const> outputs, std::vector<Edge> edges,
                      std::function<Gradients(Recorder&, Gradients&)> apply) {
  auto node = std::make_shared<Node>();
  node->sequence = next_sequence_++;
  node->unit = writer_.unit();
  node->layer = layer_;
  node->item = items_.backward;
  node->outputs = static_cast<int>(outputs.size());
  node->edges = std::move(edges);
  node->apply = std::move(apply);
  int number = 0;
  for (Tensor* output : outputs) {
    TensorBody& body = output->body();
    body.requires_grad = true;
    body.node = node;
    body.output = number++;
    body.leaf = nullptr;  // a view of a parameter is none
  }
}

Tensor Recorder::with_backward_hook(const Tensor& x, std::function<void()> work) {
  if (!needs_node({&x})) return x;
  Tensor result = detach(x);
  record({&result}, {edge(x)}, [work = std::move(work)](Recorder&, Gradients& gradients) {
    work();
    return Gradients{std::move(gradients[0])};
  });
  return result;
}

Tensor Recorder::saved(const Tensor& x) {
  if (saving_ == Saving::keep) return x;
  if (saving_ == Saving::count) {
    ++saves_;
    return {};
  }
  if (--saves_ == 0) muted_ = true;
  return x;
}

void Recorder::accumulate(Parameter& parameter, Tensor gradient) {
  const DType type = parameter.gradient_dtype.value_or(gradient.dtype());
  if (!parameter.gradient.defined())
    parameter.gradient = type == gradient.dtype()
                             ? std::move(gradient)
                             : empty(gradient.shape(), type, "gradient", writer_.item("gradients"));
  gradient.drop();
  if (after_accumulate_) after_accumulate_(parameter);
}

// One run of autograd's engine over the graph behind a root.
class BackwardRun {
 public:
  explicit BackwardRun(Recorder& recorder) : recorder_(recorder), writer_(recorder.writer_) {}

  void run(const Edge& root, Tensor gradient, const Edge& second = {}, Tensor second_gradient = {}) {
    if (root.leaf != nullptr) return recorder_.accumulate(*root.leaf, std::move(gradient));
    collect(root.node);
    std::sort(order_.begin(), order_.end(), [](const auto& a, const auto& b) { return a->sequence > b->sequence; });
    const int outer = writer_.unit();
    const bool grad_enabled = recorder_.grad_enabled_;
    recorder_.grad_enabled_ = false;
    deliver(root, std::move(gradient));
    if (second.node != nullptr) deliver(second, std::move(second_gradient));
    for (std::shared_ptr<Node>& node : order_) {
      visit(outer, node->unit, node->layer);
      execute(*node);
      node.reset();
    }
    visit(outer, outer, 0);
    recorder_.grad_enabled_ = grad_enabled;
  }

 private:
  void collect(const std::shared_ptr<Node>& root) {
    std::vector<std::shared_ptr<Node>> stack{root};
    std::unordered_set<Node*> seen{root.get()};
    while (!stack.empty()) {
      std::shared_ptr<Node> node = std::move(stack.back());
      stack.pop_back();
      for (const Edge& next : node->edges) {
        if (next.leaf != nullptr) ++pending_[next.leaf].uses;
        if (next.node != nullptr && seen.insert(next.node.get()).second) stack.push_back(next.node);
      }
      order_.push_back(std::move(node));
    }
  }

  void visit(int outer, int unit, int layer) {
    if (outer != TraceWriter::kNoUnit || (unit == writer_.unit() && layer == layer_)) return;
    const bool was_inside = writer_.unit() != TraceWriter::kNoUnit;
    if (was_inside && recorder_.after_layer_) recorder_.after_layer_(writer_.unit(), layer_);
    writer_.visit(unit, false);
    layer_ = layer;
    if (unit != TraceWriter::kNoUnit && recorder_.before_layer_) recorder_.before_layer_(unit, layer);
  }

  void execute(Node& node) {
    const ItemScope scope(recorder_, {node.item, node.item});
    Gradients incoming = take(node);
    Gradients outgoing;
    const bool any = std::any_of(incoming.begin(), incoming.end(), [](const Tensor& g) { return g.defined(); });
    if (any && node.apply) outgoing = node.apply(recorder_, incoming);
    incoming.clear();
    node.apply = nullptr;
    for (std::size_t i = 0; i < node.edges.size() && i < outgoing.size(); ++i)
      if (outgoing[i].defined() && node.edges[i].valid()) deliver(node.edges[i], std::move(outgoing[i]));
  }

  Gradients take(const Node& node) {
    const auto at = buffers_.find(&node);
    if (at == buffers_.end()) return Gradients(static_cast<std::size_t>(node.outputs));
    Gradients gradients = std::move(at->second);
    buffers_.erase(at);
    return gradients;
  }

  void deliver(const Edge& edge, Tensor gradient) {
    if (edge.leaf == nullptr) {
      Gradients& buffer = buffers_[edge.node.get()];
      if (buffer.empty()) buffer.resize(static_cast<std::size_t>(edge.node->outputs));
      return add(buffer[static_cast<std::size_t>(edge.input)], std::move(gradient));
    }
    Pending& pending = pending_[edge.leaf];
    add(pending.sum, std::move(gradient));
    if (--pending.uses <= 0) recorder_.accumulate(*edge.leaf, std::move(pending.sum));
  }

  // InputBuffer::add: in place when nobody else holds the first gradient.
  void add(Tensor& sum, Tensor gradient) {
    if (!sum.defined()) {
      sum = std::move(gradient);
      return;
    }
    if (sum.sole_owner() && !sum.body().summed_apart) return;
    sum = recorder_.empty(sum.shape(), sum.dtype(), "sum of gradients");
  }

  struct Pending {
    int uses = 0;
    Tensor sum;
  };

  Recorder& recorder_;
  TraceWriter& writer_;
  int layer_ = 0;
  std::vector<std::shared_ptr<Node>> order_;
  std::unordered_map<const Node*, Gradients> buffers_;
  std::unordered_map<Parameter*, Pending> pending_;
};

void Recorder::backward(Tensor root) {
  Tensor seed = empty(root.shape(), root.dtype(), "gradient of the loss", items_.backward);
  BackwardRun(*this).run(edge(root), std::move(seed));
}

void Recorder::backward_from(const Tensor& root, Tensor gradient, const Tensor& second, Tensor second_gradient) {
  BackwardRun(*this).run(edge(root), std::move(gradient), edge(second), std::move(second_gradient));
}

}  // namespace membill
