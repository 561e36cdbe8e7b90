// A launch script that a command starts: bash finetune.sh 8 2, ./run.sh.
#pragma once

#include <optional>
#include <string>

#include "io/importers/shell_words.h"

namespace membill::io {

struct CalledScript {
  std::string text;  // the words behind its name are its positions
  std::string file;
  std::string folder;
  Variables variables;
};

// Looked for in the current folder, then in `folder`. Nothing: the command starts no script, or one that is not there.
[[nodiscard]] std::optional<CalledScript> called_script(const ShellCommand& command, const std::string& folder);

}  // namespace membill::io
