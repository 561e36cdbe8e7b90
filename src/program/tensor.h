// Tensors of a simulated PyTorch process: reference-counted handles whose storage appears in the trace when it is allocated and
// disappears when the last handle, saved tensor or gradient buffer lets go of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "membill/units.h"
#include "trace/size.h"
#include "trace/trace.h"

namespace membill {

class Recorder;
class Tensor;
struct Node;

// One device allocation. Its destruction is the release event.
class Storage {
 public:
  Storage(TraceWriter& writer, const Size& bytes, ItemId item, const char* label)
      : writer_(writer), number_(writer.allocate(bytes, item, label)), item_(item) {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage() { give_up(); }
  // The memory goes while tensors still refer to it (untyped_storage().resize_(0)), and comes back.
  void give_up() {
    if (number_ != kGivenUp) writer_.release(std::exchange(number_, kGivenUp));
  }
  void take_again(const Size& bytes, const char* label) { number_ = writer_.allocate(bytes, item_, label); }
  void set_item(ItemId item) {
    writer_.set_item(number_, item);
    item_ = item;
  }
  [[nodiscard]] ItemId item() const { return item_; }

 private:
  static constexpr int kGivenUp = -1;
  TraceWriter& writer_;
  int number_;
  ItemId item_;
};

// A trainable or frozen leaf: a weight, an adapter matrix, or a bias. `gradient` is its .grad.
struct Parameter;

// Shape of a tensor as far as memory depends on it: `rows` times `width` (the last axis) elements.
struct Shape {
  Size rows, width;
  [[nodiscard]] Size elements() const { return rows * width; }
};

// What autograd calls a TensorImpl. Views share a storage.
struct TensorBody {
  std::shared_ptr<Storage> storage;  // null: no device memory of its own (a scalar, a host tensor)
  Shape shape;
  DType dtype = DType::fp32;
  bool requires_grad = false;
  bool summed_apart = false;   // a transposed or viewed gradient: sums with it are made out of place
  std::shared_ptr<Node> node;  // grad_fn
  int output = 0;              // which output of `node`
  Parameter* leaf = nullptr;   // gradient goes here
};

// A Python-like reference to a tensor. Copying adds a reference, destruction drops it.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::shared_ptr<TensorBody> body) : body_(std::move(body)) {}

  [[nodiscard]] bool defined() const { return body_ != nullptr; }
  [[nodiscard]] const Shape& shape() const { return body_->shape; }
  [[nodiscard]] const Size& rows() const { return body_->shape.rows; }
  [[nodiscard]] const Size& width() const { return body_->shape.width; }
  [[nodiscard]] DType dtype() const { return body_->dtype; }
  [[nodiscard]] bool requires_grad() const { return body_->requires_grad; }
  [[nodiscard]] TensorBody& body() const { return *body_; }
  [[nodiscard]] const std::shared_ptr<TensorBody>& handle() const { return body_; }
  // Nobody else holds this tensor or its storage: autograd may add into it.
  [[nodiscard]] bool sole_owner() const {
    return body_.use_count() == 1 && body_->storage != nullptr && body_->storage.use_count() == 1;
  }
  void drop() { body_.reset(); }

 private:
  std::shared_ptr<TensorBody> body_;
};

struct Parameter {
  Tensor value;
  Tensor gradient;
  bool trainable = false;
  std::optional<DType> gradient_dtype = {};  // of .grad, where it is not the parameter's own
  bool in_by_out = false;                    // a Conv1D's matrix, stored in x out; a linear's is out x in
  bool seen_as_view = false;  // operators get a view of it: autocast, which caches leaves only, casts it at each use
  int unit = TraceWriter::kNoUnit;
  const char* label = "";
  Size leading;     // length of its first axis, the one that FSDP and ZeRO's rows are cut along
  ItemId item = 0;  // what its storage belongs to
};

using Gradients = std::vector<Tensor>;

// Where a gradient goes next: input `input` of `node`, or the .grad of `leaf`.
struct Edge {
  std::shared_ptr<Node> node;
  int input = 0;
  Parameter* leaf = nullptr;
  [[nodiscard]] bool valid() const { return node != nullptr || leaf != nullptr; }
};

// A saved tensor that is in host memory.
struct PackedTensor {
  std::int64_t id = 0;
  Shape shape;
  DType dtype = DType::fp32;
  ItemId item = 0;
};

// One step of the backward pass. `apply` owns the saved tensors; they are freed when it has run.
struct Node {
  std::int64_t sequence = 0;
  int unit = TraceWriter::kNoUnit;
  int layer = 0;         // which layer of its unit
  ItemId item = 0;       // what its allocations belong to
  int outputs = 1;       // gradients that come in
  bool unpacks = false;  // it works with saved tensors
  std::vector<Edge> edges;
  std::vector<PackedTensor> packed;  // of what it has saved
  std::vector<Parameter*>
      leaves_inside;  // of a checkpoint that is not reentrant: its block's nodes are the engine's own
  std::function<Gradients(Recorder&, Gradients&)> apply;
};

}  // namespace membill
