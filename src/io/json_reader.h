// Strict JSON (RFC 8259) into a Value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "membill/value.h"

namespace membill::io {

// Bounds of one document, JSON or YAML.
inline constexpr int kDeepest = 64;  // lists and maps inside each other
inline constexpr std::int64_t kMostValues = 2'000'000;

// `python`: what Python's json module writes beyond the standard, Infinity and -Infinity, is accepted as text (a Hugging Face config may
// hold it under a key without influence on sizes). NaN never is.
enum class JsonDialect : std::uint8_t { strict, python };

// Reads one document. Integers are exact, reals keep how they were written, every value has its line.
// Throws InputError with all duplicate keys, NaN, and numbers past 64 bits, or with the first mistake of syntax: trailing text, comments,
// trailing commas, single quotes, raw control characters, lone surrogates, nesting beyond kDeepest, more than kMostValues values, what
// check_text refuses. `file` is the name in problems.
[[nodiscard]] Value parse_json(std::string_view text, const std::string& file,
                               JsonDialect dialect = JsonDialect::strict);

}  // namespace membill::io
