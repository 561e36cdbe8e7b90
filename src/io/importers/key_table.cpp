#include "io/importers/key_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "membill/catalog.h"

namespace membill::io {
namespace {

constexpr double kLargestWhole = 9e15;      // below 2^53: a double holds it exactly
constexpr std::size_t kMostGuesses = 1000;  // unknown keys for which a near one is looked for

const Value* find_dotted(const Value& map, std::string_view key) {
  if (const Value* whole = map.find(key)) return whole;
  const std::size_t dot = key.find('.');
  const Value* branch = dot == std::string_view::npos ? nullptr : map.find(key.substr(0, dot));
  return branch == nullptr || !branch->is_map() ? nullptr : find_dotted(*branch, key.substr(dot + 1));
}

// A number that was written as text, as on a command line, or as Python may write it: 500_000.
Value unquoted(const Value& value) {
  if (!value.is_string()) return value;
  std::string text = value.as_string();
  if (text.find_first_not_of("0123456789_") == std::string::npos && !text.starts_with('0') && !text.starts_with('_'))
    std::erase(text, '_');
  return flag_value(text);
}

std::optional<std::int64_t> as_count(const Value& value) {
  const Value number = unquoted(value);
  if (number.is_int()) return number.as_int();
  if (!number.is_number()) return std::nullopt;
  const double real = number.as_real();
  if (std::floor(real) != real || std::fabs(real) > kLargestWhole) return std::nullopt;
  return static_cast<std::int64_t>(real);
}

bool says_nothing(const Value& value) {
  return value.is_null() || (value.is_string() && (value.as_string() == "None" || value.as_string().empty()));
}

bool is_variable(const Value& value) { return value.is_string() && value.as_string().find('$') != std::string::npos; }

// "$3", "${12}": a word behind the script's name.
bool is_position(std::string_view text) {
  std::string_view name = text.substr(std::min<std::size_t>(text.size(), 1));
  if (name.starts_with('{') && name.ends_with('}')) name = name.substr(1, name.size() - 2);
  return text.starts_with('$') && !name.empty() && std::all_of(name.begin(), name.end(), is_digit);
}

// Whether `list` (words with blanks between) holds `key`, or a "prefix*" that begins it.
bool listed(std::string_view list, std::string_view key) {
  while (!list.empty()) {
    const std::size_t blank = std::min(list.find(' '), list.size());
    const std::string_view word = list.substr(0, blank);
    if (word == key || (word.ends_with('*') && key.starts_with(word.substr(0, word.size() - 1)))) return true;
    list.remove_prefix(std::min(blank + 1, list.size()));
  }
  return false;
}

// Where a row's default is defined: its own file takes the place of the last name of the table's source.
std::string source_of(const KeyTable& table, const KeyRow& row) {
  const std::size_t slash = table.source.rfind('/');
  if (row.source.empty() || slash == std::string_view::npos) return std::string(table.source);
  return std::string(table.source.substr(0, slash + 1)) + std::string(row.source);
}

const char* state_text(KeyState state) {
  switch (state) {
    case KeyState::read: return "read";
    case KeyState::defaulted: return "default";
    case KeyState::idle: return "without effect here";
    case KeyState::harmless: return "cannot matter to memory";
    case KeyState::unknown: return "unknown";
  }
  return "";
}

}  // namespace

std::optional<bool> as_flag(const Value& value) {
  if (value.is_bool()) return value.as_bool();
  if (value.is_int() && (value.as_int() == 0 || value.as_int() == 1)) return value.as_int() == 1;
  if (!value.is_string()) return std::nullopt;
  const std::string word = to_lower(value.as_string());
  for (const char* yes : {"true", "yes", "y", "t", "on", "1"}) {
    if (word == yes) return true;
  }
  for (const char* no : {"false", "no", "n", "f", "off", "0", "none", "null", ""}) {
    if (word == no) return false;
  }
  return std::nullopt;
}

namespace {
// The shortest digits that read back as the same number.
std::string real_text(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), end.ptr};
}
}  // namespace

std::string value_text(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null: return "null";
    case Value::Kind::boolean: return value.as_bool() ? "true" : "false";
    case Value::Kind::integer: return std::to_string(value.as_int());
    case Value::Kind::real: return value.written().empty() ? real_text(value.as_real()) : value.written();
    case Value::Kind::string: return value.as_string().size() > 60 ? quoted(value.as_string()) : value.as_string();
    case Value::Kind::map: return "{...}";
    case Value::Kind::list: break;
  }
  if (value.items().size() > 12) return "[...]";
  std::string text = "[";
  for (const Value& item : value.items()) text += (text.size() == 1 ? "" : ", ") + value_text(item);
  return text + "]";
}

