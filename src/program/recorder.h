// Recorder: runs a model's program as PyTorch's eager mode would and writes the trace.
//
// Block programs (src/blocks) are written like the model code they stand for: the same calls, the same local variables. A C++ handle
// is a Python reference, so a tensor lives exactly as long as its Python original. Operators that take a Tensor by value let go of
// it when they are done, as a call does with a temporary. The backward pass is run by the same rules as autograd's engine: nodes by
// descending sequence number, gradients accumulated in place when nobody else holds them, saved tensors freed after their node.
//
// Derivatives follow torch 2.15 tools/autograd/derivatives.yaml and FunctionsManual.cpp; which operators autocast runs in which
// type follows aten/src/ATen/autocast_mode.h of the same version.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "program/aten_operators.h"
#include "program/checkpoint_inputs.h"
#include "program/tensor.h"
#include "trace/size.h"
#include "trace/trace.h"

namespace membill {

// Items that allocations belong to, by their ids in the bill.
struct ItemPair {
  ItemId forward = 0, backward = 0;
};

// What somebody does around each use of a parameter by a layer: a matrix product or a table lookup.
class ParameterUse {
 public:
  virtual ~ParameterUse() = default;
  // Before the operator; returns its input, with a node behind it where something is to happen when the input's gradient is there.
  virtual Tensor before(Tensor input, Parameter& weight, Parameter* bias) = 0;
  // After it; returns its output, likewise.
  virtual Tensor after(Tensor output, Parameter& weight, Parameter* bias) = 0;
};

class BackwardRun;

// Called after the backward of a reentrant checkpoint.
using CheckpointEnd = std::function<void(const Tensor& input, const Tensor& gradient)>;

class SavedOnHost;

class Recorder {
 public:
  Recorder(TraceWriter& writer, SymbolTable& symbols) : writer_(writer), symbols_(symbols) {}

  [[nodiscard]] TraceWriter& writer() { return writer_; }
  [[nodiscard]] SymbolTable& symbols() { return symbols_; }

  // --- modes ---------------------------------------------------------------------------------------------------------------
  // Allocations of forward code go to `items.forward`, those of the nodes that it records to `items.backward`.
  void set_items(ItemPair items) { items_ = items; }
  [[nodiscard]] ItemPair items() const { return items_; }
  void set_grad_enabled(bool on) { grad_enabled_ = on; }
  [[nodiscard]] bool grad_enabled() const { return grad_enabled_; }
  // Autocast to `type`; the cache of weight copies starts empty. end_autocast() frees the cached copies.
  void begin_autocast(DType type);
  void end_autocast();
  // Frees the cached copies: the outermost autocast of a model's forward has ended, and another one may follow.
  void forget_copies();
  [[nodiscard]] std::optional<DType> autocast() const { return autocast_; }
  // Autocast off inside (torch.autocast(enabled=False)) until resumed.
  void pause_autocast() { std::swap(autocast_, paused_autocast_); }
  void resume_autocast() { std::swap(autocast_, paused_autocast_); }

  // Bytes that cuBLAS takes for the time of each matrix product (torch 2.15 gives its workspace back after each); 0 for none.
  void set_matmul_workspace(const Size& bytes) { workspace_ = bytes; }
  // mean() saves its input, as torch before 2.2 does.
  void set_mean_saves_input(bool on) { mean_saves_input_ = on; }
  // linear() saves its input even where its weight needs no gradient.
  void set_linear_saves_input(bool on) { linear_saves_input_ = on; }
  // One matrix product runs now.
  void use_matmul_workspace();
  // One runs that adds a bias: cuBLASLt's workspace, 1 MiB.
  void use_fused_bias_workspace();

  // --- tensors -------------------------------------------------------------------------------------------------------------
  Tensor empty(const Shape& shape, DType dtype, const char* label);
  Tensor empty(const Shape& shape, DType dtype, const char* label, ItemId item);
  // A tensor whose memory somebody else allocates and frees.
  [[nodiscard]] Tensor placeholder(const Shape& shape, DType dtype) const;
  // Another view of the same memory with the same number of elements. Gradients pass through without memory.
  Tensor view(Tensor x, const Shape& shape);
  // The tensor without its history.
  Tensor detach(const Tensor& x);

