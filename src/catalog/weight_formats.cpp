#include <algorithm>

#include "base/text.h"
#include "membill/catalog.h"

namespace membill {
namespace {

constexpr std::string_view kNormsAndEnds = "embeddings, norms and an untied head";
constexpr std::string_view kBnbUse =
    "the whole matrix in the compute dtype, one at a time, in forward and again in backward";
constexpr const char* kBnbSource =
    "Dettmers et al. 2023 (QLoRA), section 3; bitsandbytes 0.50.2, bytes measured with requested_bytes on torch 2.15.0";

std::vector<WeightFormatRow> plain_rows() {
  return {
      {.format = WeightFormat::fp32,
       .name = "fp32",
       .summary = "4 bytes a weight",
       .aliases = {"float32", "float", "torch.float32"},
       .bits = 32,
       .source = "IEEE 754 binary32"},
      {.format = WeightFormat::bf16,
       .name = "bf16",
       .summary = "2 bytes a weight",
       .aliases = {"bfloat16", "torch.bfloat16"},
       .bits = 16,
       .source = "bfloat16: the upper half of IEEE 754 binary32"},
      {.format = WeightFormat::fp16,
       .name = "fp16",
       .summary = "2 bytes a weight",
       .aliases = {"float16", "half", "torch.float16"},
       .bits = 16,
       .source = "IEEE 754 binary16"},
      {.format = WeightFormat::fp8,
       .name = "fp8",
       .summary = "1 byte a weight of a linear, blocks of 128 x 128",
       .aliases = {"float8", "fp8-e4m3", "finegrained-fp8"},
       .bits = 8,
       .quantized = true,
       .trainable = false,
       .group = 128L * 128,
       .scales = "an fp32 scale per block of 128 x 128",
       .whole = kNormsAndEnds,
       .use = "nothing: the kernel multiplies fp8",
       .source = "DeepSeek-AI 2024 (DeepSeek-V3), section 3.3; transformers FineGrainedFP8Config weight_block_size"},
  };
}

std::vector<WeightFormatRow> bitsandbytes_rows() {
  return {
      {.format = WeightFormat::int8,
       .name = "int8",
       .summary = "LLM.int8 of bitsandbytes: 1 byte a weight of a linear",
       .aliases = {"llm-int8", "bnb-int8", "8bit", "load-in-8bit"},
       .bits = 8,
       .quantized = true,
       .trainable = false,
       .scales = "an fp32 scale per output row",
       .whole = kNormsAndEnds,
       .use = "the whole matrix in 16-bit in backward",
       .source =
           "Dettmers et al. 2022 (LLM.int8), section 3; bitsandbytes 0.50.2 bitsandbytes/nn/modules.py Int8Params"},
      {.format = WeightFormat::nf4,
       .name = "nf4",
       .summary = "4-bit NormalFloat of bitsandbytes, blocks of 64 (QLoRA)",
       .aliases = {"bnb-nf4"},
       .bits = 4,
       .quantized = true,
       .trainable = false,
       .group = 64,
       .scales = "an fp32 scale per 64; double_quant: 1 byte per 64 and an fp32 scale per 256 of these",
       .whole = kNormsAndEnds,
       .use = kBnbUse,
       .source = kBnbSource},
      {.format = WeightFormat::fp4,
       .name = "fp4",
       .summary = "4-bit float of bitsandbytes, blocks of 64",
       .aliases = {"bnb-fp4"},
       .bits = 4,
       .quantized = true,
       .trainable = false,
       .group = 64,
       .scales = "as nf4",
       .whole = kNormsAndEnds,
       .use = kBnbUse,
       .source = kBnbSource},
  };
}

std::vector<WeightFormatRow> post_training_rows() {
  return {
      {.format = WeightFormat::gptq_int4,
       .name = "gptq-int4",
       .summary = "GPTQ, 4 bits in groups of 128",
       .aliases = {"gptq", "gptq-4bit"},
       .bits = 4,
       .quantized = true,
       .trainable = false,
       .group = 128,
       .scales = "an fp16 scale and a 4-bit zero point per 128, a 32-bit group index per input",
       .whole = kNormsAndEnds,
       .use = "the whole matrix in 16-bit, one at a time",
       .source = "Frantar et al. 2022 (GPTQ); AutoGPTQ auto_gptq/nn_modules/qlinear: qweight, qzeros, scales, g_idx"},
      {.format = WeightFormat::awq_int4,
       .name = "awq-int4",
       .summary = "AWQ, 4 bits in groups of 128",
       .aliases = {"awq", "awq-4bit"},
       .bits = 4,
       .quantized = true,
       .trainable = false,
       .group = 128,
       .scales = "an fp16 scale and a 4-bit zero point per 128",
       .whole = kNormsAndEnds,
       .use = "the whole matrix in 16-bit, one at a time",
       .source = "Lin et al. 2023 (AWQ); AutoAWQ awq/modules/linear/gemm.py: qweight, qzeros, scales"},
      {.format = WeightFormat::hqq_int4,
       .name = "hqq-int4",
       .summary = "HQQ, 4 bits in groups of 64",
       .aliases = {"hqq", "hqq-4bit"},
       .bits = 4,
       .quantized = true,
       .trainable = false,
       .group = 64,
       .scales = "a 16-bit scale and a 16-bit zero point per 64",
       .whole = kNormsAndEnds,
       .use = "the whole matrix in 16-bit, one at a time",
       .source = "Badri and Shaji 2023 (HQQ); transformers HqqConfig: nbits 4, group_size 64"},
      {.format = WeightFormat::mxfp4,
       .name = "mxfp4",
       .summary = "MXFP4 experts (gpt_oss), blocks of 32",
       .bits = 4,
       .quantized = true,
       .trainable = false,
       .group = 32,
       .scales = "a 1-byte power of two per 32",
       .whole = "all but the experts",
       .use = "dequantised to bf16 when it is loaded for training",
       .source = "OCP Microscaling Formats specification 1.0, section 5.3; transformers Mxfp4Config"},
  };
}

std::vector<WeightFormatRow> all_rows() {
  std::vector<WeightFormatRow> rows = plain_rows();
  for (const auto& more : {bitsandbytes_rows(), post_training_rows()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace

std::span<const WeightFormatRow> weight_formats() {
  static const std::vector<WeightFormatRow> kRows = all_rows();
  return kRows;
}

const WeightFormatRow& weight_format(WeightFormat format) {
  const auto rows = weight_formats();
  return *std::find_if(rows.begin(), rows.end(), [&](const WeightFormatRow& row) { return row.format == format; });
}

const WeightFormatRow* find_weight_format(std::string_view name) {
  const std::string kebab = to_kebab(name);
  for (const WeightFormatRow& row : weight_formats()) {
    if (row.name == kebab) return &row;
    for (const std::string_view alias : row.aliases) {
      if (alias == kebab) return &row;
    }
  }
  return nullptr;
}

}  // namespace membill
