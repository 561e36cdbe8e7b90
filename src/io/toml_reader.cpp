#include "io/toml_reader.h"

// The library asserts, or assumes, that a header's key begins as one before it looks whether it does: "[)" would end the program.
#define TOML_HEADER_ONLY 1
#define TOML_ASSERT(expr) static_assert(true)
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/json_reader.h"
#include "io/text_file.h"
#include "membill/problem.h"

namespace membill::io {
namespace {

// The first line that says something.
std::string_view first_line(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    if (!line.empty() && line.front() != '#') return line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

// "[training]", "[[runs]]", perhaps with a comment.
bool is_header(std::string_view line) {
  if (!line.starts_with('[')) return false;
  const std::size_t end = line.find(']');
  if (end == std::string_view::npos || end < 2) return false;
  const std::string_view name = line.substr(1, end - 1);
  const std::string_view rest = trim(line.substr(line.find_last_of(']') + 1));
  constexpr std::string_view kOfKeys = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.\"[ ";
  return name.find_first_not_of(kOfKeys) == std::string_view::npos && (rest.empty() || rest.front() == '#');
}

class TomlReader {
 public:
  explicit TomlReader(const std::string& file) : file_(file) {}

  Value read(const toml::node& node, const std::string& key, int depth) {
    Value value = read_kind(node, key, depth);
    value.line = static_cast<int>(node.source().begin.line);
    return value;
  }

 private:
  Value read_kind(const toml::node& node, const std::string& key, int depth) {
    if (depth > kDeepest) refuse(node, key, "is nested deeper than " + std::to_string(kDeepest) + " levels");
    if (const toml::table* table = node.as_table()) return read_table(*table, key, depth);
    if (const toml::array* array = node.as_array()) return read_array(*array, key, depth);
    if (const auto* text = node.as_string()) return Value::of(text->get());
    if (const auto* number = node.as_integer()) return Value::of(static_cast<std::int64_t>(number->get()));
    if (const auto* flag = node.as_boolean()) return Value::of(flag->get());
    if (const auto* real = node.as_floating_point()) {
      if (!std::isfinite(real->get())) refuse(node, key, "is no finite number");
      return Value::of(real->get());
    }
    std::ostringstream written;
    node.visit([&](const auto& each) { written << each; });
    return Value::of(written.str());
  }

  // In the order of the file, which the library's own tables have not.
  Value read_table(const toml::table& table, const std::string& key, int depth) {
    std::vector<std::pair<const toml::key*, const toml::node*>> entries;
    for (const auto& [name, node] : table) entries.emplace_back(&name, &node);
    const auto place = [](const auto& entry) {
      const toml::source_position begin = entry.first->source().begin;
      return std::pair(begin.line, begin.column);
    };
    std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
    std::vector<Value::Entry> values;
    for (const auto& [name, node] : entries) {
      const std::string own(name->str());
      values.emplace_back(own, read(*node, key.empty() ? own : key + "." + own, depth + 1));
    }
    return Value::make_map(std::move(values));
  }

  Value read_array(const toml::array& array, const std::string& key, int depth) {
    std::vector<Value> items;
    for (const toml::node& node : array) items.push_back(read(node, key, depth + 1));
    return Value::make_list(std::move(items));
  }

  [[noreturn]] void refuse(const toml::node& node, const std::string& key, const std::string& why) const {
    throw InputError(Problem{file_, key, "line " + std::to_string(node.source().begin.line) + " " + why, ""});
  }

  const std::string& file_;
};

}  // namespace

bool is_toml(std::string_view text, const std::string& file) {
  const bool other = file.ends_with(".yaml") || file.ends_with(".yml") || file.ends_with(".json");
  return file.ends_with(".toml") || (!other && is_header(first_line(text)));
}

Value parse_toml(std::string_view text, const std::string& file) {
  const std::string_view checked = check_text(text, file);
  try {
    const toml::table root = toml::parse(checked, file);
    return TomlReader(file).read(root, "", 0);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw InputError(Problem{file, "",
                             "line " + std::to_string(at.line) + ", column " + std::to_string(at.column) + ": " +
                                 std::string(error.description()),
                             ""});
  }
}

}  // namespace membill::io
