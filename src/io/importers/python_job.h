// Training programs in Python: the arguments that they give to Unsloth, TRL, PEFT, bitsandbytes and Transformers, read from
// their text. Nothing is run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "io/importers/importer.h"

namespace membill::io {

// The arguments as the keys of the importer that reads them.
struct PythonJob {
  JobSource source;
  std::string format;  // "unsloth", "trl", "hf-trainer"
};

// `launch`: how it is started; `flags`: the words behind it, by name. Nothing: the program builds no trainer that is known. Throws
// InputError when no model is written down. An argument that matters and that the program computes is a problem of `problems`, unless the command line
// says it.
[[nodiscard]] std::optional<PythonJob> read_python(std::string_view text, const std::string& file,
                                                   const std::string& folder, const Launch& launch,
                                                   const std::map<std::string, Value>& flags,
                                                   const ImportContext& context, Problems& problems);

}  // namespace membill::io
