// estimate --jobs: many jobs in one run.
#ifndef MEMBILL_CLI_ESTIMATE_JOBS_H_
#define MEMBILL_CLI_ESTIMATE_JOBS_H_

#include "cli/command.h"

namespace membill::cli {

// Reads membill's own job files, one a line, and streams a line for each in the same order: the report (format jsonl), or
// {"line": N, "errors": [...]} where a job is refused. Options of the command line hold for every job. Throws InputError when the file
// cannot be read, or an option that concerns one job only is given.
[[nodiscard]] ExitCode estimate_jobs(const Arguments& arguments, Output& output);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_ESTIMATE_JOBS_H_
