// Reads a map whose keys are all known: membill's own data files and the hardware part of a job file. Problems are collected: a wrong
// type, a missing key, and (by finish) every unknown key with the nearest known one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "membill/problem.h"
#include "membill/units.h"
#include "membill/value.h"

namespace membill::io {

class FieldReader {
 public:
  // `prefix` is the dotted key of the map itself, empty at the top. When `value` is no map, that is a problem and every key is absent.
  FieldReader(const Value& value, std::string file, std::string prefix, Problems& problems);

  // Absent and null are the same: nothing. Another type is a problem.
  [[nodiscard]] std::optional<std::string> text(std::string_view key);
  [[nodiscard]] std::optional<std::int64_t> count(std::string_view key, std::int64_t least = 0);
  [[nodiscard]] std::optional<bool> flag(std::string_view key);
  [[nodiscard]] std::optional<double> real(std::string_view key);
  // A size with its unit ("1 TiB"), or 0.
  [[nodiscard]] std::optional<Bytes> size(std::string_view key);
  // GiB as a decimal number, exact to the digits written; rounded down to whole bytes.
  [[nodiscard]] std::optional<Bytes> gib(std::string_view key);
  // A number of parameters: 7000000000, 7e9, "7B"; at least 1.
  [[nodiscard]] std::optional<std::int64_t> parameters(std::string_view key);
  [[nodiscard]] std::vector<std::string> texts(std::string_view key);
  // The value itself, null included; nullptr when absent.
  [[nodiscard]] const Value* value(std::string_view key);
  void require(std::string_view key);

  // Every key that was never asked for is a problem.
  void finish();

  // Adds a problem of `key`, or of the map itself when it is empty.
  void problem(std::string_view key, std::string message, std::string hint = {});

 private:
  [[nodiscard]] const Value* present(std::string_view key);
  [[nodiscard]] std::string dotted(std::string_view key) const;
  void wrong_type(std::string_view key, const Value& found, std::string_view wanted);

  const Value& map_;
  std::string file_;
  std::string prefix_;
  Problems& problems_;
  std::vector<std::string_view> asked_;
};

}  // namespace membill::io
