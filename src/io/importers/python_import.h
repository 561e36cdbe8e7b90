// Training programs as jobs: those that are given as they stand, and those that a command starts.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "io/importers/importer.h"
#include "io/importers/python_notebook.h"

namespace membill::io {

// `launch`: how it is started; `flags`: the words behind it. Nothing: the program builds no trainer that is known.
[[nodiscard]] std::optional<JobFile> import_python(const ProgramText& text, const std::string& file,
                                                   const std::string& folder, const Launch& launch,
                                                   const std::map<std::string, Value>& flags,
                                                   const ImportContext& context, Problems& problems);
// The program that a command starts; nothing: its text is not here, or it builds no trainer that is known.
[[nodiscard]] std::optional<JobFile> import_started(const JobSource& source, const ImportContext& context,
                                                    Problems& problems);
// Whether the program that a command starts is here and sets up LoRA, of which its flags say nothing. `claimed`: how surely an importer
// takes the flags.
[[nodiscard]] bool leaves_adapters_to_program(const JobSource& source, int claimed);

}  // namespace membill::io