  // --- autograd ------------------------------------------------------------------------------------------------------------
  // Whether an operator over these tensors records a node.
  [[nodiscard]] bool needs_node(std::initializer_list<const Tensor*> inputs) const;
  [[nodiscard]] Edge edge(const Tensor& x) const;
  // Makes `outputs` results of a new node that runs `apply`, whose gradients go to `edges` in order.
  void record(std::initializer_list<Tensor*> outputs, std::vector<Edge> edges,
              std::function<Gradients(Recorder&, Gradients&)> apply) {
    record(std::span(outputs.begin(), outputs.size()), std::move(edges), std::move(apply));
  }
  void record(std::span<Tensor* const> outputs, std::vector<Edge> edges,
              std::function<Gradients(Recorder&, Gradients&)> apply);
  // A tensor that autograd saves. Under non-reentrant checkpointing's first forward nothing is kept; in its recomputation the last
  // one ends the forward early.
  [[nodiscard]] Tensor saved(const Tensor& x) { return save(x, false); }
  // The same of a view whose rows lie apart.
  [[nodiscard]] Tensor saved_strided(const Tensor& x) { return save(x, true); }
  // A saved-tensor hook around what follows; null: none.
  void set_saved_on_host(SavedOnHost* host) { saved_on_host_ = host; }
  [[nodiscard]] SavedOnHost* saved_on_host() const { return saved_on_host_; }
  // Runs backward from `root` (its gradient is a scalar that this allocates).
  void backward(Tensor root);
  // Runs the sub-graph from those of `roots` that need a gradient, with the given gradients (inside a node, for checkpointing).
  void backward_from(const std::vector<Tensor>& roots, const Gradients& gradients);
  // Adds `gradient` to the parameter's .grad: stolen when there is none, else added in place.
  void accumulate(Parameter& parameter, Tensor gradient);
  // The layer of the present unit that code now belongs to, from 0.
  void set_layer(int layer) { layer_ = layer; }
  // Called in backward before the first and after the last node of each layer, inside its unit. Not for nodes outside of units.
  void set_backward_hooks(std::function<void(int unit, int layer)> before,
                          std::function<void(int unit, int layer)> after) {
    before_layer_ = std::move(before);
    after_layer_ = std::move(after);
  }
  void set_parameter_use(ParameterUse* use) { parameter_use_ = use; }
  [[nodiscard]] ParameterUse* parameter_use() const { return parameter_use_; }
  // A node that runs `work` when the gradient of `x` has come; the gradient passes through.
  Tensor with_backward_hook(const Tensor& x, std::function<void()> work);
  // Called for a parameter each time its gradient has been accumulated (register_post_accumulate_grad_hook).
  void set_after_accumulate(std::function<void(Parameter&)> hook) { after_accumulate_ = std::move(hook); }
  // Calls that hook for a parameter whose gradient somebody else has made.
  void tell_accumulated(Parameter& parameter) {
    if (after_accumulate_) after_accumulate_(parameter);
  }

  // Variables of the caller that a checkpointed block reads, as further inputs, and that it assigns, as further outputs.
  struct CheckpointVariables {
    std::vector<Tensor*> inputs, outputs;
  };
  // torch.utils.checkpoint over `body`: one tensor in, one out, and what the block has in `variables`. See checkpoint.cpp.
  struct CheckpointKind {
    bool reentrant = false;
    bool offload = false;    // the input waits in host memory for the backward pass
    std::int64_t parts = 1;  // each of so many ranks keeps its part of the input, whose data goes
    CheckpointEnd finished = {};
    bool early_stop =
        true;  // the recomputation ends at the last tensor that was saved; reentrant ones run to their end
    InputKeeper* keeper = nullptr;  // decides instead; only of the reentrant kind
  };
  Tensor checkpoint(Tensor input, const CheckpointKind& kind, const std::function<Tensor(Tensor)>& body,
                    const CheckpointVariables& variables = {});
  // Results of these operators are kept from a checkpoint's first forward for its recomputation
  // (torch.utils.checkpoint.create_selective_checkpoint_contexts).
  void keep_results_of(AtenOperators operators) { kept_operators_ = operators; }
  // Off: none of them is kept until it is on again.
  void set_keeps_results(bool on) { keeps_results_ = on; }
  // Bytes of checkpoints' inputs that have gone to the host since the last call, in all layers.
  void add_offloaded(const Size& bytes) { offloaded_ += bytes * writer_.turns(writer_.unit()); }
  [[nodiscard]] Size take_offloaded() { return std::exchange(offloaded_, Size()); }

