// What readers say about bad input, as the command line would print it.
#pragma once

#include <string>
#include <vector>

#include "membill/problem.h"

namespace membill::io_test {

// The problems that `read` throws, a line each; empty when it throws none.
template <typename Read>
std::vector<std::string> errors_of(Read read) {
  std::vector<std::string> lines;
  try {
    static_cast<void>(read());
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) lines.push_back(to_text(problem));
  }
  return lines;
}

// The only problem that `read` throws; all of them joined when there are more.
template <typename Read>
std::string error_of(Read read) {
  std::string text;
  for (const std::string& line : errors_of(read)) text += (text.empty() ? "" : " | ") + line;
  return text;
}

using Lines = std::vector<std::string>;

}  // namespace membill::io_test
