// How Megatron lays parameters out in one buffer, and which part of it a rank's optimizer owns.
#pragma once

#include <cstdint>
#include <vector>

#include "membill/training_plan.h"

namespace membill {

// Elements of each parameter in the order of model.parameters().
struct BufferLayout {
  std::int64_t elements = 0;             // of the buffer, with padding
  std::vector<std::int64_t> shares;      // elements of each bucket's part that one rank owns
  std::vector<std::int64_t> own_slices;  // elements of each parameter that this rank's shards overlap, in buffer order
};

struct BufferShape {
  std::int64_t ranks = 1, rank = 0;  // that share the optimizer's states, and which of them this one is
  bool sharded = false;              // distributed optimizer: parameters and buckets are aligned
  std::int64_t bucket_size = 0;      // elements from which a bucket is closed; 0: one bucket
};

[[nodiscard]] BufferLayout lay_out_buffer(const std::vector<std::int64_t>& parameters, const BufferShape& shape);

}  // namespace membill
