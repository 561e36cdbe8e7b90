#include "trace/expand.h"

namespace membill {
namespace {

struct Keep {
  FlatTrace flat;
  bool billed_seen = false;

  void allocate(std::int32_t tensor, const Event& event) { keep(EventKind::allocate, tensor, event); }
  void release(std::int32_t tensor, const Event& event) { keep(EventKind::release, tensor, event); }
  void touch(std::int32_t tensor, const Event& event) {
    allocate(tensor, event);
    release(tensor, event);
  }
  void keep(EventKind kind, std::int32_t tensor, const Event& event) {
    flat.events.push_back({kind, tensor, event.size, event.stream});
  }
  void moment(std::int32_t moment, bool billed) {
    if (billed && !billed_seen) flat.billed_from = flat.events.size();
    billed_seen = billed;
    flat.events.push_back({EventKind::moment, moment, 0, 0});
  }
  void empty_cache() { flat.events.push_back({EventKind::empty_cache, 0, 0, 0}); }
  [[nodiscard]] static bool done() { return false; }
};

}  // namespace

FlatTrace expand(const Trace& trace, std::span<const std::int64_t> bytes, std::int64_t repeats) {
  Keep keep;
  TraceWalk<Keep> walk(trace, bytes, repeats);
  walk.run(keep);
  keep.flat.tensors = walk.tensors();
  return std::move(keep.flat);
}

}  // namespace membill
