// How weights are stored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace membill {

// Storage of the base weights (catalogue rows: `membill formats`, src/catalog/weight_formats).
enum class WeightFormat : std::uint8_t {
  fp32,
  bf16,
  fp16,
  fp8,
  fp8_rows,
  int8,
  int8_rows,
  nf4,
  fp4,
  gptq_int2,
  gptq_int3,
  gptq_int4,
  gptq_int8,
  awq_int4,
  hqq_int2,
  hqq_int3,
  hqq_int4,
  hqq_int8,
  packed_int4,
  mxfp4,
  nvfp4
};

// What a format leaves open.
struct QuantizationPlan {
  // Weights along a row that share a scale; -1: all of the row; none: as the format's row says. Of fp8, the sides of a block.
  std::optional<std::int64_t> group_size;
  // Modules that stay whole: names, their beginnings or endings, globs, or "re:" and a regular expression; none: the output head.
  std::optional<std::vector<std::string>> skip;
  std::optional<bool> zero_points;  // packed-int4: zero points lie beside the scales; none: they do not
};

// What a checkpoint's quantization_config says.
struct StoredWeights {
  std::string method;                  // quant_method, as written; empty: the weights are not quantised
  std::optional<WeightFormat> format;  // none: a storage that is not billed
  bool double_quant = false;
  QuantizationPlan layout;
};

}  // namespace membill
