// Training programs in Python.
#include "import_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return membill::fuzz::import_as(nullptr, data, size, "job.py");
}
