// Nanoseconds an event of the allocator's replay, beside a fixed loop timed in the same run so that two machines, or two
// moments of a busy one, can be compared. Asserts nothing.
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "support/allocator_stream.h"
#include "support/bench.h"
#include "trace/allocator_replay.h"

namespace {

using membill::AllocatorEvent;
using membill::AllocatorEventKind;
using membill::bench::best_of;
using membill::bench::yardstick;

// 20,000 events in which many blocks of many sizes stay cached: the sorted set's worst use.
std::vector<AllocatorEvent> scattered() {
  std::vector<AllocatorEvent> events;
  std::mt19937 random(11);
  std::vector<std::int32_t> live;
  for (std::int32_t id = 0; events.size() < 20000;) {
    if (live.size() < 200 || (live.size() < 1500 && random() % 2 == 0)) {
      events.push_back(
          {AllocatorEventKind::allocate, 0, id, static_cast<std::int64_t>(1 + (random() % 4096) * (random() % 4096))});
      live.push_back(id++);
    } else {
      std::swap(live[random() % live.size()], live.back());
      events.push_back({AllocatorEventKind::release, 0, live.back(), 0});
      live.pop_back();
    }
  }
  return events;
}

void report(const std::string& name, const std::vector<AllocatorEvent>& events,
            const membill::AllocatorSettings& settings, double yardstick_ns) {
  std::int64_t reserved = 0;
  const double ns = best_of(20, [&] { reserved = membill::replay_events(events, settings).counters.reserved.peak; });
  std::printf("%-40s %7zu events %8.1f ns/event %8.3f ms %6.2f yardsticks\n", name.c_str(), events.size(),
              ns / static_cast<double>(events.size()), ns / 1e6, ns / yardstick_ns);
}

}  // namespace

int main() {
  const double unit = best_of(20, yardstick);
  std::printf("yardstick (1e6 multiply-adds): %.3f ms\n", unit / 1e6);
  for (const auto& stream : membill::test::allocator_streams("job-")) {
    report(stream.name, stream.events, membill::test::settings_of(stream), unit);
  }
  report("scattered", scattered(), {}, unit);
  membill::AllocatorSettings expandable;
  expandable.expandable_segments = true;
  report("scattered, expandable", scattered(), expandable, unit);
}
