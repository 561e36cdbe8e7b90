#include "estimate/engines/megatron_buffers.h"

#include <algorithm>
#include <numeric>

#include "membill/units.h"

namespace membill {
namespace {

constexpr std::int64_t kParameterUnit = 64, kBucketUnit = 128;  // elements

struct Place {
  std::int64_t first = 0, last = 0;
};

class Layout {
 public:
  explicit Layout(const BufferShape& shape) : shape_(shape) {}

  void add(std::int64_t elements) {
    const std::int64_t first = shape_.sharded ? round_up(end_, kParameterUnit) : end_;
    end_ = checked_add(first, elements);
    bucket_.push_back({first, end_});
    if (shape_.bucket_size > 0 && end_ - bucket_start_ >= shape_.bucket_size) close_bucket();
  }

  BufferLayout finish() {
    if (!bucket_.empty()) close_bucket();
    result_.elements = end_;
    return std::move(result_);
  }

 private:
  void close_bucket() {
    if (shape_.sharded) end_ = round_up(end_, std::lcm(shape_.ranks, kBucketUnit));
    const std::int64_t share = (end_ - bucket_start_) / shape_.ranks;
    result_.shares.push_back(share);
    const std::int64_t first = bucket_start_ + shape_.rank * share;
    for (const Place& place : bucket_) {
      const std::int64_t own = std::min(place.last, first + share) - std::max(place.first, first);
      if (own > 0) result_.own_slices.push_back(own);
    }
    bucket_.clear();
    bucket_start_ = end_;
  }

  const BufferShape& shape_;
  std::int64_t end_ = 0, bucket_start_ = 0;
  std::vector<Place> bucket_;
  BufferLayout result_;
};

}  // namespace

BufferLayout lay_out_buffer(const std::vector<std::int64_t>& parameters, const BufferShape& shape) {
  Layout layout(shape);
  std::for_each(parameters.rbegin(), parameters.rend(), [&](std::int64_t elements) { layout.add(elements); });
  return layout.finish();
}

}  // namespace membill
