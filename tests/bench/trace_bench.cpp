// Time of the parts of one estimate for a 32-layer model: the simulation, the fold to a peak, the replay through the allocator,
// and all of it. Asserts nothing.
#include <cstdio>

#include "estimate/simulation.h"
#include "io/model_source.h"
#include "membill/estimate.h"
#include "support/bench.h"
#include "trace/expand.h"
#include "trace/fold.h"
#include "trace/replay.h"

namespace {

using membill::bench::best_of;

void report(const char* name, const membill::ModelSpec& model, const membill::TrainingPlan& plan, double unit) {
  const membill::Simulation job = membill::simulate(model, plan, {});
  const auto bytes = job.trace.evaluate(job.symbols);
  const std::size_t events = membill::expand(job.trace, bytes).events.size();
  const double simulation = best_of(30, [&] { (void)membill::simulate(model, plan, {}); });
  const double fold = best_of(200, [&] { (void)membill::fold_peak(job.trace, bytes); });
  const double replay = best_of(30, [&] { (void)membill::replay(job.trace, bytes, {}, std::nullopt); });
  const double whole = best_of(30, [&] { (void)membill::estimate(model, plan, {}); });
  std::printf(
      "%-28s %6zu events folded into %5zu; simulate %6.3f ms, fold %6.2f us, replay %6.3f ms (%5.1f ns/event), "
      "estimate %6.3f ms = %.2f yardsticks\n",
      name, events, job.trace.events.size(), simulation / 1e6, fold / 1e3, replay / 1e6,
      replay / static_cast<double>(events), whole / 1e6, whole / unit);
}

}  // namespace

int main() {
  const double unit = best_of(20, membill::bench::yardstick);
  std::printf("yardstick (1e6 multiply-adds): %.3f ms\n", unit / 1e6);
  const membill::ModelSpec model = membill::io::describe_model(membill::io::load_model("llama-2-7b", {}));
  membill::TrainingPlan plan;
  report("plain", model, plan, unit);
  plan.checkpointing.mode = membill::Checkpointing::full;
  plan.accumulate = 8;
  report("checkpointing, accumulating", model, plan, unit);
  plan.method = membill::Method::lora;
  report("lora besides", model, plan, unit);
}
