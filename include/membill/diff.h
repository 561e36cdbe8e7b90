// Two bills side by side: what grew, what shrank, what appeared, and which choices differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "membill/report.h"

namespace membill {

enum class Change : std::uint8_t { grew, shrank, appeared, gone, same };

// One item of either bill; bytes at each bill's own peak.
struct ItemDiff {
  std::string id, label;
  std::optional<std::int64_t> a, b;  // none: not in that bill
  std::int64_t change = 0;           // b less a, absent or unknown ones counted as 0
  Change how = Change::same;
};

// A field that differs, values as JSON text; empty: absent there.
struct FieldDiff {
  std::string key, a, b;
};

struct BillDiff {
  std::vector<ItemDiff> items;    // device items, largest change first; their changes sum to that of totals.requested
  std::vector<FieldDiff> fields;  // of model, plan and hardware
};

[[nodiscard]] BillDiff diff(const Report& a, const Report& b);

// "grew", "shrank", "appeared", "gone", "same".
[[nodiscard]] const char* change_word(Change change);

}  // namespace membill
