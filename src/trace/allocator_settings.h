// Settings of PyTorch's CUDA caching allocator, and the reader of PYTORCH_ALLOC_CONF.
//
// Source: PyTorch 2.15, c10/core/AllocatorConfig.h and c10/cuda/CUDAAllocatorConfig.h; what the reader refuses was
// checked against that release's own parser, key by key.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "membill/problem.h"

namespace membill {

inline constexpr std::int64_t kAllocatorMiB = std::int64_t{1} << 20;
inline constexpr std::int64_t kMinBlockBytes = 512;                // every request is rounded up to a multiple of this
inline constexpr std::int64_t kSmallRequestBytes = kAllocatorMiB;  // largest request served by the small pool
inline constexpr std::int64_t kSmallSegmentBytes = 2 * kAllocatorMiB;  // segment, or page, of the small pool
inline constexpr std::int64_t kMinOwnSegmentBytes =
    10 * kAllocatorMiB;  // from here a request gets a segment of its own
inline constexpr std::int64_t kOwnSegmentUnitBytes = 2 * kAllocatorMiB;  // whose size is a multiple of this

// What a user can set. The defaults are PyTorch's.
struct AllocatorSettings {
  // expandable_segments: one growing range a pool and stream, mapped in pages of 2 MiB (small pool) or
  // `large_segment_bytes` (large pool), instead of one cudaMalloc a segment. Default: false.
  bool expandable_segments = false;

  // max_split_size_mb: blocks of this size or more are neither split nor given to smaller requests. At least
  // `large_segment_bytes`. Default: none (every block may be split).
  std::optional<std::int64_t> max_split_size_bytes;

  // max_non_split_rounding_mb: a request of max_split_size or more takes a cached block only if that is less than this
  // many bytes larger. Default: none, which stands for `large_segment_bytes`.
  std::optional<std::int64_t> max_non_split_rounding_bytes;

  // large_segment_size_mb: segment that requests above 1 MiB and below 10 MiB share; page of the large pool with
  // expandable segments. Above 10 MiB. Default: 20 MiB.
  std::int64_t large_segment_bytes = 20 * kAllocatorMiB;

  // garbage_collection_threshold: part of the allowed memory above which unused blocks of more than average age are
  // freed before a new segment is asked for. In (0, 1); 0 is off. PyTorch does so only when a memory fraction was set
  // too, and so does the model. Default: 0.
  double garbage_collection_threshold = 0;

  // per_process_memory_fraction (or torch.cuda.set_per_process_memory_fraction): part of the card's memory that the
  // allocator may reserve. In [0, 1]. Default: none.
  std::optional<double> per_process_memory_fraction;

  // roundup_power2_divisions by size of the request: element i holds for [2^i, 2^(i+1)) MiB, the first also for smaller
  // ones, the last also for larger. A request above 512 bytes times the element is rounded up to that many equal steps
  // between two powers of two; 0 and 1 are off. Default: all 0.
  static constexpr std::size_t kRoundupIntervals = 16;
  std::array<std::int64_t, kRoundupIntervals> roundup_power2_divisions{};

  bool operator==(const AllocatorSettings&) const = default;
};

// The size of the block that serves a request of `bytes` bytes: a multiple of 512, or the next power-of-two division.
// REQUIRES: bytes > 0.
[[nodiscard]] std::int64_t rounded_request(const AllocatorSettings& settings, std::int64_t bytes);

// What cudaMalloc is asked for when no cached block serves a request already rounded to `rounded` bytes.
[[nodiscard]] std::int64_t segment_bytes_for(const AllocatorSettings& settings, std::int64_t rounded);

// Settings read from text, or what is wrong with it.
struct AllocatorSettingsText {
  AllocatorSettings settings;        // defaults where a part was wrong
  std::vector<Problem> problems;     // one a wrong part, in the text's order; key is the option, file is left empty
  std::vector<std::string> ignored;  // valid options that change no byte on the device (pinned memory, locks), as typed
};

// Reads the value of PYTORCH_ALLOC_CONF (formerly PYTORCH_CUDA_ALLOC_CONF):
// "expandable_segments:True,max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:4]". Blanks are ignored and of
// an option written twice the last counts, as in PyTorch. Unlike PyTorch, numbers must be whole ("128MB" and "-1" are
// refused) and the backend cudaMallocAsync is a problem: it is another allocator, which this model is not.
[[nodiscard]] AllocatorSettingsText read_allocator_settings(std::string_view text);

}  // namespace membill
