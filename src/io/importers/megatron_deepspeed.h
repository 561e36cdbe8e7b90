// Megatron-DeepSpeed: Megatron-LM's flags beside --deepspeed.
#pragma once

#include "io/importers/importer.h"
#include "io/importers/key_table.h"

namespace membill::io {

[[nodiscard]] KeyTable megatron_deepspeed_table();

// Whether DeepSpeed runs the step.
[[nodiscard]] bool runs_on_deepspeed(const JobSource& source);

// What DeepSpeed changes of a step that read_megatron_step has read.
void read_megatron_deepspeed(KeyReader& reader, Draft& draft);

}  // namespace membill::io
