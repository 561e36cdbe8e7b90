// One out-of-memory message of a log, however its lines were broken and decorated.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace membill {

// A message without blanks, line ends and colours: where a terminal, a launcher or a log broke it no longer matters.
class BareMessage {
 public:
  // `text` from the message's first word on; `lead`: what stands before it on its line, which a launcher may repeat on the lines that follow.
  BareMessage(std::string_view text, std::string_view lead);

  // Phrases are given as they are printed. The size right before the first of `phrases` that occurs with one ("23.69 GiB total capacity"),
  // or right after.
  [[nodiscard]] std::optional<std::int64_t> size_before(std::initializer_list<std::string_view> phrases) const;
  [[nodiscard]] std::optional<std::int64_t> size_after(std::initializer_list<std::string_view> phrases) const;
  [[nodiscard]] std::optional<std::int64_t> number_after(std::string_view phrase) const;
  // "Process 4711 has 12.00 GiB memory in use.", as often as it stands there.
  [[nodiscard]] std::optional<std::int64_t> sum_of_processes() const;

 private:
  [[nodiscard]] std::optional<std::int64_t> size_at(std::size_t at) const;

  std::string text_;
};

}  // namespace membill
