#include "io/importers/shipped_accelerate.h"

#include <string_view>

#include "base/text.h"
#include "io/text_file.h"

namespace membill::io {
namespace {

// Files of eight processes on one machine, in bf16.
struct Row {
  std::string_view name;  // without its ending
  std::string_view owner;
  std::string_view type;
  int zero;  // stage, where the type is DEEPSPEED
  int fsdp;  // version, where the type is FSDP
};

// Sources: huggingface/trl trl/accelerate_configs, huggingface/alignment-handbook and huggingface/open-r1 recipes/accelerate_configs.
constexpr Row kRows[] = {{"zero1", "TRL", "DEEPSPEED", 1, 0},
                         {"zero2", "TRL", "DEEPSPEED", 2, 0},
                         {"zero3", "TRL", "DEEPSPEED", 3, 0},
                         {"deepspeed_zero1", "TRL", "DEEPSPEED", 1, 0},
                         {"deepspeed_zero2", "TRL", "DEEPSPEED", 2, 0},
                         {"deepspeed_zero3", "TRL", "DEEPSPEED", 3, 0},
                         {"fsdp1", "TRL", "FSDP", 0, 1},
                         {"fsdp2", "TRL", "FSDP", 0, 2},
                         {"fsdp", "alignment-handbook", "FSDP", 0, 1},
                         {"multi_gpu", "TRL", "MULTI_GPU", 0, 0},
                         {"ddp", "open-r1", "MULTI_GPU", 0, 0},
                         {"single_gpu", "TRL", "NO", 0, 0}};

Value config_of(const Row& row) {
  Value config = Value::make_map({{"distributed_type", Value::of(std::string(row.type))},
                                  {"mixed_precision", Value::of("bf16")},
                                  {"num_machines", Value::of(1)},
                                  {"num_processes", Value::of(row.type == "NO" ? 1 : 8)}});
  if (row.zero > 0) config.set("deepspeed_config", Value::make_map({{"zero_stage", Value::of(row.zero)}}));
  if (row.fsdp == 0) return config;
  Value fsdp = Value::make_map(
      {{"fsdp_auto_wrap_policy", Value::of("TRANSFORMER_BASED_WRAP")}, {"fsdp_version", Value::of(row.fsdp)}});
  if (row.fsdp == 1) {
    fsdp.set("fsdp_sharding_strategy", Value::of("FULL_SHARD"));
    fsdp.set("fsdp_backward_prefetch", Value::of("BACKWARD_PRE"));
    fsdp.set("fsdp_forward_prefetch", Value::of(true));
    fsdp.set("fsdp_use_orig_params", Value::of(true));
  }
  config.set("fsdp_config", fsdp);
  return config;
}

}  // namespace

std::optional<ShippedAccelerate> shipped_accelerate(const std::string& path, const JobSource& source) {
  if (is_part_here(path, source.folder, source.launch.files.get())) return std::nullopt;
  std::string name = last_name(path);
  for (const std::string_view ending : {".yaml", ".yml"}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  for (const Row& row : kRows) {
    if (name == row.name) return ShippedAccelerate{std::string(row.owner), config_of(row)};
  }
  return std::nullopt;
}

}  // namespace membill::io