std::string to_text(const KeyRecord& record) {
  std::string message = record.value + " (" + state_text(record.state);
  if (!record.note.empty()) message += (record.state == KeyState::unknown ? ", nearest: " : ": ") + record.note;
  return to_text(Problem{record.file, record.key, message + ")", ""});
}

KeyReader::KeyReader(const Value& map, std::string file, std::vector<KeyTable> tables, Problems& problems,
                     std::string prefix)
    : map_(map), file_(std::move(file)), tables_(std::move(tables)), problems_(problems), prefix_(std::move(prefix)) {}

const KeyRow* KeyReader::row(std::string_view key, const KeyTable** table) const {
  for (const KeyTable& candidate : tables_) {
    const auto found =
        std::find_if(candidate.rows.begin(), candidate.rows.end(), [&](const KeyRow& r) { return r.key == key; });
    if (found == candidate.rows.end()) continue;
    if (table != nullptr) *table = &candidate;
    return &*found;
  }
  return nullptr;
}

KeyReader::Found KeyReader::find(std::string_view key) const {
  Found found{find_dotted(map_, key), std::string(key)};
  if (found.value != nullptr && !says_nothing(*found.value)) return found;
  for (const KeyTable& table : tables_) {
    for (const KeyRow& other : table.rows) {
      if (other.same_as != key) continue;
      const Value* value = find_dotted(map_, other.key);
      if (value != nullptr && !says_nothing(*value)) return {value, std::string(other.key)};
    }
  }
  const std::string negated = "no_" + std::string(key);
  if (const Value* value = map_.find(negated); value != nullptr && as_flag(*value) == true) {
    static const Value kFalse = Value::of(false);
    return {&kFalse, negated};
  }
  return found;
}

const Value* KeyReader::given(std::string_view key) {
  asked_.insert(std::string(key));
  const Found found = find(key);
  return found.value == nullptr || says_nothing(*found.value) ? nullptr : found.value;
}

bool KeyReader::is_null(std::string_view key) {
  asked_.insert(std::string(key));
  const Found found = find(key);
  return found.value != nullptr && says_nothing(*found.value);
}

Value KeyReader::value_or_default(std::string_view key, std::string& spelled) {
  asked_.insert(std::string(key));
  const Found found = find(key);
  spelled = found.key;
  if (found.value != nullptr && !says_nothing(*found.value)) return *found.value;
  const KeyRow* known = row(key);
  return known == nullptr || known->fallback.empty() ? Value() : flag_value(known->fallback);
}

void KeyReader::problem(std::string_view key, std::string message, std::string hint) {
  problems_.add({file_, prefix_ + find(key).key, std::move(message), std::move(hint)});
}

void KeyReader::wrong(const std::string& key, const Value& value, const std::string& needed) {
  if (is_variable(value)) {
    problems_.add({file_, prefix_ + key, "needs " + needed + ", but " + quoted(value.as_string()) + " is not set",
                   is_position(value.as_string()) ? "its words behind: membill check -- bash " + file_ + " ..."
                                                  : std::string("set the variable before it")});
    return;
  }
  problems_.add({file_, prefix_ + key, "needs " + needed + ", not " + value_text(value), ""});
}

std::optional<std::string> KeyReader::text(std::string_view key) {
  std::string spelled;
  const Value value = value_or_default(key, spelled);
  if (value.is_null()) return std::nullopt;
  if (value.is_list() || value.is_map()) return wrong(spelled, value, "one word"), std::nullopt;
  return value.is_string() ? value.as_string() : value_text(value);
}

std::optional<std::int64_t> KeyReader::count(std::string_view key, std::int64_t least) {
  std::string spelled;
  const Value value = value_or_default(key, spelled);
  if (value.is_null()) return std::nullopt;
  const std::optional<std::int64_t> number = as_count(value);
  if (number && *number >= least) return number;
  wrong(spelled, value, "a whole number, " + std::to_string(least) + " or more");
  return std::nullopt;
}

std::optional<double> KeyReader::real(std::string_view key) {
  std::string spelled;
  const Value value = value_or_default(key, spelled);
  if (value.is_null()) return std::nullopt;
  const Value number = unquoted(value);
  if (number.is_number()) return number.as_real();
  wrong(spelled, value, "a number");
  return std::nullopt;
}