  // empty() for the result of an operator, or the result that was kept: then it is not computed again.
  struct OperatorResult {
    Tensor tensor;
    bool computed = true;
  };
  OperatorResult result_of(AtenOperator op, const Shape& shape, DType dtype, const char* label);
  OperatorResult result_of(AtenOperator op, const Shape& shape, DType dtype, const char* label, ItemId item);

  // The reentrant kind over a function of several tensors, which are all kept. `finished` gets them and their gradients after its
  // backward.
  Tensor checkpoint_parts(std::vector<Tensor> inputs, const std::function<Tensor(const std::vector<Tensor>&)>& body,
                          const std::function<void(std::vector<Tensor>)>& finished = {});

  // x stays until the graph that is being recorded is freed: an attribute of an autograd function's context, which no saved-tensor
  // hook sees. drop_graph() frees what is held; leave_graph() does not, and drop_left_graph() frees what was left.
  void hold_in_graph(const Tensor& x);
  void drop_graph();
  void leave_graph();
  void drop_left_graph();

  // A dictionary that the model's forward hands to its layers holds `tensors` under `key`, until drop_shared() or drop_graph(); what
  // comes under the same key later takes their place. Of a recomputation that is not reentrant it holds their history with them: what
  // nodes have saved while it was watched.
  void hold_shared(int key, const std::vector<Tensor>& tensors);
  // Besides, as long as what is under `key` now.
  void hold_with_shared(int key, const std::vector<Tensor>& tensors);
  void watch_history(bool on) { watching_ = on; }
  void drop_shared();

  // --- element-wise and shape operators ------------------------------------------------------------------------------------
  Tensor cast(Tensor x, DType dtype);  // Tensor.to(dtype)
  Tensor contiguous_copy(Tensor x, const Shape& shape,
                         const char* label);                  // a copy in another layout; also expand().reshape()
  Tensor add(Tensor a, Tensor b, const char* label = "sum");  // shapes broadcast; result in the promoted type
  Tensor add_scalar(Tensor x, const char* label = "sum");
  Tensor mul(Tensor a, Tensor b, const char* label = "product");
  Tensor mul_scalar(Tensor x, const char* label = "scaled");
  Tensor neg(Tensor x);
  Tensor square(Tensor x);         // x.pow(2), fp32 under autocast
  Tensor cube(Tensor x);           // torch.pow(x, 3.0), fp32 under autocast
  Tensor root_of_power(Tensor x);  // torch.pow(x, -0.5), fp32 under autocast
  Tensor mean_of_rows(Tensor x);   // x.mean(-1, keepdim=True)
  Tensor rsqrt(Tensor x);          // fp32 under autocast
  Tensor silu(Tensor x);
  Tensor gelu(Tensor x);
  Tensor relu(Tensor x);
  Tensor tanh(Tensor x);
  Tensor sigmoid(Tensor x);
  Tensor exp(Tensor x);       // fp32 under autocast
  Tensor softplus(Tensor x);  // fp32 under autocast
  Tensor dropout(Tensor x, double p);
  // torch.cat of two tensors into one of `shape`. The gradients are views.
  Tensor concatenate(Tensor first, Tensor second, const Shape& shape);
  // The same of any number of one type.
  Tensor join(const std::vector<Tensor>& parts, const Shape& shape);
  // torch.split into any number of parts, as split_in_three.
  std::vector<Tensor> split(Tensor x, std::vector<Shape> parts);
  // torch.split into three parts: views. Their gradients are joined in one tensor; a missing one is made of zeros.
  std::array<Tensor, 3> split_in_three(Tensor x, const Shape& part) {
    return split_in_three(std::move(x), part, part, part);
  }
  std::array<Tensor, 3> split_in_three(Tensor x, const Shape& first, const Shape& second, const Shape& third);
  // torch.chunk or torch.split into two parts, as split_in_three.
  std::array<Tensor, 2> split_in_two(Tensor x, const Shape& part) { return split_in_two(std::move(x), part, part); }
  std::array<Tensor, 2> split_in_two(Tensor x, const Shape& first, const Shape& second);
  // Part of a row: a view of `width` elements. The gradient is a zero-filled tensor of the whole.
  Tensor slice(Tensor x, const Size& width);

