#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "program/recorder.h"
#include "program/saved_on_host.h"

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
  node->unpacks = std::exchange(saved_since_record_, false);
  node->edges = std::move(edges);
  if (saved_on_host_ != nullptr) node->packed = saved_on_host_->take_packed();
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

Tensor Recorder::save(const Tensor& x, bool strided) {
  saved_since_record_ = true;
  if (saving_ == Saving::keep) return saved_on_host_ == nullptr ? x : saved_on_host_->pack(x, strided);
  if (saving_ == Saving::count) {
    ++saves_;
    return {};
  }
  if (watching_ && !muted_) history_.push_back(detach(x));
  if (--saves_ == 0) muted_ = true;
  return x;
}

void Recorder::accumulate(Parameter& parameter, Tensor gradient) {
  const DType type = parameter.gradient_dtype.value_or(gradient.dtype());
  if (!parameter.gradient.defined()) {
    const ItemId own = writer_.item("gradients");
    parameter.gradient = type == gradient.dtype() ? gradient : empty(gradient.shape(), type, "gradient", own);
    // An activation that is made a leaf has no first axis to be cut along: its gradient stays one of the activations'.
    const auto& storage = parameter.gradient.body().storage;
    if (storage != nullptr && !parameter.leading.is_zero()) storage->set_item(own);
  }
  gradient.drop();
  if (after_accumulate_) after_accumulate_(parameter);
}

// One run of autograd's engine over the graph behind a root.
class BackwardRun {
 public:
  explicit BackwardRun(Recorder& recorder)
      : recorder_(recorder), writer_(recorder.writer_), outer_(std::exchange(recorder.running_, this)) {}
  BackwardRun(const BackwardRun&) = delete;
  BackwardRun& operator=(const BackwardRun&) = delete;
  ~BackwardRun() { recorder_.running_ = outer_; }

  void run(const std::vector<Edge>& roots, Gradients gradients) {
    collect(roots);
    const int outer = writer_.unit();
    const bool grad_enabled = recorder_.grad_enabled_;
    recorder_.grad_enabled_ = false;
    deliver_all(roots, gradients);
    for (std::shared_ptr<Node>& node : order_) {
      visit(outer, node->unit, node->layer);
      execute(*node);
      node.reset();
    }
    visit(outer, outer, 0);
    for (Parameter* leaf : reached_)  // one of its uses gave none
      if (Tensor& sum = pending_[leaf].sum; sum.defined()) recorder_.accumulate(*leaf, std::move(sum));
    recorder_.grad_enabled_ = grad_enabled;
  }

  // Inside of a node. See Recorder::backward_recomputing.
  void run_recomputing(const Recorder::FirstGraph& first, std::vector<Parameter>& inputs, Gradients& gradients,
                       const std::function<std::vector<Tensor>()>& recompute) {
    block_ = &first;
    inputs_ = &inputs;
    collect(first.outputs);
    deliver_all(first.outputs, gradients);
    std::size_t done = 0;
    for (; done < order_.size() && !(order_[done]->unpacks && has_gradient(*order_[done])); ++done)
      execute(*order_[done]);
    if (done == order_.size()) return;
    const std::int64_t next = order_[done]->sequence;
    const std::shared_ptr<Node> root = recompute().front().body().node;
    block_ = nullptr;
    run_again(root, next - first.outputs.front().node->sequence + root->sequence);
  }

 private:
  // The nodes behind `root` from sequence number `next` down, with the gradients that those of the first graph are waiting with.
  void run_again(const std::shared_ptr<Node>& root, std::int64_t next) {
    const std::int64_t shift = root->sequence - order_.front()->sequence;
    std::unordered_map<std::int64_t, Gradients> waiting;
    for (const auto& node : order_)
      if (const auto at = buffers_.find(node.get()); at != buffers_.end())
        waiting[node->sequence + shift] = std::move(at->second);
    buffers_.clear();
    order_.clear();
    std::unordered_map<Parameter*, Pending> pending = std::move(pending_);
    collect({Edge{root}});
    pending_ = std::move(pending);
    SavedOnHost* host = recorder_.saved_on_host();
    if (host != nullptr && !host->has_brought_back()) host = nullptr;
    for (const std::shared_ptr<Node>& node : order_)
      if (const auto at = waiting.find(node->sequence); at != waiting.end())
        buffers_[node.get()] = std::move(at->second);
    for (std::shared_ptr<Node>& node : order_) {
      if (node->sequence <= next) execute(*node, Saved::unpacked);
      // A hook of the node that asked for the block's input.
      if (host != nullptr && node->sequence == next) host->node_done();
      node.reset();
    }
  }

  [[nodiscard]] bool has_gradient(const Node& node) const { return buffers_.count(&node) != 0; }

  // Edges to the block's inputs lead to `inputs_`; others that leave the block lead nowhere.
  [[nodiscard]] Edge inside(const Edge& edge) const {
    if (block_ == nullptr || !edge.valid()) return edge;
    for (std::size_t i = 0; i < block_->inputs.size(); ++i) {
      const Edge& input = block_->inputs[i];
      if (edge.node == input.node && edge.input == input.input && edge.leaf == input.leaf)
        return {nullptr, 0, &(*inputs_)[i]};
    }
    return edge.node != nullptr && edge.node->sequence < block_->from ? Edge{} : edge;
  }

