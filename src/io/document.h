// Parts shared by the JSON and the YAML reader.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "membill/value.h"

namespace membill::io {

// The keys of one map while it is read: linear while few, hashed when many, so that a file of a million keys stays quick.
class KeyIndex {
 public:
  // 0 when `key` is new (it is then held), else the line on which it stood first.
  int add(const std::string& key, int line);

 private:
  std::vector<std::pair<std::string, int>> few_;
  std::unordered_map<std::string, int> many_;
};

// A number written in plain digits, with a sign perhaps. False, with `why` ("does not fit 64 bits"), when the range ends.
[[nodiscard]] bool read_integer(std::string_view written, Value& result, std::string& why);

// A number with a fraction or an exponent; the value keeps `written`. False, with `why`, when it is beyond the range of a double;
// one that is too small to be told from zero is zero.
[[nodiscard]] bool read_real(std::string_view written, Value& result, std::string& why);

}  // namespace membill::io
