#include "trace/expand.h"

#include <algorithm>

namespace membill {
namespace {

class Expansion {
 public:
  Expansion(const Trace& trace, std::span<const std::int64_t> bytes, std::int64_t repeat_limit)
      : trace_(trace), bytes_(bytes), limit_(repeat_limit) {}

  FlatTrace run() {
    place_slots();
    flat_.events.reserve(count(0, trace_.events.size()));
    walk(0, trace_.events.size(), 0);
    return std::move(flat_);
  }

 private:
  [[nodiscard]] std::int64_t turns(const Event& loop) const {
    const std::int64_t all = bytes_[static_cast<std::size_t>(loop.size)];
    return loop.index == 1 ? std::min(all, limit_) : all;
  }

  // Each slot gets as many numbers as its indices span.
  void place_slots() {
    std::vector<std::int32_t> highest(trace_.slot_labels.size(), 0);
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
        const auto last = event.stride > 0 ? event.index + static_cast<std::int32_t>(innermost) - 1 : event.index;
        auto& slot = highest[static_cast<std::size_t>(event.slot)];
        slot = std::max(slot, last);
      }
    }
    first_.resize(highest.size());
    for (std::size_t i = 0; i < highest.size(); ++i) {
      first_[i] = flat_.tensors;
      flat_.tensors += highest[i] + 1;
    }
  }

  // Events of a stretch, loops written out.
  [[nodiscard]] std::size_t count(std::size_t from, std::size_t to) const {
    std::size_t sum = 0;
    for (std::size_t i = from; i < to; ++i) {
      const Event& event = trace_.events[i];
      if (event.kind != EventKind::loop) {
        ++sum;
        continue;
      }
      const auto end = static_cast<std::size_t>(event.slot);
      sum += static_cast<std::size_t>(turns(event)) * count(i + 1, end);
      i = end;
    }
    return sum;
  }

  void walk(std::size_t from, std::size_t to, std::int32_t turn) {
    for (std::size_t i = from; i < to; ++i) {
      if (i == trace_.billed_from) flat_.billed_from = flat_.events.size();
      const Event& event = trace_.events[i];
      switch (event.kind) {
        case EventKind::loop: {
          const auto end = static_cast<std::size_t>(event.slot);
          const auto count = static_cast<std::int32_t>(turns(event));
          for (std::int32_t k = 0; k < count; ++k) walk(i + 1, end, k);
          i = end;
          break;
        }
        case EventKind::end_loop: break;
        case EventKind::allocate:
        case EventKind::release:
          flat_.events.push_back({event.kind,
                                  first_[static_cast<std::size_t>(event.slot)] + event.index + event.stride * turn,
                                  event.size});
          break;
        case EventKind::moment:
        case EventKind::empty_cache: flat_.events.push_back({event.kind, event.slot, 0}); break;
      }
    }
  }

  const Trace& trace_;
  std::span<const std::int64_t> bytes_;
  std::int64_t limit_;
  FlatTrace flat_;
  std::vector<std::int32_t> first_;
};

}  // namespace

FlatTrace expand(const Trace& trace, std::span<const std::int64_t> bytes, std::int64_t repeat_limit) {
  return Expansion(trace, bytes, repeat_limit).run();
}

}  // namespace membill
