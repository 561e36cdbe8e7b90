// Value trees as text that people keep: JSON and YAML in block style.
#pragma once

#include <string>

#include "membill/value.h"

namespace membill::io {

// JSON, two blanks a level, lists of scalars on one line, a newline at the end.
[[nodiscard]] std::string write_json(const Value& value);
// The same on one line, without the newline.
[[nodiscard]] std::string write_json_line(const Value& value);
// YAML that reads back as the same tree: text that YAML would take for something else is quoted. REQUIRES: a map.
[[nodiscard]] std::string write_yaml(const Value& map);

}  // namespace membill::io
