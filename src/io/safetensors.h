// Checkpoint files beside a config: the headers of safetensors files and their index. The data is never read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "membill/model_spec.h"

namespace membill::io {

struct StoredTensor {
  std::string name;
  std::string dtype;  // as the file spells it: "BF16", "F8_E4M3", "I32"; empty when not known
  std::optional<std::vector<std::int64_t>> shape;  // none: only the index names it
};

struct Checkpoint {
  std::string file;  // what was read first: the index, or the first file
  std::vector<StoredTensor> tensors;
  std::optional<std::int64_t> total_size;  // bytes of all tensors as the index says
  std::vector<std::string> warnings;       // files that the index names and that are absent or no weights
};

// A safetensors file is an unsigned 64-bit little-endian length, a header of that many bytes of JSON, and the data.
// The tensors of one header. `header` is the JSON part, `data_bytes` what follows it in the file. Throws InputError when it is no JSON
// map, a tensor lacks dtype, shape or data_offsets, offsets leave the file or do not match shape and dtype. Unknown dtypes pass.
[[nodiscard]] std::vector<StoredTensor> parse_safetensors_header(std::string_view header, std::int64_t data_bytes,
                                                                 const std::string& file);

// The tensors of a file of `file_bytes` bytes that begins with `start`: at least its length field and its header. Same errors.
[[nodiscard]] std::vector<StoredTensor> parse_safetensors(std::string_view start, std::int64_t file_bytes,
                                                          const std::string& file);

// Reads model.safetensors.index.json and the headers of its files, or the headers of all *.safetensors in `folder`; nothing when there
// are none. Throws InputError on a malformed index or header.
[[nodiscard]] std::optional<Checkpoint> read_checkpoint(const std::string& folder);

// One warning per kind of disagreement: tensors that the census has and the files lack, tensors that only the files have, and other
// shapes. Tolerated: leading module names ("model.", "transformer.", "language_model."), a stored copy of a tied head, buffers, tensors
// of parts in not_counted, quantised storage of a weight, and a layer whose tensors are split or fused otherwise but add up.
[[nodiscard]] std::vector<std::string> compare_with_census(const Checkpoint& checkpoint, const ModelSpec& spec);

}  // namespace membill::io
