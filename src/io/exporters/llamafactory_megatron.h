// The step of LLaMA-Factory's Megatron path (USE_MCA=1), as mcore_adapter spells it.
#pragma once

#include "io/exporters/exporter.h"
#include "io/exporters/key_writer.h"

namespace membill::io {

void write_llamafactory_megatron(const ExportJob& job, KeyWriter& writer);

}  // namespace membill::io