  Tensor scale_in_place(Tensor x);                 // x *= a number
  Tensor add_in_place(Tensor a, const Tensor& b);  // a += b
  Tensor sub_in_place(Tensor a, const Tensor& b);  // a -= b
  Tensor reshaped(const Tensor& x,
                  const Shape& shape);  // x.view() whose gradient is a view: sums with it are made out of place
  Tensor broadcast_view(const Tensor& x, const Shape& shape);  // x.expand(): the gradient is summed
  // base[part] = x, where `base` is a new tensor or one that has taken another part already.
  Tensor copy_into(Tensor base, const Tensor& x);
  Tensor masked_fill(Tensor x, const Tensor& mask, const char* label);  // x.masked_fill(mask, a number)
  enum class Bounds : std::uint8_t { one, both };
  Tensor clamp(Tensor x, Bounds bounds);
  // x.gather(-1, index): as many columns as the index has.
  Tensor gather(const Tensor& x, const Tensor& index);

  Tensor sub(Tensor a, Tensor b, const char* label);       // as add, of one type
  Tensor div_in_place(Tensor a, const Tensor& b);          // a /= b
  Tensor sum_of_rows(const Tensor& x);                     // x.sum(-1, keepdim=True)
  Tensor sum_of_parts(const Tensor& x, const Size& rows);  // x.view(rows, -1, width).sum(1)
  // torch.topk over rows: values and indices.
  std::array<Tensor, 2> top_of_rows(const Tensor& x, const Size& k);
  Tensor cumulative_sum(Tensor x);
  // torch.nn.functional.pad with zeros: a copy even where nothing is added. The gradient is cut, likewise.
  Tensor pad(Tensor x, const Shape& shape);
  // torch.linalg.solve_triangular(a, b) over `batches` square matrices.
  Tensor solve_triangular(const Tensor& a, const Tensor& b, const Size& batches);
  // x[index]: as many rows of `width` as the index has.
  Tensor index_rows(const Tensor& x, const Tensor& index, const Size& width);

  // --- layers --------------------------------------------------------------------------------------------------------------
  Tensor linear(Tensor x, Parameter& weight, Parameter* bias = nullptr);
  Tensor embedding(const Tensor& ids, Parameter& table);
  Tensor layer_norm(Tensor x, Parameter& weight, Parameter* bias);
  // grouped_mm with the matrices of all experts; rows of x are sorted by expert, `offsets` says where each ends.
  Tensor grouped_linear(Tensor x, Parameter& weight, const Tensor& offsets, const Size& outputs);
  Tensor plain_layer_norm(Tensor x);  // layer_norm without weight and bias
  // Batched matrix product of (batches, n, m) with (batches, m, p): result has `shape`. Operands are saved for one another.
  Tensor batched_matmul(Tensor a, Tensor b, const Shape& shape, const char* label);
  // softmax over rows; `dtype`: the explicit dtype argument.
  Tensor softmax(Tensor x, std::optional<DType> dtype);
  Tensor log_softmax(Tensor x);

  // The copy of `weight` that an operator in `type` works with: itself, or autocast's cached copy.
  Tensor working_copy(Parameter& weight, DType type);
  // x in autocast's 16-bit type when autocast is on and x is fp32; else x.
  Tensor autocast_input(Tensor x);
  // x in fp32 when autocast is on; else x.
  Tensor autocast_fp32(Tensor x);

 private:
  friend class BackwardRun;
  struct CachedCopy {
    Parameter* weight;
    int unit;
    Tensor copy;
  };
  enum class Saving : std::uint8_t { keep, count, stop_at_last };
  struct CheckpointCall;

