#include "io/importers/shipped_deepspeed.h"

#include "base/text.h"
#include "io/importers/importer.h"

namespace membill::io {
namespace {

enum class Sizes : std::uint8_t {
  automatic,
  five_hundred_million,
  two_hundred_million,
  gather_two_hundred_million,  // the reduce bucket is auto
  defaults
};

// One shipped file. The sizes of a row are those of the reduce and gather buckets.
struct Row {
  std::string_view name;
  std::string_view owner;
  int stage;
  bool offload_optimizer, offload_param;
  Sizes sizes;
  bool overlap;
  bool nothing_live = false;  // sub_group_size, max_live_parameters and max_reuse_distance are 0
  bool half = false;          // fp16 is on whatever the job says
};

// Sources: hiyouga/LLaMA-Factory examples/deepspeed, modelscope/ms-swift swift/config, axolotl-ai-cloud/axolotl
// deepspeed_configs, huggingface/accelerate examples/deepspeed_config_templates, haotian-liu/LLaVA scripts, QwenLM/Qwen and OpenBMB/MiniCPM-V finetune.
constexpr Row kRows[] = {
    {"ds_z0_config.json", "LLaMA-Factory", 0, false, false, Sizes::five_hundred_million, false},
    {"ds_z2_config.json", "LLaMA-Factory", 2, false, false, Sizes::five_hundred_million, false},
    {"ds_z2_offload_config.json", "LLaMA-Factory", 2, true, false, Sizes::five_hundred_million, false},
    {"ds_z3_config.json", "LLaMA-Factory", 3, false, false, Sizes::automatic, false},
    {"ds_z3_offload_config.json", "LLaMA-Factory", 3, true, true, Sizes::automatic, false},
    {"deepspeed_configs/zero1.json", "axolotl", 1, false, false, Sizes::defaults, true},
    {"deepspeed_configs/zero2.json", "axolotl", 2, true, false, Sizes::defaults, true},
    {"deepspeed_configs/zero3.json", "axolotl", 3, false, false, Sizes::automatic, true, true},
    {"deepspeed_configs/zero3_bf16.json", "axolotl", 3, false, false, Sizes::automatic, true, true},
    {"deepspeed_configs/zero3_bf16_cpuoffload_all.json", "axolotl", 3, true, true, Sizes::automatic, true, true},
    {"deepspeed_configs/zero3_bf16_cpuoffload_params.json", "axolotl", 3, false, true, Sizes::automatic, true, true},
    {"deepspeed_configs/zero1_torch_compile.json", "axolotl", 1, false, false, Sizes::defaults, true},
    {"deepspeed_configs/zero2_torch_compile.json", "axolotl", 2, true, false, Sizes::defaults, true},
    {"zero_stage1_config.json", "accelerate", 1, false, false, Sizes::gather_two_hundred_million, true, false, true},
    {"zero_stage2_config.json", "accelerate", 2, false, false, Sizes::gather_two_hundred_million, true, false, true},
    {"zero_stage2_offload_config.json", "accelerate", 2, true, false, Sizes::gather_two_hundred_million, true, false,
     true},
    {"zero_stage3_config.json", "accelerate", 3, false, false, Sizes::automatic, true, false, true},
    {"zero_stage3_offload_config.json", "accelerate", 3, true, true, Sizes::automatic, true, false, true},
    {"scripts/zero2.json", "LLaVA", 2, false, false, Sizes::automatic, true},
    {"scripts/zero3.json", "LLaVA", 3, false, false, Sizes::automatic, true},
    {"scripts/zero3_offload.json", "LLaVA", 3, true, true, Sizes::automatic, true},
    {"ds_config_zero2.json", "Qwen", 2, false, false, Sizes::two_hundred_million, true},
    {"ds_config_zero3.json", "MiniCPM-V", 3, false, false, Sizes::automatic, true},
    {"zero0", "ms-swift", 0, false, false, Sizes::two_hundred_million, false},
    {"zero1", "ms-swift", 1, false, false, Sizes::two_hundred_million, false},
    {"zero2", "ms-swift", 2, false, false, Sizes::two_hundred_million, false},
    {"zero3", "ms-swift", 3, false, false, Sizes::automatic, false},
    {"zero2_offload", "ms-swift", 2, true, false, Sizes::two_hundred_million, false},
    {"zero3_offload", "ms-swift", 3, true, true, Sizes::automatic, false},
    {"default-zero2", "ms-swift", 2, false, false, Sizes::two_hundred_million, false},
    {"default-zero3", "ms-swift", 3, false, false, Sizes::automatic, false},
    {"zero2-offload", "ms-swift", 2, true, false, Sizes::two_hundred_million, false},
    {"zero3-offload", "ms-swift", 3, true, true, Sizes::automatic, false},
};

void set_sizes(const Row& row, Value& zero) {
  if (row.sizes == Sizes::automatic) {
    for (const char* key : {"reduce_bucket_size", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold"})
      zero.set(key, Value::of("auto"));
  } else if (row.sizes == Sizes::gather_two_hundred_million) {
    zero.set("allgather_bucket_size", Value::of(200'000'000));
    zero.set("reduce_bucket_size", Value::of("auto"));
  } else if (row.sizes != Sizes::defaults) {
    const int size = row.sizes == Sizes::two_hundred_million ? 200'000'000 : 500'000'000;
    for (const char* key : {"reduce_bucket_size", "allgather_bucket_size"}) zero.set(key, Value::of(size));
  }
  if (!row.nothing_live) return;
  for (const char* key : {"sub_group_size", "max_live_parameters", "max_reuse_distance"}) zero.set(key, Value::of(0));
}

Value config_of(const Row& row) {
  Value zero = Value::make_map({{"stage", Value::of(row.stage)}});
  set_sizes(row, zero);
  zero.set("overlap_comm", Value::of(row.overlap));
  zero.set("contiguous_gradients", Value::of(true));
  const Value host = Value::make_map({{"device", Value::of("cpu")}, {"pin_memory", Value::of(true)}});
  if (row.offload_optimizer) zero.set("offload_optimizer", host);
  if (row.offload_param) zero.set("offload_param", host);
  const Value on = Value::make_map({{"enabled", Value::of(true)}});
  const Value adam = Value::make_map({{"type", Value::of("AdamW")}});
  if (row.half) return Value::make_map({{"fp16", on}, {"optimizer", adam}, {"zero_optimization", zero}});
  const Value automatic = Value::make_map({{"enabled", Value::of("auto")}});
  return Value::make_map({{"bf16", automatic}, {"fp16", automatic}, {"zero_optimization", zero}});
}

bool names(const std::string& path, std::string_view shipped) {
  if (path == shipped) return true;
  if (!shipped.ends_with(".json") || path.size() <= shipped.size() || !path.ends_with(shipped)) return false;
  return path[path.size() - shipped.size() - 1] == '/';
}

}  // namespace

std::optional<ShippedDeepSpeed> shipped_deepspeed(const std::string& path, const std::string& folder,
                                                  const WrittenFiles* files) {
  if (path.ends_with(".json") && is_part_here(path, folder, files)) return {};
  for (const Row& row : kRows) {
    if (names(path, row.name)) return ShippedDeepSpeed{std::string(row.owner), config_of(row)};
  }
  return std::nullopt;
}

}  // namespace membill::io
