#include <algorithm>
#include <cstdlib>

#include "estimate/rank_model.h"
#include "estimate/simulation.h"
#include "membill/diagnose.h"

namespace membill {
namespace {

// What a message prints of `bytes` may differ from it by half a hundredth of its unit, and the allocator rounds up to a whole block.
bool may_be(std::int64_t asked, std::int64_t bytes) {
  const std::int64_t unit = asked >= (std::int64_t{1} << 30) ? std::int64_t{1} << 30 : std::int64_t{1} << 20;
  const std::int64_t rounding = unit / 200 + 1;
  const std::int64_t block = bytes < (std::int64_t{10} << 20) ? bytes : round_up(bytes, std::int64_t{2} << 20);
  return std::abs(asked - bytes) <= rounding || std::abs(asked - block) <= rounding;
}

}  // namespace

std::vector<SizeMatch> tensors_of_size(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware,
                                       std::int64_t asked) {
  const Simulation job = simulate(with_sections(model), plan, hardware);
  const std::vector<std::int64_t> bytes = job.trace.evaluate(job.symbols);
  std::vector<SizeMatch> matches;
  std::string moment;
  for (const Event& event : job.trace.events) {
    if (event.kind == EventKind::moment) moment = job.trace.moments[static_cast<std::size_t>(event.slot)];
    if (event.kind != EventKind::allocate || !may_be(asked, bytes[static_cast<std::size_t>(event.size)])) continue;
    SizeMatch match{job.trace.slot_labels[static_cast<std::size_t>(event.slot)],
                    job.trace.items[static_cast<std::size_t>(event.item)], moment,
                    bytes[static_cast<std::size_t>(event.size)]};
    const bool known = std::any_of(matches.begin(), matches.end(), [&](const SizeMatch& other) {
      return other.label == match.label && other.moment == match.moment;
    });
    if (!known) matches.push_back(std::move(match));
  }
  return matches;
}

}  // namespace membill
