// Rows of README's tables that the accuracy tests keep true.
#pragma once

#include <string>
#include <vector>

#include "support/scoreboard.h"

namespace membill::accuracy {

// What is wrong with README's row "| label | cells... |": empty when it stands there exactly so, and always with
// MEMBILL_REWRITE=1, which writes it.
[[nodiscard]] std::string stale_readme_row(const std::string& label, const std::vector<std::string>& cells);

// The row of `errors`: how many, median, 95 of 100, worst.
[[nodiscard]] std::string stale_readme_row(const std::string& label, const Errors& errors);

}  // namespace membill::accuracy
