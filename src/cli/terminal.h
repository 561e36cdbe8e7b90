// What standard output is connected to.
#ifndef MEMBILL_CLI_TERMINAL_H_
#define MEMBILL_CLI_TERMINAL_H_

#include <cstddef>

namespace membill::cli {

// Columns: $COLUMNS when it is a sensible number, else what the terminal says, else 80.
[[nodiscard]] std::size_t terminal_width();

// Whether to colour: standard output is a terminal that is not "dumb", and $NO_COLOR is unset or empty.
[[nodiscard]] bool wants_color();

// Whether what goes to standard output and to standard error is read on terminals, so that a text on both would be seen twice.
[[nodiscard]] bool both_are_terminals();

}  // namespace membill::cli

#endif  // MEMBILL_CLI_TERMINAL_H_
