// Runs the built program as a user does, through a shell.
#ifndef MEMBILL_TESTS_SUPPORT_COMMAND_H_
#define MEMBILL_TESTS_SUPPORT_COMMAND_H_

#include <filesystem>
#include <string>

namespace membill::test {

struct CommandResult {
  std::string out;
  std::string err;
  int status = 0;  // exit status, or 128 and the signal's number
};

// Runs the line for /bin/sh in `folder`, under the source tree. `membill` is the built program. The environment is empty but for PATH and
// TMP, a folder for scratch files that is removed afterwards.
[[nodiscard]] CommandResult run_command(const std::string& line, const std::filesystem::path& folder);

// The whole text of a file; empty when it cannot be read.
[[nodiscard]] std::string read_whole_file(const std::filesystem::path& path);

// Whether MEMBILL_REWRITE=1 asks golden tests to write what the program prints now.
[[nodiscard]] bool rewriting_goldens();

}  // namespace membill::test

#endif  // MEMBILL_TESTS_SUPPORT_COMMAND_H_
