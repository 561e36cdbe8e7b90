#include "trace/fold.h"

#include <algorithm>

#include "membill/units.h"

namespace membill {
namespace {

class PeakWalk {
 public:
  PeakWalk(std::span<const Event> events, std::size_t billed_from, std::size_t moments,
           std::span<const std::int64_t> bytes)
      : events_(events), billed_from_(billed_from), bytes_(bytes), place_(moments, -1) {}

  PeakFold run() {
    walk(0, events_.size());
    close_moment();
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::int64_t value(const Event& event) const { return bytes_[static_cast<std::size_t>(event.size)]; }

  void walk(std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      const Event& event = events_[i];
      switch (event.kind) {
        case EventKind::allocate: grow(value(event), i); break;
        case EventKind::release: sum_ -= value(event); break;
        case EventKind::moment: open_moment(event.slot, i); break;
        case EventKind::loop:
          event.index == 1 ? repeat(i) : layers(i);
          i = static_cast<std::size_t>(event.slot);
          break;
        case EventKind::end_loop:
        case EventKind::empty_cache: break;
      }
    }
  }

  void grow(std::int64_t bytes, std::size_t i) {
    sum_ = checked_add(sum_, bytes);
    if (sum_ > high_) {
      high_ = sum_;
      high_at_ = i;
    }
  }

  // A loop inside one moment: the highest point of all turns is the first turn's, raised by what the turns before the last leave.
  void layers(std::size_t loop) {
    const std::int64_t turns = value(events_[loop]);
    const std::int64_t start = sum_, before = high_;
    const std::size_t before_at = high_at_;
    high_ = sum_;
    walk(loop + 1, static_cast<std::size_t>(events_[loop].slot));
    const std::int64_t net = sum_ - start;
    if (net > 0) high_ = checked_add(high_, checked_mul(turns - 1, net));
    sum_ = checked_add(start, checked_mul(turns, net));
    if (before >= high_) {
      high_ = before;
      high_at_ = before_at;
    }
  }

  // A loop around moments: its first and its last turn.
  void repeat(std::size_t loop) {
    const std::int64_t turns = value(events_[loop]);
    const auto end = static_cast<std::size_t>(events_[loop].slot);
    const std::int64_t start = sum_;
    walk(loop + 1, end);
    if (turns < 2) return;
    sum_ = checked_add(sum_, checked_mul(turns - 2, sum_ - start));
    walk(loop + 1, end);
  }

  void open_moment(std::int32_t moment, std::size_t i) {
    close_moment();
    if (marks_++ == 1) {
      result_.building = high_;
      result_.built = sum_;
    }
    current_ = i < billed_from_ ? -1 : moment;
    high_ = sum_;
    high_at_ = i;
    if (current_ < 0) return;
    int& place = place_[static_cast<std::size_t>(moment)];
    if (place >= 0) return;
    place = static_cast<int>(result_.moments.size());
    result_.moments.push_back({moment, sum_, sum_});
  }

  void close_moment() {
    if (current_ < 0) return;
    MomentFold& moment = result_.moments[static_cast<std::size_t>(place_[static_cast<std::size_t>(current_)])];
    moment.highest = std::max(moment.highest, high_);
    moment.end = sum_;
    if (high_ <= result_.highest) return;
    result_.highest = high_;
    result_.at = high_at_;
    result_.moment = current_;
  }

  std::span<const Event> events_;
  std::size_t billed_from_;
  std::span<const std::int64_t> bytes_;
  PeakFold result_;
  std::int64_t sum_ = 0, high_ = 0;
  std::size_t high_at_ = 0;
  std::int32_t current_ = -1;
  int marks_ = 0;
  std::vector<int> place_;  // by moment: place in result_.moments, -1 before its first occurrence
};

// The events of one item, and all marks and loops.
struct ItemEvents {
  std::vector<Event> events;
  std::size_t billed_from = 0;
  std::vector<std::size_t> open;

