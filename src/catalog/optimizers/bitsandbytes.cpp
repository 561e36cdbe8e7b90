#include "catalog/optimizers/groups.h"

namespace membill {
namespace {

constexpr std::int64_t kBlock = 256;              // elements per fp32 scale
constexpr std::int64_t kSmallest8bit = 4096;      // smaller tensors keep fp32 states
constexpr std::int64_t kSmallestPaged = 100'000;  // smaller tensors stay in the allocator
constexpr std::int64_t kCodeTable = 1024;         // 256 fp32 codes
constexpr const char* kBitsandbytesSource =
    "bitsandbytes 0.50.2 bitsandbytes/optim/optimizer.py; measured with requested_bytes on torch 2.15.0";

constexpr OptimizerState kFirst8{"m", "first moment", StateWidth::blockwise_8bit};
constexpr OptimizerState kSecond8{"v", "second moment", StateWidth::blockwise_8bit};
// AdEMAMix keeps its fast and its slow average in one tensor (bitsandbytes/optim/ademamix.py _get_state_double_buffer).
constexpr OptimizerState kAverages8{"averages", "fast and slow average of the gradients", StateWidth::blockwise_8bit,
                                    StateShape::twice};
constexpr OptimizerState kAverages32{"averages", "fast and slow average of the gradients", StateWidth::fp32,
                                     StateShape::twice};

struct Names {
  std::string_view name;
  std::string_view summary;
  std::vector<std::string_view> aliases;
};

// A row of 8-bit block-wise states. `tables`: signed and unsigned code tables in use.
OptimizerRow row_8bit(Names names, std::vector<OptimizerState> states, std::int64_t tables, bool paged = false) {
  OptimizerRow row;
  row.name = names.name;
  row.summary = names.summary;
  row.aliases = std::move(names.aliases);
  row.states = std::move(states);
  row.block = kBlock;
  row.minimum_elements = kSmallest8bit;
  row.embeddings_in_32bit = true;
  row.scales_first = row.states.front().shape == StateShape::twice;
  row.code_tables = tables * kCodeTable;
  row.paged = paged;
  row.paged_minimum = paged ? kSmallestPaged : 0;
  row.source = kBitsandbytesSource;
  return row;
}

// A row of fp32 states, whatever the parameter's dtype.
OptimizerRow row_32bit(Names names, std::vector<OptimizerState> states, bool paged = false) {
  OptimizerRow row;
  row.name = names.name;
  row.summary = names.summary;
  row.aliases = std::move(names.aliases);
  row.states = std::move(states);
  row.paged = paged;
  row.paged_minimum = paged ? kSmallestPaged : 0;
  row.source = kBitsandbytesSource;
  return row;
}

}  // namespace

std::vector<OptimizerRow> bitsandbytes_optimizers() {
  return {
      row_8bit({"adamw-8bit",
                "AdamW of bitsandbytes: two 8-bit moments in blocks of 256",
                {"adamw_bnb_8bit", "adamw8bit", "adam_8bit", "adam8bit", "bitsandbytes.optim.AdamW8bit"}},
               {kFirst8, kSecond8}, 2),
      row_8bit({"paged-adamw-8bit",
                "the same in memory that may leave the card",
                {"paged_adamw8bit", "bitsandbytes.optim.PagedAdamW8bit"}},
               {kFirst8, kSecond8}, 2, true),
      row_32bit({"adamw-bnb-32bit",
                 "AdamW of bitsandbytes: two fp32 moments, also over 16-bit weights",
                 {"adamw_32bit", "bitsandbytes.optim.AdamW"}},
                {kFirstMoment32, kSecondMoment32}),
      row_32bit({"paged-adamw-32bit",
                 "the same in memory that may leave the card",
                 {"paged_adamw", "bitsandbytes.optim.PagedAdamW"}},
                {kFirstMoment32, kSecondMoment32}, true),
      row_8bit({"lion-8bit", "Lion of bitsandbytes: one 8-bit state", {"lion8bit"}}, {kFirst8}, 1),
      row_8bit({"paged-lion-8bit", "the same in memory that may leave the card", {"paged_lion8bit"}}, {kFirst8}, 1,
               true),
      row_32bit({"lion-32bit", "Lion of bitsandbytes: one fp32 state", {}}, {kFirstMoment32}),
      row_32bit({"paged-lion-32bit", "the same in memory that may leave the card", {"paged_lion"}}, {kFirstMoment32},
                true),
      row_8bit(
          {"ademamix-8bit", "AdEMAMix of bitsandbytes: two averages and a second moment in 8 bits", {"ademamix8bit"}},
          {kAverages8, kSecond8}, 2),
      row_8bit({"paged-ademamix-8bit", "the same in memory that may leave the card", {"paged_ademamix8bit"}},
               {kAverages8, kSecond8}, 2, true),
      row_32bit({"ademamix", "AdEMAMix of bitsandbytes: two averages and a second moment in fp32", {"ademamix_32bit"}},
                {kAverages32, kSecondMoment32}),
      row_32bit({"paged-ademamix-32bit", "the same in memory that may leave the card", {"paged_ademamix"}},
                {kAverages32, kSecondMoment32}, true),
      row_8bit({"rmsprop-bnb-8bit", "RMSprop of bitsandbytes: one 8-bit state", {}}, {kSecond8}, 1),
      row_32bit({"rmsprop-bnb-32bit", "RMSprop of bitsandbytes: one fp32 state", {"rmsprop_bnb"}}, {kSecondMoment32}),
  };
}

}  // namespace membill