  void collect(const std::vector<Edge>& roots) {
    std::vector<std::shared_ptr<Node>> stack;
    std::unordered_set<Node*> seen;
    for (const Edge& root : roots) {
      if (root.leaf != nullptr) ++pending_[root.leaf].uses;
      if (root.node != nullptr && seen.insert(root.node.get()).second) stack.push_back(root.node);
    }
    while (!stack.empty()) {
      std::shared_ptr<Node> node = std::move(stack.back());
      stack.pop_back();
      for (Parameter* leaf : node->leaves_inside) ++pending_[leaf].uses;
      for (const Edge& edge : node->edges) {
        const Edge next = inside(edge);
        if (next.leaf != nullptr) ++pending_[next.leaf].uses;
        if (next.node != nullptr && seen.insert(next.node.get()).second) stack.push_back(next.node);
      }
      order_.push_back(std::move(node));
    }
    std::sort(order_.begin(), order_.end(), [](const auto& a, const auto& b) { return a->sequence > b->sequence; });
  }

  void visit(int outer, int unit, int layer) {
    if (outer != TraceWriter::kNoUnit || (unit == writer_.unit() && layer == layer_)) return;
    const bool was_inside = writer_.unit() != TraceWriter::kNoUnit;
    if (was_inside && recorder_.after_layer_) recorder_.after_layer_(writer_.unit(), layer_);
    writer_.visit(unit, false);
    layer_ = layer;
    if (unit != TraceWriter::kNoUnit && recorder_.before_layer_) recorder_.before_layer_(unit, layer);
  }

  // Of a recomputation the node has what it unpacks alone, until it returns; else it holds what it has saved until its gradients are
  // gone.
  enum class Saved : std::uint8_t { held, unpacked };

  void execute(Node& node, Saved saved = Saved::held) {
    const ItemScope scope(recorder_, {node.item, node.item});
    Gradients incoming = take(node);
    Gradients outgoing;
    const bool any = std::any_of(incoming.begin(), incoming.end(), [](const Tensor& g) { return g.defined(); });
    SavedOnHost* const host = node.packed.empty() ? nullptr : recorder_.saved_on_host();
    if (host != nullptr) host->bring_back(node.packed);
    if (any && node.apply) outgoing = node.apply(recorder_, incoming);
    if (saved == Saved::unpacked) node.apply = nullptr;
    incoming.clear();
    node.apply = nullptr;
    if (host != nullptr) host->node_done();
    for (std::size_t i = 0; i < node.edges.size() && i < outgoing.size(); ++i)
      if (outgoing[i].defined() && node.edges[i].valid()) deliver(inside(node.edges[i]), std::move(outgoing[i]));
  }

  Gradients take(const Node& node) {
    const auto at = buffers_.find(&node);
    if (at == buffers_.end()) return Gradients(static_cast<std::size_t>(node.outputs));
    Gradients gradients = std::move(at->second);
    buffers_.erase(at);
    return gradients;
  }

  void deliver_all(const std::vector<Edge>& edges, Gradients& gradients) {
    for (std::size_t i = 0; i < edges.size(); ++i)
      if (edges[i].valid() && gradients[i].defined()) deliver(edges[i], std::move(gradients[i]));
  }

  void deliver(const Edge& edge, Tensor gradient) {
    if (edge.leaf == nullptr) {
      Gradients& buffer = buffers_[edge.node.get()];
      if (buffer.empty()) buffer.resize(static_cast<std::size_t>(edge.node->outputs));
      return add(buffer[static_cast<std::size_t>(edge.input)], std::move(gradient));
    }
    if (inputs_ != nullptr && !is_input(*edge.leaf)) return outer_->deliver(edge, std::move(gradient));
    Pending& pending = pending_[edge.leaf];
    if (pending.uses > 1 && !pending.sum.defined()) reached_.push_back(edge.leaf);
    add(pending.sum, std::move(gradient));
    if (--pending.uses <= 0) recorder_.accumulate(*edge.leaf, std::move(pending.sum));
  }

  [[nodiscard]] bool is_input(const Parameter& leaf) const {
    return !inputs_->empty() && !std::less<>()(&leaf, inputs_->data()) &&
           std::less<>()(&leaf, inputs_->data() + inputs_->size());
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
  BackwardRun* outer_;  // in one of whose nodes this one runs
  int layer_ = 0;
  const Recorder::FirstGraph* block_ = nullptr;  // while its nodes run
  std::vector<Parameter>* inputs_ = nullptr;
  std::vector<std::shared_ptr<Node>> order_;
  std::unordered_map<const Node*, Gradients> buffers_;
  std::unordered_map<Parameter*, Pending> pending_;
  std::vector<Parameter*> reached_;  // in order, those that wait for more
};

void Recorder::backward(Tensor root) {
  Gradients seed;
  seed.push_back(empty(root.shape(), root.dtype(), "gradient of the loss", items_.backward));
  BackwardRun(*this).run({edge(root)}, std::move(seed));
}

void Recorder::backward_from(const std::vector<Tensor>& roots, const Gradients& gradients) {
  std::vector<Edge> edges;
  edges.reserve(roots.size());
  for (const Tensor& root : roots) edges.push_back(edge(root));
  BackwardRun(*this).run(edges, gradients);
}

void Recorder::backward_recomputing(const FirstGraph& first, std::vector<Parameter>& inputs, Gradients& gradients,
                                    const std::function<std::vector<Tensor>()>& recompute) {
  BackwardRun(*this).run_recomputing(first, inputs, gradients, recompute);
}

}  // namespace membill
