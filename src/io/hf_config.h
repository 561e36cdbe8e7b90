// A Hugging Face config.json made ready for a family: the text part of a wrapper, class defaults, what the file says of its storage.
#pragma once

#include <string>

#include "io/model_source.h"
#include "membill/problem.h"
#include "membill/value.h"

namespace membill::io {

// Fills model_type, config, stored_dtype, stored, not_counted and warnings of `model` from `config`. Problems name model.file:
// a config that is no map, a model_type that is missing or that no family knows (with the nearest one).
void resolve_config(const Value& config, LoadedModel& model, Problems& problems);

}  // namespace membill::io
