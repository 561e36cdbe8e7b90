#include "blocks/kernel_sizes.h"

#include <algorithm>

namespace membill {
namespace {

constexpr std::int64_t kQueryRows = 64, kMostParts = 128;

std::int64_t keys_of_a_block(std::int64_t width) { return width <= 64 ? 256 : width <= 128 ? 128 : 64; }

// num_splits_heuristic: the fewest parts that come within 85 % of the best use of the card.
std::int64_t best_parts(std::int64_t blocks, std::int64_t processors, std::int64_t key_blocks) {
  const std::int64_t most = std::min({kMostParts, processors, key_blocks});
  const auto differs = [&](std::int64_t n) { return n == 1 || ceil_div(key_blocks, n) != ceil_div(key_blocks, n - 1); };
  const auto use = [&](std::int64_t n) {  // of the card, in parts of a million
    return 1'000'000 * blocks * n / (processors * ceil_div(blocks * n, processors));
  };
  std::int64_t best = 0;
  for (std::int64_t n = 1; n <= most; ++n)
    if (differs(n)) best = std::max(best, use(n));
  std::int64_t parts = 1;
  while (parts < most && !(differs(parts) && 100 * use(parts) >= 85 * best)) ++parts;
  return parts;
}

}  // namespace

// aten/native/transformers/cuda/flash_attn/flash_api.cpp set_params_splitkv.
std::int64_t key_splits(const Forward& f, const Size& heads, std::int64_t width) {
  SymbolTable& symbols = f.r.symbols();
  const std::int64_t processors = 2 * f.multiprocessors, rows = keys_of_a_block(width);
  if (f.attention_dropout > 0 || symbols.at_least(Size(rows), f.keys())) return 1;
  const Size blocks = f.dims.b * heads * symbols.ceil_div(f.dims.s, Size(kQueryRows));
  if (symbols.at_least(Size(10) * blocks, Size(8 * processors))) return 1;
  return best_parts(symbols.evaluate(blocks), processors, ceil_div(symbols.evaluate(f.keys()), rows));
}

// mem_eff_attention/kernel_backward.h workspace_size, of all heads: tiles of the query gradient in fp32, each with a lock and a counter;
// 16-bit heads wider than 128 also have key and value gradients there. Tile sizes: of the kernels that an A100 runs.
Size efficient_workspace(Forward& f, const Size& heads, std::int64_t width, DType type) {
  SymbolTable& symbols = f.r.symbols();
  constexpr std::int64_t kWide = 128, kNarrow = 64, kCounters = 16, kFloat = 4, kKeys = 16;
  const std::int64_t column = width > kNarrow ? kWide : kNarrow;
  const bool narrow = type != DType::fp32;
  const std::int64_t rows = narrow && width > kNarrow && width <= kWide ? kWide : kNarrow;
  const std::int64_t columns = ceil_div(width, column);
  Size head = symbols.ceil_div(f.dims.s, Size(rows)) * Size(columns * (rows * column * kFloat + kCounters));
  if (narrow && width > kWide)
    head = head + symbols.ceil_div(f.keys(), Size(kKeys)) * Size(2 * kKeys * columns * column * kFloat);
  return f.dims.b * heads * head;
}

}  // namespace membill
