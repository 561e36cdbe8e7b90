#include "catalog/module_names.h"

namespace membill {

bool ends_with_name(std::string_view name, std::string_view target) {
  if (name == target) return true;
  return name.size() > target.size() && name.ends_with(target) && name[name.size() - target.size() - 1] == '.';
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

bool is_pattern(std::string_view name) { return name.find_first_of("*+?[](){}|^$\\") != std::string_view::npos; }

std::optional<std::regex> compile_pattern(const std::string& pattern) {
  if (pattern.size() > kLongestPattern) return std::nullopt;
  auto options = std::regex::ECMAScript;
#ifdef __GLIBCXX__
  options |= std::regex_constants::__polynomial;  // time that does not grow exponentially with the name
#endif
  try {
    return std::regex(pattern, options);
  } catch (const std::regex_error&) {
    return std::nullopt;
  }
}

std::string with_layer(std::string name, std::int64_t layer) {
  const std::size_t star = name.find('*');
  return star == std::string::npos ? name : name.replace(star, 1, std::to_string(layer));
}

}  // namespace membill
