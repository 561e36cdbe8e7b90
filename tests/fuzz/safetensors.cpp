// Headers of safetensors files: any bytes give tensors that can be compared with a census, or an InputError.
#include "io/safetensors.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "membill/problem.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto total = static_cast<std::int64_t>(size);
  const auto compare = [](std::vector<membill::io::StoredTensor> tensors) {
    membill::io::Checkpoint checkpoint;
    checkpoint.file = "model.safetensors";
    checkpoint.tensors = std::move(tensors);
    (void)membill::io::compare_with_census(checkpoint, membill::ModelSpec{});
  };
  try {
    compare(membill::io::parse_safetensors(bytes, total, "model.safetensors"));
  } catch (const membill::InputError&) {
  }
  try {
    compare(membill::io::parse_safetensors_header(bytes, total, "model.safetensors"));
  } catch (const membill::InputError&) {
  }
  return 0;
}
