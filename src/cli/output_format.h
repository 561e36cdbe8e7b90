// The choice of an output format for a report.
#ifndef MEMBILL_CLI_OUTPUT_FORMAT_H_
#define MEMBILL_CLI_OUTPUT_FORMAT_H_

#include "cli/command.h"
#include "membill/report.h"
#include "report/formats.h"

namespace membill::cli {

// --format, --brief, --strict and --exit-zero: what every command that prints a report takes.
[[nodiscard]] std::vector<OptionSpec> report_options();

// The format that the arguments name, `fallback` by default; a problem and nullptr when there is no such format.
[[nodiscard]] const report::Format* chosen_format(const Arguments& arguments, std::string_view fallback,
                                                  Problems& problems);

// Renders to `output` for the terminal at hand, notes the report's warnings for stderr, and gives the exit status.
[[nodiscard]] ExitCode print_report(const Report& report, const report::Format& format, const Arguments& arguments,
                                    Output& output);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_OUTPUT_FORMAT_H_
