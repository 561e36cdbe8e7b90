#include "trace/replay.h"

#include <algorithm>

#include "trace/allocator_driver.h"
#include "trace/walk.h"

namespace membill {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

class Replay {
 public:
  Replay(const Trace& trace, std::span<const std::int64_t> bytes, const AllocatorSettings& settings,
         std::optional<std::int64_t> capacity)
      : walk_(trace, bytes),
        driver_(settings, capacity, static_cast<std::size_t>(walk_.tensors())),
        place_(trace.moments.size(), -1) {
    requests_.reserve(bytes.size());
    for (const std::int64_t one : bytes) requests_.push_back(driver_.allocator().sized(one));
  }

  ReplayResult run() {
    walk_.run(*this);
    close_moment();
    note_reserved();
    result_.retries = driver_.counters().retries;
    return std::move(result_);
  }

  void allocate(std::int32_t tensor, const Event& event) {
    const SizedRequest& request = requests_[static_cast<std::size_t>(event.size)];
    if (!driver_.allocate(static_cast<std::size_t>(tensor), request, event.stream)) fail(request.bytes);
  }
  void release(std::int32_t tensor, const Event&) { driver_.release(static_cast<std::size_t>(tensor)); }
  void touch(std::int32_t, const Event& event) {
    const SizedRequest& request = requests_[static_cast<std::size_t>(event.size)];
    if (request.bytes != 0 && !driver_.allocator().touch(request, event.stream)) fail(request.bytes);
  }
  void moment(std::int32_t moment, bool billed) {
    close_moment();
    seen_ = moment;
    open_moment(billed ? moment : -1);
  }
  void empty_cache() { driver_.allocator().empty_cache(); }
  [[nodiscard]] std::uint64_t state() { return driver_.allocator().state_digest(); }
  [[nodiscard]] bool done() const { return !result_.survives; }

 private:
  void fail(std::int64_t bytes) {
    result_.survives = false;
    result_.failed_request = bytes;
    result_.failed_moment = seen_;
  }

  void open_moment(std::int32_t moment) {
    current_ = moment;
    note_reserved();
    ++marks_;
    driver_.allocator().reset_peaks();
    if (moment < 0 || place_[static_cast<std::size_t>(moment)] >= 0) return;
    place_[static_cast<std::size_t>(moment)] = static_cast<int>(result_.moments.size());
    result_.moments.push_back({moment, 0, 0});
  }

  // The first moment is the building.
  void note_reserved() {
    const AllocatorCounters& counters = driver_.counters();
    if (marks_ == 1) result_.building_allocated = counters.allocated.peak;
    std::int64_t& reserved = marks_ == 1 ? result_.building_reserved : result_.reserved;
    reserved = std::max(reserved, counters.reserved.peak);
  }

  void close_moment() {
    if (current_ < 0) return;
    ReplayMoment& moment = result_.moments[static_cast<std::size_t>(place_[static_cast<std::size_t>(current_)])];
    const Gauge& allocated = driver_.counters().allocated;
    moment.allocated = std::max(moment.allocated, allocated.peak);
    moment.end = allocated.current;
    result_.allocated = std::max(result_.allocated, allocated.peak);
  }

  TraceWalk<Replay> walk_;
  std::vector<SizedRequest> requests_;  // by SizeId
  AllocatorDriver driver_;
  std::vector<int> place_;
  std::int32_t current_ = -1, seen_ = -1;
  int marks_ = 0;
  ReplayResult result_;
};

}  // namespace

ReplayResult replay(const Trace& trace, std::span<const std::int64_t> bytes, const AllocatorSettings& settings,
                    std::optional<std::int64_t> capacity) {
  return Replay(trace, bytes, settings, capacity).run();
}

std::int64_t smallest_capacity(const Trace& trace, std::span<const std::int64_t> bytes,
                               const AllocatorSettings& settings) {
  const ReplayResult unlimited = replay(trace, bytes, settings, std::nullopt);
  return smallest_survivor(unlimited.allocated, unlimited.reserved_ever(), kMiB,
                           [&](std::int64_t capacity) { return replay(trace, bytes, settings, capacity).survives; });
}

}  // namespace membill
