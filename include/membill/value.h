// A value tree as read from JSON or YAML: what every strict reader works on.
//
// Maps keep the order of the file and never hold a key twice (readers refuse duplicates). Integers are exact; a number that is
// written with a fraction or an exponent is a real, and `text` keeps how it was written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace membill {

class Value {
 public:
  enum class Kind : std::uint8_t { null, boolean, integer, real, string, list, map };
  using Entry = std::pair<std::string, Value>;

  Value() = default;
  static Value of(bool b);
  static Value of(int n);
  static Value of(std::int64_t n);
  static Value of(double x, std::string written = {});
  static Value of(std::string text);
  static Value of(const char* text);  // without it, a literal would become a boolean
  static Value make_list(std::vector<Value> items = {});
  static Value make_map(std::vector<Entry> entries = {});

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] bool is_null() const { return kind_ == Kind::null; }
  [[nodiscard]] bool is_bool() const { return kind_ == Kind::boolean; }
  [[nodiscard]] bool is_int() const { return kind_ == Kind::integer; }
  [[nodiscard]] bool is_number() const { return kind_ == Kind::integer || kind_ == Kind::real; }
  [[nodiscard]] bool is_string() const { return kind_ == Kind::string; }
  [[nodiscard]] bool is_list() const { return kind_ == Kind::list; }
  [[nodiscard]] bool is_map() const { return kind_ == Kind::map; }

  // REQUIRES: the kind matches.
  [[nodiscard]] bool as_bool() const { return integer_ != 0; }
  [[nodiscard]] std::int64_t as_int() const { return integer_; }
  [[nodiscard]] double as_real() const { return kind_ == Kind::integer ? static_cast<double>(integer_) : real_; }
  [[nodiscard]] const std::string& as_string() const { return text_; }
  [[nodiscard]] const std::vector<Value>& items() const { return items_; }
  [[nodiscard]] std::vector<Value>& items() { return items_; }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] std::vector<Entry>& entries() { return entries_; }
  // How a number was written ("1e9"), empty when unknown.
  [[nodiscard]] const std::string& written() const { return text_; }

  // The value under `key` of a map, or nullptr (also when this is no map).
  [[nodiscard]] const Value* find(std::string_view key) const;
  // Sets or replaces `key` of a map. REQUIRES: is_map().
  void set(std::string_view key, Value value);

  // Line in the file, from 1; 0 when unknown.
  int line = 0;

  [[nodiscard]] static std::string_view kind_name(Kind kind);  // "whole number", "text", "list", ...

 private:
  Kind kind_ = Kind::null;
  std::int64_t integer_ = 0;
  double real_ = 0;
  std::string text_;
  std::vector<Value> items_;
  std::vector<Entry> entries_;
};

}  // namespace membill
