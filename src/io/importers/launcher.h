// What starts a training: wrappers and runners, torchrun, DeepSpeed's and accelerate's launchers, the tools that start themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/importers/importer.h"

namespace membill::io {

// The words of a command, and the place that has been read.
struct WordCursor {
  std::vector<std::string> words;
  std::size_t at = 0;

  [[nodiscard]] bool done() const { return at >= words.size(); }
  [[nodiscard]] const std::string& word() const { return words[at]; }
};

// Reads the words up to the program's arguments into `source.launch`; false: they start no program that could train.
[[nodiscard]] bool read_launcher(WordCursor& cursor, JobSource& source, Problems& problems);

// The file `path` that a command or a launcher names under `key`; what its reader passes over is warned of in `source`.
[[nodiscard]] std::optional<Value> read_named_file(const std::string& path, const std::string& key, JobSource& source,
                                                   Problems& problems);

}  // namespace membill::io
