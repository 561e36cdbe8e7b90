#include "io/importers/references.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "membill/catalog.h"

namespace membill::io {
namespace {

constexpr int kDeepestReference = 8;
constexpr int kDeepestMap = 64;
constexpr std::size_t kLongestText = 1 << 16;
constexpr int kMostReferences = 10'000;
constexpr int kMostCopies = 1'000'000;

class Resolver {
 public:
  Resolver(const Value& root, const Launch& launch) : root_(root), launch_(launch) {}

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
      const std::optional<Value> found = target(text.substr(2, end - 3), references);
      return found ? at_line(*found, value) : value;
    }
    std::string result;
    for (std::size_t at = 0; at < text.size() && result.size() < kLongestText;) {
      const std::size_t end = text.compare(at, 2, "${") == 0 ? end_of_reference(text, at) : 0;
      const std::optional<Value> found =
          end == 0 ? std::nullopt : target(text.substr(at + 2, end - at - 3), references);
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

  std::optional<Value> target(std::string_view name, int references) {
    if (++used_ > kMostReferences) return std::nullopt;
    if (name.starts_with("oc.env:")) return variable(name.substr(7));
    const Value* found = &root_;
    while (found != nullptr && !name.empty()) {
      const std::size_t dot = std::min(name.find('.'), name.size());
      found = found->is_map() ? found->find(name.substr(0, dot)) : nullptr;
      name.remove_prefix(std::min(dot + 1, name.size()));
    }
    if (found == nullptr || found == &root_) return std::nullopt;
    return resolve(*found, references + 1, 0);
  }

  std::optional<Value> variable(std::string_view name) const {
    const std::size_t comma = name.find(',');
    const auto found = launch_.environment.find(trim(name.substr(0, comma)));
    if (found != launch_.environment.end()) return flag_value(found->second);
    if (comma == std::string_view::npos) return std::nullopt;
    return flag_value(std::string(trim(name.substr(comma + 1))));
  }

  const Value& root_;
  const Launch& launch_;
  int used_ = 0, copies_ = 0;
};

}  // namespace

Value with_references(const Value& root, const Launch& launch) { return Resolver(root, launch).resolve(root, 0, 0); }

}  // namespace membill::io
