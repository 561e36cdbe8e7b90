// The cards of this machine, as nvidia-smi or npu-smi lists them (--gpu auto).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/preset_files.h"
#include "membill/hardware.h"
#include "membill/units.h"

namespace membill::io {

struct DetectedGpu {
  std::string name;  // as the tool prints it: "NVIDIA A100-SXM4-80GB"
  Bytes total;       // of the driver
  Bytes used;        // by all processes
  // npu-smi counts what the driver keeps for itself as used; nvidia-smi does not.
  bool driver_in_used = false;
};

// What `nvidia-smi --query-gpu=name,memory.total,memory.used --format=csv,noheader,nounits` prints: a line per card, sizes in MiB.
// Throws InputError when there is no card, a line has another form, a size is "[N/A]" or the like, or more is used than there is.
[[nodiscard]] std::vector<DetectedGpu> parse_nvidia_smi(std::string_view output);

// The cards in the table that `npu-smi info` prints: two lines each, the name in the first, HBM-Usage(MB) at the end of the second; in
// MiB. Same errors.
[[nodiscard]] std::vector<DetectedGpu> parse_npu_smi(std::string_view output);

struct DetectedHardware {
  Hardware hardware;               // gpu, count, others_use and assumptions
  std::vector<DetectedGpu> cards;  // all that were found
};

// A job on `count` of the cards (none: on all): it takes those with the most free memory, and the one of them with the least decides.
// Its preset gives the usable total when the driver's total agrees with it to 2 %; otherwise the rule of usable_of_reported.
// Throws InputError when there are fewer cards than `count`. `key` is the flag in problems.
[[nodiscard]] DetectedHardware choose_cards(std::vector<DetectedGpu> cards, std::optional<std::int64_t> count,
                                            const DataDirs& dirs, const std::string& key = "--gpu");

// Runs nvidia-smi, or npu-smi where that is absent, for at most ten seconds, and chooses. Throws InputError when neither is there, the
// tool fails (its first line is quoted) or its output has another form.
[[nodiscard]] DetectedHardware detect_hardware(std::optional<std::int64_t> count, const DataDirs& dirs);

}  // namespace membill::io
