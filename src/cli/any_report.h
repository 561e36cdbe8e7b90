// A report from whatever names a job: a saved report, a job file, a config, a folder, a preset.
#ifndef MEMBILL_CLI_ANY_REPORT_H_
#define MEMBILL_CLI_ANY_REPORT_H_

#include <optional>
#include <string>

#include "cli/command.h"
#include "membill/report.h"

namespace membill::cli {

// The report saved in `path`; none when the file holds something else. Throws InputError when it is a report that is broken.
[[nodiscard]] std::optional<Report> saved_report(const std::string& path);

// A saved report as it is; anything else is estimated with the options of `arguments`. Throws InputError.
[[nodiscard]] Report any_report(const Arguments& arguments, const std::string& name);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_ANY_REPORT_H_
