#include "program/saved_on_host.h"

#include <algorithm>
#include <utility>

#include "program/recorder.h"

namespace membill {
namespace {

constexpr std::int64_t kLeastBytes = 1024, kStashed = 5;
constexpr int kStream = 7;

}  // namespace

SavedOnHost::SavedOnHost(Recorder& recorder, const Kind& kind)
    : r_(recorder),
      kind_(kind),
      base_(recorder.writer().item("weights.base")),
      adapter_(recorder.writer().item("weights.adapter")) {}

bool SavedOnHost::is_parameter(const Storage& storage) const {
  return storage.item() == base_ || storage.item() == adapter_;
}

void SavedOnHost::shorten_stash() {
  while (!stash_.empty() && stash_.front().id <= last_id_ - kStashed) {
    const auto known = known_.find(stash_.front().original);
    if (known != known_.end() && known->second == stash_.front().id) known_.erase(known);
    stash_.pop_front();
  }
}

Tensor SavedOnHost::pack(const Tensor& x, bool strided) {
  ++last_id_;
  const std::shared_ptr<Storage>& storage = x.body().storage;
  if (storage == nullptr) return x;
  if (const auto known = known_.find(storage.get()); kind_.once_per_storage && known != known_.end()) {
    known->second = last_id_;
    return x;
  }
  const Size bytes = x.shape().elements() * Size(bytes_per_element(x.dtype()));
  if (is_parameter(*storage) || !r_.symbols().at_least(bytes, kLeastBytes)) return x;
  std::shared_ptr<Storage> held = storage;
  if (strided && kind_.copies_strided) held = r_.empty(x.shape(), x.dtype(), "saved tensor, contiguous").body().storage;
  shorten_stash();
  stash_.push_back({last_id_, storage.get(), std::move(held)});
  known_[storage.get()] = last_id_;
  r_.add_offloaded(bytes);
  packed_.push_back({last_id_, x.shape(), x.dtype(), r_.items().forward});
  return r_.placeholder(x.shape(), x.dtype());
}

std::shared_ptr<Storage> SavedOnHost::bring_back(const std::vector<PackedTensor>& packed) {
  const StreamScope stream(r_.writer(), kStream);
  std::shared_ptr<Storage> last;
  for (const PackedTensor& tensor : packed) {
    const auto stashed =
        std::find_if(stash_.begin(), stash_.end(), [&](const Stashed& entry) { return entry.id == tensor.id; });
    const bool is_here = stashed != stash_.end();
    last = is_here
               ? stashed->storage
               : r_.empty(tensor.shape, tensor.dtype, "saved tensor, back from the host", tensor.item).body().storage;
    (is_here ? found_ : back_).push_back(last);
  }
  return last;
}

void SavedOnHost::node_done() {
  found_.clear();
  stash_.clear();
  back_before_ = std::exchange(back_, {});
}

void SavedOnHost::clear() {
  stash_.clear();
  known_.clear();
  found_.clear();
  back_.clear();
  back_before_.clear();
}

}  // namespace membill
