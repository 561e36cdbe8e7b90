// What nvidia-smi and npu-smi print: any bytes give cards that can be chosen from, or an InputError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "io/gpu_query.h"
#include "membill/problem.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view output(reinterpret_cast<const char*>(data), size);
  for (const auto parse : {membill::io::parse_nvidia_smi, membill::io::parse_npu_smi}) {
    try {
      (void)membill::io::choose_cards(parse(output), std::nullopt, {});
    } catch (const membill::InputError&) {
    }
  }
  return 0;
}
