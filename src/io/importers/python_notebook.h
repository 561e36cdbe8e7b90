// Programs as people keep them: a file of Python or a notebook, with the commands that it hands to a shell and the files that it writes.
#pragma once

#include <string>
#include <string_view>

#include "io/importers/python_program.h"

namespace membill::io {

struct ProgramText {
  std::string program;       // Python; lines of commands (!, %) stay where they are
  std::string script;        // the commands, and the files that cells write, as a launch script
  std::string requirements;  // what it installs, one a line
};

// Whether the file is a Python program or a notebook.
[[nodiscard]] bool is_python(std::string_view text, const std::string& file);
// Throws InputError when a notebook is no JSON.
[[nodiscard]] ProgramText program_text(std::string_view text, const std::string& file);
// The script with what `program` itself writes (json.dump, yaml.dump) and starts (os.system, subprocess.run), and with the values of its
// names in the commands ({name}, $name).
[[nodiscard]] std::string whole_script(const ProgramText& text, const PythonProgram& program);

}  // namespace membill::io
