// Which of TRL's trainers a job runs.
#pragma once

#include <string>
#include <string_view>

#include "io/importers/importer.h"

namespace membill::io {

// Whether the program or its script has `word` in its name.
[[nodiscard]] bool mentions(const JobSource& source, std::string_view word);
// A problem for a trainer that is not billed.
void refuse_unbilled(const JobSource& source, Draft& draft);
// "sft", "dpo" ...: what the command line says, what the program is called, else what only one of them takes.
[[nodiscard]] std::string trainer_of(const JobSource& source, Draft& draft);

}  // namespace membill::io
