// Reads the keys of a Hugging Face config, with one problem per missing, mistyped or impossible value.
//
// A key may go by several spellings (GPT-2's n_embd is llama's hidden_size); Spelling rows list them and the first spelling that the
// config holds with a value wins. After a problem the reader returns a harmless value (1, or the fallback), so that a family
// can go on and find the next problem.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/families/spellings.h"
#include "membill/problem.h"
#include "membill/value.h"

namespace membill::census {

// Largest count that a config may hold: products of two counts then stay far below 2^63.
inline constexpr std::int64_t kLargestCount = std::int64_t{1} << 30;
// Largest number of layers or heads: the census may list each.
inline constexpr std::int64_t kMostListed = 100000;

class ConfigReader {
 public:
  ConfigReader(const Value& config, Problems& problems, std::span<const Spelling> spellings = config_spellings())
      : config_(config), problems_(problems), spellings_(spellings) {}

  // A whole number of at least 1 that must be there.
  [[nodiscard]] std::int64_t size(std::string_view key) const;
  // A whole number of at least 1; absent or null: the fallback.
  [[nodiscard]] std::int64_t size_or(std::string_view key, std::int64_t fallback) const;
  // A whole number of at least 0; absent or null: the fallback.
  [[nodiscard]] std::int64_t count_or(std::string_view key, std::int64_t fallback) const;
  [[nodiscard]] std::optional<std::int64_t> optional_size(std::string_view key) const;
  // A number of layers or heads, which must be there: 1 to kMostListed.
  [[nodiscard]] std::int64_t listed(std::string_view key) const;
  [[nodiscard]] bool flag(std::string_view key, bool fallback) const;
  [[nodiscard]] std::optional<double> optional_real(std::string_view key) const;
  [[nodiscard]] double real_or(std::string_view key, double fallback) const;
  // A probability of dropping, 0 <= p < 1.
  [[nodiscard]] double dropout(std::string_view key, double fallback = 0.0) const;
  [[nodiscard]] std::string word(std::string_view key, std::string_view fallback) const;
  // The members of a list of whole numbers; empty when absent or null.
  [[nodiscard]] std::vector<std::int64_t> counts(std::string_view key) const;
  // The members of a list of words; empty when absent or null.
  [[nodiscard]] std::vector<std::string> words(std::string_view key) const;
  // True when the config holds a value under exactly this spelling.
  [[nodiscard]] bool holds(std::string_view spelling) const;
  // The value under any spelling of `key`, null when absent or null in the file.
  [[nodiscard]] const Value* find(std::string_view key) const;
  // A reader of the map under `key`; of an empty map when there is none.
  [[nodiscard]] ConfigReader inner(std::string_view key) const;

  void problem(std::string_view key, std::string message, std::string hint = {}) const;

 private:
  [[nodiscard]] std::string written_key(std::string_view key) const;
  [[nodiscard]] std::int64_t whole(std::string_view key, const Value& value, std::int64_t least, std::int64_t most,
                                   std::int64_t harmless) const;

  const Value& config_;
  Problems& problems_;
  std::span<const Spelling> spellings_;
  std::string prefix_;  // "ffn_config." inside an inner map
};

}  // namespace membill::census
