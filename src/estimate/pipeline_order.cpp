#include "estimate/pipeline_order.h"

#include <algorithm>

namespace membill {
namespace {

constexpr std::int64_t kSteadyTurns = 3;

std::int64_t warmup(const PipelineStage& place) {
  const std::int64_t later = place.stages - place.stage - 1;
  return place.chunks == 1 ? later : 2 * later + (place.chunks - 1) * place.stages;
}

// get_schedule_table: groups of micro-batches, in each group chunk after chunk.
std::vector<PipelineTurn> forwards(const PipelineStage& place) {
  std::vector<PipelineTurn> table;
  const std::int64_t group = place.chunks == 1 ? 1 : place.stages;
  for (std::int64_t first = 0; first < place.micro_batches; first += group)
    for (std::int64_t chunk = 0; chunk < place.chunks; ++chunk)
      for (std::int64_t i = first; i < std::min(first + group, place.micro_batches); ++i)
        table.push_back({true, chunk, i});
  return table;
}

}  // namespace

std::vector<PipelineTurn> pipeline_order(const PipelineStage& place) {
  const std::vector<PipelineTurn> table = forwards(place);
  const std::size_t ahead = std::min(static_cast<std::size_t>(warmup(place)), table.size());
  std::vector<PipelineTurn> order(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(ahead));
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (ahead + i < table.size()) order.push_back(table[ahead + i]);
    order.push_back({false, place.chunks - 1 - table[i].chunk, table[i].micro_batch});
  }
  return order;
}

std::int64_t distinct_micro_batches(const PipelineStage& place) {
  if (place.chunks == 1) return std::min(place.micro_batches, warmup(place) + kSteadyTurns);
  const std::int64_t group = place.stages, per_group = group * place.chunks;
  const std::int64_t groups = (warmup(place) + per_group - 1) / per_group + 2;
  const std::int64_t rest = place.micro_batches % group;  // a last, smaller group stays
  return std::min(place.micro_batches, groups * group + rest);
}

}  // namespace membill
