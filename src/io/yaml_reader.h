// YAML into a Value, read so that no spelling changes meaning between YAML 1.1 and 1.2 unseen.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "membill/problem.h"
#include "membill/value.h"

namespace membill::io {

// A job file is a page or two; the parser's look-ahead costs a hundred times the text it reads.
inline constexpr std::int64_t kLargestYaml = 4LL << 20;

// Reads the one document of `text`. Plain scalars mean:
//   true false yes no on off      booleans, as PyYAML reads them (YAML 1.1), in lower case, upper case or capitalised
//   12 -3 +4                      whole numbers
//   1.5 1e5 1.0e-5 .5             reals ("1e5" too: PyYAML sees text there, the frameworks then convert it)
//   null ~ and nothing            null
//   010 1_000 0x1F 1:30           text: the versions of YAML disagree on the number, so no number is read
//   .inf .nan                     refused
// Aliases are expanded and `<<` merges them, within kMostValues values and kDeepest levels in all (json_reader.h).
// Throws InputError with all duplicate keys and bad numbers, or with the first mistake of syntax, a second document, a tag other than
// the standard ones, a key that is no scalar, an alias inside of its own anchor, a tab as indentation, what check_text refuses.
[[nodiscard]] Value parse_yaml(std::string_view text, const std::string& file);
// The same as PyYAML reads it: of a key that stands twice the last counts. Each is noted in `repeated`, no problem of the file.
[[nodiscard]] Value parse_yaml(std::string_view text, const std::string& file, Problems& repeated);

}  // namespace membill::io
