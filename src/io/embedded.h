// Data files compiled into the program, so that presets are found with no data folder, no HOME and no
// network. The tables are generated from data/<folder>/*.json when the program is built.
#pragma once

#include <span>
#include <string_view>

namespace membill::io {

struct EmbeddedFile {
  std::string_view name;  // file name without ".json", e.g. "llama-2-7b"
  std::string_view text;  // the whole file, byte for byte
};

// All files of data/<folder>, sorted by name in byte order; empty when there is no such folder.
std::span<const EmbeddedFile> embedded_files(std::string_view folder);

// The file of that exact name, or null.
const EmbeddedFile* find_embedded(std::string_view folder, std::string_view name);

}  // namespace membill::io
