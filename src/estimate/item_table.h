// The items of a bill: what each id means to people, and where its rule comes from.
#pragma once

#include <span>
#include <string_view>

namespace membill {

struct ItemRow {
  std::string_view id;
  std::string_view label;
  std::string_view category;
  std::string_view source;
};

[[nodiscard]] std::span<const ItemRow> item_table();
// The row of `id`; optimizer states and other open-ended ids fall back to the row of their first part. Never null.
[[nodiscard]] const ItemRow& item_row(std::string_view id);

}  // namespace membill
