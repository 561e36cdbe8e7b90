// A saved report back from its JSON.
#ifndef MEMBILL_REPORT_READ_REPORT_H_
#define MEMBILL_REPORT_READ_REPORT_H_

#include <string>

#include "membill/problem.h"
#include "membill/report.h"
#include "membill/value.h"

namespace membill::report {

// The report that `tree` (a file of format json or jsonl, already parsed) was written from: every format renders it to the same
// bytes as the original run. Strict: a missing key, an unknown key, a wrong kind of value, another schema, and items that do not sum
// to the total are problems that name `file`. The result counts only when no problem was added.
[[nodiscard]] Report read_report(const Value& tree, const std::string& file, Problems& problems);

}  // namespace membill::report

#endif  // MEMBILL_REPORT_READ_REPORT_H_
