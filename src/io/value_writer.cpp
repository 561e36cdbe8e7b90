#include "io/value_writer.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace membill::io {
namespace {

std::string number_text(const Value& value) {
  if (value.is_int()) return std::to_string(value.as_int());
  if (!value.written().empty()) return value.written();
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value.as_real()).ptr;
  std::string text(buffer, end);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string json_text(const std::string& text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += std::string("\\") + c;
    } else if (byte < 0x20) {
      result += std::string("\\u00") + kHex[byte >> 4U] + kHex[byte & 15U];
    } else {
      result += c;
    }
  }
  return result + "\"";
}

bool is_nested(const Value& value) { return value.is_map() || value.is_list(); }

bool is_flat_list(const Value& value) {
  return value.is_list() && std::none_of(value.items().begin(), value.items().end(), is_nested);
}

std::string json_of(const Value& value, const std::string& indent) {
  switch (value.kind()) {
    case Value::Kind::null: return "null";
    case Value::Kind::boolean: return value.as_bool() ? "true" : "false";
    case Value::Kind::integer:
    case Value::Kind::real: return number_text(value);
    case Value::Kind::string: return json_text(value.as_string());
    case Value::Kind::list:
    case Value::Kind::map: break;
  }
  const bool flat = is_flat_list(value);
  const std::string deeper = flat ? "" : "\n" + indent + "  ";
  std::string body;
  for (const Value& item : value.is_list() ? value.items() : std::vector<Value>())
    body += (body.empty() ? "" : flat ? ", " : ",") + deeper + json_of(item, indent + "  ");
  for (const auto& [key, entry] : value.is_map() ? value.entries() : std::vector<Value::Entry>())
    body += (body.empty() ? "" : ",") + deeper + json_text(key) + ": " + json_of(entry, indent + "  ");
  const std::string close = flat || body.empty() ? "" : "\n" + indent;
  return (value.is_list() ? "[" : "{") + body + close + (value.is_list() ? "]" : "}");
}

// Text that a YAML reader cannot take for anything else.
bool is_plain(const std::string& text) {
  static constexpr std::string_view kWords[] = {"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan"};
  const auto is_word = [&](std::string_view word) { return to_lower(text) == word; };
  if (text.empty() || std::any_of(std::begin(kWords), std::end(kWords), is_word)) return false;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto is_inner = [&](char c) {
    return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '/' || c == '+';
  };
  return (is_letter(text.front()) || text.front() == '/') && std::all_of(text.begin(), text.end(), is_inner);
}

std::string yaml_scalar_text(const Value& value) {
  if (value.is_string()) return is_plain(value.as_string()) ? value.as_string() : json_text(value.as_string());
  return json_of(value, "");
}

std::string yaml_flat(const Value& list) {
  std::string text = "[";
  for (const Value& item : list.items()) text += (text.size() == 1 ? "" : ", ") + yaml_scalar_text(item);
  return text + "]";
}

void add_yaml(const Value& map, const std::string& indent, std::string& text) {
  for (const auto& [key, value] : map.entries()) {
    text += indent + (is_plain(key) ? key : json_text(key)) + ":";
    if (value.is_map() && !value.entries().empty()) {
      text += "\n";
      add_yaml(value, indent + "  ", text);
    } else if (is_flat_list(value)) {
      text += " " + yaml_flat(value) + "\n";
    } else {
      text += " " + (is_nested(value) ? json_of(value, indent) : yaml_scalar_text(value)) + "\n";
    }
  }
}

}  // namespace

std::string write_json_line(const Value& value) {
  if (!is_nested(value)) return json_of(value, "");
  std::string body;
  for (const Value& item : value.is_list() ? value.items() : std::vector<Value>())
    body += (body.empty() ? "" : ", ") + write_json_line(item);
  for (const auto& [key, entry] : value.is_map() ? value.entries() : std::vector<Value::Entry>())
    body += (body.empty() ? "" : ", ") + json_text(key) + ": " + write_json_line(entry);
  return (value.is_list() ? "[" : "{") + body + (value.is_list() ? "]" : "}");
}

std::string write_json(const Value& value) { return json_of(value, "") + "\n"; }

std::string write_yaml(const Value& map) {
  std::string text;
  add_yaml(map, "", text);
  return text;
}

namespace {

std::string toml_lines(const Value& map) {
  std::string text;
  for (const auto& [key, value] : map.entries()) {
    if (value.is_map() || value.is_null()) continue;
    text += key + " = " + write_json_line(value) + "\n";
  }
  return text;
}

std::string option_text(const Value& value) {
  if (!value.is_string()) return json_of(value, "");
  return is_plain(value.as_string()) ? value.as_string() : "'" + value.as_string() + "'";
}

}  // namespace

std::string write_toml(const Value& map) {
  std::string text = toml_lines(map);
  for (const auto& [key, value] : map.entries())
    if (value.is_map()) text += (text.empty() ? "[" : "\n[") + key + "]\n" + toml_lines(value);
  return text;
}

std::string write_options(const Value& map) {
  std::string text;
  for (const auto& [key, value] : map.entries()) {
    const bool is_switch = value.is_bool();
    if (is_switch && !value.as_bool()) continue;
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', '-');
    text += " \\\n    --" + name;
    if (is_switch) continue;
    for (const Value& item : value.is_list() ? value.items() : std::vector<Value>{value})
      text += " " + option_text(item);
  }
  return text + "\n";
}

}  // namespace membill::io
