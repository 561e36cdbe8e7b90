// LLaMA-Factory's v1 trainer (USE_V1=1): other keys, another loop.
#pragma once

#include "io/importers/importer.h"
#include "io/importers/key_table.h"

namespace membill::io {

[[nodiscard]] KeyTable llamafactory_v1_table();

// Whether the job is one of the v1 trainer, by its keys or by what it exports.
[[nodiscard]] bool runs_on_v1(const JobSource& source);

void read_llamafactory_v1(const JobSource& source, Draft& draft);

}  // namespace membill::io
