// Formulas of a report: text over its symbols, such as "8·h·L·a·d + 2·h".
#ifndef MEMBILL_REPORT_FORMULA_H_
#define MEMBILL_REPORT_FORMULA_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "membill/report.h"

namespace membill::report {

// The formula with the numbers in the place of the letters: "8·4096·32 + 2·4096".
[[nodiscard]] std::string with_numbers(std::string_view formula, const std::vector<SymbolValue>& symbols);

// The sum of the terms that have one of `letters` as a factor; terms of rounded quotients are left out, so the true part is at least that.
[[nodiscard]] std::int64_t part_with(std::string_view formula, const std::vector<SymbolValue>& symbols,
                                     const std::vector<std::string_view>& letters);

}  // namespace membill::report

#endif  // MEMBILL_REPORT_FORMULA_H_
