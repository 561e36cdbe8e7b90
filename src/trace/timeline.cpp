#include "trace/timeline.h"

#include <algorithm>

#include "trace/walk.h"

namespace membill {
namespace {

constexpr std::size_t kLeastPoints = 4;  // of a span that has as many events

// Every change of the live bytes within the billed step, and what lives before it.
class Changes {
 public:
  struct Change {
    ItemId item;
    std::int64_t bytes;
  };
  struct Span {
    std::int32_t moment;
    std::size_t from;  // index of its first change
  };

  Changes(const Trace& trace, std::span<const std::int64_t> bytes) : bytes_(bytes), before(trace.items.size()) {
    TraceWalk<Changes>(trace, bytes, 1).run(*this);
  }

  void allocate(std::int32_t, const Event& event) { add(event.item, size_of(event)); }
  void release(std::int32_t, const Event& event) { add(event.item, -size_of(event)); }
  void touch(std::int32_t tensor, const Event& event) {
    allocate(tensor, event);
    release(tensor, event);
  }
  void moment(std::int32_t moment, bool billed) {
    if (billed) spans.push_back({moment, changes.size()});
  }
  static void empty_cache() {}
  [[nodiscard]] static bool done() { return false; }

 private:
  [[nodiscard]] std::int64_t size_of(const Event& event) const { return bytes_[static_cast<std::size_t>(event.size)]; }
  void add(ItemId item, std::int64_t bytes) {
    if (spans.empty())
      before[static_cast<std::size_t>(item)] += bytes;
    else
      changes.push_back({item, bytes});
  }

  std::span<const std::int64_t> bytes_;

 public:
  std::vector<std::int64_t> before;  // by ItemId, when the first span begins
  std::vector<Change> changes;
  std::vector<Span> spans;
};

class Sampler {
 public:
  explicit Sampler(const Changes& changes) : changes_(changes), live_(changes.before) {
    for (const std::int64_t bytes : live_) sum_ += bytes;
  }

  TimelineFold run(std::size_t points) {
    TimelineFold result;
    const std::size_t all = std::max<std::size_t>(changes_.changes.size(), 1);
    for (std::size_t i = 0; i < changes_.spans.size(); ++i) {
      const std::size_t from = changes_.spans[i].from;
      const std::size_t to = i + 1 < changes_.spans.size() ? changes_.spans[i + 1].from : changes_.changes.size();
      const std::size_t share = std::max(points * (to - from) / all, kLeastPoints);
      const std::size_t parts = std::clamp<std::size_t>(to - from, 1, share);
      for (std::size_t part = 0; part < parts; ++part)
        result.points.push_back(highest(from + (to - from) * part / parts, from + (to - from) * (part + 1) / parts));
      result.spans.push_back({changes_.spans[i].moment, parts});
    }
    return result;
  }

 private:
  // What lives at the highest point of changes [from, to), their start included.
  std::vector<std::int64_t> highest(std::size_t from, std::size_t to) {
    std::vector<std::int64_t> best = live_;
    std::int64_t high = sum_;
    for (std::size_t i = from; i < to; ++i) {
      const Changes::Change& change = changes_.changes[i];
      live_[static_cast<std::size_t>(change.item)] += change.bytes;
      sum_ += change.bytes;
      if (sum_ <= high) continue;
      high = sum_;
      best = live_;
    }
    return best;
  }

  const Changes& changes_;
  std::vector<std::int64_t> live_;
  std::int64_t sum_ = 0;
};

}  // namespace

TimelineFold fold_timeline(const Trace& trace, std::span<const std::int64_t> bytes, std::size_t points) {
  return Sampler(Changes(trace, bytes)).run(points);
}

}  // namespace membill
