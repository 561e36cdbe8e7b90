// What a script knows while its text is read: variables, arrays, functions, the files that it writes; and what ${...} makes of them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/importers/shell_words.h"

namespace membill::io {

[[nodiscard]] bool is_name_start(char c);
[[nodiscard]] bool is_name_char(char c);

// Whether `text` matches the pattern of a shell: '*' is any text, '?' any character.
[[nodiscard]] bool matches_pattern(std::string_view text, std::string_view pattern);

class ShellScope {
 public:
  explicit ShellScope(Variables set) : variables(std::move(set)) {}

  [[nodiscard]] std::optional<std::string> value_of(std::string_view name) const;
  void assign(const std::string& name, std::string value);
  // NAME=value or NAME+=value, taken apart.
  void assign_word(const std::string& word);

  // ${body}: the value, or nothing where it is not known. `expand` expands the text of a default.
  using Expand = std::function<std::string(std::string_view)>;
  [[nodiscard]] std::optional<std::string> parameter(std::string_view body, const Expand& expand);

  // The items that "NAME[@]" or "@" stands for; nullptr: `body` names no array.
  [[nodiscard]] const std::vector<std::string>* array(std::string_view body) const;

  Variables variables;
  std::map<std::string, std::vector<std::string>, std::less<>> arrays;
  std::map<std::string, std::string, std::less<>> functions;
  WrittenFiles files;

 private:
  // An expression with its variables' values.
  [[nodiscard]] std::string with_values(std::string_view expression) const;
  [[nodiscard]] std::optional<std::string> length_of(std::string_view body) const;
  [[nodiscard]] std::optional<std::string> item_of(const std::string& name, const std::string& index) const;
};

// Whether `word` is NAME=... or NAME+=...
[[nodiscard]] bool is_assignment(std::string_view word);

}  // namespace membill::io
