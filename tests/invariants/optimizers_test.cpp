// Every optimizer, every implementation of it: a trace with loops says the same as one in which every layer is written out, and
// each tensor of the step is freed once.
#include <string>
#include <vector>

#include "estimate/simulation.h"
#include "estimate/supported.h"
#include "membill/catalog.h"
#include "support/catch.h"
#include "support/small_llama.h"
#include "trace/expand.h"
#include "trace/fold.h"

namespace membill {
namespace {

using test::small_llama;

// Bytes of every allocation and release in order, moments as -1.
std::vector<std::int64_t> events_of(const Simulation& job) {
  const std::vector<std::int64_t> bytes = job.trace.evaluate(job.symbols);
  const FlatTrace flat = expand(job.trace, bytes);
  std::vector<std::int64_t> list;
  for (const FlatEvent& event : flat.events) {
    if (event.kind == EventKind::moment) list.push_back(-1);
    if (event.kind == EventKind::allocate) list.push_back(2 * bytes[static_cast<std::size_t>(event.size)]);
    if (event.kind == EventKind::release) list.push_back(2 * bytes[static_cast<std::size_t>(event.size)] + 1);
  }
  return list;
}

std::int64_t live_after(const std::vector<std::int64_t>& events) {
  std::int64_t sum = 0;
  for (const std::int64_t event : events)
    if (event >= 0) sum += event % 2 == 0 ? event / 2 : -(event / 2);
  return sum;
}

}  // namespace

TEST_CASE("optimizers: folded equals expanded") {
  const ModelSpec model = small_llama();
  for (const OptimizerRow& row : optimizers()) {
    for (const OptimizerImpl impl : {OptimizerImpl::loop, OptimizerImpl::foreach, OptimizerImpl::fused}) {
      TrainingPlan plan;
      plan.optimizer = row.name;
      plan.optimizer_impl = impl;
      plan.batch = 1;
      plan.seq = 64;
      plan.clip = row.gradients == GradientLife::whole_step;
      if (!not_billed_yet(plan).empty()) continue;
      INFO(row.name);
      const std::vector<std::int64_t> folded = events_of(simulate(model, plan, {}));
      CHECK(folded == events_of(simulate(model, plan, {}, true)));
      CHECK(live_after(folded) > 0);
    }
  }
}

TEST_CASE("optimizers: a step leaves what the step before left") {
  const ModelSpec model = small_llama();
  for (const OptimizerRow& row : optimizers()) {
    TrainingPlan plan;
    plan.optimizer = row.name;
    plan.seq = 64;
    plan.clip = row.gradients == GradientLife::whole_step;
    if (!not_billed_yet(plan).empty()) continue;
    const Simulation job = simulate(model, plan, {});
    const std::vector<std::int64_t> bytes = job.trace.evaluate(job.symbols);
    const FlatTrace flat = expand(job.trace, bytes);
    std::int64_t sum = 0, before = 0;
    for (std::size_t i = 0; i < flat.events.size(); ++i) {
      const FlatEvent& event = flat.events[i];
      if (i == flat.billed_from) before = sum;
      if (event.kind == EventKind::allocate) sum += bytes[static_cast<std::size_t>(event.size)];
      if (event.kind == EventKind::release) sum -= bytes[static_cast<std::size_t>(event.size)];
    }
    INFO(row.name);
    CHECK(sum == before);
  }
}

}  // namespace membill
