// Every sentence of explain and plan, in English and in Chinese: one table.
#ifndef MEMBILL_REPORT_MESSAGES_H_
#define MEMBILL_REPORT_MESSAGES_H_

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace membill::report {

enum class Language : std::uint8_t { en, zh };

struct MessageRow {
  std::string_view key;
  std::string_view en, zh;  // the same {} in both, perhaps numbered
};
[[nodiscard]] std::span<const MessageRow> messages();

// The text of `key`; `key` itself when there is none (an item of a report of another version).
[[nodiscard]] std::string_view message(std::string_view key, Language language);

// The text with its {} filled in.
template <typename... Args>
[[nodiscard]] std::string say(Language language, std::string_view key, const Args&... args) {
  return fmt::format(fmt::runtime(message(key, language)), args...);
}

}  // namespace membill::report

#endif  // MEMBILL_REPORT_MESSAGES_H_
