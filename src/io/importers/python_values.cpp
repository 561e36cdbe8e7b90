#include "io/importers/python_program.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "membill/units.h"

namespace membill::io {
namespace {

constexpr std::size_t kLongestText = 4096;

bool is_true(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null: return false;
    case Value::Kind::boolean: return value.as_bool();
    case Value::Kind::integer: return value.as_int() != 0;
    case Value::Kind::real: return value.as_real() < 0 || value.as_real() > 0;
    case Value::Kind::string: return !value.as_string().empty();
    case Value::Kind::list: return !value.items().empty();
    case Value::Kind::map: return !value.entries().empty();
  }
  return false;
}

std::optional<Value> number_value(const std::string& text) {
  std::int64_t whole = 0;
  const char* end = text.data() + text.size();
  if (const auto [rest, error] = std::from_chars(text.data(), end, whole); error == std::errc() && rest == end)
    return Value::of(whole);
  double real = 0;
  if (const auto [rest, error] = std::from_chars(text.data(), end, real); error == std::errc() && rest == end)
    return Value::of(real, text);
  return std::nullopt;
}

std::optional<Value> calculated(const Value& a, char op, const Value& b) {
  if (op == '+' && a.is_string() && b.is_string()) {
    if (a.as_string().size() + b.as_string().size() > kLongestText) return std::nullopt;
    return Value::of(a.as_string() + b.as_string());
  }
  if (op == '+' && a.is_list() && b.is_list()) {
    if (a.items().size() + b.items().size() > kLongestText) return std::nullopt;
    std::vector<Value> items = a.items();
    items.insert(items.end(), b.items().begin(), b.items().end());
    return Value::make_list(std::move(items));
  }
  if (!a.is_int() || !b.is_int()) return std::nullopt;
  try {
    if (op == '+') return Value::of(checked_add(a.as_int(), b.as_int()));
    if (op == '-') return Value::of(checked_sub(a.as_int(), b.as_int()));
    if (op == '*') return Value::of(checked_mul(a.as_int(), b.as_int()));
    if (op == '/' && a.as_int() >= 0 && b.as_int() > 0) return Value::of(a.as_int() / b.as_int());
  } catch (const OverflowError&) {
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

// One expression, by descent. What is not known ends it.
class PythonProgram::Evaluation {
 public:
  Evaluation(const PythonProgram& program, int& budget, int depth) : p_(program), budget_(budget), depth_(depth) {}

  std::optional<Value> run(PythonRange range) {
    if (depth_ > kDeepest || --budget_ < 0 || range.begin >= range.end) return std::nullopt;
    if (const std::size_t chooses = top_level(range, "if"); chooses < range.end) return choice(range, chooses);
    if (const std::size_t either = top_level(range, "or"); either < range.end) {
      const std::optional<Value> first = inner({range.begin, either});
      return first && is_true(*first) ? first : first ? inner({either + 1, range.end}) : std::nullopt;
    }
    if (is_word(range.begin, "not")) {
      const std::optional<Value> value = inner({range.begin + 1, range.end});
      return value ? std::optional(Value::of(!is_true(*value))) : std::nullopt;
    }
    at_ = range.begin;
    end_ = range.end;
    std::optional<Value> result = sum();
    return at_ == end_ ? result : std::nullopt;
  }

 private:
  static constexpr int kDeepest = 24;

  std::optional<Value> inner(PythonRange range) { return Evaluation(p_, budget_, depth_ + 1).run(range); }

  [[nodiscard]] const PythonToken& token(std::size_t at) const { return p_.tokens_[at]; }
  [[nodiscard]] bool is_word(std::size_t at, std::string_view word) const {
    return at < p_.tokens_.size() && token(at).kind == PythonKind::name && token(at).text == word;
  }
  [[nodiscard]] bool here(std::string_view op) const { return at_ < end_ && p_.is_op(at_, op); }
  [[nodiscard]] std::size_t behind(std::size_t at) const {
    const std::size_t match = token(at).match;
    return match > at && match < p_.tokens_.size() ? match + 1 : at + 1;
  }

  // Where `word` stands outside of brackets; range.end: nowhere.
  [[nodiscard]] std::size_t top_level(PythonRange range, std::string_view word) const {
    std::size_t at = range.begin;
    while (at < range.end && !is_word(at, word)) at = behind(at);
    return std::min(at, range.end);
  }

  std::optional<Value> choice(PythonRange range, std::size_t chooses) {
    const std::size_t otherwise = top_level({chooses + 1, range.end}, "else");
    const std::optional<Value> condition = inner({chooses + 1, otherwise});
    if (!condition || otherwise == range.end) return std::nullopt;
    return is_true(*condition) ? inner({range.begin, chooses}) : inner({otherwise + 1, range.end});
  }

  std::optional<Value> sum() {
    std::optional<Value> result = product();
    while (result && (here("+") || here("-"))) {
      const char op = token(at_++).text.front();
      const std::optional<Value> next = product();
      result = next ? calculated(*result, op, *next) : std::nullopt;
    }
    return result;
  }

  std::optional<Value> product() {
    std::optional<Value> result = signed_value();
    while (result && (here("*") || here("//"))) {
      const char op = token(at_++).text.front();
      const std::optional<Value> next = signed_value();
      result = next ? calculated(*result, op, *next) : std::nullopt;
    }
    return result;
  }

  std::optional<Value> signed_value() {
    if (!here("-")) return primary();
    ++at_;
    const std::optional<Value> value = primary();
    if (!value || !value->is_number()) return std::nullopt;
    if (value->is_int()) return Value::of(-value->as_int());
    return Value::of(-value->as_real(), "-" + value->written());
  }

  std::optional<Value> primary() {
    if (at_ >= end_) return std::nullopt;
    const std::size_t start = at_;
    std::optional<Value> value;
    switch (token(at_).kind) {
      case PythonKind::number: value = number_value(token(at_++).text); break;
      case PythonKind::text: value = texts(); break;
      case PythonKind::name: return name();
      case PythonKind::op: value = bracket(); break;
      case PythonKind::computed_text:
      case PythonKind::line_end: return std::nullopt;
    }
    if (at_ == start) return std::nullopt;
    return value ? items_of(*value) : value;
  }

  std::optional<Value> texts() {
    std::string text;
    while (at_ < end_ && token(at_).kind == PythonKind::text && text.size() < kLongestText) text += token(at_++).text;
    return Value::of(std::move(text));
  }

  // [KEY] behind a list or a map.
  std::optional<Value> items_of(Value value) {
    while (here("[")) {
      const std::size_t close = behind(at_) - 1;
      const std::optional<Value> key = inner({at_ + 1, close});
      at_ = close + 1;
      if (!key) return std::nullopt;
      const Value* found = nullptr;
      if (value.is_map() && key->is_string()) found = value.find(key->as_string());
      if (value.is_list() && key->is_int() && key->as_int() >= 0 &&
          key->as_int() < static_cast<std::int64_t>(value.items().size()))
        found = &value.items()[static_cast<std::size_t>(key->as_int())];
      if (found == nullptr) return std::nullopt;
      value = Value(*found);
    }
    return value;
  }

  std::optional<Value> bracket() {
    const std::string& open = token(at_).text;
    const std::size_t close = behind(at_) - 1;
    if (close <= at_ || close >= end_) return std::nullopt;
    const PythonRange range{at_ + 1, close};
    at_ = close + 1;
    if (top_level(range, "for") < range.end) return std::nullopt;
    if (open == "{") return map_or_set(range);
    const std::vector<PythonRange> parts = parts_of(range);
    if (open == "(" && parts.size() == 1 && parts.front().end == range.end) return inner(range);
    return list_of(parts);
  }

  [[nodiscard]] std::vector<PythonRange> parts_of(PythonRange range) const {
    std::vector<PythonRange> parts;
    std::size_t first = range.begin;
    for (std::size_t at = range.begin; at <= range.end;
         at = at < range.end ? std::min(behind(at), range.end) : at + 1) {
      if (at < range.end && !p_.is_op(at, ",")) continue;
      if (first < at) parts.push_back({first, at});
      first = at + 1;
    }
    return parts;
  }

  std::optional<Value> list_of(const std::vector<PythonRange>& parts) {
    std::vector<Value> items;
    for (const PythonRange& part : parts) {
      std::optional<Value> item = inner(part);
      if (!item) return std::nullopt;
      items.push_back(*std::move(item));
    }
    return Value::make_list(std::move(items));
  }

  // What the program computes in a map is left out of it.
  std::optional<Value> map_or_set(PythonRange range) {
    const std::vector<PythonRange> parts = parts_of(range);
    Value map = Value::make_map();
    for (const PythonRange& part : parts) {
      std::size_t colon = part.begin;
      while (colon < part.end && !p_.is_op(colon, ":")) colon = behind(colon);
      if (colon >= part.end) return p_.is_op(part.begin, "**") ? std::nullopt : list_of(parts);
      const std::optional<Value> key = inner({part.begin, colon});
      std::optional<Value> value = inner({colon + 1, part.end});
      if (key && key->is_string() && value) map.set(key->as_string(), *std::move(value));
    }
    return map;
  }

  std::optional<Value> name() {
    const std::size_t start = at_;
    std::string dotted = token(at_++).text;
    if (dotted == "True" || dotted == "False") return Value::of(dotted == "True");
    if (dotted == "None") return Value();
    std::string last = dotted;
    std::string object;
    while (here(".") && at_ + 1 < end_ && token(at_ + 1).kind == PythonKind::name) {
      object = dotted;
      last = token(at_ + 1).text;
      dotted += "." + last;
      at_ += 2;
    }
    if (here("(")) return call(dotted);
    if (object == "torch") return Value::of(last);
    const std::optional<Value> value = named(dotted, object, last, start);
    return value ? items_of(*value) : std::nullopt;
  }

  std::optional<Value> named(const std::string& dotted, const std::string& object, const std::string& last,
                             std::size_t start) {
    if (const Binding* found = p_.binding(dotted, start); found != nullptr) return inner(found->value);
    if (object.empty()) return std::nullopt;
    if (const auto flag = p_.flags_.find(last); flag != p_.flags_.end()) return flag->second;
    if (const auto option = p_.options_.find(last); option != p_.options_.end()) return inner(option->second);
    const Binding* field = p_.binding(last, start);
    return field != nullptr ? inner(field->value) : std::nullopt;
  }

  // The few functions whose result is known (the job has a card) or written down: field(default=...), os.environ.get(NAME, DEFAULT),
  // int(...), dict(...).
  std::optional<Value> call(const std::string& function) {
    const std::size_t open = at_, close = behind(open) - 1;
    at_ = close + 1;
    const std::vector<PythonRange> parts = parts_of({open + 1, close});
    if (function == "torch.cuda.is_available") return Value::of(true);
    if (function == "os.environ.get" || function == "os.getenv")
      return parts.size() == 2 ? inner(parts[1]) : std::nullopt;
    if ((function == "int" || function == "float" || function == "str" || function == "bool") && parts.size() == 1) {
      std::optional<Value> value = inner(parts.front());
      if (value && value->is_string() && function == "int") return number_value(value->as_string());
      return value;
    }
    const bool is_field = function == "field" || function == "dataclasses.field" || function == "Field";
    for (const PythonRange& part : parts) {
      if (part.begin + 2 < part.end && is_word(part.begin, "default") && p_.is_op(part.begin + 1, "=") && is_field)
        return inner({part.begin + 2, part.end});
    }
    if (function != "dict") return std::nullopt;
    Value map = Value::make_map();
    for (const PythonRange& part : parts) {
      if (part.begin + 2 >= part.end || !p_.is_op(part.begin + 1, "=")) continue;
      if (std::optional<Value> value = inner({part.begin + 2, part.end}))
        map.set(token(part.begin).text, *std::move(value));
    }
    return map;
  }

  const PythonProgram& p_;
  int& budget_;
  int depth_;
  std::size_t at_ = 0, end_ = 0;
};

std::optional<Value> PythonProgram::evaluate(PythonRange range) const {
  int budget = 4000;
  return Evaluation(*this, budget, 0).run(range);
}

}  // namespace membill::io
