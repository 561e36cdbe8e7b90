#include "io/embedded.h"

#include <algorithm>

namespace membill::io {

const EmbeddedFile* find_embedded(std::string_view folder, std::string_view name) {
  const std::span<const EmbeddedFile> files = embedded_files(folder);
  const auto found = std::ranges::lower_bound(files, name, {}, &EmbeddedFile::name);
  return found != files.end() && found->name == name ? &*found : nullptr;
}

}  // namespace membill::io
