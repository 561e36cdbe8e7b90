// TOML: any bytes give a value or an InputError.
#include "io/toml_reader.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "membill/problem.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    (void)membill::io::parse_toml(std::string_view(reinterpret_cast<const char*>(data), size), "input.toml");
  } catch (const membill::InputError&) {
  }
  return 0;
}
