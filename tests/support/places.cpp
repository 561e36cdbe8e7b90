#include "support/places.h"

namespace membill::test {

std::string in_source(std::string_view relative) {
  std::string path = MEMBILL_SOURCE_DIR;
  return relative.empty() ? path : path.append("/").append(relative);
}

std::string built_program() { return MEMBILL_BINARY; }

}  // namespace membill::test
