// Rows of an embedding that train beside LoRA (peft 0.21.2, TrainableTokensLayer).
#pragma once

#include "blocks/forward.h"

namespace membill {

// The module's weight with its trained rows copied in: a new table at each call. REQUIRES: module.trained_rows.
[[nodiscard]] Parameter with_trained_rows(Forward& f, const Module& module);

}  // namespace membill
