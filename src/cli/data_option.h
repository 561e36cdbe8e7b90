// --data: the user's own presets.
#ifndef MEMBILL_CLI_DATA_OPTION_H_
#define MEMBILL_CLI_DATA_OPTION_H_

#include "cli/command.h"
#include "io/preset_files.h"

namespace membill::cli {

[[nodiscard]] inline OptionSpec data_option() {
  return {"--data", Takes::value,
          "DIR",    "a folder with models/ and hardware/ of your own; also $MEMBILL_DATA",
          "Output", {}};
}

// The folders of --data and $MEMBILL_DATA. Throws InputError when one is no folder.
[[nodiscard]] inline io::DataDirs data_dirs(const Arguments& arguments) {
  const std::string* folder = arguments.value("--data");
  return io::data_dirs(folder == nullptr ? std::string() : *folder);
}

}  // namespace membill::cli

#endif  // MEMBILL_CLI_DATA_OPTION_H_