  Tensor save(const Tensor& x, bool strided);
  Tensor run_linear(Tensor x, Parameter& weight, Parameter* bias);
  Tensor run_function_linear(const Tensor& x, Parameter& weight, Parameter* bias);
  Tensor run_embedding(const Tensor& ids, Parameter& table);
  Tensor run_grouped_linear(Tensor x, Parameter& weight, const Tensor& offsets, const Size& outputs);
  // Larger of two shapes by elements: what broadcasting gives here.
  [[nodiscard]] const Shape& broadcast(const Shape& a, const Shape& b) const;
  // `gradient` in the shape and type of an operand with `shape` and `dtype`, as the engine's validate_outputs makes it.
  // `to_parameter`: it becomes the .grad of a parameter.
  Tensor fit_gradient(Tensor gradient, const Shape& shape, DType dtype, bool to_parameter = false);
  // One input, one output of the same size; the backward makes one tensor of that size.
  enum class Keeps : std::uint8_t { nothing, input, output };
  Tensor pointwise(Tensor x, const char* label, Keeps keeps, std::optional<AtenOperator> op = {});
  Tensor power(Tensor x, const char* label);
  Tensor run_checkpoint_again(CheckpointCall& call, const Tensor& input);
  // The graph of a block's first forward, which saved nothing: its outputs, the first sequence number that belongs to it, and where
  // the gradients of the block's inputs go.
  struct FirstGraph {
    std::vector<Edge> outputs;
    std::int64_t from = 0;
    std::vector<Edge> inputs;
  };
  // Runs the block's nodes until one needs a saved tensor; `recompute` then gives the outputs of the same nodes anew, and those of
  // them that are left run. The gradients of the inputs stay in `inputs`.
  void backward_recomputing(const FirstGraph& first, std::vector<Parameter>& inputs, Gradients& gradients,
                            const std::function<std::vector<Tensor>()>& recompute);
  struct Held {
    int unit;
    Tensor tensor;
  };
  // Frees the entries from the last to the first, each inside its unit.
  void release_in_units(std::vector<Held>& entries);

  TraceWriter& writer_;
  SymbolTable& symbols_;
  ItemPair items_;
  Size workspace_;
  bool grad_enabled_ = true;
  bool mean_saves_input_ = false, linear_saves_input_ = false;
  std::optional<DType> autocast_, paused_autocast_;
  std::vector<CachedCopy> copies_;
  std::vector<Held> held_, left_;
  std::map<int, std::vector<Held>> shared_;
  std::vector<Tensor> history_;  // saved while watched
  bool watching_ = false;
  Size offloaded_;
  AtenOperators kept_operators_;
  bool keeps_results_ = true;
  std::array<std::int64_t, kAtenNames.size()> results_counted_{};         // of the checkpoint that runs, by operator
  std::vector<std::pair<AtenOperator, Tensor>>* kept_results_ = nullptr;  // of the checkpoint that runs
  std::function<void(Parameter&)> after_accumulate_;
  BackwardRun* running_ = nullptr;
  ParameterUse* parameter_use_ = nullptr;
  SavedOnHost* saved_on_host_ = nullptr;
  std::function<void(int, int)> before_layer_, after_layer_;
  int layer_ = 0;
  std::int64_t next_sequence_ = 0;
  bool saved_since_record_ = false;  // the node that is recorded next works with saved tensors
  Saving saving_ = Saving::keep;
  std::int64_t saves_ = 0;  // counted in a checkpointed forward, or left until the recomputation stops
  bool muted_ = false;      // the recomputation has stopped: results are not made any more
};

// Sets the items of a Recorder for a scope.
class ItemScope {
 public:
  ItemScope(Recorder& recorder, ItemPair items) : recorder_(recorder), before_(recorder.items()) {
    recorder.set_items(items);
  }
  ItemScope(const ItemScope&) = delete;
  ItemScope& operator=(const ItemScope&) = delete;
  ~ItemScope() { recorder_.set_items(before_); }

 private:
  Recorder& recorder_;
  ItemPair before_;
};

}  // namespace membill
