// A Hugging Face config: any JSON gives a census whose counts are checked, or an InputError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "io/json_reader.h"
#include "io/model_source.h"
#include "membill/problem.h"
#include "membill/units.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const membill::Value config = membill::io::parse_json(text, "config.json", membill::io::JsonDialect::python);
    const membill::ModelSpec spec =
        membill::io::describe_model(membill::io::load_config(config, "config.json", "fuzz"));
    (void)spec.parameters();
    (void)spec.active_parameters();
  } catch (const membill::InputError&) {
  } catch (const membill::OverflowError&) {
  }
  return 0;
}
