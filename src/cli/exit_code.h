// The exit statuses of membill: what scripts act on.
#ifndef MEMBILL_CLI_EXIT_CODE_H_
#define MEMBILL_CLI_EXIT_CODE_H_

#include "membill/report.h"

namespace membill::cli {

enum class ExitCode : int {
  computed = 0,      // computed, and it fits or no card was named; tight and unknown too, unless --strict
  does_not_fit = 1,  // computed, and it does not fit; with --strict also tight and unknown
  bad_input = 2,     // bad usage or bad input: nothing on stdout, every problem on stderr
  internal = 3,      // a defect of membill, or its output could not be written
};

// The status of a verdict.
[[nodiscard]] constexpr ExitCode exit_code(Answer answer, bool strict) {
  const bool unsure = answer == Answer::tight || answer == Answer::unknown;
  return answer == Answer::does_not_fit || (unsure && strict) ? ExitCode::does_not_fit : ExitCode::computed;
}

}  // namespace membill::cli

#endif  // MEMBILL_CLI_EXIT_CODE_H_
