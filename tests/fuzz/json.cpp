// Strict JSON: any bytes give a value or an InputError.
#include "io/json_reader.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "membill/problem.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto dialect : {membill::io::JsonDialect::strict, membill::io::JsonDialect::python}) {
    try {
      (void)membill::io::parse_json(text, "input.json", dialect);
    } catch (const membill::InputError&) {
    }
  }
  return 0;
}
