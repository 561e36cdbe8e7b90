// The model that Megatron-LM's flags describe, as a Hugging Face config of the type that is built alike.
#pragma once

#include "io/importers/importer.h"

namespace membill::io {

// Sets the draft's config. What of the model is not modelled, or not said, is a problem.
void read_megatron_model(KeyReader& reader, Draft& draft);
// Megatron drops a tenth unless told otherwise; the config of no type but GPT-2's says so.
void take_megatron_dropout(KeyReader& reader, Draft& draft);

}  // namespace membill::io
