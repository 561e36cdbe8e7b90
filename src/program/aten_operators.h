// Operators whose results selective checkpointing can keep, as PyTorch names them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace membill {

enum class AtenOperator : std::uint8_t { mm, addmm, bmm, grouped_mm, flash, efficient, softmax, silu, gelu };

struct AtenName {
  AtenOperator op;
  std::string_view name;
};
inline constexpr std::array kAtenNames{
    AtenName{AtenOperator::mm, "aten.mm"},
    AtenName{AtenOperator::addmm, "aten.addmm"},
    AtenName{AtenOperator::bmm, "aten.bmm"},
    AtenName{AtenOperator::grouped_mm, "aten._grouped_mm"},
    AtenName{AtenOperator::flash, "aten._scaled_dot_product_flash_attention"},
    AtenName{AtenOperator::efficient, "aten._scaled_dot_product_efficient_attention"},
    AtenName{AtenOperator::softmax, "aten._softmax"},
    AtenName{AtenOperator::silu, "aten.silu"},
    AtenName{AtenOperator::gelu, "aten.gelu"}};

// Of these operators every second result is made again: the first is kept, the second is not, and so on within a layer.
inline constexpr std::string_view kEverySecond = "/2";

// Beside them: a layer's last product is not kept. Code that is compiled does so where nothing but the result needs it.
inline constexpr std::string_view kWithoutLast = "-last";

// "ops:aten.mm", "aten.mm.default" or "aten.mm", each also with "/2"; none: no operator that can be kept here.
[[nodiscard]] inline std::optional<AtenOperator> find_aten_operator(std::string_view name) {
  constexpr std::string_view kPrefix = "ops:", kOverload = ".default";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  if (name.ends_with(kEverySecond)) name.remove_suffix(kEverySecond.size());
  if (name.ends_with(kOverload)) name.remove_suffix(kOverload.size());
  const auto* found =
      std::find_if(kAtenNames.begin(), kAtenNames.end(), [&](const AtenName& row) { return row.name == name; });
  return found == kAtenNames.end() ? std::nullopt : std::optional(found->op);
}

// A set of them.
class AtenOperators {
 public:
  void add(AtenOperator op, bool every_second = false) {
    bits_ |= 1U << static_cast<unsigned>(op);
    if (every_second) halved_ |= 1U << static_cast<unsigned>(op);
  }
  [[nodiscard]] bool every_second(AtenOperator op) const { return (halved_ >> static_cast<unsigned>(op) & 1U) != 0; }
  [[nodiscard]] bool has(AtenOperator op) const { return (bits_ >> static_cast<unsigned>(op) & 1U) != 0; }
  [[nodiscard]] bool empty() const { return bits_ == 0; }

 private:
  unsigned bits_ = 0, halved_ = 0;
};

}  // namespace membill
