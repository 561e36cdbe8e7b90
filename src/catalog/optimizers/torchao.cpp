#include "catalog/optimizers/groups.h"

namespace membill {
namespace {

constexpr std::int64_t kSmallest =
    4096;  // smaller tensors, and those of a broken last block, keep the parameter's dtype
constexpr const char* kTorchaoSource =
    "pytorch/ao torchao/optim/adam.py, subclass_8bit.py, subclass_4bit.py, subclass_fp8.py";

OptimizerRow torchao_row(std::string_view name, std::string_view summary, std::vector<std::string_view> aliases,
                         StateWidth width, std::int64_t block, std::int64_t table) {
  OptimizerRow row;
  row.name = name;
  row.summary = summary;
  row.aliases = std::move(aliases);
  row.states = {{"m", "first moment", width}, {"v", "second moment", width}};
  row.loop = StepTemporaries::other;
  row.block = block;
  row.minimum_elements = kSmallest;
  row.small_width = StateWidth::like_parameter;
  row.whole_blocks_only = true;
  row.table_per_state = table;
  row.source = kTorchaoSource;
  return row;
}

}  // namespace

std::vector<OptimizerRow> torchao_optimizers() {
  constexpr std::int64_t kTable8bit = 256L * 4;
  constexpr std::int64_t kTable4bit = 16L * 4;
  return {
      torchao_row("adamw-torch-8bit", "AdamW of torchao: two 8-bit moments in blocks of 256",
                  {"ao_adamw_8bit", "torchao.optim.AdamW8bit"}, StateWidth::blockwise_8bit, 256, kTable8bit),
      torchao_row("adamw-torch-4bit", "AdamW of torchao: two 4-bit moments in Hugging Face's blocks of 256", {},
                  StateWidth::blockwise_4bit, 256, kTable4bit),
      torchao_row("adamw-ao-4bit", "AdamW of torchao: two 4-bit moments in torchao's own blocks of 128",
                  {"ao_adamw_4bit", "torchao.optim.AdamW4bit"}, StateWidth::blockwise_4bit, 128, kTable4bit),
      torchao_row("adamw-ao-fp8", "AdamW of torchao: two fp8 moments in blocks of 256",
                  {"ao_adamw_fp8", "adamw_torch_fp8", "torchao.optim.AdamWFp8"}, StateWidth::fp8, 256, 0),
  };
}

}  // namespace membill