std::optional<bool> KeyReader::maybe_flag(std::string_view key) {
  std::string spelled;
  const Value value = value_or_default(key, spelled);
  if (value.is_null()) return std::nullopt;
  const std::optional<bool> flag = as_flag(value);
  if (!flag) wrong(spelled, value, "true or false");
  return flag;
}

bool KeyReader::flag(std::string_view key) { return maybe_flag(key).value_or(false); }

std::vector<std::string> KeyReader::texts(std::string_view key) {
  std::string spelled;
  const Value value = value_or_default(key, spelled);
  std::vector<std::string> result;
  if (value.is_list()) {
    for (const Value& item : value.items()) {
      if (!item.is_string() && !item.is_number())
        return wrong(spelled, value, "a list of names"), std::vector<std::string>();
      result.push_back(item.is_string() ? item.as_string() : value_text(item));
    }
    return result;
  }
  if (value.is_null()) return result;
  if (!value.is_string()) return wrong(spelled, value, "a list of names"), result;
  std::string word;
  for (const char c : value.as_string() + ",") {
    const bool ends = c == ',' || c == ' ' || c == '[' || c == ']' || c == '"' || c == '\'';
    if (!ends) word += c;
    if (ends && !word.empty()) result.push_back(std::exchange(word, {}));
  }
  return result;
}

bool KeyReader::is_harmless(std::string_view key) const {
  if (key.starts_with("no_") && is_harmless(key.substr(3))) return true;
  return std::any_of(tables_.begin(), tables_.end(), [&](const KeyTable& t) { return listed(t.harmless, key); });
}

bool KeyReader::leads_further(const std::string& key) const {
  const std::string prefix = key + ".";
  for (const KeyTable& table : tables_) {
    for (const KeyRow& known : table.rows) {
      if (known.key.starts_with(prefix)) return true;
    }
    if (table.harmless.find(" " + prefix) != std::string_view::npos || table.harmless.starts_with(prefix)) return true;
  }
  return false;
}

std::string KeyReader::nearest(const std::string& key) const {
  std::vector<std::string_view> words;
  for (const KeyTable& table : tables_) {
    for (const KeyRow& known : table.rows) words.push_back(known.key);
  }
  return std::string(nearest_word(key, words));
}

const KeyRow* KeyReader::known_row(const std::string& key) const {
  if (const KeyRow* known = row(key)) return known;
  return key.starts_with("no_") ? row(std::string_view(key).substr(3)) : nullptr;
}

void KeyReader::record_key(const Value& value, const std::string& key, std::vector<KeyRecord>& records) const {
  KeyRecord record{file_, prefix_ + key, KeyState::unknown, value_text(value), ""};
  if (const KeyRow* known = known_row(key)) {
    const KeyRow* main = known->same_as.empty() ? known : row(known->same_as);
    const bool asked = asked_.contains(std::string(main == nullptr ? known->key : main->key));
    const bool shadowed = main != known && main != nullptr && find(main->key).key != key;
    record.state = asked && !shadowed && !says_nothing(value) ? KeyState::read : KeyState::idle;
    record.note = main == nullptr ? known->meaning : main->meaning;
  } else if (value.is_map() && leads_further(key)) {
    return record_map(value, key + ".", records);
  } else if (is_harmless(key)) {
    record.state = KeyState::harmless;
  } else if (records.size() < kMostGuesses) {
    record.note = nearest(key);
  }
  records.push_back(std::move(record));
}

void KeyReader::record_map(const Value& map, const std::string& path, std::vector<KeyRecord>& records) const {
  for (const auto& [key, value] : map.entries()) record_key(value, path + key, records);
}

std::vector<KeyRecord> KeyReader::records() const {
  std::vector<KeyRecord> records;
  if (map_.is_map()) record_map(map_, "", records);
  for (const std::string& key : asked_) {
    const Found found = find(key);
    if (found.value != nullptr && !says_nothing(*found.value)) continue;
    const KeyTable* table = nullptr;
    const KeyRow* known = row(key, &table);
    if (known == nullptr || known->fallback.empty()) continue;
    records.push_back({file_, prefix_ + key, KeyState::defaulted, std::string(known->fallback),
                       std::string(known->meaning) + "; " + source_of(*table, *known)});
  }
  return records;
}

}  // namespace membill::io
