// accelerate's YAML: by itself, or as the configuration with which a job is launched.
#pragma once

#include <string>

#include "io/importers/importer.h"

namespace membill::io {

// Reads accelerate's map into the draft. What the job itself has said already (an engine, bf16) stays.
void read_accelerate_part(const Value& config, const std::string& file, Draft& draft);

}  // namespace membill::io