  void add(Event event) {
    if (event.kind == EventKind::loop) open.push_back(events.size());
    if (event.kind == EventKind::end_loop) {
      events[open.back()].slot = static_cast<std::int32_t>(events.size());
      open.pop_back();
    }
    events.push_back(event);
  }
};

std::vector<ItemEvents> by_item(const Trace& trace) {
  std::vector<ItemEvents> result(trace.items.size());
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (i == trace.billed_from)
      for (ItemEvents& one : result) one.billed_from = one.events.size();
    if (event.kind == EventKind::allocate || event.kind == EventKind::release)
      result[static_cast<std::size_t>(event.item)].add(event);
    else
      for (ItemEvents& one : result) one.add(event);
  }
  return result;
}

// Counts how often each (item, size) lives, symbolically in the loops' turns.
class LiveWalk {
 public:
  LiveWalk(const Trace& trace, std::span<const std::int64_t> bytes) : trace_(trace), bytes_(bytes) {}

  std::vector<LiveItem> run(std::size_t at) {
    walk(0, at + 1, Size(1));
    std::vector<LiveItem> result;
    for (std::size_t item = 0; item < counts_.size(); ++item) {
      LiveItem live;
      live.item = static_cast<ItemId>(item);
      for (const LiveItem::Part& part : counts_[item]) {
        if (part.times.is_zero()) continue;
        live.parts.push_back(part);
        live.bytes += part.times * trace_.sizes[static_cast<std::size_t>(part.size)];
      }
      if (!live.parts.empty()) result.push_back(std::move(live));
    }
    return result;
  }

 private:
  void walk(std::size_t from, std::size_t to, const Size& times) {
    for (std::size_t i = from; i < to; ++i) {
      const Event& event = trace_.events[i];
      if (event.kind == EventKind::allocate) count(event, times);
      if (event.kind == EventKind::release) count(event, Size(-1) * times);
      if (event.kind != EventKind::loop) continue;
      const auto end = static_cast<std::size_t>(event.slot);
      const Size turns = trace_.sizes[static_cast<std::size_t>(event.size)];
      if (end < to) {
        walk(i + 1, end, times * turns);
        i = end;
        continue;
      }
      // The point lies inside: in the last turn when turns leave something behind, else in the first.
      if (net(i + 1, end) > 0) walk(i + 1, end, times * (turns - Size(1)));
    }
  }

  [[nodiscard]] std::int64_t net(std::size_t from, std::size_t to) const {
    std::int64_t sum = 0;
    for (std::size_t i = from; i < to; ++i) {
      const Event& event = trace_.events[i];
      const std::int64_t value = bytes_[static_cast<std::size_t>(event.size)];
      if (event.kind == EventKind::allocate) sum += value;
      if (event.kind == EventKind::release) sum -= value;
      if (event.kind != EventKind::loop) continue;
      const auto end = static_cast<std::size_t>(event.slot);
      sum += value * net(i + 1, end);
      i = end;
    }
    return sum;
  }

  void count(const Event& event, const Size& times) {
    const auto item = static_cast<std::size_t>(event.item);
    if (item >= counts_.size()) counts_.resize(item + 1);
    auto& parts = counts_[item];
    const auto at =
        std::find_if(parts.begin(), parts.end(), [&](const LiveItem::Part& part) { return part.size == event.size; });
    if (at == parts.end())
      parts.push_back({event.size, times});
    else
      at->times += times;
  }

  const Trace& trace_;
  std::span<const std::int64_t> bytes_;
  std::vector<std::vector<LiveItem::Part>> counts_;
};

}  // namespace

PeakFold fold_peak(const Trace& trace, std::span<const std::int64_t> bytes) {
  return PeakWalk(trace.events, trace.billed_from, trace.moments.size(), bytes).run();
}

std::vector<PeakFold> fold_items(const Trace& trace, std::span<const std::int64_t> bytes) {
  std::vector<PeakFold> result;
  for (const ItemEvents& one : by_item(trace))
    result.push_back(PeakWalk(one.events, one.billed_from, trace.moments.size(), bytes).run());
  return result;
}

std::vector<LiveItem> live_at(const Trace& trace, std::span<const std::int64_t> bytes, std::size_t at) {
  return LiveWalk(trace, bytes).run(at);
}

}  // namespace membill
