// Saved tensors that wait for the backward pass in host memory: the saved-tensor hook of trl models/activation_offloading.py
// (OffloadActivations with its defaults: 1024 bytes at least, a stash of five, a stream of its own), which comes from torchtune.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "program/tensor.h"
#include "trace/trace.h"

namespace membill {

class SavedOnHost {
 public:
  struct Kind {
    // trl 1.x: a storage that is saved again while its first saving is in the stash stays on the card.
    bool once_per_storage = false;
    // trl 1.x: what does not lie as it is read is copied on the card first.
    bool copies_strided = false;
  };
  SavedOnHost(Recorder& recorder, const Kind& kind);

  // What autograd keeps in the place of x: x itself, or only its shape.
  [[nodiscard]] Tensor pack(const Tensor& x, bool strided);
  // What has gone to the host since the last call belongs to the node that is recorded now.
  [[nodiscard]] std::vector<PackedTensor> take_packed() { return std::exchange(packed_, {}); }
  // Before a node runs, and when it has run: what it needs comes back, whose last is returned; that of the node before goes.
  std::shared_ptr<Storage> bring_back(const std::vector<PackedTensor>& packed);
  [[nodiscard]] bool has_brought_back() const { return !found_.empty() || !back_.empty(); }
  void node_done();
  // The backward is over.
  void clear();

 private:
  struct Stashed {
    std::int64_t id = 0;
    const Storage* original = nullptr;
    std::shared_ptr<Storage> storage;
  };
  [[nodiscard]] bool is_parameter(const Storage& storage) const;
  void shorten_stash();

  Recorder& r_;
  Kind kind_;
  ItemId base_, adapter_;
  std::int64_t last_id_ = 0;
  std::deque<Stashed> stash_;                               // of the forward, the oldest first
  std::unordered_map<const Storage*, std::int64_t> known_;  // by storage: the saving that last took it
  std::vector<PackedTensor> packed_;
  std::vector<std::shared_ptr<Storage>> found_;               // in the stash still, for the node that runs
  std::vector<std::shared_ptr<Storage>> back_, back_before_;  // for the node that runs, for the one before
};

}  // namespace membill
