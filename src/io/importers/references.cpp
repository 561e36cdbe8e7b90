#include "io/importers/references.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "membill/catalog.h"

namespace membill::io {
namespace {

constexpr int kDeepestReference = 8;
constexpr int kDeepestMap = 64;
constexpr std::size_t kLongestText = 1 << 16;
constexpr int kMostReferences = 10'000;
constexpr int kMostCopies = 1'000'000;

// What stands between "${" and "}", to what it refers to; nothing: it is left as it stands. The count: references that led to it.
using Target = std::function<std::optional<Value>(std::string_view name, int references)>;

// Replaces what Target knows in all texts of a tree.
class Replacer {
 public:
  explicit Replacer(Target target) : target_(std::move(target)) {}

  Value resolve(const Value& value, int references, int depth) {
    if (value.is_string()) return resolve_text(value, references);
    if (++copies_ > kMostCopies) return {};
    if (depth > kDeepestMap) return value;
    if (value.is_list()) {
      std::vector<Value> items;
      items.reserve(value.items().size());
      for (const Value& item : value.items()) items.push_back(resolve(item, references, depth + 1));
      return at_line(Value::make_list(std::move(items)), value);
    }
    if (!value.is_map()) return value;
    Value result = Value::make_map();
    for (const auto& [key, entry] : value.entries())
      result.entries().emplace_back(key, resolve(entry, references, depth + 1));
    return at_line(std::move(result), value);
  }

 private:
  static Value at_line(Value value, const Value& like) {
    value.line = like.line;
    return value;
  }

  Value resolve_text(const Value& value, int references) {
    const std::string& text = value.as_string();
    if (text.find("${") == std::string::npos || references >= kDeepestReference) return value;
    if (const std::size_t end = end_of_reference(text, 0); text.starts_with("${") && end == text.size()) {
      const std::optional<Value> found = target_(text.substr(2, end - 3), references);
      return found ? at_line(*found, value) : value;
    }
    std::string result;
    for (std::size_t at = 0; at < text.size() && result.size() < kLongestText;) {
      const std::size_t end = text.compare(at, 2, "${") == 0 ? end_of_reference(text, at) : 0;
      const std::optional<Value> found =
          end == 0 ? std::nullopt : target_(text.substr(at + 2, end - at - 3), references);
      if (found && !found->is_map() && !found->is_list()) {
        result += value_text(*found);
        at = end;
      } else {
        result += text[at++];
      }
    }
    return at_line(Value::of(result), value);
  }

  // Behind the brace that closes the reference at `at`; 0: none does.
  static std::size_t end_of_reference(std::string_view text, std::size_t at) {
    const std::size_t end = text.find('}', at);
    return end == std::string_view::npos ? 0 : end + 1;
  }

  Target target_;
  int copies_ = 0;
};

std::optional<Value> variable(std::string_view name, const Variables& environment) {
  const std::string* found = environment.find(trim(name));
  return found == nullptr ? std::nullopt : std::optional(flag_value(*found));
}

// "oc.env:NAME,default".
std::optional<Value> omegaconf_variable(std::string_view name, const Variables& environment) {
  const std::size_t comma = name.find(',');
  if (std::optional<Value> value = variable(name.substr(0, comma), environment)) return value;
  if (comma == std::string_view::npos) return std::nullopt;
  return flag_value(std::string(trim(name.substr(comma + 1))));
}

// What stands at the dotted path `name`; nullptr: nothing does.
const Value* at_path(const Value& root, std::string_view name) {
  const Value* found = &root;
  while (found != nullptr && !name.empty()) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    found = found->is_map() ? found->find(name.substr(0, dot)) : nullptr;
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  return found == &root ? nullptr : found;
}

}  // namespace

Value with_references(const Value& root, const Launch& launch) {
  int used = 0;
  Replacer* self = nullptr;
  Replacer replacer([&](std::string_view name, int references) -> std::optional<Value> {
    if (++used > kMostReferences) return std::nullopt;
    if (name.starts_with("oc.env:")) return omegaconf_variable(name.substr(7), launch.environment);
    const Value* found = at_path(root, name);
    return found == nullptr ? std::nullopt : std::optional(self->resolve(*found, references + 1, 0));
  });
  self = &replacer;
  return replacer.resolve(root, 0, 0);
}

Value with_variables(const Value& root, const Variables& environment, std::vector<std::string>& assumptions) {
  Replacer replacer([&](std::string_view name, int) -> std::optional<Value> {
    const std::size_t mark = name.find(":-");
    if (std::optional<Value> value = variable(name.substr(0, mark), environment)) return value;
    if (mark == std::string_view::npos) return std::nullopt;
    const std::string fallback(name.substr(mark + 2));
    assumptions.push_back(std::string(name.substr(0, mark)) + " is not set: its default " + fallback + " is taken");
    return flag_value(fallback);
  });
  return replacer.resolve(root, 0, 0);
}

}  // namespace membill::io
