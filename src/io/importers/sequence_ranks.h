// The degree in which a framework spreads sequences over ranks, by its own code.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "io/importers/importer.h"

namespace membill::io {

// `ranks` of `key`, parallel.cp or parallel.ulysses, spread by `code` (sharding.sequence_code); nothing for 1 and for none.
inline void spread_sequences(std::optional<std::int64_t> ranks, std::string_view key, const char* code, Draft& draft) {
  if (ranks.value_or(1) < 2) return;
  draft.set(key, ranks);
  draft.set("sharding.sequence_code", Value::of(code));
}

}  // namespace membill::io
