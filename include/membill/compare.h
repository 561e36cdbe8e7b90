// Measured memory against the bill.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "membill/report.h"

namespace membill {

// Peaks of a real run, in bytes; empty: not measured.
struct Measured {
  std::optional<std::int64_t> requested, allocated, reserved;  // torch.cuda.memory_stats(): *_bytes.all.peak
  std::optional<std::int64_t> device;                          // nvidia-smi's figure of the process
  [[nodiscard]] bool empty() const { return !requested && !allocated && !reserved && !device; }
};

// Reads the text of torch.cuda.memory_summary(), or words with sizes ("peak 14.2 GiB, reserved=15GiB", "max_memory_allocated: 1234567").
// What it does not find stays empty.
[[nodiscard]] Measured read_measured_text(std::string_view text);

struct ComparedFigure {
  std::string name;  // "allocated"
  std::int64_t measured = 0, predicted = 0;
  std::int64_t difference = 0;  // measured less predicted
};

// An item of the bill that is as large as a difference, to 2 %: what one side may have and the other not.
struct Suspect {
  std::string id, label;
  std::int64_t bytes = 0;
  bool at_peak = true;  // its share of the peak is as large; else its own highest
};

struct Comparison {
  std::vector<ComparedFigure> figures;  // those that both sides know
  std::vector<Suspect> suspects;        // of the first figure that differs by more than 1 %
};

[[nodiscard]] Comparison compare(const Measured& measured, const Report& report);

}  // namespace membill
