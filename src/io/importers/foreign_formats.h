// Job files of frameworks that no importer reads.
#pragma once

#include <string>

#include "membill/value.h"

namespace membill::io {

// Throws InputError, one line that names the framework, when `tree` is a job file of one of them.
void refuse_foreign(const Value& tree, const std::string& file);

}  // namespace membill::io
