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
  };
}

std::vector<WeightFormatRow> eight_bit_rows() {
  return {
      {.format = WeightFormat::fp8,
       .name = "fp8",
       .summary = "1 byte a weight of a linear, blocks of 128 x 128",
       .aliases = {"float8", "fp8-e4m3", "finegrained-fp8"},
       .bits = 8,
       .quantized = true,
       .trainable = false,
       .packing = Packing::fp8_blocks,
       .group = 128,
       .scales = "an fp32 scale per block of 128 x 128",
       .whole = kNormsAndEnds,
       .use = "nothing: the kernel multiplies fp8; in backward the whole matrix in the gradient's dtype",
       .source =
           "DeepSeek-AI 2024 (DeepSeek-V3), section 3.3; transformers 5.24 integrations/finegrained_fp8.py FP8Linear"},
      {.format = WeightFormat::fp8_rows,
       .name = "fp8-rows",
       .summary = "1 byte a weight of a linear, a scale a row",
       .aliases = {"fp8-channel", "fbgemm-fp8", "fp8-dynamic"},
       .bits = 8,
       .quantized = true,
       .trainable = false,
       .adapters = false,
       .packing = Packing::rows,
       .scales = "an fp32 scale per output row",
       .whole = kNormsAndEnds,
       .use = "nothing: the kernel multiplies fp8",
       .source = "compressed-tensors 0.20 float-quantized, strategy channel; transformers 5.24 FbgemmFp8Config"},
      {.format = WeightFormat::int8_rows,
       .name = "int8-rows",
       .summary = "1 byte a weight of a linear, a scale a row (W8A8)",
       .aliases = {"int8-channel", "w8a8"},
       .bits = 8,
       .quantized = true,
       .trainable = false,
       .adapters = false,
       .packing = Packing::rows,
       .scales = "an fp32 scale per output row",
       .whole = kNormsAndEnds,
       .use = "nothing: the kernel multiplies int8",
       .source = "compressed-tensors 0.20 int-quantized, strategy channel"},
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
       .packing = Packing::llm_int8,
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
       .packing = Packing::bitsandbytes,
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
       .packing = Packing::bitsandbytes,
       .group = 64,
       .scales = "as nf4",
       .whole = kNormsAndEnds,
       .use = kBnbUse,
       .source = kBnbSource},
  };
}

WeightFormatRow gptq_row(WeightFormat format, std::string_view name, std::string_view summary, int bits) {
  return {.format = format,
          .name = name,
          .summary = summary,
          .bits = bits,
          .quantized = true,
          .trainable = false,
          .packing = Packing::gptq,
          .group = 128,
          .scales = "an fp16 scale and a zero point of a code's width per 128, a 32-bit group index per input",
          .whole = kNormsAndEnds,
          .use = "the whole matrix in 16-bit, kept from forward to backward, as gptqmodel's trainable kernels do",
          .source =
              "Frantar et al. 2022 (GPTQ); gptqmodel 7.7 nn_modules/qlinear: qweight, qzeros, scales, g_idx; "
              "torch.py TorchLinear._forward_eager, which all its trainable kernels run in training"};
}

WeightFormatRow hqq_row(WeightFormat format, std::string_view name, std::string_view summary, int bits) {
  return {.format = format,
          .name = name,
          .summary = summary,
          .bits = bits,
          .quantized = true,
          .trainable = false,
          .packing = Packing::half_quadratic,
          .group = 64,
          .scales = "a 16-bit scale and a 16-bit zero point per 64",
          .whole = kNormsAndEnds,
          .use = "the whole matrix in 16-bit three times over, in forward and again in backward",
          .source = "Badri and Shaji 2023 (HQQ); hqq 0.2.8 core/quantize.py Quantizer, HQQMatmulNoCacheMul"};
}

