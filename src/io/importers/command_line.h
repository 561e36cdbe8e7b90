// A command that trains, taken apart: the launcher, the program, its arguments.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/importers/importer.h"
#include "io/importers/shell_words.h"

namespace membill::io {

// The job that `words` start; nothing when they start no program that could train. Files that the command names (a YAML beside
// llamafactory-cli train, accelerate's --config_file) are read, from the current folder or from `folder`; flags go before them. What is
// wrong is added to `problems`.
[[nodiscard]] std::optional<JobSource> parse_command(const ShellCommand& command, const std::string& file,
                                                     const std::string& folder, Problems& problems);

}  // namespace membill::io
