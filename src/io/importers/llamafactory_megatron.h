// LLaMA-Factory's Megatron path: USE_MCA=1, or keys of mcore_adapter in the job file.
#pragma once

#include "io/importers/importer.h"

namespace membill::io {

// What mcore_adapter adds to Megatron's flags, or gives another default.
[[nodiscard]] KeyTable llamafactory_megatron_table();

[[nodiscard]] bool runs_on_megatron(const JobSource& source);

// Everything but model, stage and method.
void read_llamafactory_megatron(KeyReader& reader, const JobSource& source, Draft& draft);

}  // namespace membill::io
