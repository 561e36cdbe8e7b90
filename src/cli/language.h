// --lang: the language of explain and plan.
#ifndef MEMBILL_CLI_LANGUAGE_H_
#define MEMBILL_CLI_LANGUAGE_H_

#include "cli/command.h"
#include "report/messages.h"

namespace membill::cli {

[[nodiscard]] OptionSpec language_option();
[[nodiscard]] report::Language chosen_language(const Arguments& arguments, Problems& problems);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_LANGUAGE_H_
