// Hugging Face's spellings of config keys: its attribute maps, and the keys of older files.
#pragma once

#include <span>
#include <string_view>

namespace membill::census {

// `key` is what a family asks for, `spelling` what a file may write instead.
struct Spelling {
  std::string_view key;
  std::string_view spelling;
};

[[nodiscard]] std::span<const Spelling> config_spellings();

}  // namespace membill::census
