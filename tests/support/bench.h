// Timing that two machines, or two moments of a busy one, can compare: each figure stands beside a fixed loop's.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace membill::bench {

// The best of several runs, in nanoseconds.
template <typename Work>
double best_of(int runs, Work work) {
  using Clock = std::chrono::steady_clock;
  double best = 1e300;
  for (int i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    work();
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  return best;
}

// One million dependent 64-bit multiply-adds.
inline void yardstick() {
  static volatile std::uint64_t sink = 0;
  std::uint64_t x = sink + 1;
  for (int i = 0; i < 1'000'000; ++i) x = x * 6364136223846793005ULL + 1442695040888963407ULL;
  sink = x;
}

}  // namespace membill::bench
