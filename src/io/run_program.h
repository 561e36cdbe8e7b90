// Runs a small program and takes what it prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace membill::io {

enum class ProgramEnd : std::uint8_t {
  done,       // exit status 0
  failed,     // another status, or ended by a signal
  not_found,  // no such program on the PATH, or it may not be run
  timed_out,  // killed after the time limit
  too_much,   // killed after more than 1 MiB of output
};

struct ProgramResult {
  ProgramEnd end = ProgramEnd::done;
  std::string output;  // what came on standard output
};

// Runs `command` (name and arguments, looked up on the PATH, no shell) with nothing on its standard input and its standard error
// discarded, for at most `seconds`. The program is never left running. Throws InputError when no process can be started.
[[nodiscard]] ProgramResult run_program(const std::vector<std::string>& command, int seconds);

}  // namespace membill::io
