// Cards by name: presets of data/hardware, or a plain size.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/preset_files.h"
#include "membill/hardware.h"
#include "membill/units.h"

namespace membill::io {

struct FoundGpu {
  GpuSpec gpu;
  std::vector<std::string>
      assumptions;  // how its usable memory was filled when no total that a framework sees is known
};

// Reads one file of data/hardware (schema: data/schema/hardware.json). `short_name` is the file's stem. Throws InputError.
[[nodiscard]] FoundGpu parse_gpu(const TextFile& file, const std::string& short_name);

// The card that `text` names:
//  * a preset's short name ("rtx-4090"), full name or any of its aliases, as nvidia-smi prints them; case, blanks, dashes and the
//    maker's name do not matter ("NVIDIA A100-SXM4-80GB", "A100 80GB", "rtx4090");
//  * words of one preset only ("h200");
//  * a size with a unit ("24 GiB", "80GB"): a card of which exactly that much is usable.
// Throws InputError when nothing or more than one preset answers (the candidates are named). `key` is the flag or key in problems,
// `file` where it stands ("" on the command line).
[[nodiscard]] FoundGpu find_gpu(std::string_view text, const DataDirs& dirs, const std::string& key = "--gpu",
                                const std::string& file = {});

// The preset that answers to exactly this name; nothing when none does.
[[nodiscard]] std::optional<FoundGpu> find_gpu_exactly(std::string_view name, const DataDirs& dirs);

// All presets, by short name.
[[nodiscard]] std::vector<FoundGpu> all_gpus(const DataDirs& dirs);

// What a framework can use of a card of which only the driver's total is known: 0.5 GiB less below 48 GiB, 0.7 GiB less from there on
// (differences of the two totals on known cards: 0.33 to 0.5 GiB on small ones, 0.55 to 1 GiB on large ones).
[[nodiscard]] Bytes usable_of_reported(Bytes reported);

}  // namespace membill::io
