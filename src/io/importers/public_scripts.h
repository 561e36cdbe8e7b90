// Scripts on Hugging Face's Trainer or DeepSpeed that many copy, whose own defaults and keys differ from the Trainer's.
#pragma once

#include "io/importers/importer.h"

namespace membill::io {

// The arguments of `source` with what its script says of itself, in the Trainer's keys; what was taken is said in the assumptions.
[[nodiscard]] Value with_script_defaults(const JobSource& source, Draft& draft);

}  // namespace membill::io
