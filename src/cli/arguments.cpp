#include "cli/command.h"

namespace membill::cli {

const std::string* Arguments::value(std::string_view option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? nullptr : &found->second.back();
}

bool Arguments::is_on(std::string_view option) const {
  const std::string* text = value(option);
  return text != nullptr && *text == "true";
}

std::span<const std::string> Arguments::values(std::string_view option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? std::span<const std::string>() : std::span<const std::string>(found->second);
}

const std::string* Arguments::positional(std::size_t index) const {
  return index < positionals.size() ? &positionals[index] : nullptr;
}

}  // namespace membill::cli
