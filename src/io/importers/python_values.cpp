#include "io/importers/python_program.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/text.h"
#include "io/importers/python_arithmetic.h"

namespace membill::io {
// One expression, by descent. What is not known ends it.
class PythonProgram::Evaluation {
 public:
  Evaluation(const PythonProgram& program, int& budget, int depth) : p_(program), budget_(budget), depth_(depth) {}

  std::optional<Value> run(PythonRange range) {
    if (depth_ > kDeepest || --budget_ < 0 || range.begin >= range.end) return std::nullopt;
    if (const std::size_t chooses = top_level(range, "if"); chooses < range.end) return choice(range, chooses);
    if (const std::size_t either = top_level(range, "or"); either < range.end) return joined(range, either, true);
    if (const std::size_t both = top_level(range, "and"); both < range.end) return joined(range, both, false);
    if (is_word(range.begin, "not")) {
      const std::optional<Value> value = inner({range.begin + 1, range.end});
      return value ? std::optional(Value::of(!is_true(*value))) : std::nullopt;
    }
    if (std::optional<std::optional<Value>> result = comparison(range)) return *std::move(result);
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

  // a or b, a and b: one side may decide although the other is not known.
  std::optional<Value> joined(PythonRange range, std::size_t word, bool decides) {
    std::optional<Value> first = inner({range.begin, word});
    if (first && is_true(*first) == decides) return first;
    std::optional<Value> second = inner({word + 1, range.end});
    if (first) return second;
    return second && is_true(*second) == decides && second->is_bool() ? second : std::nullopt;
  }

  // Nothing: it compares nothing. `x is not None` and the like are decided where x is written down.
  std::optional<std::optional<Value>> comparison(PythonRange range) {
    static constexpr std::array<std::string_view, 6> kSigns{"==", "!=", "<", "<=", ">", ">="};
    for (std::size_t at = range.begin; at < range.end; at = behind(at)) {
      const bool sign =
          token(at).kind == PythonKind::op && std::find(kSigns.begin(), kSigns.end(), token(at).text) != kSigns.end();
      const bool negated = is_word(at, "not") && is_word(at + 1, "in");
      const bool word = is_word(at, "in") || is_word(at, "is") || negated;
      if (!sign && !word) continue;
      const bool is_not = is_word(at, "is") && is_word(at + 1, "not");
      const std::optional<Value> left = inner({range.begin, at});
      const std::optional<Value> right = inner({at + (negated || is_not ? 2 : 1), range.end});
      const auto holds = left && right ? compared(*left, negated ? "in" : token(at).text, *right) : std::nullopt;
      return holds ? std::optional(Value::of(*holds != (negated || is_not))) : std::optional<Value>();
    }
    return std::nullopt;
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
      case PythonKind::computed_text: value = filled_text(token(at_++)); break;
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

  // An f-string of names alone.
  std::optional<Value> filled_text(const PythonToken& token) {
    std::string text;
    for (std::size_t at = 0; at < token.text.size() && text.size() < kLongestText; ++at) {
      if (token.text[at] != '{') {
        text += token.text[at];
        continue;
      }
      const std::size_t close = token.text.find('}', at);
      if (close == std::string::npos) return std::nullopt;
      const std::string name = token.text.substr(at + 1, close - at - 1);
      const std::size_t dot = name.rfind('.');
      const std::string object = dot == std::string::npos ? std::string() : name.substr(0, dot);
      const std::optional<Value> value =
          named(name, object, dot == std::string::npos ? name : name.substr(dot + 1), at_);
      if (!value || !(value->is_string() || value->is_int())) return std::nullopt;
      text += value->is_string() ? value->as_string() : std::to_string(value->as_int());
      at = close;
    }
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
    if (dotted == "__name__") return Value::of("__main__");
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

  // The few functions whose result is known (the job has a card, and one that runs bf16) or written down.
  std::optional<Value> call(const std::string& function) {
    const std::size_t open = at_, close = behind(open) - 1;
    at_ = close + 1;
    const std::vector<PythonRange> parts = parts_of({open + 1, close});
    const std::string last = function.substr(function.rfind('.') + 1);
    if (function == "torch.cuda.is_available" || last == "is_bf16_supported" || last == "is_bfloat16_supported" ||
        last == "is_torch_bf16_gpu_available")
      return Value::of(true);
    if (last == "get_device_capability") return items_of(Value::make_list({Value::of(8), Value::of(0)}));
    if (function == "os.environ.get" || function == "os.getenv")
      return parts.size() == 2 ? inner(parts[1]) : std::nullopt;
    if (function == "getattr" && parts.size() >= 2) return inner(parts[1]);  // of torch: a dtype
    if (function == "field" || function == "dataclasses.field" || function == "Field") return fallback(parts);
    if (function == "dict") return keywords_of(parts);
    return parts.empty() ? method_of(function, std::nullopt) : of_first(function, parts);
  }

  // field(default=..., default_factory=lambda: ...).
  std::optional<Value> fallback(const std::vector<PythonRange>& parts) {
    for (const PythonRange& part : parts) {
      if (part.begin + 2 >= part.end || !p_.is_op(part.begin + 1, "=")) continue;
      if (is_word(part.begin, "default")) return inner({part.begin + 2, part.end});
      if (is_word(part.begin, "default_factory") && is_word(part.begin + 2, "lambda"))
        return inner({part.begin + 4, part.end});
    }
    return std::nullopt;
  }

  // dict(NAME=..., ...): what the program computes is left out.
  std::optional<Value> keywords_of(const std::vector<PythonRange>& parts) {
    Value map = Value::make_map();
    for (const PythonRange& part : parts) {
      if (part.begin + 2 >= part.end || !p_.is_op(part.begin + 1, "=")) continue;
      if (std::optional<Value> value = inner({part.begin + 2, part.end}))
        map.set(token(part.begin).text, *std::move(value));
    }
    return map;
  }

  std::optional<Value> of_first(const std::string& function, const std::vector<PythonRange>& parts) {
    std::optional<Value> value = inner(parts.front());
    if (!value) return std::nullopt;
    if (function == "int" && value->is_string()) return number_value(value->as_string());
    if (function == "int" || function == "float" || function == "str" || function == "list") return value;
    if (function == "bool") return Value::of(is_true(*value));
    if (function == "len" && value->is_list()) return Value::of(static_cast<std::int64_t>(value->items().size()));
    if (function == "len" && value->is_string()) return Value::of(static_cast<std::int64_t>(value->as_string().size()));
    if ((function == "max" || function == "min") && parts.size() == 2) {
      std::optional<Value> other = inner(parts[1]);
      const auto smaller = other ? compared(*value, "<", *other) : std::nullopt;
      return !smaller ? std::nullopt : *smaller == (function == "min") ? value : other;
    }
    return method_of(function, value);
  }

  // NAME.split(","), NAME.lower() and NAME.strip() of a text.
  std::optional<Value> method_of(const std::string& function, const std::optional<Value>& argument) {
    const std::size_t dot = function.rfind('.');
    if (dot == std::string::npos) return std::nullopt;
    const std::string name = function.substr(0, dot), method = function.substr(dot + 1);
    const std::size_t inside = name.rfind('.');
    const std::string object = inside == std::string::npos ? std::string() : name.substr(0, inside);
    if (method != "split" && method != "lower" && method != "strip") return std::nullopt;
    const auto text = named(name, object, inside == std::string::npos ? name : name.substr(inside + 1), at_ - 1);
    if (!text || !text->is_string()) return std::nullopt;
    if (method == "lower") return Value::of(to_lower(text->as_string()));
    if (method == "strip") return Value::of(std::string(trim(text->as_string())));
    if (!argument || !argument->is_string() || argument->as_string().size() != 1) return std::nullopt;
    std::vector<Value> items;
    for (const std::string& part : split(text->as_string(), argument->as_string().front()))
      items.push_back(Value::of(std::string(trim(part))));
    return Value::make_list(std::move(items));
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
