// TOML 1.0 into a Value: the job files of torchtitan.
#pragma once

#include <string>
#include <string_view>

#include "membill/value.h"

namespace membill::io {

// Whether `text` is TOML: by the ending of its file's name, or because its first line that is no comment is a header of a table,
// "[training]".
[[nodiscard]] bool is_toml(std::string_view text, const std::string& file);

// Reads one document. Dates and times come as text. Integers are exact; infinity and NaN are refused. Throws InputError with the first
// mistake of syntax (a key that stands twice is one), nesting beyond kDeepest, what check_text refuses.
[[nodiscard]] Value parse_toml(std::string_view text, const std::string& file);

}  // namespace membill::io
