// The timeline of a report is the same trace as its totals: to the byte.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "membill/estimate.h"
#include "support/catch.h"
#include "support/small_llama.h"

namespace {

using namespace membill;

struct Job {
  const char* name;
  Engine engine;
  std::int64_t zero, cards, accumulate;
  Checkpointing checkpointing;
  Method method;
};

Report report_of(const Job& job) {
  TrainingPlan plan;
  plan.engine = job.engine;
  plan.sharding.zero = job.zero;
  if (job.engine == Engine::fsdp2) plan.sharding.fsdp = "full_shard";
  plan.accumulate = job.accumulate;
  plan.checkpointing.mode = job.checkpointing;
  plan.method = job.method;
  Hardware hardware;
  hardware.count = job.cards;
  return estimate(test::small_llama(), plan, hardware);
}

TEST_CASE("the highest point of a timeline is the bill, and the highest of a moment that moment") {
  const std::vector<Job> jobs{
      {"one card", Engine::torch, 0, 1, 1, Checkpointing::none, Method::full},
      {"micro-batches", Engine::torch, 0, 1, 8, Checkpointing::full, Method::full},
      {"adapters", Engine::torch, 0, 1, 3, Checkpointing::full, Method::lora},
      {"zero 2", Engine::deepspeed, 2, 4, 2, Checkpointing::full, Method::full},
      {"zero 3", Engine::deepspeed, 3, 8, 8, Checkpointing::none, Method::full},
      {"fsdp", Engine::fsdp2, 0, 8, 2, Checkpointing::full, Method::full},
  };
  for (const Job& job : jobs) {
    INFO(job.name);
    const Report report = report_of(job);
    std::vector<std::int64_t> sums;
    for (const Timeline::Line& line : report.timeline.lines) {
      sums.resize(line.live.size());
      for (std::size_t i = 0; i < line.live.size(); ++i) sums[i] += line.live[i];
    }
    REQUIRE_FALSE(sums.empty());
    const auto peak = static_cast<std::size_t>(std::max_element(sums.begin(), sums.end()) - sums.begin());
    CHECK(sums[peak] == report.totals.requested.likely);
    for (const Timeline::Line& line : report.timeline.lines)
      for (const LineItem& item : report.items)
        if (item.id == line.item && item.where == Place::device) CHECK(line.live[peak] == item.at_peak);
    std::map<std::string, std::int64_t> highest, expected;
    std::size_t point = 0;
    for (const Timeline::Span& span : report.timeline.spans)
      for (std::int64_t i = 0; i < span.points; ++i)
        highest[span.moment] = std::max(highest[span.moment], sums.at(point++));
    CHECK(point == sums.size());
    for (const Moment& moment : report.moments)
      if (moment.name != "build") expected[moment.name] = moment.requested;
    CHECK(highest == expected);
  }
}

}  // namespace
