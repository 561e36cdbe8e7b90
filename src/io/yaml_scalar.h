// What a plain (unquoted) scalar of YAML means; the table stands in yaml_reader.h.
#pragma once

#include <string>

#include "membill/value.h"

namespace membill::io {

// The value of `text`, which is not one of the spellings of null. `why` is empty, or says what is wrong with a number ("does not fit
// 64 bits"); the value is null then.
[[nodiscard]] Value plain_scalar(const std::string& text, std::string& why);

}  // namespace membill::io
