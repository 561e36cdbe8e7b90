// What to change in a job of a framework's format, so that it says another plan.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/exporters/exporter.h"

namespace membill::io {

struct FormatChanges {
  std::vector<std::string>
      keys;  // "quantization_bit: 4", in the order of the format's file; to be taken out: "fp16 (take it out)"
  std::vector<std::string> environment;  // "PYTORCH_ALLOC_CONF=expandable_segments:True"
  std::vector<PlanSetting> unsaid;       // of the settings: what the format has no key for
};

// `settings` are what makes `after` of `before`. `format` is an importer's name: its exporter writes both plans, or TRL's, whose keys many
// take; what is named was read back by the importer itself and came to the settings. Only a key that it knows is named.
[[nodiscard]] FormatChanges changes_in_format(std::string_view format, const ExportJob& before, const ExportJob& after,
                                              const std::vector<PlanSetting>& settings, const DataDirs& dirs);

}  // namespace membill::io
