#include <algorithm>

#include "estimate/engines/megatron_buffers.h"
#include "estimate/pipeline_order.h"
#include "support/catch.h"

namespace membill {
namespace {

// Forwards whose backward has not begun yet, at most.
std::int64_t most_in_flight(const std::vector<PipelineTurn>& order) {
  std::int64_t now = 0, most = 0;
  for (const PipelineTurn& turn : order) {
    now += turn.forward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

TEST_CASE("stage i of p holds p - i micro-batches, or all there are") {
  for (std::int64_t stages = 1; stages <= 8; ++stages)
    for (std::int64_t stage = 0; stage < stages; ++stage)
      for (std::int64_t m = 1; m <= 12; ++m) {
        const PipelineStage place{stages, stage, 1, m};
        const auto order = pipeline_order(place);
        CHECK(order.size() == static_cast<std::size_t>(2 * m));
        CHECK(most_in_flight(order) == std::min(stages - stage, m));
        PipelineStage fewer = place;
        fewer.micro_batches = distinct_micro_batches(place);
        CHECK(most_in_flight(pipeline_order(fewer)) == most_in_flight(order));
      }
}

// Narayanan et al. 2021, as megatron-core runs it: 2(p - i - 1) + (v - 1)p + 1 chunks.
TEST_CASE("an interleaved stage holds chunks of several groups") {
  for (const std::int64_t stages : {2, 4, 8})
    for (const std::int64_t chunks : {2, 3, 4})
      for (std::int64_t stage = 0; stage < stages; ++stage) {
        const PipelineStage place{stages, stage, chunks, 8 * stages};
        CHECK(most_in_flight(pipeline_order(place)) == 2 * (stages - stage - 1) + (chunks - 1) * stages + 1);
        PipelineStage fewer = place;
        fewer.micro_batches = distinct_micro_batches(place);
        CHECK(fewer.micro_batches < place.micro_batches);
        CHECK(most_in_flight(pipeline_order(fewer)) == most_in_flight(pipeline_order(place)));
      }
}

TEST_CASE("every forward comes before its backward and once") {
  for (const PipelineTurn& turn : pipeline_order({4, 1, 2, 8})) {
    CHECK(turn.chunk < 2);
    CHECK(turn.micro_batch < 8);
  }
  const auto order = pipeline_order({4, 1, 2, 8});
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].forward) continue;
    const auto same = [&](const PipelineTurn& other) {
      return other.forward && other.chunk == order[i].chunk && other.micro_batch == order[i].micro_batch;
    };
    CHECK(std::count_if(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(i), same) == 1);
  }
}

TEST_CASE("Megatron's buffers: aligned parameters, padded buckets, a rank's share") {
  const std::vector<std::int64_t> sizes{1000, 64, 100};
  CHECK(lay_out_buffer(sizes, {1, 0, false, 0}).elements == 1164);
  // 100 from 0, 64 from 128, 1000 from 192: 1192, padded to 1280, of which a rank of four owns 320.
  const BufferLayout sharded = lay_out_buffer(sizes, {4, 0, true, 0});
  CHECK(sharded.elements == 1280);
  CHECK(sharded.own_slices == std::vector<std::int64_t>{100, 64, 128});
  CHECK(lay_out_buffer(sizes, {4, 1, true, 0}).own_slices == std::vector<std::int64_t>{320});
  CHECK(lay_out_buffer(sizes, {4, 3, true, 0}).own_slices == std::vector<std::int64_t>{232});
  // The first bucket is closed at 192, padded to 256; the second holds 1000, padded to 1024.
  const BufferLayout buckets = lay_out_buffer(sizes, {4, 0, true, 150});
  CHECK(buckets.elements == 1280);
  CHECK(buckets.own_slices == std::vector<std::int64_t>{64, 256});
}

}  // namespace membill
