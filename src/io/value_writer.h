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

// TOML: scalars and lists, then a table for each map of them. REQUIRES: a map of scalars, lists and such maps.
[[nodiscard]] std::string write_toml(const Value& map);
// A command's options, one a line: "    --key value"; a switch that is on stands alone. REQUIRES: a map of scalars and lists.
[[nodiscard]] std::string write_options(const Value& map);

}  // namespace membill::io
