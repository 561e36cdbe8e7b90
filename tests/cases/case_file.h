// A golden file: command lines of the program with what they must print.
//
//   # why this case is here
//   $ membill estimate llama-2-7b --seq 0        a line for /bin/sh, run in tests/cases
//   | a line of standard output
//   ! a line of standard error
//   ? 2                                          exit status, left out when 0
//
// Comments and blank lines stand between cases. A last line without its newline is marked by a line "|\" or "!\" after it.
#ifndef MEMBILL_TESTS_CASES_CASE_FILE_H_
#define MEMBILL_TESTS_CASES_CASE_FILE_H_

#include <string>
#include <vector>

#include "support/command.h"

namespace membill::test {

struct Case {
  std::vector<std::string> lead;  // comment and blank lines before it
  std::string command;
  CommandResult expected;
};

struct CaseFile {
  std::vector<Case> cases;
  std::vector<std::string> tail;  // comment and blank lines after the last case
};

// Throws std::runtime_error for a line that has none of the forms.
[[nodiscard]] CaseFile parse_cases(const std::string& text);
// The text of a file: parse_cases() of it gives the same cases.
[[nodiscard]] std::string format_cases(const CaseFile& file);
// A result as it stands in a file.
[[nodiscard]] std::string format_result(const CommandResult& result);

}  // namespace membill::test

#endif  // MEMBILL_TESTS_CASES_CASE_FILE_H_
