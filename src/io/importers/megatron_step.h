// Flags of a Megatron step, which Megatron-LM and Megatron-SWIFT share.
#pragma once

#include "io/importers/importer.h"

namespace membill::io {

[[nodiscard]] KeyTable megatron_step_table();

// Batch, length, parallelism, recompute, precision, optimizer.
void read_megatron_step(KeyReader& reader, Draft& draft);

}  // namespace membill::io
