// Walks a trace as it happens, loops turned as often as they say.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "trace/trace.h"

namespace membill {

// Loops around moments (micro-batches) of more turns are walked this often: later turns find the allocator as the earlier left it.
inline constexpr std::int64_t kWalkedRepeats = 3;

// Walks every event of `trace` in order. `bytes` gives the loops' turns. A tensor is a dense number, the same in its allocation
// and its release, unique among those alive. `Visitor` has
//   void allocate(std::int32_t tensor, const Event& event), void release(std::int32_t tensor, const Event& event)
//   void touch(std::int32_t tensor, const Event& event)  allocated, and released by the very next event
//   void moment(std::int32_t moment, bool billed)        billed: within the step that totals cover
//   void empty_cache()
//   bool done() const                                    true ends the walk early
//   std::uint64_t state()                                optional: a digest; equal at the ends of two turns of a loop around moments, and
//                                                        further turns would be like the last, so they are left out; 0: unknown
template <typename Visitor>
class TraceWalk {
 public:
  TraceWalk(const Trace& trace, std::span<const std::int64_t> bytes, std::int64_t repeats = kWalkedRepeats)
      : trace_(trace), bytes_(bytes), repeats_(repeats) {
    place_slots();
  }

  // Every tensor number is below this.
  [[nodiscard]] std::int32_t tensors() const { return tensors_; }

  void run(Visitor& visitor) {
    billed_ = false;
    walk(visitor, 0, trace_.events.size(), 0);
  }

 private:
  [[nodiscard]] std::int64_t turns(const Event& loop) const {
    const std::int64_t all = bytes_[static_cast<std::size_t>(loop.size)];
    return loop.index == 1 ? std::min(all, repeats_) : all;
  }

  // Each slot gets as many numbers as its indices span.
  void place_slots() {
    first_.assign(trace_.slot_labels.size(), 1);
    std::int64_t innermost = 1;
    std::vector<std::int64_t> open;
    for (const Event& event : trace_.events) {
      if (event.kind == EventKind::loop) {
        open.push_back(innermost);
        innermost = turns(event);
      } else if (event.kind == EventKind::end_loop) {
        innermost = open.back();
        open.pop_back();
      } else if (event.kind == EventKind::allocate) {
        const auto span = event.index + (event.stride > 0 ? static_cast<std::int32_t>(innermost) : 1);
        auto& slot = first_[static_cast<std::size_t>(event.slot)];
        slot = std::max(slot, span);
      }
    }
    for (std::int32_t& slot : first_) {
      const std::int32_t span = slot;
      slot = tensors_;
      tensors_ += span;
    }
  }

  void walk(Visitor& visitor, std::size_t from, std::size_t to, std::int32_t turn) {
    for (std::size_t i = from; i < to && !visitor.done(); ++i) {
      if (i == trace_.billed_from) billed_ = true;
      const Event& event = trace_.events[i];
      switch (event.kind) {
        case EventKind::loop: {
          walk_loop(visitor, i);
          i = static_cast<std::size_t>(event.slot);
          break;
        }
        case EventKind::end_loop: break;
        case EventKind::allocate:
          if (i + 1 < to && releases(trace_.events[i + 1], event)) {
            visitor.touch(tensor(event, turn), event);
            ++i;
          } else {
            visitor.allocate(tensor(event, turn), event);
          }
          break;
        case EventKind::release: visitor.release(tensor(event, turn), event); break;
        case EventKind::moment: visitor.moment(event.slot, billed_); break;
        case EventKind::empty_cache: visitor.empty_cache(); break;
      }
    }
  }

  // What the turns of a loop around moments make they free: such a turn that leaves the state that it found repeats itself.
  void walk_loop(Visitor& visitor, std::size_t start) {
    const Event& loop = trace_.events[start];
    const auto count = static_cast<std::int32_t>(turns(loop));
    const bool compares = loop.index == 1 && count > 1;
    std::uint64_t before = compares ? state_of(visitor) : 0;
    for (std::int32_t k = 0; k < count; ++k) {
      walk(visitor, start + 1, static_cast<std::size_t>(loop.slot), k);
      if (!compares || k + 1 == count) continue;
      const std::uint64_t now = state_of(visitor);
      if (now != 0 && now == before) return;
      before = now;
    }
  }

  static std::uint64_t state_of(Visitor& visitor) {
    if constexpr (requires { visitor.state(); }) return visitor.state();
    return 0;
  }

  [[nodiscard]] static bool releases(const Event& event, const Event& allocation) {
    return event.kind == EventKind::release && event.slot == allocation.slot && event.index == allocation.index &&
           event.stride == allocation.stride;
  }

  [[nodiscard]] std::int32_t tensor(const Event& event, std::int32_t turn) const {
    return first_[static_cast<std::size_t>(event.slot)] + event.index + event.stride * turn;
  }

  const Trace& trace_;
  std::span<const std::int64_t> bytes_;
  std::int64_t repeats_;
  std::vector<std::int32_t> first_;  // tensor number of a slot's index 0
  std::int32_t tensors_ = 0;
  bool billed_ = false;
};

}  // namespace membill
