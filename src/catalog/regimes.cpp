#include <algorithm>

#include "base/text.h"
#include "membill/catalog.h"

namespace membill {
namespace {

std::vector<RegimeRow> regime_rows() {
  return {
      {.precision = Precision::fp32,
       .name = "fp32",
       .summary = "everything in fp32: 4 weight + 4 gradient + 8 moments = 16 bytes per parameter with AdamW",
       .aliases = {"float32", "32-true"},
       .compute = DType::fp32,
       .storage = WeightFormat::fp32,
       .source = "Rajbhandari et al. 2020 (ZeRO), section 3.1, without mixed precision"},
      {.precision = Precision::amp_bf16,
       .name = "amp-bf16",
       .summary =
           "bf16 autocast over the stored weights; gradients and moments follow the weights: 16 over fp32, 8 over bf16",
       .aliases = {"bf16-mixed", "bf16-amp", "autocast-bf16"},
       .compute = DType::bf16,
       .autocast = true,
       .source = "torch 2.15 aten/src/ATen/autocast_mode.cpp; transformers Trainer with bf16=True"},
      {.precision = Precision::amp_fp16,
       .name = "amp-fp16",
       .summary = "fp16 autocast with a gradient scaler; gradients and moments follow the weights",
       .aliases = {"16-mixed", "fp16-mixed", "fp16-amp", "autocast-fp16", "apex-o1"},
       .compute = DType::fp16,
       .autocast = true,
       .source = "torch 2.15 aten/src/ATen/autocast_mode.cpp; transformers Trainer with fp16=True"},
      {.precision = Precision::pure_bf16,
       .name = "pure-bf16",
       .summary = "everything in bf16, no autocast: 2 + 2 + 4 = 8 bytes per parameter with AdamW",
       .aliases = {"bf16-true", "full-bf16"},
       .compute = DType::bf16,
       .storage = WeightFormat::bf16,
       .source = "torchtune recipes/configs with dtype: bf16; litgpt precision bf16-true"},
      {.precision = Precision::pure_fp16,
       .name = "pure-fp16",
       .summary = "everything in fp16, no autocast: 8 bytes per parameter with AdamW",
       .aliases = {"16-true", "fp16-true", "full-fp16"},
       .compute = DType::fp16,
       .storage = WeightFormat::fp16,
       .source = "litgpt precision 16-true"},
      {.precision = Precision::master_bf16,
       .name = "master-bf16",
       .summary = "bf16 working weights and an fp32 master: 2 + 2 + 4 + 8 = 16 bytes per parameter with AdamW",
       .compute = DType::bf16,
       .storage = WeightFormat::bf16,
       .master = true,
       .source = "Rajbhandari et al. 2020 (ZeRO), section 3.1; DeepSpeed bf16.enabled; Megatron-LM --bf16"},
      {.precision = Precision::master_fp16,
       .name = "master-fp16",
       .summary = "fp16 working weights and an fp32 master: 16 bytes per parameter with AdamW",
       .aliases = {"apex-o2"},
       .compute = DType::fp16,
       .storage = WeightFormat::fp16,
       .master = true,
       .source = "Rajbhandari et al. 2020 (ZeRO), section 3.1; Micikevicius et al. 2017; DeepSpeed fp16.enabled"},
      {.precision = Precision::fp8,
       .name = "fp8",
       .summary = "linears multiply in fp8 over 16-bit or fp32 weights",
       .aliases = {"float8"},
       .compute = DType::fp8,
       .source = "Micikevicius et al. 2022 (FP8 formats); Transformer Engine fp8_autocast"},
  };
}

}  // namespace

std::span<const RegimeRow> regimes() {
  static const std::vector<RegimeRow> kRows = regime_rows();
  return kRows;
}

const RegimeRow& regime(Precision precision) {
  const auto rows = regimes();
  return *std::find_if(rows.begin(), rows.end(), [&](const RegimeRow& row) { return row.precision == precision; });
}

const RegimeRow* find_regime(std::string_view name) {
  const std::string kebab = to_kebab(name);
  for (const RegimeRow& row : regimes()) {
    if (row.name == kebab) return &row;
    for (const std::string_view alias : row.aliases) {
      if (alias == kebab) return &row;
    }
  }
  return nullptr;
}

}  // namespace membill