std::vector<WeightFormatRow> post_training_rows() {
  WeightFormatRow gptq = gptq_row(WeightFormat::gptq_int4, "gptq-int4", "GPTQ, 4 bits in groups of 128", 4);
  gptq.aliases = {"gptq", "gptq-4bit"};
  WeightFormatRow hqq = hqq_row(WeightFormat::hqq_int4, "hqq-int4", "HQQ, 4 bits in groups of 64", 4);
  hqq.aliases = {"hqq", "hqq-4bit"};
  return {
      gptq_row(WeightFormat::gptq_int2, "gptq-int2", "GPTQ, 2 bits in groups of 128", 2),
      gptq_row(WeightFormat::gptq_int3, "gptq-int3", "GPTQ, 3 bits in groups of 128", 3),
      std::move(gptq),
      gptq_row(WeightFormat::gptq_int8, "gptq-int8", "GPTQ, 8 bits in groups of 128", 8),
      {.format = WeightFormat::awq_int4,
       .name = "awq-int4",
       .summary = "AWQ, 4 bits in groups of 128",
       .aliases = {"awq", "awq-4bit"},
       .bits = 4,
       .quantized = true,
       .trainable = false,
       .packing = Packing::awq,
       .group = 128,
       .scales = "an fp16 scale and a 4-bit zero point per 128",
       .whole = kNormsAndEnds,
       .use = "the whole matrix in fp16, in forward and again in backward, as gptqmodel's Triton kernel does",
       .source = "Lin et al. 2023 (AWQ); gptqmodel 7.7 nn_modules/qlinear/gemm_awq_triton.py: qweight, qzeros, scales"},
      hqq_row(WeightFormat::hqq_int2, "hqq-int2", "HQQ, 2 bits in groups of 64", 2),
      hqq_row(WeightFormat::hqq_int3, "hqq-int3", "HQQ, 3 bits in groups of 64, ten codes a word", 3),
      std::move(hqq),
      hqq_row(WeightFormat::hqq_int8, "hqq-int8", "HQQ, 8 bits in groups of 64", 8),
  };
}

std::vector<WeightFormatRow> served_rows() {
  return {
      {.format = WeightFormat::packed_int4,
       .name = "packed-int4",
       .summary = "compressed-tensors, 4 bits in groups of 128 (W4A16)",
       .aliases = {"w4a16", "pack-quantized"},
       .bits = 4,
       .quantized = true,
       .trainable = false,
       .adapters = false,
       .packing = Packing::compressed_groups,
       .group = 128,
       .scales = "a 16-bit scale per 128, the shape of the weight",
       .whole = kNormsAndEnds,
       .use = "nothing: the kernel unpacks",
       .source = "compressed-tensors 0.20 compressors/pack_quantized: weight_packed, weight_scale, weight_shape"},
      {.format = WeightFormat::mxfp4,
       .name = "mxfp4",
       .summary = "MXFP4 experts (gpt_oss), blocks of 32",
       .bits = 4,
       .quantized = true,
       .trainable = false,
       .adapters = false,
       .packing = Packing::micro_blocks,
       .group = 32,
       .scales = "a 1-byte power of two per 32",
       .whole = "all but the experts",
       .use = "dequantised to bf16 when it is loaded for training",
       .source = "OCP Microscaling Formats specification 1.0, section 5.3; transformers Mxfp4Config"},
      {.format = WeightFormat::nvfp4,
       .name = "nvfp4",
       .summary = "NVFP4, 4-bit floats in blocks of 16",
       .bits = 4,
       .quantized = true,
       .trainable = false,
       .adapters = false,
       .packing = Packing::micro_blocks,
       .group = 16,
       .scales = "an fp8 scale per 16, two fp32 scales a matrix",
       .whole = kNormsAndEnds,
       .use = "nothing: the kernel multiplies 4-bit floats",
       .source =
           "NVIDIA modelopt 0.37 NVFP4; compressed-tensors 0.20 nvfp4-pack-quantized: weight_packed, weight_scale, "
           "weight_global_scale, input_global_scale"},
  };
}

std::vector<WeightFormatRow> weight_format_rows() {
  std::vector<WeightFormatRow> rows = plain_rows();
  for (const auto& more : {eight_bit_rows(), bitsandbytes_rows(), post_training_rows(), served_rows()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace

std::span<const WeightFormatRow> weight_formats() {
  static const std::vector<WeightFormatRow> kRows = weight_format_rows();
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
