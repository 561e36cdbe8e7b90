// What commands inside of $(...) print, of the few whose answer follows from the script alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/importers/shell_scope.h"

namespace membill::io {

// The script's own folder and the current one are "."; the number of CUDA_VISIBLE_DEVICES is counted where it is set. Nothing: not known.
[[nodiscard]] std::optional<std::string> printed_by(std::string_view command, const ShellScope& scope);

}  // namespace membill::io
