// Launch scripts from the facts that are kept of them: launch-flags.jsonl has the programs, variables and flags of each, in order.
#pragma once

#include <string>

#include "membill/value.h"

namespace membill::importers_test {

// A script that sets the row's variables and runs its training command with its flags. Of several commands in a row the one with the
// most flags is taken; words that are not whole (half a quotation, half a substitution) are left out.
[[nodiscard]] std::string script_of(const Value& row);

}  // namespace membill::importers_test
